/** The files of a new pack, and its place in the list. Takes names and texts, gives texts. */

export const isPackName = (name: string): boolean => /^[a-z][a-z0-9]{0,19}$/.test(name);

/** The list with one more pack. */
export function withPack(list: string, name: string): string {
  const lines = list.split("\n");
  const last = lines.findLastIndex((line) => line.startsWith("import "));
  lines.splice(last + 1, 0, `import { ${name} } from "./${name}/index.ts";`);
  return lines
    .join("\n")
    .replace(/packList\(\[([^\]]*)\]\)/, (_, names: string) => `packList([${names === "" ? name : `${names}, ${name}`}])`);
}

/** By path from the root. */
export function newPack(name: string): ReadonlyMap<string, string> {
  const folder = `gateway/packs/${name}`;
  return new Map([
    [
      `${folder}/index.ts`,
      `/** The pack ${name}. Only what must be known before it is on. */
import type { PackDefinition } from "../../src/packs/pack.ts";

export const ${name}: PackDefinition = {
  name: "${name}",
  doc: "Say in one sentence what the pack does.",
  settings: {
    greeting: { doc: "A word, such as hello.", problem: (value) => (/^\\w{1,32}$/.test(value) ? undefined : "it is not one word.") },
  },
  secrets: {},
  load: async () => (await import("./${name}.lazy.ts")).content,
};
`,
    ],
    [
      `${folder}/${name}.lazy.ts`,
      `/** The part of the pack that is loaded when it is on. */
import { Type } from "typebox";
import type { PackContent } from "../../src/packs/pack.ts";
import { packTool, packTopic } from "../../src/packs/schema.ts";
import { failure, succeed } from "../../src/ports/result.ts";
import { AGENTS } from "./gen/agents.ts";

const plain = { additionalProperties: false } as const;

export const content: PackContent = {
  agents: AGENTS,
  tools: [
    packTool({
      name: "${name}_greet",
      description: "Greets a person.",
      policyClass: "read_private",
      input: Type.Object({ person: Type.String({ minLength: 1, maxLength: 64 }) }, plain),
      run: async ({ person }, { settings: { greeting } }) => {
        if (greeting === undefined) return failure("pack.not_configured", "Set packs.settings.${name}.greeting.");
        return succeed(\`\${greeting}, \${person}\`);
      },
    }),
  ],
  topics: [
    packTopic({
      name: "${name}_actions",
      version: 1,
      doc: "${name}_actions does something outside, after your human's word: {what}.",
      needsApproval: true,
      payload: Type.Object({ what: Type.String({ minLength: 1, maxLength: 500 }) }, plain),
      text: ({ what }) => \`Do this? \${what}\`,
      // Change nothing twice for one event.idempotency_key.
      handle: async () => succeed(undefined),
    }),
  ],
};
`,
    ],
    [
      `${folder}/${name}.unit.test.ts`,
      `/** The pack ${name}: its tool and its topic. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PackContext } from "../../src/packs/pack.ts";
import { content } from "./${name}.lazy.ts";
import { ${name} } from "./index.ts";

const context = (settings: Record<string, string>): PackContext => ({
  settings,
  secrets: {},
  fetch: () => Promise.reject(new Error("no network")),
  signal: new AbortController().signal,
  excerpt: (text, chars) => text.slice(0, chars),
  limit: () => new AbortController().signal,
  wait: () => Promise.resolve(),
  now: () => 0,
});

test("the tool greets with the word that is set", async () => {
  const [tool] = content.tools;
  assert.ok(tool?.problem({ person: "" }) !== undefined);
  assert.deepEqual(await tool.run({ person: "Ann" } as never, context({ greeting: "hello" }), "c1"), { ok: true, value: "hello, Ann" });
  const { greeting } = ${name}.settings;
  assert.equal(greeting?.problem("hello"), undefined);
  assert.equal(greeting?.problem("two words"), "it is not one word.");
});
test("the topic takes what fits its schema", () => {
  const [topic] = content.topics;
  assert.equal(topic?.problem({ what: "open the door" }), undefined);
  assert.match(topic?.problem({}) ?? "", /what/);
});
`,
    ],
    [
      `${folder}/agents/agent-${name}/agent.yaml`,
      `metadata:
  id: agent-${name}
  name: ${name}
  version: 0.1.0
  description: Say in one sentence what the agent does.
core_context:
  system_prompt: { file: ./${name}.prompt.md }
  hard_constraints: ["Say a rule that always holds."]
tools: { allowed: [${name}_greet] }
events: { emit: [${name}_actions] }
autonomy: { max_iterations: 8, time_budget_ms: 300000, cost_budget_usd: 0.2 }
`,
    ],
    [`${folder}/agents/agent-${name}/${name}.prompt.md`, "Say what the agent does, step by step.\n"],
  ]);
}
