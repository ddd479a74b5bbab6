/**
 * `npm run codegen [-- --check | --release vN [--draft]]`: write everything that is generated from protocol/src, the catalogue of
 * models, and the agents of packs.
 *   (no option)    write protocol/gen, the generated files of crates/gsv-protocol, gateway/src/models/gen and the agents of gateway/packs
 *   --check        write nothing; exit 1 when a committed file has drifted or a released version would break
 *   --release vN   also freeze the schema as protocol/released/vN.json, with which --check compares; a frozen file is never
 *                  overwritten. With --draft the file is marked as a draft: it is not compared and may be replaced
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildModel } from "./build-model.ts";
import { breaks, isDraft, releaseText } from "./compat.ts";
import { driftOf } from "./drift.ts";
import { generate } from "./generate.ts";
import { CATALOGUE_FILE, modelCatalogue } from "./model-catalogue.ts";
import { ContractError } from "./model.ts";
import { packAgents, presentAgents } from "./pack-agents.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
const GEN = "protocol/gen";
const SCHEMA = `${GEN}/protocol.schema.json`;
const RELEASED = "protocol/released";

const readOrNothing = (path: string): string | undefined => {
  try {
    return readFileSync(join(ROOT, path), "utf8");
  } catch {
    return undefined;
  }
};

/** Every file of protocol/gen, which holds only generated files. */
const presentInGen = (): string[] =>
  readdirSync(join(ROOT, GEN), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1));

function compatibility(schema: string): string[] {
  const names = readdirSync(join(ROOT, RELEASED))
    .filter((name) => name.endsWith(".json"))
    .sort();
  return names.flatMap((name) => {
    const frozen: unknown = JSON.parse(readFileSync(join(ROOT, RELEASED, name), "utf8"));
    return isDraft(frozen) ? [] : breaks(frozen, JSON.parse(schema)).map((problem) => `${RELEASED}/${name}: ${problem}`);
  });
}

async function run(args: readonly string[]): Promise<number> {
  const check = args.includes("--check");
  const release = args[args.indexOf("--release") + 1];
  if (args.includes("--release") && (release === undefined || !/^v[1-9][0-9]*$/.test(release))) {
    console.error("usage: node scripts/codegen/main.ts [--check | --release vN [--draft]]");
    return 2;
  }
  const contract = await import("../../protocol/src/index.ts");
  const files = new Map(await generate(buildModel(contract, contract.VALIDATED)));
  files.set(CATALOGUE_FILE, modelCatalogue());
  for (const [path, text] of packAgents(ROOT)) files.set(path, text);
  const schema = files.get(SCHEMA) ?? "{}";
  mkdirSync(join(ROOT, GEN), { recursive: true });
  mkdirSync(join(ROOT, RELEASED), { recursive: true });

  const { drifted, strays } = driftOf(files, readOrNothing, [...presentInGen(), ...presentAgents(ROOT)]);
  if (check) {
    for (const path of drifted) console.error(`drifted: ${path}`);
    for (const path of strays) console.error(`not generated: ${path}`);
    if (drifted.length + strays.length > 0) console.error("run: npm run codegen");
    const broken = compatibility(schema);
    for (const problem of broken) console.error(`breaks ${problem}`);
    if (broken.length > 0) console.error("keep the released shapes and add new ones");
    return drifted.length + strays.length + broken.length > 0 ? 1 : 0;
  }

  for (const path of drifted) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), files.get(path) ?? "");
  }
  for (const path of strays) rmSync(join(ROOT, path));
  if (args.includes("--release")) {
    const path = `${RELEASED}/${release}.json`;
    const existing = readOrNothing(path);
    const frozen = releaseText(existing === undefined ? undefined : JSON.parse(existing), JSON.parse(schema), args.includes("--draft"));
    if (!frozen.ok) throw new ContractError(`${path}: ${frozen.problem}`);
    writeFileSync(join(ROOT, path), frozen.text);
  }
  console.log(`${files.size} files generated, ${drifted.length} changed`);
  return 0;
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof ContractError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
