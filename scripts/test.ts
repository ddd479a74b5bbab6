/**
 * Runs every kind of test and sums up. Started by `scripts/test`, which first sets up Node and the packages.
 *
 *   ./scripts/test [--only LANE]... [--slow] [--quick] [--list]
 *
 * `--quick` runs check, unit tests, a short simulation and the lanes of what changed since the last common commit with origin/main.
 * Each lane writes a log; failures are named at the end. The last line is always `N passed, N failed[, N skipped]`.
 * The exit status is 0 only if nothing failed and every lane ran at least one test.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Lane, LANES, quickLanes } from "./lib/lanes.ts";
import { total } from "./lib/outcomes.ts";
import { planOf } from "./lib/quick.ts";
import { ROOT } from "./lib/root.ts";
import { run } from "./lib/run.ts";
import type { Outcome } from "./lib/test-reporter.ts";

const USAGE = "Usage: ./scripts/test [--only LANE]... [--slow] [--quick] [--list] [--help]";
function options() {
  try {
    return parseArgs({
      options: {
        only: { type: "string", multiple: true },
        slow: { type: "boolean" },
        quick: { type: "boolean" },
        list: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(2);
  }
}
const values = options();
if (values.help === true) {
  console.log(
    `${USAGE}\n\n  --only LANE   run one lane; can be repeated\n  --slow        run the slow lanes too\n  --quick       run check, unit tests and the lanes of what changed\n  --list        list the lanes`,
  );
  process.exit(0);
}
if (values.list === true) {
  for (const { name, what, slow } of LANES) console.log(`${name.padEnd(13)} ${what}${slow === true ? "   (with --slow)" : ""}`);
  process.exit(0);
}
const unknown = values.only?.find((name) => !LANES.some((lane) => lane.name === name));
if (unknown !== undefined) {
  console.error(`There is no lane ${unknown}. The lanes are ${LANES.map(({ name }) => name).join(", ")}.`);
  process.exit(2);
}
if (values.quick === true && (values.only !== undefined || values.slow === true)) {
  console.error("--quick chooses the lanes itself: leave out --only and --slow.");
  process.exit(2);
}

const git = async (...args: string[]): Promise<string | null> => {
  const { code, stdout } = await run("git", args, { cwd: ROOT });
  return code === 0 ? stdout : null;
};
/** Paths that differ from the last common commit with origin/main (without one: from the commit before), and untracked files. */
async function changedPaths(): Promise<string[]> {
  const base = (await git("merge-base", "HEAD", "origin/main"))?.trim() ?? "HEAD~1";
  const listed = [
    await git("diff", "--name-only", "--no-renames", "-z", base),
    await git("ls-files", "--others", "--exclude-standard", "-z"),
  ];
  return listed.flatMap((text) => (text ?? "").split("\0")).filter((path) => path !== "");
}

async function choose(): Promise<readonly Lane[]> {
  if (values.quick === true) return quickLanes(planOf(await changedPaths(), (path) => existsSync(join(ROOT, path))));
  return LANES.filter(({ name, slow }) => (values.only === undefined ? slow !== true || values.slow === true : values.only.includes(name)));
}
const chosen = await choose();
if (values.slow === true)
  console.log(
    `--slow adds: ${LANES.filter(({ slow }) => slow === true)
      .map(({ name, what }) => `${name} (${what})`)
      .join(", ")}\n`,
  );

const logs = mkdtempSync(join(tmpdir(), "gsv-test-"));
const logOf = (lane: Lane): string => join(logs, `${lane.name}.log`);
const safely = <T>(work: Promise<T>): Promise<T | Outcome> =>
  work.catch((error: unknown): Outcome => ({ passed: 0, failed: 1, skipped: 0, failures: [String(error)] }));

/** One thing at a time in the background, in the order of the lanes: what only compiles or lints. */
const behind = new Map<Lane, Promise<Outcome | null>>();
let last: Promise<unknown> = Promise.resolve();
for (const lane of chosen) {
  const { compile, go, background } = lane;
  const work = background === true ? () => go(logOf(lane), "") : compile === undefined ? undefined : () => compile(logOf(lane));
  if (work === undefined) continue;
  const done = last.then(() => safely(work()));
  behind.set(lane, done);
  last = done;
}

/** A lane after what must be compiled for it. */
async function whole(lane: Lane): Promise<{ readonly outcome: Outcome; readonly ms: number }> {
  const { name, go, background } = lane;
  const before = await behind.get(lane);
  const started = performance.now();
  const outcome =
    before !== undefined && (before !== null || background === true)
      ? (before ?? { passed: 0, failed: 1, skipped: 0, failures: ["it gave no result"] })
      : await safely(go(logOf(lane), join(logs, `${name}.json`)));
  return { outcome, ms: performance.now() - started };
}
const begun = new Map<Lane, ReturnType<typeof whole>>();
function begin(lane: Lane): ReturnType<typeof whole> {
  const running = begun.get(lane) ?? whole(lane);
  begun.set(lane, running);
  return running;
}

const sum = { passed: 0, failed: 0, skipped: 0 };
const failures: string[] = [];
for (const [at, lane] of chosen.entries()) {
  const { name, what } = lane;
  process.stdout.write(`${name.padEnd(10)} ${what} ... `);
  const next = chosen[at + 1];
  if (lane.waits === true && next?.waits === true) void begin(next);
  const { outcome, ms } = await begin(lane);
  sum.passed += outcome.passed;
  sum.failed += outcome.failed;
  sum.skipped += outcome.skipped;
  console.log(`${total(outcome)} (${(ms / 1000).toFixed(1)} s)`);
  if (outcome.failed > 0) failures.push(...outcome.failures.map((failure) => `[${name}] ${failure}`), `[${name}] log: ${logOf(lane)}`);
}
if (failures.length > 0) console.log(`\n${failures.join("\n")}`);
else rmSync(logs, { recursive: true, force: true });
console.log(`\n${total(sum)}`);
process.exit(sum.failed > 0 ? 1 : 0);
