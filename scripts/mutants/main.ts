/**
 * The mutation lane: makes one-line mistakes in a copy of the product, one at a time, and runs the tests that should notice.
 *
 *   node scripts/mutants/main.ts [--area cores|kit|crates]... [--count N] [--seed N] [--report FILE]
 *
 * Prints each survivor, then the rate of mistakes that were caught. Fails below 95 %, when a survivor of `survivors.json` no longer
 * survives, and when the tests fail without a mistake. A mistake that keeps the tests from ending is not caught: it is a survivor.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { transformSync } from "esbuild";
import { OFFLINE_WRANGLER, ROOT } from "../lib/root.ts";
import { run } from "../lib/run.ts";
import { isPure } from "../check/dependency-rules.ts";
import { type Accepted, inTurn, isAccepted } from "./choose.ts";
import { type Mutation, mutationsOf } from "./mutations.ts";
import { importers, isTestFile, joined, type Suite, suitesOf } from "./tests-of.ts";

/** Pure cores decide, so each wrong decision must be noticed. Drivers are proven by the kill matrix. */
const AREAS: Readonly<Record<string, { readonly has: (file: string, text: string) => boolean; readonly count: number }>> = {
  cores: { has: (file, text) => /^(?:gateway|channels)\/.*\.ts$/.test(file) && isPure(file, text), count: 100 },
  kit: { has: (file, text) => /^channels\/kit\/src\/.*\.ts$/.test(file) && !isPure(file, text), count: 20 },
  crates: { has: (file) => /^crates\/gsv-(?:link|tools|node)\/src\/.*\.rs$/.test(file), count: 40 },
};
const LEAST_RATE = 0.95;
/** Longer than any suite takes on a busy machine. */
const SUITE_LIMIT_MS = 600_000;

const { values } = parseArgs({
  options: {
    area: { type: "string", multiple: true },
    count: { type: "string" },
    seed: { type: "string", default: "1" },
    report: { type: "string" },
  },
});
const areas = Object.entries(AREAS).filter(([name]) => values.area?.includes(name) ?? true);

const tracked = (await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: ROOT })).stdout
  .split("\0")
  .filter((path) => path !== "");
const copy = mkdtempSync(join(tmpdir(), "gsv-mutants-"));
process.on("exit", () => rmSync(copy, { recursive: true, force: true }));
for (const path of tracked) {
  mkdirSync(dirname(join(copy, path)), { recursive: true });
  cpSync(join(ROOT, path), join(copy, path));
}
const installed = (await run("git", ["ls-files", "-z", "--others", "--directory", "--ignored", "--exclude-standard"], { cwd: ROOT })).stdout
  .split("\0")
  .filter((path) => path.endsWith("node_modules/"));
for (const path of installed) symlinkSync(join(ROOT, path), join(copy, path.slice(0, -1)));

const sources = new Map(
  tracked.filter((path) => /\.(?:ts|rs)$/.test(path)).map((path): [string, string] => [path, readFileSync(join(ROOT, path), "utf8")]),
);
const importersOf = importers(sources);
const accepted = JSON.parse(readFileSync(join(ROOT, "scripts", "mutants", "survivors.json"), "utf8")) as readonly Accepted[];

type Verdict = "passed" | "failed" | "not compiled" | "not ended";
async function runSuite(suite: Suite): Promise<Verdict> {
  const limited = (program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    run("timeout", ["--kill-after=10", String(SUITE_LIMIT_MS / 1000), program, ...args], { cwd: copy, env });
  switch (suite.runner) {
    case "node": {
      const { code } = await limited(process.execPath, ["--test", "--test-timeout=300000", ...suite.files], { GSV_SIM_FACTOR: "0.2" });
      return verdict(code);
    }
    case "workerd": {
      const vitest = join("node_modules", "vitest", "vitest.mjs");
      const args = ["run", "--bail=1", "--config", join("gateway", "vitest.config.ts"), ...suite.paths];
      return verdict((await limited(process.execPath, [vitest, ...args], OFFLINE_WRANGLER)).code);
    }
    case "cargo": {
      const cargo = ["test", "--locked", "--package", suite.package, ...suite.args];
      const env = { CARGO_TARGET_DIR: join(ROOT, "target", "mutants"), CARGO_TERM_COLOR: "never", RUSTFLAGS: "-Awarnings" };
      const built = await limited("cargo", [...cargo, "--no-run"], env);
      if (built.code !== 0) return built.code >= 124 ? "not ended" : "not compiled";
      return verdict((await limited("cargo", cargo, env)).code);
    }
  }
}
/** `timeout` ends with 124, and with 137 when it had to kill. */
const verdict = (code: number): Verdict => (code === 0 ? "passed" : code === 124 || code === 137 ? "not ended" : "failed");

const compiles = ({ file, mutant }: Mutation): boolean => {
  if (file.endsWith(".rs")) return true;
  try {
    transformSync(mutant, { loader: "ts" });
    return true;
  } catch {
    return false;
  }
};

type Fate = "caught" | "survived" | "not compiled";
async function fateOf(mutation: Mutation): Promise<Fate> {
  const path = join(copy, mutation.file);
  const original = sources.get(mutation.file) ?? "";
  if (!compiles(mutation)) return "not compiled";
  writeFileSync(path, mutation.mutant);
  try {
    for (const suite of suitesOf(mutation.file, importersOf)) {
      const found = await runSuite(suite);
      if (found === "not compiled") return "not compiled";
      if (found === "failed") return "caught";
      if (found === "not ended") return "survived";
    }
    return "survived";
  } finally {
    writeFileSync(path, original);
  }
}

/** Tests that fail without a mistake would count every mistake as caught. Returns what failed. */
async function control(chosen: readonly Mutation[]): Promise<string[]> {
  const broken: string[] = [];
  for (const suite of joined(chosen.flatMap(({ file }) => suitesOf(file, importersOf)))) {
    const found = await runSuite(suite);
    if (found !== "passed") broken.push(`${found} without a mistake: ${JSON.stringify(suite)}`);
  }
  return broken;
}

const caught: Mutation[] = [];
const survivors: Mutation[] = [];
const problems: string[] = [];
const named = ({ file, line, change, from, to }: Mutation): string => `${file}:${line} (${change})\n      ${from}\n      ${to}`;
for (const [area, { has, count }] of areas) {
  const files = [...sources].filter(([file, text]) => has(file, text) && !isTestFile(file));
  const all = files.filter(([file]) => suitesOf(file, importersOf).length > 0).flatMap(([file, text]) => mutationsOf(file, text));
  const order = inTurn(all, Number(values.seed));
  const wanted = values.count === undefined ? count : Number(values.count);
  console.log(`${area}: ${wanted} of ${all.length} possible mistakes in ${new Set(all.map(({ file }) => file)).size} files`);
  const before = caught.length;
  problems.push(...(await control(order.slice(0, wanted))));
  let done = 0;
  for (const mutation of order) {
    if (done >= wanted || problems.length > 0) break;
    const fate = await fateOf(mutation);
    if (fate === "not compiled") continue;
    done += 1;
    (fate === "caught" ? caught : survivors).push(mutation);
    if (fate === "survived" && !isAccepted(mutation, accepted)) console.log(`  survived: ${named(mutation)}`);
  }
  console.log(`${area}: ${caught.length - before} of ${done} caught`);
}

const open = survivors.filter((mutation) => !isAccepted(mutation, accepted));
const stale = accepted.filter((one) => caught.some((mutation) => isAccepted(mutation, [one])));
problems.push(...stale.map(({ file, from }) => `${file}: caught now, so take it out of scripts/mutants/survivors.json: ${from}`));
const total = caught.length + open.length;
const rate = total === 0 ? 0 : caught.length / total;
console.log(
  `${caught.length} of ${total} mistakes caught: ${(rate * 100).toFixed(1)} %; ${survivors.length - open.length} accepted with a reason`,
);
for (const problem of problems) console.log(problem);
const failures = [...problems, ...(rate < LEAST_RATE ? open.map(named) : [])];
if (values.report !== undefined) {
  const skipped = survivors.length - (rate < LEAST_RATE ? open.length : 0);
  writeFileSync(values.report, JSON.stringify({ passed: caught.length, failed: failures.length, skipped, failures }));
}
process.exit(failures.length > 0 ? 1 : 0);
