/**
 * The agents of the packs as code: `gateway/packs/NAME/agents/ID/agent.yaml` and the Markdown files beside it become
 * `gateway/packs/NAME/gen/agents.ts`, because a bundle and a test read no files. Checks nothing: the gateway's own reader does, and a test
 * of all packs calls it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

export const PACKS_FOLDER = "gateway/packs";

interface Known {
  readonly metadata?: { readonly id?: unknown; readonly name?: unknown };
  readonly sub_agents?: unknown;
}
const folders = (path: string): string[] =>
  existsSync(path)
    ? readdirSync(path, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name)
        .sort()
    : [];

/** Every generated file, with its text, by its path from `root`. */
export function packAgents(root: string): Map<string, string> {
  const files = new Map<string, string>();
  for (const pack of folders(join(root, PACKS_FOLDER))) {
    const agents = join(root, PACKS_FOLDER, pack, "agents");
    if (!existsSync(agents)) continue;
    const bundled = folders(agents).map((folder) => {
      const text = readFileSync(join(agents, folder, "agent.yaml"), "utf8");
      const { metadata = {}, sub_agents: subAgents = [] } = (parse(text) ?? {}) as Known;
      const prompts = readdirSync(join(agents, folder))
        .filter((name) => name.endsWith(".md"))
        .sort()
        .map((name) => [name, readFileSync(join(agents, folder, name), "utf8")]);
      return { id: metadata.id, name: metadata.name, subAgents, text, files: Object.fromEntries(prompts) };
    });
    files.set(
      `${PACKS_FOLDER}/${pack}/gen/agents.ts`,
      `// Written by \`npm run codegen\` from ../agents. Do not edit.\nimport type { BundledAgent } from "../../../src/packs/pack.ts";\n\nexport const AGENTS: readonly BundledAgent[] = ${JSON.stringify(bundled, null, 2)};\n`,
    );
  }
  return files;
}
/** The generated files that are there. */
export const presentAgents = (root: string): string[] =>
  folders(join(root, PACKS_FOLDER)).flatMap((pack) => {
    const gen = join(root, PACKS_FOLDER, pack, "gen");
    return existsSync(gen) ? readdirSync(gen).map((name) => `${PACKS_FOLDER}/${pack}/gen/${name}`) : [];
  });
