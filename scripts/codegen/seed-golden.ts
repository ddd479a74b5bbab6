/**
 * Writes examples to protocol/golden/<Type>.jsonl, one example a line. They are committed, and the tests of both languages read
 * them. A change of the contract that makes a committed example invalid breaks the wire and needs a decision.
 *   node scripts/codegen/seed-golden.ts            write the files of types that have none
 *   node scripts/codegen/seed-golden.ts Type ...   write the files of the named types again
 *   node scripts/codegen/seed-golden.ts --all      write every file again; remove everything else from the folder
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildModel } from "./build-model.ts";
import { examples } from "./examples.ts";
import { ContractError, type TypeDef } from "./model.ts";

const GOLDEN = join(dirname(fileURLToPath(import.meta.url)), "../../protocol/golden");
const fileOf = (type: TypeDef): string => join(GOLDEN, `${type.name}.jsonl`);

const contract = await import("../../protocol/src/index.ts");
const model = buildModel(contract, contract.VALIDATED);
const args = process.argv.slice(2);
const isAll = args.includes("--all");
for (const name of args) if (name !== "--all" && !model.typeByName.has(name)) throw new ContractError(`there is no type ${name}`);

const wanted = (type: TypeDef): boolean => isAll || args.includes(type.name) || (args.length === 0 && !existsSync(fileOf(type)));
if (isAll) rmSync(GOLDEN, { recursive: true, force: true });
mkdirSync(GOLDEN, { recursive: true });
let written = 0;
for (const type of model.types.filter(wanted)) {
  const lines = examples(model, type).map((example) => `${JSON.stringify(example)}\n`);
  writeFileSync(fileOf(type), lines.join(""));
  written += lines.length;
}
console.log(`${written} examples written`);
