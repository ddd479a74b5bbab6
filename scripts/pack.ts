/**
 * Makes a new pack:
 *
 *   npm run pack -- new NAME
 *
 * Writes `gateway/packs/NAME` with one agent, one tool, one topic and a test, and adds it to the list in `gateway/packs/index.ts`. It
 * passes `npm run check` as it is. Overwrites nothing.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { packAgents } from "./codegen/pack-agents.ts";
import { ROOT } from "./lib/root.ts";
import { isPackName, newPack, withPack } from "./lib/new-pack.ts";

const USAGE = "Usage: npm run pack -- new NAME\n\nNAME has a-z and 0-9, a letter first, at most 20 characters, such as clinic.";

function make(root: string, name: string): string | undefined {
  if (!isPackName(name)) return `${JSON.stringify(name)} is no name of a pack.\n\n${USAGE}`;
  const list = join(root, "gateway", "packs", "index.ts");
  if (existsSync(join(root, "gateway", "packs", name))) return `gateway/packs/${name} exists already.`;
  const files = newPack(name);
  for (const [path, text] of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  writeFileSync(list, withPack(readFileSync(list, "utf8"), name));
  for (const [path, text] of packAgents(root)) {
    if (!path.startsWith(`gateway/packs/${name}/`)) continue;
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  console.log(`gateway/packs/${name} is made and listed. Test it: node --test gateway/packs/${name}/${name}.unit.test.ts`);
  console.log("After each change of an agent: npm run codegen. docs/packs.md says what else belongs to a pack.");
  return undefined;
}

const [command, name = "", root = ROOT] = process.argv.slice(2);
const problem = command === "new" ? make(root, name) : USAGE;
if (problem !== undefined) {
  console.error(problem);
  process.exitCode = 2;
}
