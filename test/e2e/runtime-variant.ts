/** Copies of the built runtime that count as other versions, for tests of upgrades: with the same Worker, or with a patched one. */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RUNTIME } from "./support.ts";

export interface Variant {
  readonly version: string;
  /** Changes the text of the Worker. */
  readonly patch?: (worker: string) => string;
}

/** Makes a runtime folder. The large files are links. */
export function runtimeVariant(folder: string, { version, patch = (worker) => worker }: Variant): string {
  mkdirSync(join(folder, "channels"), { recursive: true });
  for (const name of readdirSync(RUNTIME)) {
    const from = join(RUNTIME, name);
    if (name === "manifest.json" || name === "worker.js" || name === "channels") continue;
    if (name === "workerd" || name.endsWith(".bin")) symlinkSync(realpathSync(from), join(folder, name));
    else copyFileSync(from, join(folder, name));
  }
  for (const name of readdirSync(join(RUNTIME, "channels"))) copyFileSync(join(RUNTIME, "channels", name), join(folder, "channels", name));
  const manifest = JSON.parse(readFileSync(join(RUNTIME, "manifest.json"), "utf8")) as object;
  writeFileSync(join(folder, "manifest.json"), JSON.stringify({ ...manifest, version }));
  writeFileSync(join(folder, "worker.js"), patch(readFileSync(join(RUNTIME, "worker.js"), "utf8")));
  return folder;
}

/** Runs statements in the constructor of an exported Durable Object class, with `ctx`, before its own. */
export const inConstructor =
  (name: "Gateway" | "Session", statements: string) =>
  (worker: string): string => {
    const at = worker.lastIndexOf("export{");
    const exported = new RegExp(`([\\w$]+) as ${name}\\b`).exec(worker.slice(at));
    assert(at > 0 && exported?.[1] !== undefined, `the bundle exports no ${name}`);
    const own = `Patched${name}`;
    const patched = `class ${own} extends ${exported[1]}{constructor(ctx,env){${statements};super(ctx,env)}}`;
    return `${worker.slice(0, at)}${patched}\n${worker.slice(at).replace(exported[0], `${own} as ${name}`)}`;
  };
