/**
 * The mutation lane: makes one-line mistakes in a copy of the product, one at a time, and runs the tests that should notice.
 * `--help` says how it is used; `judge.ts` says when a mistake counts as caught.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { transformSync } from "esbuild";
import { isPure } from "../check/dependency-rules.ts";
import { ROOT } from "../lib/root.ts";
import { inTurn } from "./choose.ts";
import { type Fate, judgeWith } from "./judge.ts";
import { type Mutation, mutationsOf } from "./mutations.ts";
import { type Area, HELP, optionsOf } from "./options.ts";
import { resultsOf, textOf } from "./results.ts";
import { type Accepted, acceptedBy, entryProblems } from "./survivors.ts";
import { importers, isTestFile, suitesOf } from "./tests-of.ts";
import { treeAt } from "./tree.ts";

const RULES: Readonly<Record<Area, { readonly has: (file: string, text: string) => boolean; readonly count: number }>> = {
  /** Pure cores decide, so each wrong decision must be noticed. Drivers are proven by the kill matrix. */
  cores: { has: (file, text) => /^(?:gateway|channels)\/.*\.ts$/.test(file) && isPure(file, text), count: 100 },
  kit: { has: (file, text) => /^channels\/kit\/src\/.*\.ts$/.test(file) && !isPure(file, text), count: 40 },
  crates: { has: (file) => /^crates\/gsv-(?:link|tools)\/src\/.*\.rs$/.test(file), count: 30 },
};
const LEAST_RATE = 0.95;
const NOT_FINISHED = 3;

const options = optionsOf(process.argv.slice(2));
if (options === "help") {
  console.log(HELP);
  process.exit(0);
}
if ("error" in options) {
  console.error(`${options.error}\nShow the options: node scripts/mutants/main.ts --help`);
  process.exit(2);
}
const { areas, seed, count, minutes, report } = options;
const endsAt = minutes === undefined ? Number.POSITIVE_INFINITY : performance.now() + minutes * 60_000;

const folder = options.state ?? mkdtempSync(join(tmpdir(), "gsv-mutants-"));
if (options.state === undefined) process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
mkdirSync(folder, { recursive: true });
const { sources, hash, runSuite } = await treeAt(join(folder, "tree"));

const resultsFile = join(folder, "results.json");
const results = resultsOf(existsSync(resultsFile) ? readFileSync(resultsFile, "utf8") : undefined, hash);
const { controls, broken } = results;
const save = (): void => writeFileSync(resultsFile, textOf(results));

const importersOf = importers(sources);
const accepted = JSON.parse(readFileSync(join(ROOT, "scripts", "mutants", "survivors.json"), "utf8")) as readonly Accepted[];
const judge = judgeWith(runSuite, controls, broken);
const named = ({ file, line, change, from, to }: Mutation): string => `${file}:${line} (${change})\n      ${from}\n      ${to}`;

function isScript({ file, mutant }: Mutation): boolean {
  if (file.endsWith(".rs")) return true;
  try {
    transformSync(mutant, { loader: "ts" });
    return true;
  } catch {
    return false;
  }
}
async function fateOf(mutation: Mutation): Promise<Fate> {
  const key = [mutation.file, mutation.line, mutation.from, mutation.to].join("\n");
  const known = results.fates.get(key);
  if (known !== undefined) return known;
  const { fate } = isScript(mutation) ? await judge(mutation, suitesOf(mutation.file, importersOf)) : { fate: "not compiled" as const };
  results.fates.set(key, fate);
  save();
  if (fate === "survived" && acceptedBy(mutation, accepted) === undefined) console.log(`  survived: ${named(mutation)}`);
  return fate;
}

const problems = entryProblems(accepted, sources);
const low: string[] = [];
const sum = { passed: 0, skipped: 0 };
async function rateOf(area: Area): Promise<void> {
  const rule = RULES[area];
  const files = [...sources].filter(([file, text]) => rule.has(file, text) && !isTestFile(file));
  const [tested, untested] = [files, files].map((all, index) =>
    all.filter(([file]) => suitesOf(file, importersOf).length > 0 === (index === 0)).flatMap(([file, text]) => mutationsOf(file, text)),
  ) as [Mutation[], Mutation[]];
  const wanted = count ?? rule.count;
  console.log(`${area}: ${wanted} of ${tested.length} possible mistakes in ${new Set(tested.map(({ file }) => file)).size} files`);
  if (untested.length > 0)
    console.log(`  left out, because no test imports them: ${[...new Set(untested.map(({ file }) => file))].join(", ")}`);
  const survivors: Mutation[] = [];
  let caught = 0;
  let equivalent = 0;
  for (const mutation of inTurn(tested, seed)) {
    if (caught + survivors.length >= wanted) break;
    if (performance.now() > endsAt) {
      console.log(`${area}: ${caught} of ${caught + survivors.length} so far. Run the same command again to continue.`);
      process.exit(NOT_FINISHED);
    }
    const fate = await fateOf(mutation);
    if (fate === "not compiled") continue;
    if (acceptedBy(mutation, accepted) !== undefined) {
      equivalent += 1;
      if (fate === "caught") problems.push(`A test catches this now. Take it out of scripts/mutants/survivors.json: ${named(mutation)}`);
    } else if (fate === "caught") caught += 1;
    else survivors.push(mutation);
  }
  const total = caught + survivors.length;
  const rate = total === 0 ? 0 : caught / total;
  const percent = (Math.floor(rate * 1000) / 10).toFixed(1);
  console.log(`${area}, seed ${seed}: ${caught} of ${total} mistakes caught: ${percent} %; ${equivalent} accepted with a reason`);
  sum.passed += caught;
  sum.skipped += equivalent + (rate < LEAST_RATE ? 0 : survivors.length);
  if (rate < LEAST_RATE) low.push(...survivors.map(named), ...(total === 0 ? [`${area}: no mistake was tried`] : []));
}

try {
  if (problems.length === 0) for (const area of areas) await rateOf(area);
} catch (error) {
  problems.push(error instanceof Error ? error.message : String(error));
} finally {
  save();
}
for (const [suite, verdict] of broken) problems.push(`${suite}: ${verdict} without a mistake, so it could not judge one. Fix it.`);
for (const problem of problems) console.log(problem);
const failures = [...problems, ...low];
if (report !== undefined) writeFileSync(report, JSON.stringify({ ...sum, failed: failures.length, failures }));
process.exit(failures.length > 0 ? 1 : 0);
