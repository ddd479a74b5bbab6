/**
 * Runs every kind of test and sums up. Started by `scripts/test`, which first sets up Node and the packages.
 *
 *   ./scripts/test [--only LANE]... [--slow] [--list]
 *
 * Each lane writes a log; failures are named at the end. The last line is always `N passed, N failed[, N skipped]`.
 * The exit status is 0 only if nothing failed and every lane ran at least one test.
 */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { fromCargo, fromNode, fromVitest, judged, total } from "./lib/lanes.ts";
import { OFFLINE_WRANGLER, ROOT } from "./lib/root.ts";
import { type RunResult, run } from "./lib/run.ts";
import type { Outcome } from "./lib/test-reporter.ts";

interface Lane {
  readonly name: string;
  readonly what: string;
  readonly slow?: boolean;
  /** Runs, with its words going to `log`; `report` is a file for the runner's own report. */
  readonly go: (log: string, report: string) => Promise<Outcome>;
}

/** For one test file; the long lanes take longer. */
const TEST_TIMEOUT_MS = 1_200_000;
const read = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "");

/** Files below the root whose path matches, except what is built or installed. */
function files(pattern: RegExp): string[] {
  const found: string[] = [];
  const look = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!["node_modules", "target", "dist", ".git", ".tools", ".wrangler"].includes(entry.name)) look(path);
      } else if (pattern.test(relative(ROOT, path))) found.push(path);
    }
  };
  look(ROOT);
  return found.sort();
}

async function nodeTests(
  pattern: RegExp,
  log: string,
  report: string,
  env: Readonly<Record<string, string>> = {},
  concurrency?: number,
): Promise<Outcome> {
  const chosen = files(pattern);
  if (chosen.length === 0) return judged(null, 0);
  const reporters = [
    `--test-reporter=${join(ROOT, "scripts", "lib", "test-reporter.ts")}`,
    `--test-reporter-destination=${report}`,
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
  ];
  const result = await run(
    process.execPath,
    [
      "--test",
      ...(concurrency === undefined ? [] : [`--test-concurrency=${concurrency}`]),
      `--test-timeout=${TEST_TIMEOUT_MS}`,
      ...reporters,
      ...chosen,
    ],
    {
      cwd: ROOT,
      logFile: log,
      env: { NO_COLOR: "1", ...env },
    },
  );
  return judged(fromNode(read(report)), result.code);
}

const cargo = (args: readonly string[], log: string): Promise<RunResult> =>
  run("cargo", args, { cwd: ROOT, logFile: log, env: { CARGO_TERM_COLOR: "never" } });

/** A command that has no tests of its own: it is one. */
const asOneTest = ({ code, output }: RunResult, name: string): Outcome =>
  code === 0
    ? { passed: 1, failed: 0, skipped: 0, failures: [] }
    : { passed: 0, failed: 1, skipped: 0, failures: [`${name}: ${output.trim().split("\n").slice(-12).join("\n    ")}`] };

/** Each Worker is one test: wrangler can bundle it, and it fits its budget. */
async function bundles(log: string, report: string): Promise<Outcome> {
  const result = await run(process.execPath, [join(ROOT, "scripts", "build.ts"), "--report", report], { cwd: ROOT, logFile: log });
  const json = read(report);
  if (json === "") return asOneTest(result, "scripts/build.ts");
  const { bundles: all, problems } = JSON.parse(json) as { bundles: readonly object[]; problems: readonly string[] };
  const failed = problems.length;
  return judged({ passed: all.length - failed, failed, skipped: 0, failures: problems }, result.code);
}

const targetDir = (): string => process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target");

/** `debug` is what the Rust tests have built already; `release` is what people run, and takes minutes more to build. */
async function endToEnd(
  log: string,
  report: string,
  profile: "debug" | "release",
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const built = await cargo(["build", ...(profile === "release" ? ["--release"] : []), "--locked", "--package", "gsv"], log);
  if (built.code !== 0) return asOneTest(built, `cargo build (${profile})`);
  const bundled = await run(process.execPath, [join(ROOT, "scripts", "build.ts")], { cwd: ROOT, logFile: log });
  if (bundled.code !== 0) return asOneTest(bundled, "scripts/build.ts");
  return nodeTests(
    /^test\/e2e\/.*\.test\.ts$/,
    log,
    report,
    { GSV_BIN: join(targetDir(), profile, "gsv"), GSV_RUNTIME_DIR: join(ROOT, "dist", "runtime"), ...env },
    // They wait more than they work; more than two at once would make their deadlines tell of the machine.
    2,
  );
}

const LANES: readonly Lane[] = [
  {
    name: "check",
    what: "layout, lint, types, generated files, dependency rules",
    go: async (log, report) => {
      const { code } = await run(process.execPath, [join(ROOT, "scripts", "check.ts"), "--json", report], { cwd: ROOT, logFile: log });
      const json = JSON.parse(read(report) || '{"passed":0,"failed":[]}') as { passed: number; failed: string[] };
      return judged(
        {
          passed: json.passed,
          failed: json.failed.length,
          skipped: 0,
          failures: json.failed.map((name) => `${name}: run \`npm run check\` to see how to mend it`),
        },
        code,
      );
    },
  },
  {
    name: "unit",
    what: "pure TypeScript, the contract and its generator, the embedded bucket",
    go: (log, report) =>
      nodeTests(
        /^protocol\/test\/.*\.test\.ts$|\.unit\.test\.ts$|^gateway\/embedded\/.*\.workerd\.test\.ts$|^gateway\/test\/models\/.*\.test\.ts$/,
        log,
        report,
      ),
  },
  {
    name: "sim",
    what: "the session machine under crashes, losses and races",
    go: (log, report) => nodeTests(/^gateway\/test\/sim\/.*\.test\.ts$/, log, report),
  },
  {
    name: "workerd",
    what: "the gateway in the Workers runtime",
    go: async (log, report) => {
      const vitest = join(ROOT, "node_modules", "vitest", "vitest.mjs");
      const result = await run(
        process.execPath,
        [
          vitest,
          "run",
          "--config",
          join(ROOT, "gateway", "vitest.config.ts"),
          "--reporter=default",
          "--reporter=json",
          `--outputFile.json=${report}`,
        ],
        {
          cwd: ROOT,
          logFile: log,
          env: { ...OFFLINE_WRANGLER, NO_COLOR: "1" },
        },
      );
      return judged(fromVitest(read(report)), result.code);
    },
  },
  {
    name: "bundles",
    what: "every Worker as wrangler would deploy it, within its budget",
    go: bundles,
  },
  {
    name: "channels",
    what: "the channels' Workers in the Workers runtime, against fake platforms",
    go: (log, report) => nodeTests(/^channels\/.*\.e2e\.test\.ts$/, log, report, {}, 2),
  },
  {
    name: "clippy",
    what: "lint of all Rust",
    go: async (log) =>
      asOneTest(await cargo(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], log), "clippy"),
  },
  {
    name: "rust",
    what: "all Rust tests",
    go: async (log) => {
      const result = await cargo(["test", "--workspace", "--locked", "--no-fail-fast"], log);
      return judged(fromCargo(result.output), result.code);
    },
  },
  {
    name: "e2e",
    what: "the built gsv program against the real gateway on workerd, with fake model servers",
    go: (log, report) => endToEnd(log, report, "debug"),
  },
  {
    name: "sim-long",
    slow: true,
    what: "ten times the simulated histories",
    go: (log, report) => nodeTests(/^gateway\/test\/sim\/.*\.test\.ts$/, log, report, { GSV_SIM_FACTOR: "10" }),
  },
  {
    name: "e2e-long",
    slow: true,
    what: "end to end with the release build and every kill point many times",
    go: (log, report) => endToEnd(log, report, "release", { GSV_E2E_LONG: "1" }),
  },
  {
    name: "channels-long",
    slow: true,
    what: "channels over the minutes in which the runtime puts idle objects away",
    go: (log, report) => nodeTests(/^channels\/.*\.slow\.test\.ts$/, log, report, {}, 2),
  },
];

const { values } = parseArgs({
  options: { only: { type: "string", multiple: true }, slow: { type: "boolean" }, list: { type: "boolean" } },
});
if (values.list === true) {
  for (const { name, what, slow } of LANES) console.log(`${name.padEnd(10)} ${what}${slow === true ? "   (with --slow)" : ""}`);
  process.exit(0);
}
const unknown = values.only?.find((name) => !LANES.some((lane) => lane.name === name));
if (unknown !== undefined) {
  console.error(`There is no lane ${unknown}. The lanes are ${LANES.map(({ name }) => name).join(", ")}.`);
  process.exit(2);
}
const chosen = LANES.filter(({ name, slow }) =>
  values.only === undefined ? slow !== true || values.slow === true : values.only.includes(name),
);
if (values.slow === true)
  console.log(
    `--slow adds: ${LANES.filter(({ slow }) => slow === true)
      .map(({ name, what }) => `${name} (${what})`)
      .join(", ")}\n`,
  );

const logs = mkdtempSync(join(tmpdir(), "gsv-test-"));
const sum = { passed: 0, failed: 0, skipped: 0 };
const failures: string[] = [];
for (const { name, what, go } of chosen) {
  process.stdout.write(`${name.padEnd(10)} ${what} ... `);
  const started = performance.now();
  const log = join(logs, `${name}.log`);
  let outcome: Outcome;
  try {
    outcome = await go(log, join(logs, `${name}.json`));
  } catch (error) {
    outcome = { passed: 0, failed: 1, skipped: 0, failures: [String(error)] };
  }
  sum.passed += outcome.passed;
  sum.failed += outcome.failed;
  sum.skipped += outcome.skipped;
  console.log(`${total(outcome)} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  if (outcome.failed > 0) failures.push(...outcome.failures.map((failure) => `[${name}] ${failure}`), `[${name}] log: ${log}`);
}
if (failures.length > 0) console.log(`\n${failures.join("\n")}`);
else rmSync(logs, { recursive: true, force: true });
console.log(`\n${total(sum)}`);
process.exit(sum.failed > 0 ? 1 : 0);
