/** Definitions of agents with the built program, a real gateway, a real node and a fake model: from a folder to what a run may do, and back. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type FakeModel, Machine, type NodeProcess, startFakeModel, until } from "./support.ts";

interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}
const ROLE = "You sort the orders of a shop. Marker 7431.";
const RULE = "Never promise a refund.";
const yaml = (autonomy = "{}", tools = "[gsv__ReadFile, laptop__Read]"): string => `# the owner's own comment
metadata: { id: sorter, name: sorter, version: 0.1.0 }
core_context: { system_prompt: { file: ./sorter.prompt.md }, hard_constraints: ["${RULE}"] }
characteristics: { tone: warm }
tools: { allowed: ${tools} }
autonomy: ${autonomy}
`;

describe("[AD1] to [AD11] agent.yaml", () => {
  const machine = new Machine();
  const folder = join(machine.folder, "sorter");
  let fake: FakeModel;
  let node: NodeProcess;
  const write = (text: string): void => writeFileSync(join(folder, "agent.yaml"), text);
  async function define(text: string): Promise<string> {
    write(text);
    const { code, stdout, stderr } = await machine.gsv(["agent", "define", folder]);
    assert.equal(code, 0, `${stdout}\n${stderr}`);
    return stderr;
  }
  const inForce = (): Promise<string> => machine.ok("agent", "show", "sorter", "--yaml");
  const lastAsked = (): Asked => fake.requests.at(-1)?.body as unknown as Asked;
  const systemOf = ({ messages }: Asked): string => JSON.stringify(messages.filter(({ role }) => role !== "user" && role !== "assistant"));
  const namesOf = ({ tools = [] }: Asked): readonly string[] => tools.map((tool) => tool.function.name).sort();
  const chat = (message: string, ...more: string[]) => machine.gsv(["chat", "--agent", "sorter", ...more, message]);
  const codeOf = (stderr: string): string => /gsv approval allow ([2-9A-Z]{5})/.exec(stderr)?.[1] ?? assert.fail(stderr);
  const idle = (): Promise<unknown> =>
    until("the run ends", async () => {
      const stats = await machine.ok("session", "stats", "agent:sorter:cli:dm:main", "--json");
      return !(JSON.parse(stats) as { isProcessing: boolean }).isProcessing || undefined;
    });

  before(async () => {
    fake = await startFakeModel();
    mkdirSync(folder);
    writeFileSync(join(folder, "sorter.prompt.md"), ROLE);
    await machine.up();
    await machine.useModel(fake);
    node = await machine.node("laptop");
    writeFileSync(node.file("order.txt"), "order 1042\n");
  });
  after(async () => {
    await machine.end();
    await fake.close();
  });

  it("[AD1] validate lists each mistake with its place, and says what is right", async () => {
    write(yaml().replace("tools:", "tool:").replace("tone: warm", "tone: 7"));
    const wrong = await machine.gsv(["agent", "validate", folder]);
    assert.equal(wrong.code, 1);
    const file = join(folder, "agent.yaml");
    assert.deepEqual(
      wrong.stdout.split("\n").map((line) => line.replace(file, "agent.yaml").split(": ").slice(0, 2).join(": ")),
      ["agent.yaml:5: tool", "agent.yaml:4: characteristics.tone", ""],
    );
    assert.match(wrong.stderr, /has 2 mistakes, so it was not applied/);
    assert.equal((await machine.gsv(["agent", "define", folder])).code, 1);
    assert.equal((await machine.gsv(["agent", "show", "sorter"])).code, 1, "no agent was created");
    write(yaml());
    const right = await machine.ok("agent", "validate", folder);
    assert.match(right, /agent\.yaml is right\.\nagent +sorter\nname +sorter, version 0\.1\.0\nrole +You sort the orders/);
    const json = JSON.parse(await machine.ok("agent", "validate", join(folder, "agent.yaml"), "--json")) as {
      problems: unknown[];
      definition: { tools: unknown };
    };
    assert.deepEqual([json.problems, json.definition.tools], [[], { allowed: ["gsv__ReadFile", "laptop__Read"] }]);
    assert.equal((await machine.gsv(["agent", "show", "sorter"])).code, 1, "validate changes nothing");
  });

  it("[AD4] [AD6] [AD10] define creates the agent; the model gets its role and rules, and its tools alone", async () => {
    assert.match(await define(yaml()), /The agent sorter was created\. Talk to it: `gsv chat --agent sorter`/);
    assert.match(await define(yaml("{ max_iterations: 9 }")), /The definition of sorter applies from its next run on\./);
    assert.equal((await chat("say hello")).stdout.trim(), "hello");
    const asked = lastAsked();
    for (const part of [ROLE, RULE, "tone: warm"]) assert.ok(systemOf(asked).includes(part), part);
    assert.ok(!asked.messages.some(({ role, content }) => role === "user" && JSON.stringify(content).includes(ROLE)));
    assert.deepEqual(namesOf(asked), ["gsv__ReadFile", "laptop__Read"]);
    assert.match((await chat('call laptop__Read {"path":"order.txt"}')).stdout, /order 1042/);
    const shown = await machine.ok("agent", "show", "sorter");
    assert.match(shown, /Current definition\n[\s\S]*tools +gsv__ReadFile, laptop__Read\nlimits +9 model calls a run/);
    const layers = await machine.ok("prompt", "show", "--layers", "-s", "agent:sorter:cli:dm:main");
    assert.match(layers, /^1 core +[1-9][\s\S]*^2 characteristics +[1-9][\s\S]*^3 shared[\s\S]*2 tools[\s\S]*^6 memory/m);
  });

  it("[AD6] a call outside ends the run with the sentence and status 3; nothing runs, and the audit has it", async () => {
    const { code, stderr } = await chat('call laptop__Bash {"command":"echo no >> outside.txt"}');
    assert.equal(code, 3, stderr);
    assert.match(stderr, /The agent tried to use laptop__Bash, which its definition does not allow.*\[autonomy\.boundary\]/);
    assert.deepEqual(node.lines("outside.txt"), []);
    assert.match(await machine.ok("audit"), /laptop__Bash.*denied|denied.*laptop__Bash/);
    assert.equal((await chat("say still here")).stdout.trim(), "still here");
  });

  it("[AD7] requires_approval asks for each call, although everything is allowed", async () => {
    await define(yaml("{ requires_approval: ['laptop__*'] }", "['laptop__*']"));
    for (const word of ["one", "two"]) {
      const { code, stderr } = await chat(`call laptop__Bash {"command":"echo ${word} >> asked.txt"}`);
      assert.equal(code, 5, stderr);
      assert.match(stderr, /autonomy\.requires_approval/);
      const asked = codeOf(stderr);
      const longer = await machine.gsv(["approval", "allow", asked, "--for", "1h"]);
      assert.equal(longer.code, 2, longer.stderr);
      await machine.ok("approval", "allow", asked);
      await idle();
    }
    assert.deepEqual(node.lines("asked.txt"), ["one", "two"]);
  });

  it("[AD8] max_iterations stops the run and asks, with the name of the definition's field", async () => {
    await define(yaml("{ max_iterations: 1 }"));
    const { code, stderr } = await chat('call laptop__Read {"path":"order.txt"}');
    assert.equal(code, 5, stderr);
    assert.match(stderr, /The run used up its 1 step\. \(autonomy\.max_iterations\)\n *\| Continue with 1 more step\?/);
    await machine.ok("approval", "deny", codeOf(stderr));
    await idle();
  });

  it("[AD4] a broken text changes nothing, by pipe and by folder, and a change in the workspace has no effect", async () => {
    const good = yaml("{ max_iterations: 5 }");
    await define(good);
    const broken = `${good}tool: 1\n`;
    const piped = await machine.gsv(["agent", "edit", "sorter"], { input: broken });
    assert.equal(piped.code, 1);
    assert.match(piped.stdout, /^agent\.yaml:7: tool: /);
    write(broken);
    assert.equal((await machine.gsv(["agent", "define", folder])).code, 1);
    const other = await machine.gsv(["agent", "edit", "sorter"], {
      input: "metadata: { id: other, name: other }\ncore_context: { system_prompt: Hello. }\n",
    });
    assert.equal(other.code, 1);
    assert.match(other.stdout, /metadata\.id: This is the definition of sorter/);
    assert.equal(await inForce(), good);
    const stored = join(machine.home, "workspace", "agents", "sorter", "agent.yaml");
    assert.equal(readFileSync(stored, "utf8"), good);
    writeFileSync(stored, broken);
    assert.match(await machine.ok("agent", "show", "sorter"), /changed +agent\.yaml: without effect/);
    assert.equal(await inForce(), good);
    // The prompt's file need not be sent again: the agent's own one is taken.
    const next = good.replace("tone: warm", "tone: cool");
    assert.equal((await machine.gsv(["agent", "edit", "sorter"], { input: next })).code, 0);
    assert.equal(await inForce(), next);
    const nothing = await machine.gsv(["agent", "edit", "sorter"]);
    assert.deepEqual([nothing.code, /gsv agent define PATH/.test(nothing.stderr)], [2, true], nothing.stderr);
  });

  it("[AD5] no other way writes agent.yaml, and the refusal names the way", async () => {
    const before = await inForce();
    for (const args of [
      ["workspace", "put", "agent.yaml", join(folder, "agent.yaml")],
      ["workspace", "rm", "agent.yaml"],
      ["workspace", "restore", "agent.yaml"],
    ]) {
      const refused = await machine.gsv([...args, "--agent", "sorter"]);
      assert.equal(refused.code, 3, refused.stderr);
      assert.match(refused.stderr, /gsv agent edit sorter/);
    }
    assert.equal(await inForce(), before);
    const earlier = await machine.ok("workspace", "cat", "agent.yaml", "--agent", "sorter", "--version", "1");
    assert.notEqual(earlier, before);
  });

  it("[AD4] workerd is killed between and in the middle of two definitions: one whole definition is in force", async () => {
    const texts = ["tone: one", "tone: two"].map((tone) => yaml().replace("tone: warm", tone));
    await define(texts[0] ?? "");
    for (const delay of [0, 20, 50]) {
      write(texts[1] ?? "");
      const running = machine.gsv(["agent", "define", folder]);
      const due = performance.now() + delay;
      while (performance.now() < due) await new Promise(setImmediate);
      await machine.killWorkerd();
      const { code } = await running;
      const text = await inForce();
      assert.ok(code === 0 ? text === texts[1] : texts.includes(text), `${delay} ms: ${code}\n${text}`);
      assert.equal((await chat("say whole")).stdout.trim(), "whole");
      const tone = text === texts[1] ? "tone: two" : "tone: one";
      assert.ok(systemOf(lastAsked()).includes(tone) && systemOf(lastAsked()).includes(ROLE), tone);
      await define(texts[0] ?? "");
    }
  });

  it("[AD11] undefine gives the defaults back; files and conversations stay", async () => {
    const refused = await machine.gsv(["agent", "undefine", "sorter"]);
    assert.deepEqual([refused.code, /--yes/.test(refused.stderr)], [2, true]);
    await machine.ok("agent", "undefine", "sorter", "--yes");
    assert.match(await machine.ok("agent", "show", "sorter"), /No definition: every tool/);
    assert.equal(existsSync(join(machine.home, "workspace", "agents", "sorter", "agent.yaml")), false);
    assert.equal(existsSync(join(machine.home, "workspace", "agents", "sorter", "sorter.prompt.md")), true);
    assert.equal((await chat("say free")).stdout.trim(), "free");
    assert.ok(!systemOf(lastAsked()).includes(ROLE));
    assert.ok(namesOf(lastAsked()).includes("laptop__Bash"));
    const earlier = await machine.ok("workspace", "cat", "agent.yaml", "--agent", "sorter", "--version", "1");
    assert.equal((await machine.gsv(["agent", "edit", "sorter"], { input: earlier })).code, 0);
    assert.equal(await inForce(), earlier);
  });
});
