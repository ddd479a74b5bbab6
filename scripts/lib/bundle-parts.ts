/**
 * Bundles a Worker into a folder: the main module, and one module for each part that is loaded on first use. A part is a file
 * `*.lazy.ts` that is imported dynamically; it is bundled on its own, so that a cold start neither reads nor compiles it. WebAssembly is
 * a module beside the part that uses it. Never uses the network.
 */
import { basename, join, parse, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { ROOT } from "./root.ts";

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

async function bundle(entry: string, name: string, outdir: string, parts: Set<string>): Promise<void> {
  const { name: plain, ext } = parse(name);
  await build({
    entryPoints: { [plain]: entry },
    outExtension: { ".js": ext },
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
    outdir,
    plugins: [lazyParts(parts)],
    logLevel: "warning",
  });
}

/** The names of the parts' modules, beside `worker.js`. */
export async function bundleParts(entry: string, outdir: string): Promise<readonly string[]> {
  const parts = new Set<string>();
  await bundle(entry, "worker.js", outdir, parts);
  // A Set that grows while it is walked: a part may load other parts.
  for (const part of parts) await bundle(part, moduleOf(part), outdir, parts);
  return [...parts].map(moduleOf);
}
