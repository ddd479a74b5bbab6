/**
 * Bundles a Worker into a folder: the main module, one module for each part that is loaded on first use, and modules of what they share.
 * A part is a file `*.lazy.ts` that is imported dynamically; a cold start neither runs it nor what only parts need. Shared code is there
 * once: a cold start on Cloudflare compiles every module. WebAssembly is a module beside the part that uses it. Never
 * uses the network.
 */
import { readdirSync, renameSync } from "node:fs";
import { basename, join, resolve, sep } from "node:path";
import { build, type BuildOptions, type Plugin } from "esbuild";
import { ROOT } from "./root.ts";
import { unusedResources } from "./unused-resources.ts";

const LAZY = /\.lazy\.ts$/;
/** wrangler takes `.mjs` files beside the main one as modules. */
const moduleOf = (file: string): string => basename(file).replace(LAZY, ".mjs");

const WIRES = join(ROOT, "gateway", "src", "models", "wires");
/** Packages of model clients that need Node, or of which only a small part is used, with the files that take their place. */
const REPLACED = {
  "@google/genai": join(WIRES, "google-client.ts"),
  "@aws-sdk/client-bedrock-runtime": join(WIRES, "bedrock-client.ts"),
  "@smithy/node-http-handler": join(WIRES, "no-node.ts"),
  "http-proxy-agent": join(WIRES, "no-node.ts"),
  "https-proxy-agent": join(WIRES, "no-node.ts"),
};

/** Leaves dynamic imports of parts to the runtime, and collects the parts. */
const lazyParts = (parts: Set<string>): Plugin => ({
  name: "lazy-parts",
  setup({ onResolve }) {
    onResolve({ filter: LAZY }, ({ kind, path, resolveDir }) => {
      if (kind !== "dynamic-import") return undefined;
      const file = resolve(resolveDir, path);
      parts.add(file);
      return { path: `./${moduleOf(file)}`, external: true };
    });
  },
});

/** Parts that also run as the main module of an isolate of their own, which has no other module (gateway/src/app/reader-service.ts). */
const isAlone = (part: string): boolean => part.includes(`${sep}readers${sep}`);

const options = (outdir: string, parts: Set<string>): BuildOptions => ({
  bundle: true,
  // Names of functions are not kept: that would define a property for each inner function whenever it is made, on every message.
  minify: true,
  format: "esm",
  target: "es2024",
  platform: "browser",
  conditions: ["workerd", "worker", "browser"],
  external: ["cloudflare:*", "node:*"],
  alias: REPLACED,
  loader: { ".wasm": "copy" },
  assetNames: "[name]",
  chunkNames: "shared-[hash]",
  outExtension: { ".js": ".mjs" },
  outdir,
  plugins: [lazyParts(parts), unusedResources],
  logLevel: "warning",
  // Fails the build when a module uses a name that `unused-resources.ts` has left out.
  logOverride: { "import-is-undefined": "error" },
});

/** The parts that a Worker loads, and those that parts load. */
async function partsOf(entry: string, outdir: string): Promise<readonly string[]> {
  const parts = new Set<string>();
  const looked = new Set<string>();
  for (let files = [entry]; files.length > 0; files = [...parts].filter((part) => !looked.has(part))) {
    for (const file of files) looked.add(file);
    await build({ ...options(outdir, parts), entryPoints: files, write: false, minify: false });
  }
  // Imports are found in no fixed order, and the order of the entry points decides what is shared.
  return [...parts].sort();
}

/** The names of the modules beside `worker.js`. `outdir` is empty before. */
export async function bundleParts(entry: string, outdir: string): Promise<readonly string[]> {
  const parts = await partsOf(entry, outdir);
  const entries = (files: readonly string[]): { in: string; out: string }[] =>
    files.map((file) => ({ in: file, out: basename(moduleOf(file), ".mjs") }));
  const common = options(outdir, new Set());
  const shared = [{ in: entry, out: "worker" }, ...entries(parts.filter((part) => !isAlone(part)))];
  await build({ ...common, entryPoints: shared, splitting: true });
  await build({ ...common, entryPoints: entries(parts.filter(isAlone)) });
  renameSync(join(outdir, "worker.mjs"), join(outdir, "worker.js"));
  return readdirSync(outdir)
    .filter((name) => name !== "worker.js")
    .sort();
}
