/**
 * `npm run codegen [-- --check | --release vN]`: writes everything that is generated from protocol/src.
 *   (nothing)      writes protocol/gen and the generated files of crates/gsv-protocol
 *   --check        writes nothing; exits 1 when a committed file has drifted or a released version would break
 *   --release vN   also freezes the schema as protocol/released/vN.json, which --check then defends
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { breaks } from "./compat.ts";
import { type Files, generate } from "./generate.ts";
import { buildModel, ContractError } from "./model.ts";

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

/** Files under gen/ that nothing generates any more. */
function strays(files: Files): string[] {
  const found = readdirSync(join(ROOT, GEN), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1));
  return found.filter((path) => !files.has(path)).sort();
}

function compatibility(schema: string): string[] {
  const names = readdirSync(join(ROOT, RELEASED)).filter((name) => name.endsWith(".json")).sort();
  return names.flatMap((name) => {
    const frozen: unknown = JSON.parse(readFileSync(join(ROOT, RELEASED, name), "utf8"));
    return breaks(frozen, JSON.parse(schema)).map((problem) => `${RELEASED}/${name}: ${problem}`);
  });
}

async function run(args: readonly string[]): Promise<number> {
  const check = args.includes("--check");
  const release = args[args.indexOf("--release") + 1];
  if (args.includes("--release") && (release === undefined || !/^v[1-9][0-9]*$/.test(release))) {
    console.error("usage: node scripts/codegen/main.ts [--check | --release vN]");
    return 2;
  }
  const contract = await import("../../protocol/src/index.ts");
  const files = await generate(buildModel(contract, contract.VALIDATED));
  const schema = files.get(SCHEMA) ?? "{}";
  mkdirSync(join(ROOT, GEN), { recursive: true });
  mkdirSync(join(ROOT, RELEASED), { recursive: true });

  if (check) {
    const drifted = [...files].filter(([path, text]) => readOrNothing(path) !== text).map(([path]) => path);
    const stale = strays(files);
    for (const path of drifted) console.error(`drifted: ${path}`);
    for (const path of stale) console.error(`nothing generates: ${path}`);
    if (drifted.length + stale.length > 0) console.error("run: npm run codegen");
    const broken = compatibility(schema);
    for (const problem of broken) console.error(`breaks ${problem}`);
    if (broken.length > 0) console.error("keep what was released and add beside it");
    return drifted.length + stale.length + broken.length > 0 ? 1 : 0;
  }

  let changed = 0;
  for (const [path, text] of files) {
    if (readOrNothing(path) === text) continue;
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), text);
    changed++;
  }
  for (const path of strays(files)) rmSync(join(ROOT, path));
  if (args.includes("--release") && release !== undefined) writeFileSync(join(ROOT, RELEASED, `${release}.json`), schema);
  console.log(`${files.size} files generated, ${changed} changed`);
  return 0;
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof ContractError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
