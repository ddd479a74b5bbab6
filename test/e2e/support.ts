/**
 * Shared parts of the end-to-end tests: the built `gsv` program with its own home, a gateway on a free port, nodes as processes, a fake
 * model, and the raw client of client.ts. Waits for conditions, never for time.
 *
 * `GSV_BIN` and `GSV_RUNTIME_DIR` name the build to test; the defaults are `target/release/gsv` and `dist/runtime`.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before } from "node:test";
import { type FakeModel, startFakeModel } from "../fakes/fake-model.ts";
import { type Json, type ConnectOptions, Client } from "./client.ts";
import { DEADLINE_MS, until, within } from "./waiting.ts";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const BIN = process.env["GSV_BIN"] ?? join(ROOT, "target", "release", "gsv");
/** What `gsv up` runs. */
export const RUNTIME = process.env["GSV_RUNTIME_DIR"] ?? join(ROOT, "dist", "runtime");
/** False when all threads of the process have ended, also while it is a zombie. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const folder = `/proc/${pid}`;
    if (!existsSync(folder) || readdirSync(`${folder}/task`).length > 1) return true;
    return !/^State:\s+[ZX]/m.test(readFileSync(`${folder}/status`, "utf8"));
  } catch {
    return false;
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

  /** Brings this text into force as the definition of an agent. */
  async defineAgent(id: string, definition: string): Promise<void> {
    const folder = join(this.folder, "definitions", id);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "agent.yaml"), definition);
    await this.ok("agent", "define", folder);
  }

  /** The next start of the gateway takes a free port. */
  async usePort(): Promise<void> {
    if (this.port === 0) this.port = await freePort();
    const gateway = join(this.home, "gateway");
    for (const folder of [this.home, gateway]) mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(gateway, "port"), String(this.port), { mode: 0o600 });
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
  get pid(): number {
    return this.#child.pid ?? 0;
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

/** For the tests of one `describe`: the machine's gateway is up and asks a fake model, which `take` gets. Both end after the tests. */
export function withModel(machine: Machine, take: (model: FakeModel) => void | Promise<void> = () => undefined): void {
  let model: FakeModel | undefined;
  before(async () => {
    model = await startFakeModel();
    await machine.up();
    await machine.useModel(model);
    await take(model);
  });
  after(async () => {
    await machine.end();
    await model?.close();
  });
}

export {
  type Chat,
  Client,
  type ConnectOptions,
  DEFAULT_SESSION,
  type Json,
  textOf,
  transcript,
  WireError,
  type WireEvent,
} from "./client.ts";
export { until } from "./waiting.ts";
export { type FakeModel, startFakeModel };
