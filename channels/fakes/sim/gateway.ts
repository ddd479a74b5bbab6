/**
 * The simulator's gateway: the `gsv` program with its own home, and wire requests where no command exists. Starts, stops and kills only
 * processes of that home. Contacts only this machine.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Journal } from "./journal.ts";

export type Json = Record<string, unknown>;
const PATIENCE_MS = 60_000;
const POLL_MS = 20;

export interface ChannelSettings {
  readonly enabled: true;
  readonly vars?: Readonly<Record<string, string>>;
  readonly trustedCertificates?: readonly string[];
}
interface State {
  readonly phase?: string;
  readonly workerdPid?: number;
  readonly restarts?: number;
}

export class Gateway {
  readonly #bin: string;
  readonly #home: string;
  readonly #journal: Journal;
  #port = 0;
  constructor(bin: string, home: string, journal: Journal) {
    this.#bin = bin;
    this.#home = home;
    this.#journal = journal;
  }
  get env(): NodeJS.ProcessEnv {
    const { GSV_URL: _url, GSV_TOKEN: _token, ...env } = process.env;
    return { ...env, GSV_HOME: join(this.#home, "state"), GSV_CONFIG_DIR: join(this.#home, "config") };
  }
  get log(): string {
    return join(this.#home, "state", "gateway", "gateway.log");
  }
  get url(): string {
    return `ws://127.0.0.1:${this.#port}/ws`;
  }

  /** Runs the program. `inherit`: in the terminal. */
  async gsv(args: readonly string[], inherit = false): Promise<{ readonly code: number; readonly stdout: string }> {
    // The program must not read the script's lines.
    const stdin = process.stdin.isTTY ? "inherit" : "ignore";
    const child = spawn(this.#bin, args, { env: this.env, stdio: inherit ? [stdin, "inherit", "inherit"] : ["ignore", "pipe", "pipe"] });
    let stdout = "";
    for (const [kind, stream] of [
      ["out", child.stdout],
      ["err", child.stderr],
    ] as const)
      stream?.setEncoding("utf8").on("data", (text: string) => {
        if (kind === "out") stdout += text;
        this.#journal.note("gsv", `${args[0]}: ${text.trimEnd()}`);
      });
    const code = await new Promise<number>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status) => resolve(status ?? 1));
    });
    return { code, stdout };
  }

  /** Runs the program's WhatsApp login in this terminal without stdin, which the caller reads. */
  login(): { readonly ended: Promise<void>; readonly leave: () => void } {
    const child = spawn(this.#bin, ["channel", "login", "whatsapp"], { env: this.env, stdio: ["ignore", "inherit", "inherit"] });
    const ended = new Promise<void>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", () => resolve());
    });
    return { ended, leave: () => child.kill("SIGINT") };
  }

  /** Configures the channels and the URLs of their platforms. Call before `up`. */
  configure(channels: Readonly<Record<string, ChannelSettings>>): void {
    const folder = join(this.#home, "state", "gateway");
    for (const path of [join(this.#home, "state"), folder, join(this.#home, "config")]) mkdirSync(path, { recursive: true, mode: 0o700 });
    const file = join(folder, "channels.json");
    rmSync(file, { force: true });
    writeFileSync(file, JSON.stringify({ version: 1, channels }, null, 2), { mode: 0o600 });
  }
  async up(): Promise<number> {
    if (this.#port === 0) this.#port = await freePort();
    const { code, stdout } = await this.gsv(["up", "--json", "--port", String(this.#port)]);
    if (code !== 0) throw new Error(`the gateway did not start:\n${this.#journal.tail(this.#journal.file, 12)}`);
    return Number((JSON.parse(stdout) as { readyMs?: number }).readyMs ?? 0);
  }
  async down(): Promise<void> {
    if (existsSync(join(this.#home, "state", "gateway"))) await this.gsv(["down"]);
  }
  #state(): State {
    try {
      return JSON.parse(readFileSync(join(this.#home, "state", "gateway", "state.json"), "utf8")) as State;
    } catch {
      return {};
    }
  }
  /** SIGKILL; resolves when the supervisor has started another one. */
  async kill(): Promise<void> {
    const { workerdPid, restarts = 0 } = this.#state();
    if (workerdPid === undefined) throw new Error("workerd is not running");
    process.kill(workerdPid, "SIGKILL");
    for (const end = Date.now() + PATIENCE_MS; ; ) {
      const { phase, workerdPid: now, restarts: count = 0 } = this.#state();
      if (phase === "ready" && now !== workerdPid && count > restarts) return;
      if (Date.now() > end) throw new Error("the gateway did not come back");
      await new Promise((wake) => setTimeout(wake, POLL_MS));
    }
  }

  /** Sends one request on its own connection, so that restarts do not matter. */
  async call(method: string, params: Json = {}): Promise<Json> {
    const socket = new WebSocket(this.url);
    try {
      return await new Promise<Json>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`${method} was not answered`)), PATIENCE_MS);
        const ask = (id: string, name: string, asked: Json): void =>
          socket.send(JSON.stringify({ type: "req", id, method: name, params: asked }));
        const client = { id: "sim", version: "0.1.0", platform: process.platform, mode: "client" };
        socket.addEventListener("open", () =>
          ask("1", "connect", { minProtocol: 1, maxProtocol: 1, client, auth: { token: this.#token() } }),
        );
        socket.addEventListener("message", ({ data }) => {
          const frame = JSON.parse(String(data)) as {
            type?: string;
            id?: string;
            ok?: boolean;
            payload?: Json;
            error?: { message?: string };
          };
          if (frame.type !== "res") return;
          if (frame.ok !== true) reject(new Error(frame.error?.message ?? `${method} failed`));
          else if (frame.id === "1") ask("2", method, params);
          else resolve(frame.payload ?? {});
          if (frame.ok !== true || frame.id !== "1") clearTimeout(timer);
        });
        socket.addEventListener("close", () => {
          clearTimeout(timer);
          reject(new Error("the gateway closed the connection"));
        });
        socket.addEventListener("error", () => undefined);
      });
    } finally {
      socket.close();
    }
  }
  #token(): string {
    const config = readFileSync(join(this.#home, "config", "config.toml"), "utf8");
    return /^token\s*=\s*"([^"]+)"/m.exec(config)?.[1] ?? "";
  }
}

/** Below the ephemeral ports of the system. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_240 + Math.floor(Math.random() * 20_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
