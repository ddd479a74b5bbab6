/** Bundles a Worker as wrangler would deploy it and compares its size with its budget. Never uses the network. */
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { init, parse } from "es-module-lexer";
import { OFFLINE_WRANGLER, ROOT } from "./root.ts";
import { run } from "./run.ts";

export interface Size {
  readonly bytes: number;
  readonly gzipBytes: number;
}
/** A build that failed; the message is for a person. */
export class BuildFailure extends Error {}

await init;

/** Of files together. */
export function sizeOf(...files: readonly string[]): Size {
  const content = Buffer.concat(files.map((file) => readFileSync(file)));
  return { bytes: content.length, gzipBytes: gzipSync(content, { level: 9 }).length };
}

/** The main module of a folder, and all that it imports statically: what a cold start runs. */
export function modulesAtStart(folder: string, main: string): readonly string[] {
  const names = new Set([main]);
  // A Set that grows while it is walked.
  for (const name of names) {
    if (name.endsWith(".wasm")) continue;
    for (const { n: imported, d: dynamic } of parse(readFileSync(join(folder, name), "utf8"))[0])
      if (dynamic === -1 && imported?.startsWith("./")) names.add(imported.slice(2));
  }
  return [...names];
}
export const startSize = (folder: string, main: string): Size => sizeOf(...modulesAtStart(folder, main).map((name) => join(folder, name)));
export const kib = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KiB`;

/** Null when it fits. */
export const overBudget = (worker: string, { gzipBytes }: Size, budgetBytes: number): string | null =>
  gzipBytes <= budgetBytes
    ? null
    : `The Worker ${worker} is ${kib(gzipBytes)} gzipped, more than its budget of ${kib(budgetBytes)}. Find what was added: npx esbuild --analyze.`;

/** Bundles the Worker of a `wrangler.jsonc` (its path from the root; `""` is its outermost environment) into one file. */
export const bundleWorker = (config: string, environment: string, outfile: string): Promise<Size> =>
  bundled(config, environment, (out, scripts) => {
    const [script] = scripts;
    if (script === undefined || scripts.length !== 1) {
      const found = scripts.join(", ");
      throw new BuildFailure(
        `wrangler made ${scripts.length} scripts of ${config} (${found}). The embedded gateway loads exactly one script for each channel.`,
      );
    }
    copyFileSync(join(out, script), outfile);
    return sizeOf(outfile);
  });

/** The Worker that is loaded at the start, and the names of the modules that it loads on first use. All are put into `folder`. */
export interface SplitBundle {
  readonly start: Size;
  readonly modules: readonly string[];
}
export const bundleSplitWorker = (config: string, environment: string, main: string, folder: string): Promise<SplitBundle> =>
  bundled(config, environment, (out, scripts) => {
    if (!scripts.includes(main)) throw new BuildFailure(`wrangler made no ${main} of ${config}, only: ${scripts.join(", ")}.`);
    for (const script of scripts) copyFileSync(join(out, script), join(folder, script));
    return { start: startSize(folder, main), modules: scripts.filter((name) => name !== main).sort() };
  });

async function bundled<T>(config: string, environment: string, take: (folder: string, scripts: readonly string[]) => T): Promise<T> {
  const out = mkdtempSync(join(tmpdir(), "gsv-wrangler-"));
  try {
    const wrangler = join(dirname(createRequire(import.meta.url).resolve("wrangler/package.json")), "bin", "wrangler.js");
    const args = ["deploy", "--dry-run", "--minify", "--config", join(ROOT, config), `--env=${environment}`, "--outdir", out];
    const result = await run(process.execPath, [wrangler, ...args], {
      cwd: ROOT,
      env: { ...OFFLINE_WRANGLER, WRANGLER_LOG_PATH: join(out, "log"), NO_COLOR: "1" },
    });
    if (result.code !== 0) throw new BuildFailure(`wrangler could not bundle ${config}:\n${result.output.trim()}`);
    return take(
      out,
      readdirSync(out).filter((name) => /\.(js|mjs|wasm)$/.test(name)),
    );
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}
