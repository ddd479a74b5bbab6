/**
 * Writes examples to protocol/golden/<Type>/. They are committed and read by the tests of both languages; a change of the
 * contract that makes a committed example invalid is a break that someone must mean.
 *   node scripts/codegen/seed-golden.ts            examples for types that have none
 *   node scripts/codegen/seed-golden.ts Type ...   the named types again
 *   node scripts/codegen/seed-golden.ts --all      every type again; folders of types that are gone are removed
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildModel, ContractError, type TypeDef } from "./model.ts";
import { examples } from "./samples.ts";

const GOLDEN = join(dirname(fileURLToPath(import.meta.url)), "../../protocol/golden");

const contract = await import("../../protocol/src/index.ts");
const model = buildModel(contract, contract.VALIDATED);
const args = process.argv.slice(2);
for (const name of args) if (name !== "--all" && !model.typeByName.has(name)) throw new ContractError(`there is no type ${name}`);

const wanted = (type: TypeDef): boolean =>
  args.includes("--all") || args.includes(type.name) || (args.length === 0 && !existsSync(join(GOLDEN, type.name)));
mkdirSync(GOLDEN, { recursive: true });
if (args.includes("--all")) {
  for (const entry of readdirSync(GOLDEN, { withFileTypes: true }))
    if (entry.isDirectory()) rmSync(join(GOLDEN, entry.name), { recursive: true });
}
let written = 0;
for (const type of model.types.filter(wanted)) {
  const folder = join(GOLDEN, type.name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const example of examples(model, type)) {
    writeFileSync(join(folder, `${example.name}.json`), `${JSON.stringify(example.value, null, 2)}\n`);
    written++;
  }
}
console.log(`${written} examples written`);
