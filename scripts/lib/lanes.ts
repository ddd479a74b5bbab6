/** Every kind of test, as a lane: how it is run and how its result is counted. Decides neither the order nor what is chosen. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, homedir } from "node:os";
import { delimiter, join, relative } from "node:path";
import { fromCargo, fromCommand, fromLints, fromNode, fromVitest, judged } from "./outcomes.ts";
import type { QuickPlan } from "./quick.ts";
import { OFFLINE_WRANGLER, ROOT } from "./root.ts";
import { type RunResult, run } from "./run.ts";
import type { Outcome } from "./test-reporter.ts";

export interface Lane {
  readonly name: string;
  readonly what: string;
  readonly slow?: boolean;
  /** Compiles and tests nothing; runs in the background while other lanes test. The outcome of a failure, else null. */
  readonly compile?: (log: string) => Promise<Outcome | null>;
  /** Tests; prints to `log`. `report` is a file for the runner's own report. Absent: compiling is all there is. */
  readonly go: (log: string, report: string) => Promise<Outcome>;
  /** Nothing in it depends on time, so it may run in the background too. */
  readonly background?: boolean;
  /** It waits more than it computes: lanes of this kind that follow each other run at once. */
  readonly waits?: boolean;
}

/** For one test file. */
const TEST_TIMEOUT_MS = 1_200_000;
/** Ten times the histories, on a machine that may have other work. */
const LONG_TIMEOUT_MS = 3_600_000;
const BUILT: RegExp = /^ *Finished /m;
const UNIT =
  /^protocol\/test\/.*\.test\.ts$|\.unit\.test\.ts$|^gateway\/embedded\/.*\.workerd\.test\.ts$|^gateway\/test\/models\/.*\.test\.ts$/;
const WORKERD = /^gateway\/test\/.*\.test\.ts$/;
const SIM = /^gateway\/test\/sim\/.*\.test\.ts$/;

const read = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "");

const targetDir = (): string => process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target");

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

interface NodeOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Test files at once; absent: one for each processor. */
  readonly concurrency?: number;
  readonly timeoutMs?: number;
}
async function nodeTests(chosen: readonly string[], log: string, report: string, options: NodeOptions = {}): Promise<Outcome> {
  if (chosen.length === 0) return judged(null, 0);
  const result = await run(
    process.execPath,
    [
      "--test",
      `--test-concurrency=${options.concurrency ?? Math.max(2, availableParallelism())}`,
      `--test-timeout=${options.timeoutMs ?? TEST_TIMEOUT_MS}`,
      `--test-reporter=${join(ROOT, "scripts", "lib", "test-reporter.ts")}`,
      `--test-reporter-destination=${report}`,
      "--test-reporter=spec",
      "--test-reporter-destination=stdout",
      ...chosen,
    ],
    { cwd: ROOT, logFile: log, env: { NO_COLOR: "1", ...options.env } },
  );
  return judged(fromNode(read(report)), result.code);
}

interface CargoOptions {
  /** What cargo is started by. */
  readonly before?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}
/** A first compilation gains nothing from what the compiler keeps for the next one, and writing that takes a part of its time. */
const FIRST: Readonly<Record<string, string>> = existsSync(join(targetDir(), "debug")) ? {} : { CARGO_INCREMENTAL: "0" };
/** Clippy compiles the workspace in place of rustc, so that its lints cost no compilation of their own. */
const LINTER = "clippy-driver";
const HAS_LINTER = (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, LINTER)));
const LINTS: Readonly<Record<string, string>> = HAS_LINTER ? { RUSTC_WORKSPACE_WRAPPER: LINTER } : {};
const cargo = (args: readonly string[], log: string, { before = [], env = {} }: CargoOptions = {}): Promise<RunResult> => {
  const [program = "cargo", ...rest] = [...before, "cargo", ...args];
  return run(program, rest, { cwd: ROOT, logFile: log, env: { CARGO_TERM_COLOR: "never", ...LINTS, ...FIRST, ...env } });
};
/** Compiles below the priority of the tests that run at the same time, because those have deadlines. */
const compile = (args: readonly string[], log: string): Promise<RunResult> => cargo(args, log, { before: ["nice", "-n", "10"] });

let home: string | undefined;
/**
 * An empty home, for the tests of programs that start shells: what the person has in theirs changes no test, and no command waits for what a shell
 * reads there. Not below the folder for temporary files, because that is another one in a sandbox.
 */
function emptyHome(): Readonly<Record<string, string>> {
  if (home === undefined) {
    home = join(targetDir(), "test-home");
    rmSync(home, { recursive: true, force: true });
    mkdirSync(home, { recursive: true });
  }
  const ownFolder = (name: string, folder: string) => ({ [name]: process.env[name] ?? join(homedir(), folder) });
  return {
    HOME: home,
    ...ownFolder("CARGO_HOME", ".cargo"),
    ...ownFolder("RUSTUP_HOME", ".rustup"),
    // The tools that many tests start, such as wrangler, are compiled once.
    NODE_COMPILE_CACHE: join(home, "compiled"),
  };
}

const failedOnly = (outcome: Outcome): Outcome | null => (outcome.failed > 0 ? outcome : null);

async function workerdTests(
  paths: readonly string[],
  log: string,
  report: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const vitest = join(ROOT, "node_modules", "vitest", "vitest.mjs");
  const config = join(ROOT, "gateway", "vitest.config.ts");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const result = await run(process.execPath, [vitest, "run", "--config", config, ...reporters, ...paths], {
    cwd: ROOT,
    logFile: log,
    env: { ...OFFLINE_WRANGLER, NO_COLOR: "1", ...env },
  });
  return judged(fromVitest(read(report)), result.code);
}

/** Each Worker is one test: wrangler can bundle it, and it fits its budget. */
async function bundles(log: string, report: string): Promise<Outcome> {
  const result = await run(process.execPath, [join(ROOT, "scripts", "build.ts"), "--report", report], { cwd: ROOT, logFile: log });
  const json = read(report);
  if (json === "") return result.code === 0 ? judged(null, 0) : fromCommand(result, "scripts/build.ts", BUILT);
  const { bundles: all, problems } = JSON.parse(json) as { bundles: readonly object[]; problems: readonly string[] };
  const failed = problems.length;
  return judged({ passed: all.length - failed, failed, skipped: 0, failures: problems }, result.code);
}

async function check(log: string, report: string): Promise<Outcome> {
  const { code } = await run(process.execPath, [join(ROOT, "scripts", "check.ts"), "--json", report], { cwd: ROOT, logFile: log });
  const json = JSON.parse(read(report) || '{"passed":0,"failed":[]}') as { passed: number; failed: string[] };
  const failures = json.failed.map((name) => `${name}: run \`npm run check\` to see how to fix it`);
  return judged({ passed: json.passed, failed: json.failed.length, skipped: 0, failures }, code);
}

type Profile = "debug" | "release";
/** `debug` is what the Rust tests have built already; `release` is what people run, and takes minutes more to build. */
const buildGsv = async (profile: Profile, log: string): Promise<Outcome | null> => {
  const what = profile === "release" ? ["--release", "--package", "gsv"] : WHOLE;
  return failedOnly(fromCommand(await compile(["build", ...what, "--locked"], log), `cargo build (${profile})`, BUILT));
};
async function endToEnd(
  chosen: readonly string[],
  log: string,
  report: string,
  profile: Profile,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const bundled = await run(process.execPath, [join(ROOT, "scripts", "build.ts")], { cwd: ROOT, logFile: log });
  if (bundled.code !== 0) return fromCommand(bundled, "scripts/build.ts", BUILT);
  return nodeTests(chosen, log, report, {
    env: { ...emptyHome(), GSV_BIN: join(targetDir(), profile, "gsv"), GSV_RUNTIME_DIR: join(ROOT, "dist", "runtime"), ...env },
    // The tests wait more than they compute. More at once would overload a small machine, and deadlines would fail.
    concurrency: 5,
  });
}
/** Each mistake that the tests noticed is one test; accepted survivors count as skipped. */
async function mutants(log: string, report: string): Promise<Outcome> {
  const script = join(ROOT, "scripts", "mutants", "main.ts");
  const { code, output } = await run(process.execPath, [script, "--report", report], { cwd: ROOT, logFile: log });
  for (const [line] of output.matchAll(/^\w+, seed \d+: \d+ of \d+ mistakes caught: .*$/gm)) process.stdout.write(`${line} ... `);
  return judged(fromNode(read(report)), code);
}
/** Files whose text has the mark of tests that a long run repeats more often. */
const sizedFiles = (pattern: RegExp, mark: string): string[] => files(pattern).filter((file) => read(file).includes(mark));
const e2eFiles = (): string[] => files(/^test\/e2e\/.*\.test\.ts$/);

/** All Rust code with its tests. A build of one package chooses fewer features of the dependencies, and compiles most of them again. */
const WHOLE = ["--workspace", "--all-targets"] as const;
const CLIPPY: Lane = {
  name: "clippy",
  what: "lint of all Rust",
  background: true,
  go: async (log) =>
    HAS_LINTER
      ? fromLints(await compile(["build", ...WHOLE, "--locked"], log), BUILT)
      : judged({ passed: 0, failed: 1, skipped: 0, failures: ["clippy is missing: run `rustup component add clippy`"] }, 1),
};
/** `packages` empty: all. */
const rust = (packages: readonly string[]): Lane => {
  const which = packages.length === 0 ? ["--workspace"] : packages.flatMap((name) => ["--package", name]);
  return {
    name: "rust",
    waits: true,
    what: packages.length === 0 ? "all Rust tests" : `Rust tests of ${packages.join(", ")}`,
    compile: async (log) =>
      failedOnly(fromCommand(await compile(["test", ...which, "--locked", "--no-run"], log), "cargo test --no-run", BUILT)),
    go: async (log) => {
      const result = await cargo(["test", ...which, "--locked", "--no-fail-fast"], log, {
        env: { ...emptyHome(), RUST_TEST_THREADS: "6" },
      });
      return judged(fromCargo(result.output), result.code);
    },
  };
};

const PACKAGE = join(ROOT, "crates", "gsv-napi");
const NAPI: Lane = {
  name: "napi",
  what: "the node as a JavaScript package, against the real gateway",
  compile: async (log) => {
    const gsv = await buildGsv("debug", log);
    if (gsv !== null) return gsv;
    // Below the priority of tests, as every compilation. It also compares the committed types with the Rust code.
    const built = await run("nice", ["-n", "10", process.execPath, join(PACKAGE, "build.ts"), "--check"], {
      cwd: ROOT,
      logFile: log,
      env: { ...LINTS, ...FIRST },
    });
    return failedOnly(fromCommand(built, "crates/gsv-napi/build.ts", BUILT));
  },
  go: (log, report) => endToEnd(files(/^crates\/gsv-napi\/test\/.*\.test\.ts$/), log, report, "debug"),
};

export const LANES: readonly Lane[] = [
  { name: "check", what: "layout, lint, types, generated files, dependency rules", go: check },
  {
    name: "unit",
    what: "pure TypeScript, the contract and its generator, the embedded bucket",
    go: (log, report) => nodeTests(files(UNIT), log, report),
  },
  {
    name: "sim",
    what: "the session machine under crashes, losses and races",
    go: (log, report) => nodeTests(files(SIM), log, report),
  },
  { name: "workerd", what: "the gateway in the Workers runtime", go: (log, report) => workerdTests([], log, report) },
  { name: "bundles", what: "every Worker as wrangler would deploy it, within its budget", go: bundles },
  {
    name: "channels",
    what: "the channels' Workers in the Workers runtime, against fake platforms",
    go: (log, report) => nodeTests(files(/^channels\/.*\.e2e\.test\.ts$/), log, report, { concurrency: 2 }),
  },
  CLIPPY,
  rust([]),
  {
    name: "e2e",
    waits: true,
    what: "the built gsv program against the real gateway on workerd, with fake model servers",
    compile: (log) => buildGsv("debug", log),
    go: (log, report) => endToEnd(e2eFiles(), log, report, "debug"),
  },
  NAPI,
  {
    name: "sim-long",
    slow: true,
    what: "ten times the simulated histories, and all deliberate mistakes",
    go: (log, report) => nodeTests(files(SIM), log, report, { env: { GSV_SIM_FACTOR: "10" }, timeoutMs: LONG_TIMEOUT_MS }),
  },
  {
    name: "unit-long",
    slow: true,
    what: "pure TypeScript with the whole number of random histories",
    go: (log, report) => nodeTests(sizedFiles(UNIT, "test/sizes.ts"), log, report, { env: { GSV_LONG: "1" }, timeoutMs: LONG_TIMEOUT_MS }),
  },
  {
    name: "workerd-long",
    slow: true,
    what: "all attacks, and more years of jobs, in the Workers runtime",
    go: (log, report) => workerdTests(sizedFiles(WORKERD, 'inject("isLong")'), log, report, { GSV_LONG: "1" }),
  },
  {
    name: "rust-long",
    slow: true,
    what: "tools open names that are swapped meanwhile, two million times",
    go: async (log) => {
      const args = ["test", "--package", "gsv-tools", "--test", "tools", "--locked", "--", "race::", "--nocapture"];
      const result = await cargo(args, log, { env: { ...emptyHome(), GSV_LONG: "1" } });
      for (const [line] of result.output.matchAll(/^\d+ opens .*$/gm)) process.stdout.write(`${line} ... `);
      return judged(fromCargo(result.output), result.code);
    },
  },
  {
    name: "e2e-long",
    slow: true,
    what: "end to end with the release build and every kill point many times",
    compile: (log) => buildGsv("release", log),
    go: (log, report) => endToEnd(e2eFiles(), log, report, "release", { GSV_E2E_LONG: "1" }),
  },
  {
    name: "channels-long",
    slow: true,
    what: "channels over the minutes after which the runtime evicts idle objects",
    go: (log, report) => nodeTests(files(/^channels\/.*\.slow\.test\.ts$/), log, report, { concurrency: 2 }),
  },
  { name: "mutants", slow: true, what: "one-line mistakes in the product that the tests must notice", go: mutants },
];

const named = (name: string): Lane => {
  const lane = LANES.find((it) => it.name === name);
  if (lane === undefined) throw new Error(`no lane is called ${name}`);
  return lane;
};

/** The lanes of a quick run, in their order. */
export function quickLanes(plan: QuickPlan): readonly Lane[] {
  const { node, workerd } = plan.touched;
  const absolute = (paths: readonly string[]): string[] => paths.map((path) => join(ROOT, path));
  const chosen = (name: "workerd" | "bundles" | "channels" | "clippy" | "napi"): Lane[] => (plan.lanes.has(name) ? [named(name)] : []);
  return [
    ...(node.length === 0
      ? []
      : [
          {
            name: "touched",
            what: "changed test files in Node",
            go: (log: string, report: string) => nodeTests(absolute(node), log, report),
          },
        ]),
    ...(workerd.length === 0 || plan.lanes.has("workerd")
      ? []
      : [
          {
            name: "touched-w",
            what: "changed test files in the Workers runtime",
            go: (log: string, report: string) => workerdTests(absolute(workerd), log, report),
          },
        ]),
    named("check"),
    named("unit"),
    {
      name: "sim",
      what: "a short simulation of the session machine",
      go: (log, report) =>
        nodeTests([join(ROOT, "gateway", "test", "sim", "session.sim.test.ts")], log, report, { env: { GSV_SIM_FACTOR: "0.2" } }),
    },
    ...chosen("workerd"),
    ...chosen("bundles"),
    ...chosen("channels"),
    ...chosen("clippy"),
    ...(plan.lanes.has("rust") ? [rust(plan.packages)] : []),
    ...(plan.lanes.has("e2e")
      ? [
          {
            name: "e2e",
            what: `end to end: ${plan.e2e.join(", ")}`,
            compile: (log: string) => buildGsv("debug", log),
            go: (log: string, report: string) => endToEnd(absolute(plan.e2e), log, report, "debug"),
          },
        ]
      : []),
    ...chosen("napi"),
  ];
}
