/**
 * Bundles the gateway's Worker into `dist/gateway/`, before wrangler or `scripts/build.ts` takes it from there: `worker.js`, and one
 * module for each part that is loaded on first use. A part is a file `*.lazy.ts` that is imported dynamically; it is bundled on its
 * own, so that a cold start neither reads nor compiles it. WebAssembly is a module beside the part that uses it.
 *
 *   node scripts/bundle-gateway.ts [FOLDER]
 *
 * wrangler runs it (`build.command` of gateway/wrangler.jsonc). Never uses the network.
 */
import { mkdirSync, rmSync } from "node:fs";
import { basename, join, parse, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { ROOT } from "./lib/root.ts";

const OUT = resolve(process.argv[2] ?? join(ROOT, "dist", "gateway"));
const LAZY = /\.lazy\.ts$/;
/** wrangler takes `.mjs` files beside the main one as modules. */
const moduleOf = (file: string): string => basename(file).replace(LAZY, ".mjs");

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

async function bundle(entry: string, name: string, parts: Set<string>): Promise<void> {
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
    loader: { ".wasm": "copy" },
    assetNames: "[name]",
    outdir: OUT,
    plugins: [lazyParts(parts)],
    logLevel: "warning",
  });
}

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
const parts = new Set<string>();
await bundle(join(ROOT, "gateway", "src", "app", "worker.ts"), "worker.js", parts);
// A Set that grows while it is walked: a part may load other parts.
for (const part of parts) await bundle(part, moduleOf(part), parts);
