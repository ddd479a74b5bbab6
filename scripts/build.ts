/**
 * Builds what `gsv up` runs into `dist/runtime/`: the gateway's Worker (the same bundle that is deployed), the embedded
 * bucket, a link to workerd, and `manifest.json`. Does nothing when nothing changed; replaces the folder in one move.
 *
 *   node scripts/build.ts [--force] [--quiet]
 *
 * Fails when the Worker is larger than its budget. Never touches the network.
 */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { OFFLINE_WRANGLER, ROOT } from "./lib/root.ts";
import { run } from "./lib/run.ts";

const TARGET = join(ROOT, "dist", "runtime");
const WRANGLER_CONFIG = join(ROOT, "gateway", "wrangler.jsonc");
/** What a cold start on the edge may have to load. Of it, model clients are 100 KiB and the YAML parser 30 KiB. */
const BUDGET_GZIP_BYTES = 384 * 1024;
/** Everything that the result depends on. */
const INPUTS = [
  "gateway/src",
  "gateway/packs",
  "gateway/embedded",
  "gateway/wrangler.jsonc",
  "gateway/package.json",
  "protocol/gen",
  "protocol/runtime",
  "protocol/package.json",
  "package-lock.json",
  "scripts/build.ts",
];

const args = process.argv.slice(2);
const quiet = args.includes("--quiet");
const say = (line: string): void => {
  if (!quiet) console.error(line);
};

class BuildFailure extends Error {}

async function main(): Promise<void> {
  const hash = hashInputs();
  if (!args.includes("--force") && isCurrent(hash)) {
    say(`dist/runtime is up to date (${hash.slice(0, 8)}).`);
    return;
  }
  const started = performance.now();
  mkdirSync(dirname(TARGET), { recursive: true });
  const fresh = mkdtempSync(join(dirname(TARGET), "runtime.new-"));
  try {
    const [worker, r2] = await Promise.all([bundleGateway(fresh), bundleBucket(fresh)]);
    symlinkSync(relative(fresh, workerdPath()), join(fresh, "workerd"));
    const { compatibilityDate, compatibilityFlags } = compatibility();
    const manifest = {
      version: `${packageVersion()}+${hash.slice(0, 8)}`,
      compatibilityDate,
      compatibilityFlags,
      hash,
      bytes: { worker: worker.bytes, workerGzip: worker.gzip, r2: r2.bytes },
    };
    writeFileSync(join(fresh, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    if (worker.gzip > BUDGET_GZIP_BYTES) {
      throw new BuildFailure(
        `The Worker is ${kib(worker.gzip)} gzipped, more than its budget of ${kib(BUDGET_GZIP_BYTES)}. Look what was added: npx esbuild --analyze.`,
      );
    }
    replace(fresh);
    say(
      `dist/runtime built in ${((performance.now() - started) / 1000).toFixed(1)} s: worker ${kib(worker.bytes)}, ${kib(worker.gzip)} gzipped; bucket ${kib(r2.bytes)}.`,
    );
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

interface Size {
  readonly bytes: number;
  readonly gzip: number;
}
const sizeOf = (file: string): Size => ({ bytes: statSync(file).size, gzip: gzipSync(readFileSync(file), { level: 9 }).length });
const kib = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KiB`;

/** By wrangler, so that what runs here is what is deployed. */
async function bundleGateway(into: string): Promise<Size> {
  const out = mkdtempSync(join(into, "wrangler-"));
  const wrangler = join(dirname(createRequire(import.meta.url).resolve("wrangler/package.json")), "bin", "wrangler.js");
  const result = await run(process.execPath, [wrangler, "deploy", "--dry-run", "--minify", "--config", WRANGLER_CONFIG, "--outdir", out], {
    cwd: ROOT,
    env: { ...OFFLINE_WRANGLER, WRANGLER_LOG_PATH: join(out, "log"), NO_COLOR: "1" },
  });
  if (result.code !== 0) throw new BuildFailure(`wrangler could not bundle the gateway:\n${result.output.trim()}`);
  const scripts = readdirSync(out).filter((name) => name.endsWith(".js"));
  const [script] = scripts;
  if (script === undefined || scripts.length !== 1)
    throw new BuildFailure(`wrangler made ${scripts.length} scripts (${scripts.join(", ")}), and the embedded gateway loads exactly one.`);
  copyFileSync(join(out, script), join(into, "worker.js"));
  rmSync(out, { recursive: true });
  return sizeOf(join(into, "worker.js"));
}

async function bundleBucket(into: string): Promise<Size> {
  const outfile = join(into, "r2.js");
  await build({
    entryPoints: [join(ROOT, "gateway", "embedded", "r2.ts")],
    bundle: true,
    minify: true,
    keepNames: true,
    format: "esm",
    target: "es2024",
    external: ["cloudflare:*"],
    outfile,
    logLevel: "warning",
  });
  return sizeOf(outfile);
}

/** The binary that the `workerd` package chose for this machine. */
function workerdPath(): string {
  const fromWorkerd = createRequire(createRequire(import.meta.url).resolve("workerd/package.json"));
  const name = `@cloudflare/workerd-${process.platform}-${process.arch === "x64" ? "64" : process.arch}`;
  try {
    return join(dirname(fromWorkerd.resolve(`${name}/package.json`)), "bin", "workerd");
  } catch {
    throw new BuildFailure(
      `There is no workerd for ${process.platform} on ${process.arch} in node_modules (${name}). Run \`npm ci\`; 32-bit machines and musl can be nodes, not gateways.`,
    );
  }
}

function compatibility(): { compatibilityDate: string; compatibilityFlags: string[] } {
  const config = JSON.parse(withoutComments(readFileSync(WRANGLER_CONFIG, "utf8"))) as {
    compatibility_date?: string;
    compatibility_flags?: string[];
  };
  if (config.compatibility_date === undefined) throw new BuildFailure("gateway/wrangler.jsonc has no compatibility_date.");
  return { compatibilityDate: config.compatibility_date, compatibilityFlags: config.compatibility_flags ?? [] };
}
/** JSON with comments and trailing commas, as JSON. Strings stay what they are. */
export const withoutComments = (text: string): string =>
  text
    .replaceAll(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (_, string: string | undefined) => string ?? "")
    .replaceAll(/("(?:[^"\\]|\\.)*")|,(\s*[}\]])/g, (_, string: string | undefined, end: string | undefined) => string ?? end ?? "");

const packageVersion = (): string =>
  (JSON.parse(readFileSync(join(ROOT, "gateway", "package.json"), "utf8")) as { version: string }).version;

function hashInputs(): string {
  const hash = createHash("sha256");
  hash.update(`${process.platform} ${process.arch}`);
  for (const input of INPUTS) {
    for (const file of filesIn(join(ROOT, input))) {
      if (/\.test\.ts$/.test(file)) continue;
      const content = readFileSync(file);
      hash.update(`\0${relative(ROOT, file)}\0${content.length}\0`).update(content);
    }
  }
  return hash.digest("hex");
}
function filesIn(path: string): string[] {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function isCurrent(hash: string): boolean {
  if (!["worker.js", "r2.js", "workerd", "manifest.json"].every((name) => existsSync(join(TARGET, name)))) return false;
  return (JSON.parse(readFileSync(join(TARGET, "manifest.json"), "utf8")) as { hash?: string }).hash === hash;
}

/** Whoever has the old folder open keeps it. */
function replace(fresh: string): void {
  const old = `${fresh}.old`;
  if (existsSync(TARGET)) renameSync(TARGET, old);
  renameSync(fresh, TARGET);
  rmSync(old, { recursive: true, force: true });
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === resolve(import.meta.filename)) {
  main().catch((error: unknown) => {
    console.error(error instanceof BuildFailure ? error.message : error);
    process.exitCode = 1;
  });
}
