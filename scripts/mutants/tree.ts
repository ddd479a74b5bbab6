/** A copy of the repository's files, in which mistakes are made and tests run. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { OFFLINE_WRANGLER, ROOT } from "../lib/root.ts";
import { run } from "../lib/run.ts";
import type { RunSuite, Verdict } from "./judge.ts";
import type { Mutation } from "./mutations.ts";
import type { Suite } from "./tests-of.ts";

const listed = async (...args: string[]): Promise<string[]> =>
  (await run("git", ["ls-files", "-z", ...args, "--exclude-standard"], { cwd: ROOT })).stdout.split("\0").filter((path) => path !== "");

export interface Tree {
  /** TypeScript and Rust, by path. */
  readonly sources: ReadonlyMap<string, string>;
  /** Of all files: results are kept only for the same files. */
  readonly hash: string;
  readonly runSuite: RunSuite;
}

/** Writes only what differs: cargo compiles what is newer than its last build. */
export async function treeAt(folder: string): Promise<Tree> {
  const sources = new Map<string, string>();
  const hash = createHash("sha256");
  for (const path of (await listed("--cached", "--others")).filter((each) => existsSync(join(ROOT, each)))) {
    const [from, to] = [join(ROOT, path), join(folder, path)];
    const bytes = readFileSync(from);
    hash.update(`${path}\0${bytes.length}\0`).update(bytes);
    if (/\.(?:ts|rs)$/.test(path)) sources.set(path, bytes.toString("utf8"));
    if (existsSync(to) && readFileSync(to).equals(bytes)) continue;
    mkdirSync(dirname(to), { recursive: true });
    cpSync(from, to);
  }
  for (const path of (await listed("--others", "--directory", "--ignored")).filter((each) => each.endsWith("node_modules/"))) {
    const link = join(folder, path.slice(0, -1));
    if (!existsSync(link)) symlinkSync(join(ROOT, path), link);
  }
  return { sources, hash: hash.digest("hex"), runSuite: suitesIn(folder, sources) };
}

/** `timeout` ends with 124, and with 137 when it had to kill. */
const verdictOf = (code: number): Verdict => (code === 0 ? "passed" : code === 124 || code === 137 ? "not ended" : "failed");
const BUILD_LIMIT_MS = 900_000;

/**
 * Runs a program where it sees no processes but its own: a mistake in code that ends processes must not end other programs of this
 * machine. Empty where the system offers no such place.
 */
function ownProcesses(): readonly string[] {
  const apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"];
  const tries = [apart, [...apart.slice(0, 1), "--user", "--map-current-user", ...apart.slice(1)]];
  return tries.find(([program = "", ...args]) => spawnSync(program, [...args, "true"], { stdio: "ignore" }).status === 0) ?? [];
}

function suitesIn(folder: string, sources: ReadonlyMap<string, string>): RunSuite {
  /** `timeout` makes a process group of its own and ends all of it. */
  const limited = (limitMs: number, program: string, args: readonly string[], env: Readonly<Record<string, string>>) =>
    run("timeout", ["--kill-after=5", String(Math.ceil(limitMs / 1000)), program, ...args], { cwd: folder, env });
  const apart = ownProcesses();
  const start = async (suite: Suite, limitMs: number): Promise<Verdict> => {
    switch (suite.runner) {
      case "types": {
        const tsc = join("node_modules", "typescript", "bin", "tsc");
        const { code } = await limited(limitMs, process.execPath, [tsc, "--noEmit", "--project", suite.project], {});
        // A checker that does not end has refused nothing.
        return verdictOf(code) === "failed" ? "not compiled" : "passed";
      }
      case "node":
        return verdictOf((await limited(limitMs, process.execPath, [suite.file], { GSV_SIM_FACTOR: "0.2" })).code);
      case "workerd": {
        const vitest = join("node_modules", "vitest", "vitest.mjs");
        const args = ["run", "--bail=1", "--config", join("gateway", "vitest.config.ts"), suite.folder];
        return verdictOf((await limited(limitMs, process.execPath, [vitest, ...args], OFFLINE_WRANGLER)).code);
      }
      case "cargo": {
        const cargo = ["test", "--locked", "--package", suite.package, ...suite.args];
        const env = { CARGO_TARGET_DIR: join(ROOT, "target", "mutants"), CARGO_TERM_COLOR: "never" };
        const built = await limited(BUILD_LIMIT_MS, "cargo", [...cargo, "--no-run"], env);
        if (verdictOf(built.code) === "not ended") throw new Error(`cargo ${cargo.join(" ")}: the build took too long.`);
        if (built.code !== 0) return "not compiled";
        const [program = "cargo", ...args] = [...apart, "cargo", ...cargo];
        const { code } = await limited(limitMs, program, args, env);
        // Cases that failed for one mistake must not be tried for the next.
        rmSync(join(folder, "crates", suite.package, "proptest-regressions"), { recursive: true, force: true });
        return verdictOf(code);
      }
    }
  };
  return async (suite: Suite, mutation: Mutation | undefined, limitMs: number) => {
    const path = mutation === undefined ? undefined : join(folder, mutation.file);
    if (mutation !== undefined && path !== undefined) writeFileSync(path, mutation.mutant);
    const started = performance.now();
    try {
      return { verdict: await start(suite, limitMs), ms: performance.now() - started };
    } finally {
      if (mutation !== undefined && path !== undefined) writeFileSync(path, sources.get(mutation.file) ?? "");
    }
  };
}
