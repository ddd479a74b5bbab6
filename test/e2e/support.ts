/**
 * Shared parts of the end-to-end tests: the built `gsv` program with its own home, a gateway on a free port, nodes as processes, a fake
 * model, and a raw client that speaks the wire without any product code. Waits for conditions, never for time.
 *
 * `GSV_BIN` and `GSV_RUNTIME_DIR` name the build to test; the defaults are `target/release/gsv` and `dist/runtime`.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type FakeModel, startFakeModel } from "../fakes/fake-model.ts";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const BIN = process.env["GSV_BIN"] ?? join(ROOT, "target", "release", "gsv");
/** What `gsv up` runs. */
export const RUNTIME = process.env["GSV_RUNTIME_DIR"] ?? join(ROOT, "dist", "runtime");
export const DEFAULT_SESSION = "agent:main:cli:dm:main";
/** Longer than any step takes on a slow machine with a cold disk; a test that reaches it has failed. */
const DEADLINE_MS = 40_000;

export type Json = Record<string, unknown>;

/** Looks every `everyMs`: short for files and processes, longer for requests to the gateway, which limits their rate. */
export async function until<T>(what: string, look: () => T | Promise<T>, deadlineMs = DEADLINE_MS, everyMs = 10): Promise<NonNullable<T>> {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`${what}: not true within ${deadlineMs} ms`);
    await new Promise((wake) => setTimeout(wake, everyMs));
  }
}
/** Processes with this text in their command line, the oldest first; also those in a sandbox, which know themselves by other numbers. */
export const processesWith = (text: string): number[] =>
  readdirSync("/proc")
    .map(Number)
    .sort((one, other) => one - other)
    .filter((pid) => {
      if (!(pid > 1) || pid === process.pid) return false;
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text);
      } catch {
        // It has ended.
        return false;
      }
    });
function within<T>(what: () => string, promise: Promise<T>, deadlineMs = DEADLINE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what()} (waited ${deadlineMs} ms)`)), deadlineMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/**
 * Below the ports that the system gives to outgoing connections: there, a client that dials a gateway which is down could be given the
 * gateway's own port, connect to itself and keep the port.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_240 + Math.floor(Math.random() * 20_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

// ---------------------------------------------------------------- the program

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One person's machine: a home, a configuration, a gateway, nodes. */
export class Machine {
  readonly folder = mkdtempSync(join(tmpdir(), "gsv e2e "));
  readonly home = join(this.folder, "home");
  readonly configFolder = join(this.folder, "config");
  port = 0;
  readonly #nodes: ChildProcess[] = [];
  readonly #clients: Client[] = [];

  env(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    const { GSV_URL: _url, GSV_TOKEN: _token, ...env } = process.env;
    // The profile of the user's login shell may take seconds.
    return {
      ...env,
      SHELL: "/bin/sh",
      GSV_HOME: this.home,
      GSV_CONFIG_DIR: this.configFolder,
      GSV_RUNTIME_DIR: RUNTIME,
      NO_COLOR: "1",
      ...more,
    };
  }

  async gsv(args: readonly string[], options: { input?: string; env?: Readonly<Record<string, string>> } = {}): Promise<Ran> {
    assert(existsSync(BIN), `${BIN} is missing: cargo build --release --package gsv`);
    const child = spawn(BIN, args, { cwd: this.folder, env: this.env(options.env), stdio: ["pipe", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
    const [code] = (await within(() => `gsv ${args.join(" ")} did not end:\n${stdout}\n${stderr}`, once(child, "close"), 60_000).catch(
      (error: unknown) => {
        child.kill("SIGKILL");
        throw error;
      },
    )) as [number | null];
    return { code: code ?? -1, stdout, stderr };
  }

  /** Stdout of a command that must succeed. */
  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.gsv(args);
    assert.equal(code, 0, `gsv ${args.join(" ")} ended with ${code}:\n${stdout}\n${stderr}`);
    return stdout;
  }

  async up(): Promise<void> {
    if (this.port === 0) this.port = await freePort();
    await this.ok("up", "--port", String(this.port));
  }
  get token(): string {
    const token = /^token\s*=\s*"([^"]+)"/m.exec(readFileSync(join(this.configFolder, "config.toml"), "utf8"))?.[1];
    assert(token !== undefined, "gsv up should have stored a token");
    return token;
  }
  get url(): string {
    return `ws://127.0.0.1:${this.port}/ws`;
  }
  state(): { workerdPid?: number; phase: string; restarts: number } {
    return JSON.parse(readFileSync(join(this.home, "gateway", "state.json"), "utf8")) as {
      workerdPid?: number;
      phase: string;
      restarts: number;
    };
  }
  /** Kills workerd by SIGKILL and waits until its supervisor has started another. */
  async killWorkerd(): Promise<void> {
    const { workerdPid, restarts } = this.state();
    assert(workerdPid !== undefined);
    process.kill(workerdPid, "SIGKILL");
    await until("the gateway is up again", () => {
      const now = this.state();
      return now.phase === "ready" && now.restarts > restarts && now.workerdPid !== workerdPid;
    });
  }
  gatewayLog(): string {
    const file = join(this.home, "gateway", "gateway.log");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  }

  /** Configures a fake model server for every session. */
  async useModel(fake: FakeModel, wire: "openai" | "anthropic" = "openai"): Promise<void> {
    const client = await this.client();
    await client.call("config.set", {
      path: "model",
      value: { provider: wire, id: "fake-1", baseUrl: `${fake.url}${wire === "openai" ? "/v1" : ""}` },
    });
    await client.call("config.set", { path: "apiKeys", value: { [wire]: "sk-fake" } });
    // What may run is the matter of other tests, and depends on the sandbox of the machine that runs these.
    await client.call("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
    client.close();
  }

  async client(options: ConnectOptions = {}): Promise<Client> {
    const client = await Client.connect(this.url, { token: this.token, ...options });
    this.#clients.push(client);
    return client;
  }

  /** `gsv node` as a process, connected. */
  async node(id: string, workspace = join(this.folder, id), env: Readonly<Record<string, string>> = {}): Promise<NodeProcess> {
    mkdirSync(workspace, { recursive: true });
    const child = spawn(BIN, ["node", "--id", id, "--workspace", workspace], {
      cwd: workspace,
      env: this.env(env),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#nodes.push(child);
    const node = new NodeProcess(id, workspace, child);
    await this.online(id, () => assert(node.running, `gsv node ended:\n${node.output}`));
    return node;
  }

  /** Waits until a node is connected; `check` may throw earlier. */
  async online(id: string, check: () => void = () => undefined): Promise<void> {
    const client = await this.client();
    await until(
      `${id} is online`,
      async () => {
        check();
        return isOnline(await client.call("nodes.list"), id);
      },
      DEADLINE_MS,
      150,
    );
    client.close();
  }

  async end(): Promise<void> {
    for (const client of this.#clients) client.close();
    for (const node of this.#nodes) node.kill("SIGKILL");
    if (existsSync(this.home)) await this.gsv(["down"]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class NodeProcess {
  readonly id: string;
  readonly workspace: string;
  readonly #child: ChildProcess;
  output = "";
  constructor(id: string, workspace: string, child: ChildProcess) {
    this.id = id;
    this.workspace = workspace;
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
    }
  }
  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }
  file(name: string): string {
    return join(this.workspace, name);
  }
  lines(name: string): string[] {
    return existsSync(this.file(name))
      ? readFileSync(this.file(name), "utf8")
          .split("\n")
          .filter((line) => line !== "")
      : [];
  }
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (!this.running) return;
    const ended = once(this.#child, "close");
    this.#child.kill(signal);
    await within(() => `gsv node did not end after ${signal}`, ended);
  }
}

export function isOnline(list: Json, id: string): boolean {
  const nodes = list["nodes"] as { nodeId: string; online: boolean }[];
  return nodes.some(({ nodeId, online }) => nodeId === id && online);
}

// ---------------------------------------------------------------- the wire

export interface ConnectOptions {
  readonly token?: string;
  readonly id?: string;
  /** Merged over the `connect` params. */
  readonly params?: Json;
}
export class WireError extends Error {
  readonly code: number;
  readonly reason: string | undefined;
  constructor(error: { code: number; reason?: string; message: string }) {
    super(`${error.reason ?? ""} ${error.code}: ${error.message}`);
    this.code = error.code;
    this.reason = error.reason;
  }
}
export interface WireEvent {
  readonly event: string;
  readonly seq?: number;
  readonly payload: Json;
}
/** A `chat` event's payload. */
export interface Chat {
  readonly runId?: string;
  readonly sessionKey: string;
  readonly state: "delta" | "partial" | "tool" | "status" | "paused" | "final" | "error" | "aborted";
  readonly text?: string;
  readonly message?: { readonly role: string; readonly content: readonly { type: string; text?: string }[] };
  readonly error?: string;
  readonly reason?: string;
  readonly sessionSeq?: number;
  readonly step?: number;
  readonly attempt?: number;
  readonly offset?: number;
  readonly tool?: {
    readonly callId: string;
    readonly name: string;
    readonly phase: "started" | "ended";
    readonly outcome?: string;
    readonly preview?: string;
  };
}
const ENDS = new Set(["final", "error", "aborted"]);
export const textOf = (chat: Chat): string => (chat.message?.content ?? []).map((block) => block.text ?? "").join("");

/** A WebSocket and JSON, nothing else: what any program could write from the contract's documents. */
export class Client {
  readonly events: WireEvent[] = [];
  /** Set when the socket has closed. */
  closed: { code: number; reason: string } | undefined;
  readonly #socket: WebSocket;
  readonly #pending = new Map<string, { resolve: (payload: Json) => void; reject: (error: Error) => void }>();
  #watchers: (() => void)[] = [];
  #ids = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#take(String(data)));
    socket.addEventListener("close", ({ code, reason }) => {
      this.closed = { code, reason };
      for (const { reject } of this.#pending.values()) reject(new Error(`the socket closed: ${code} ${reason}`));
      this.#pending.clear();
      this.#wake();
    });
    socket.addEventListener("error", () => undefined);
  }

  /** An open socket before its first frame. */
  static async open(url: string): Promise<Client> {
    const socket = new WebSocket(url);
    const client = new Client(socket);
    await within(
      () => `${url} did not open`,
      new Promise<void>((opened, failed) => {
        socket.addEventListener("open", () => opened());
        socket.addEventListener("error", () => failed(new Error(`${url} could not be opened`)));
      }),
    );
    return client;
  }

  static async connect(url: string, options: ConnectOptions = {}): Promise<Client> {
    const client = await Client.open(url);
    const id = options.id ?? `e2e-${randomUUID()}`;
    await client.call("connect", {
      minProtocol: 1,
      maxProtocol: 1,
      client: { id, version: "0.0.1", platform: "test", mode: "client" },
      fingerprint: "e2e",
      ...(options.token === undefined ? {} : { auth: { token: options.token } }),
      ...options.params,
    });
    return client;
  }

  #take(data: string): void {
    if (data === "pong") return;
    const frame = JSON.parse(data) as Json & { type: string };
    if (frame.type === "res") {
      const waiting = this.#pending.get(String(frame["id"]));
      this.#pending.delete(String(frame["id"]));
      if (frame["ok"] === true) waiting?.resolve((frame["payload"] ?? {}) as Json);
      else waiting?.reject(new WireError(frame["error"] as { code: number; reason?: string; message: string }));
    } else if (frame.type === "evt") {
      this.events.push({
        event: String(frame["event"]),
        payload: (frame["payload"] ?? {}) as Json,
        ...(typeof frame["seq"] === "number" ? { seq: frame["seq"] } : {}),
      });
    }
    this.#wake();
  }
  #wake(): void {
    const watchers = this.#watchers;
    this.#watchers = [];
    for (const wake of watchers) wake();
  }

  sendRaw(text: string | Uint8Array<ArrayBuffer>): void {
    this.#socket.send(text);
  }
  async call(method: string, params?: Json): Promise<Json> {
    const id = `r${++this.#ids}`;
    const answered = new Promise<Json>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    answered.catch(() => undefined);
    this.#socket.send(JSON.stringify({ type: "req", id, method, ...(params === undefined ? {} : { params }) }));
    return within(() => `${method} was not answered`, answered);
  }

  /** The first event, past or future, for which `pick` gives a value. */
  async waitFor<T>(what: string, pick: (event: WireEvent) => T | undefined | false, deadlineMs = DEADLINE_MS): Promise<T> {
    let next = 0;
    const deadline = Date.now() + deadlineMs;
    for (;;) {
      for (; next < this.events.length; next++) {
        const event = this.events[next];
        const found = event === undefined ? undefined : pick(event);
        if (found !== undefined && found !== false) return found;
      }
      const seen = (): string =>
        `${what}: no such event. Seen: ${JSON.stringify(this.events.slice(-12))}${this.closed === undefined ? "" : ` closed ${this.closed.code} ${this.closed.reason}`}`;
      if (this.closed !== undefined) throw new Error(seen());
      await within(seen, new Promise<void>((wake) => this.#watchers.push(wake)), Math.max(1, deadline - Date.now()));
    }
  }
  async untilClosed(): Promise<{ code: number; reason: string }> {
    for (;;) {
      if (this.closed !== undefined) return this.closed;
      await within(() => "the socket did not close", new Promise<void>((wake) => this.#watchers.push(wake)));
    }
  }

  chats(runId?: string): Chat[] {
    return this.events
      .filter(({ event }) => event === "chat")
      .map(({ payload }) => payload as unknown as Chat)
      .filter((chat) => runId === undefined || chat.runId === runId);
  }
  waitForChat(what: string, pick: (chat: Chat) => boolean): Promise<Chat> {
    return this.waitFor(what, ({ event, payload }) => {
      const chat = payload as unknown as Chat;
      return event === "chat" && pick(chat) ? chat : undefined;
    });
  }
  /** Sends a message; resolves with the run's id. */
  async say(message: string, more: Json = {}): Promise<string> {
    const result = await this.call("chat.send", {
      sessionKey: DEFAULT_SESSION,
      message,
      messageId: randomUUID(),
      runId: randomUUID(),
      ...more,
    });
    assert.equal(result["status"], "started", JSON.stringify(result));
    return String(result["runId"]);
  }
  ending(runId: string): Promise<Chat> {
    return this.waitForChat(`the end of run ${runId}`, (chat) => chat.runId === runId && ENDS.has(chat.state));
  }
  async ask(message: string, more: Json = {}): Promise<Chat> {
    return this.ending(await this.say(message, more));
  }

  close(): void {
    this.#socket.close();
  }
}

/** The messages of a session as the model sees them. */
export async function transcript(client: Client, sessionKey = DEFAULT_SESSION): Promise<{ role: string; content: unknown }[]> {
  const preview = await client.call("session.preview", { sessionKey, limit: 200 });
  return preview["messages"] as { role: string; content: unknown }[];
}

export { type FakeModel, startFakeModel };
