/** The gateway's Worker as a module list of a workerd configuration of a test, with its files. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const RUNTIME = process.env["GSV_RUNTIME_DIR"] ?? resolve(import.meta.dirname, "../../dist/runtime");
export const runtimeFile = (name: string): Buffer => readFileSync(join(RUNTIME, name));

const { modules } = JSON.parse(runtimeFile("manifest.json").toString()) as { readonly modules: readonly string[] };
/** Other files of the runtime are no modules: they are read when they are needed. */
const OTHERS = modules.filter((name) => name.endsWith(".mjs") || name.endsWith(".wasm"));
const listed = OTHERS.map((name) => `(name = "${name}", ${name.endsWith(".wasm") ? "wasm" : "esModule"} = embed "${name}")`);

/** For `modules = ...`. */
export const GATEWAY_MODULES = `[${['(name = "worker.js", esModule = embed "worker.js")', ...listed].join(", ")}]`;
/** With the embedded bucket's Worker, `r2.js`. */
export const gatewayFiles = (): Record<string, Buffer> =>
  Object.fromEntries(["worker.js", "r2.js", ...OTHERS].map((name) => [name, runtimeFile(name)]));
