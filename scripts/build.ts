/**
 * Builds what `gsv up` runs into `dist/runtime/`: the gateway's Worker with the modules that it loads on first use, the channels' Workers
 * (the same bundles that are deployed), the embedded bucket, a link to workerd, `manifest.json`, and `deploy.json` for `gsv deploy`. Builds
 * only the Workers whose sources changed, and replaces the folder with one rename.
 *
 *   node scripts/build.ts [--force] [--quiet] [--report FILE]
 *
 * Fails when a Worker is larger than its budget. `--report` writes the result for each Worker, for the test run. Never uses the
 * network. The WhatsApp bundle contains GPL-3.0 software: it is built here, for this machine, and is part of nothing that is shipped.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Inputs } from "./lib/inputs.ts";
import { ROOT } from "./lib/root.ts";
import { stateDigest } from "./lib/state-digest.ts";
import { BuildFailure, bundleSplitWorker, bundleWorker, kib, overBudget, type Size, sizeOf, startSize } from "./lib/worker-bundle.ts";
import {
  bucketOf,
  type ChannelFacts,
  channelFacts,
  type Compatibility,
  compatibility,
  ConfigProblem,
  deployConfig,
  type QueueFacts,
  queueFacts,
} from "./lib/wrangler-config.ts";

const TARGET = join(ROOT, "dist", "runtime");
/** The table of word vectors, which the gateway reads as a file. */
const EMBEDDINGS_FOLDER = "gateway/embeddings";
const EMBEDDINGS_FILE = "embeddings.bin";
/** Inputs of every bundle. */
const COMMON = [
  "protocol/gen",
  "protocol/runtime",
  "protocol/package.json",
  "package-lock.json",
  "scripts/build.ts",
  "scripts/lib/state-digest.ts",
  "scripts/lib/worker-bundle.ts",
  "scripts/lib/wrangler-config.ts",
];

interface Worker {
  readonly name: string;
  readonly config: string;
  readonly environment: string;
  /** In the runtime folder. */
  readonly script: string;
  readonly inputs: readonly string[];
  /** What a cold start on the edge may have to load, gzipped. */
  readonly budgetBytes: number;
}
/** Of this budget, the catalogue of models takes 17 KiB. */
const GATEWAY: Worker = {
  name: "gateway",
  config: "gateway/wrangler.jsonc",
  environment: "channels",
  script: "worker.js",
  inputs: [
    "gateway/src",
    "gateway/packs",
    "gateway/embedded",
    "gateway/wrangler.jsonc",
    "gateway/package.json",
    "scripts/bundle-gateway.ts",
    "scripts/lib/bundle-parts.ts",
    "scripts/lib/unused-resources.ts",
    EMBEDDINGS_FOLDER,
  ],
  budgetBytes: 340_000,
};
const channel = (name: string, budgetBytes: number): Worker => ({
  name,
  config: `channels/${name}/wrangler.jsonc`,
  environment: "",
  script: `channels/${name}.js`,
  inputs: [`channels/${name}/src`, `channels/${name}/wrangler.jsonc`, `channels/${name}/package.json`, "channels/kit/src"],
  budgetBytes,
});
const CHANNELS: readonly Worker[] = [channel("whatsapp", 600_000), channel("discord", 120_000), channel("example", 60_000)];

interface ChannelEntry extends ChannelFacts, Size {
  readonly hash: string;
}
interface Manifest extends Compatibility {
  readonly version: string;
  /** Hash of the inputs of the gateway and its bucket. */
  readonly hash: string;
  readonly bytes: { readonly worker: number; readonly workerGzip: number; readonly r2: number };
  /** Files beside the gateway's script, which it loads on first use. */
  readonly modules: readonly string[];
  readonly queues: readonly QueueFacts[];
  readonly channels: Readonly<Record<string, ChannelEntry>>;
}

const { values } = parseArgs({
  options: { force: { type: "boolean" }, quiet: { type: "boolean" }, report: { type: "string" } },
});
const say = (line: string): void => {
  if (values.quiet !== true) console.error(line);
};
const readConfig = ({ config }: Worker): string => readFileSync(join(ROOT, config), "utf8");

async function main(): Promise<void> {
  const inputs = new Inputs(ROOT);
  const platform = `${process.platform} ${process.arch}`;
  const hashes = new Map([GATEWAY, ...CHANNELS].map((worker) => [worker.name, inputs.hash([...COMMON, ...worker.inputs], platform)]));
  const hashOf = ({ name }: Worker): string => hashes.get(name) ?? "";
  const present = values.force === true ? undefined : readManifest();
  const isCurrent = (worker: Worker): boolean =>
    (worker === GATEWAY ? present?.hash : present?.channels?.[worker.name]?.hash) === hashOf(worker) &&
    existsSync(join(TARGET, worker.script));
  const gatewayFiles = ["r2.js", "workerd", "deploy.json", ...(present?.modules ?? [])];
  const gatewayIsCurrent = isCurrent(GATEWAY) && gatewayFiles.every((name) => existsSync(join(TARGET, name)));
  const stale = CHANNELS.filter((worker) => !isCurrent(worker));
  if (present !== undefined && gatewayIsCurrent && stale.length === 0 && Object.keys(present.channels).length === CHANNELS.length) {
    say(`dist/runtime is up to date (${hashOf(GATEWAY).slice(0, 8)}).`);
    report(present, []);
    return;
  }
  const started = performance.now();
  mkdirSync(dirname(TARGET), { recursive: true });
  const fresh = mkdtempSync(join(dirname(TARGET), "runtime.new-"));
  try {
    mkdirSync(join(fresh, "channels"));
    const problems: string[] = [];
    const sizes = new Map<string, Size>();
    let modules = present?.modules ?? [];
    const bundleGateway = async (): Promise<Size> => {
      if (gatewayIsCurrent) {
        for (const name of [GATEWAY.script, ...modules]) copyFileSync(join(TARGET, name), join(fresh, name));
        return startSize(fresh, GATEWAY.script);
      }
      const bundle = await bundleSplitWorker(GATEWAY.config, GATEWAY.environment, GATEWAY.script, fresh);
      copyFileSync(join(ROOT, EMBEDDINGS_FOLDER, EMBEDDINGS_FILE), join(fresh, EMBEDDINGS_FILE));
      modules = [...bundle.modules, EMBEDDINGS_FILE].sort();
      return bundle.start;
    };
    const bundleChannel = async (worker: Worker): Promise<Size> => {
      const outfile = join(fresh, worker.script);
      if (stale.includes(worker)) return bundleWorker(worker.config, worker.environment, outfile);
      copyFileSync(join(TARGET, worker.script), outfile);
      return sizeOf(outfile);
    };
    const work = [GATEWAY, ...CHANNELS].map((worker) => async () => {
      const size = await (worker === GATEWAY ? bundleGateway() : bundleChannel(worker));
      sizes.set(worker.name, size);
      const problem = overBudget(worker.name, size, worker.budgetBytes);
      if (problem !== null) problems.push(problem);
    });
    const [r2] = await Promise.all([bundleBucket(fresh), runAtMost(2, work)]);
    symlinkSync(relative(fresh, workerdPath()), join(fresh, "workerd"));
    const sizeOfWorker = ({ name }: Worker): Size => sizes.get(name) ?? { bytes: 0, gzipBytes: 0 };
    const { bytes, gzipBytes } = sizeOfWorker(GATEWAY);
    const manifest: Manifest = {
      version: `${packageVersion()}+${hashOf(GATEWAY).slice(0, 8)}`,
      ...compatibility(readConfig(GATEWAY), GATEWAY.config),
      hash: hashOf(GATEWAY),
      bytes: { worker: bytes, workerGzip: gzipBytes, r2: r2.bytes },
      modules,
      queues: queueFacts(readConfig(GATEWAY), GATEWAY.config),
      channels: Object.fromEntries(
        CHANNELS.map((worker) => [
          worker.name,
          { ...channelFacts(readConfig(worker), worker.config, worker.name), hash: hashOf(worker), ...sizeOfWorker(worker) },
        ]),
      ),
    };
    writeFileSync(join(fresh, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    writeFileSync(join(fresh, "deploy.json"), `${JSON.stringify(deployment(manifest), null, 2)}\n`);
    report(manifest, problems);
    if (problems.length > 0) throw new BuildFailure(problems.join("\n"));
    replace(fresh);
    const built = [...(gatewayIsCurrent ? [] : [GATEWAY]), ...stale].map((worker) => {
      const size = sizeOfWorker(worker);
      return `${worker.name} ${kib(size.bytes)}, ${kib(size.gzipBytes)} gzipped`;
    });
    say(`dist/runtime built in ${((performance.now() - started) / 1000).toFixed(1)} s: ${built.join("; ")}.`);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** What `gsv deploy` gives to wrangler. `state` changes with every migration: a program of another state may not read what was written. */
function deployment(manifest: Manifest): object {
  const configOf = (worker: Worker): Readonly<Record<string, unknown>> =>
    deployConfig(readConfig(worker), worker.config, worker.environment);
  const gateway = configOf(GATEWAY);
  return {
    version: manifest.version,
    state: stateDigest(
      ROOT,
      [GATEWAY, ...CHANNELS].map((worker) => configOf(worker)["exports"]),
    ),
    gateway,
    modules: manifest.modules.filter((name) => name !== EMBEDDINGS_FILE),
    // Too large for a Worker.
    files: { [bucketOf(gateway, "STORAGE")]: { [`gsv/${EMBEDDINGS_FILE}`]: EMBEDDINGS_FILE } },
    channels: Object.fromEntries(CHANNELS.map((worker) => [worker.name, configOf(worker)])),
  };
}

/** Runs at most `atOnce` at a time: each is a process that takes a core and some hundred megabytes. */
async function runAtMost(atOnce: number, work: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = [...work];
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next();
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

/** Which Workers were bundled, and which exceed their budget. */
function report(manifest: Manifest, problems: readonly string[]): void {
  if (values.report === undefined) return;
  const bundles = [{ name: GATEWAY.name, gzipBytes: manifest.bytes.workerGzip }].concat(
    Object.entries(manifest.channels).map(([name, { gzipBytes }]) => ({ name, gzipBytes })),
  );
  writeFileSync(values.report, JSON.stringify({ bundles, problems }));
}

async function bundleBucket(into: string): Promise<Size> {
  const outfile = join(into, "r2.js");
  // Loaded on demand, so that a run without changes stays quick.
  const { build } = await import("esbuild");
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
      `node_modules has no workerd for ${process.platform} on ${process.arch} (${name}). Run \`npm ci\`. 32-bit machines and musl can run nodes but no gateway.`,
    );
  }
}

const packageVersion = (): string =>
  (JSON.parse(readFileSync(join(ROOT, "gateway", "package.json"), "utf8")) as { version: string }).version;

/** The manifest of the current build; undefined when it cannot be read. */
function readManifest(): Manifest | undefined {
  try {
    const manifest = JSON.parse(readFileSync(join(TARGET, "manifest.json"), "utf8")) as Manifest;
    return { ...manifest, channels: manifest.channels ?? {}, modules: manifest.modules ?? [] };
  } catch {
    return undefined;
  }
}

/** A process that has the old folder open keeps it. */
function replace(fresh: string): void {
  const old = `${fresh}.old`;
  if (existsSync(TARGET)) renameSync(TARGET, old);
  renameSync(fresh, TARGET);
  rmSync(old, { recursive: true, force: true });
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === resolve(import.meta.filename)) {
  main().catch((error: unknown) => {
    console.error(error instanceof BuildFailure || error instanceof ConfigProblem ? error.message : error);
    process.exitCode = 1;
  });
}
