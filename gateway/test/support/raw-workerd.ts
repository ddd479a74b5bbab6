/**
 * Runs a raw workerd process for tests in Node: writes its configuration and modules into a new folder, waits until it
 * listens on a free port, and kills it on request. Must not depend on GSV.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { build } from "esbuild";

/** The binary of the installed `workerd` package for this machine. */
export function workerdPath(): string {
  const require = createRequire(createRequire(import.meta.url).resolve("workerd/package.json"));
  const name = `@cloudflare/workerd-${process.platform === "win32" ? "windows" : process.platform}-${process.arch === "x64" ? "64" : process.arch}`;
  return join(dirname(require.resolve(`${name}/package.json`)), "bin", "workerd");
}

/** Bundles a TypeScript entry file into one ES module for workerd. */
export async function bundle(entry: string): Promise<string> {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    write: false,
    external: ["cloudflare:*", "node:*"],
    logLevel: "error",
    target: "es2024",
  });
  return result.outputFiles[0]?.text ?? "";
}

export class RawWorkerd {
  readonly url: string;
  /** The port of each socket, by name. */
  readonly ports: ReadonlyMap<string, number>;
  readonly #child: ChildProcess;
  readonly #log: string[];
  private constructor(child: ChildProcess, ports: ReadonlyMap<string, number>, log: string[]) {
    this.#child = child;
    this.ports = ports;
    this.url = `http://127.0.0.1:${ports.get("http")}`;
    this.#log = log;
  }

  /** `config` must have a socket named `http` at `127.0.0.1:0`, and all others of `sockets`. `files` are written beside it first. `env` is added to this process's. */
  static async start(
    folder: string,
    config: string,
    files: Readonly<Record<string, string | Uint8Array>> = {},
    sockets: readonly string[] = ["http"],
    env: Readonly<Record<string, string>> = {},
    options: readonly string[] = [],
  ): Promise<RawWorkerd> {
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of Object.entries({ ...files, "config.capnp": config })) writeFileSync(join(folder, name), text);
    const child = spawn(workerdPath(), ["serve", "config.capnp", "--control-fd=3", ...options], {
      cwd: folder,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    });
    const log: string[] = [];
    child.stdout?.on("data", (data: Buffer) => log.push(data.toString()));
    child.stderr?.on("data", (data: Buffer) => log.push(data.toString()));
    const ports = new Map<string, number>();
    await new Promise<void>((resolve, reject) => {
      let text = "";
      (child.stdio[3] as Readable).on("data", (data: Buffer) => {
        text += data.toString();
        for (const line of text.split("\n").slice(0, -1)) {
          const event = JSON.parse(line) as { event: string; socket?: string; port?: number };
          if (event.event === "listen" && event.port !== undefined) ports.set(event.socket ?? "http", event.port);
          if (sockets.every((name) => ports.has(name))) resolve();
        }
        text = text.slice(text.lastIndexOf("\n") + 1);
      });
      child.once("exit", (code) => reject(new Error(`workerd ended with ${code} before it listened:\n${log.join("")}`)));
      child.once("error", reject);
    });
    return new RawWorkerd(child, ports, log);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }
  get log(): string {
    return this.#log.join("");
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill(signal);
    await ended;
  }
}
