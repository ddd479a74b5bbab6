/** The two measured systems: the lower bound on bare workerd, and the product as a user starts it. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { BenchClient } from "./client.ts";
import { run, start, stop, untilReady } from "./process.ts";

const here = dirname(fileURLToPath(import.meta.url));
export const root = join(here, "../..");
/** A built version of the product: its binary, and the folder of its Workers. */
export interface Build {
  readonly gsv: string;
  readonly runtime: string;
}
export const buildIn = (checkout: string): Build => ({
  gsv: join(checkout, "target/release/gsv"),
  runtime: join(checkout, "dist/runtime"),
});
const built = buildIn(root);
/** The version that is measured. */
export const own: Build = { gsv: process.env["GSV"] ?? built.gsv, runtime: process.env["GSV_RUNTIME_DIR"] ?? built.runtime };
export const gsv = own.gsv;
const workerd = join(own.runtime, "workerd");

export interface System {
  readonly name: string;
  readonly pid: number;
  readonly readyMs: number;
  open(id: string): Promise<BenchClient>;
  say(client: BenchClient, session: string, message: string): Promise<unknown>;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

export interface Floor extends System {
  /** One message of a platform: stored, then answered. */
  take(body: string): Promise<void>;
}
export async function startFloor(modelUrl: string): Promise<Floor> {
  const state = mkdtempSync(join(tmpdir(), "gsv-floor-"));
  const port = await freePort();
  const child = start(
    workerd,
    ["serve", join(here, "floor/config.capnp"), `--directory-path=state=${state}`, `--socket-addr=http=127.0.0.1:${port}`],
    { MODEL_URL: modelUrl },
  );
  const readyMs = await untilReady(`http://127.0.0.1:${port}/`, 10_000);
  return {
    name: "floor",
    pid: child.pid ?? 0,
    readyMs,
    open: () => BenchClient.open(`ws://127.0.0.1:${port}/ws`),
    async say(client, session, message) {
      client.raw(JSON.stringify({ id: "1", session, message }));
    },
    async take(body) {
      const response = await fetch(`http://127.0.0.1:${port}/take`, { method: "POST", body });
      await response.text();
      if (!response.ok) throw new Error(`the floor answered ${response.status}`);
    },
    async stop() {
      await stop(child);
      rmSync(state, { recursive: true, force: true });
    },
  };
}

export interface Gsv extends System {
  readonly build: Build;
  readonly url: string;
  readonly token: string;
  readonly env: Record<string, string>;
  readonly home: string;
  cli(...args: string[]): Promise<string>;
  /** Stops the gateway, starts it again, and gives the time until it is ready. */
  restart(): Promise<number>;
}

export async function startGsv(modelUrl: string, build: Build = own): Promise<Gsv> {
  const { gsv, runtime } = build;
  const home = mkdtempSync(join(tmpdir(), "gsv-bench-"));
  const env = { GSV_HOME: join(home, "state"), GSV_CONFIG_DIR: join(home, "config"), GSV_RUNTIME_DIR: runtime };
  const port = await freePort();
  const cli = async (...args: string[]): Promise<string> => (await run(gsv, args, env)).stdout;
  const up = await run(gsv, ["up", "--port", String(port)], env);
  const token = /^token\s*=\s*"([^"]+)"/m.exec(readFileSync(join(env.GSV_CONFIG_DIR, "config.toml"), "utf8"))?.[1] ?? "";
  for (const [path, value] of [
    ["model.baseUrl", modelUrl],
    ["model.wire", "openai-completions"],
    ["model.id", "bench"],
    ["model.contextWindow", "10000000"],
    // On a system without a sandbox every command would wait for an answer.
    ["toolApproval.defaultDecision", "allow"],
    ["model.provider", "bench"],
    ["apiKeys.bench", "none"],
  ] as const) {
    await cli("config", "set", path, value);
  }
  // With BOOTSTRAP.md, every message of a new agent is a special case; users delete it on the first day.
  await cli("workspace", "ls");
  await cli("workspace", "rm", "BOOTSTRAP.md").catch(() => "");
  const url = `http://127.0.0.1:${port}`;
  return {
    name: "gsv",
    build,
    /** Of now: a restarted gateway has another one. */
    get pid() {
      return (JSON.parse(readFileSync(join(env.GSV_HOME, "gateway/state.json"), "utf8")) as { workerdPid: number }).workerdPid;
    },
    readyMs: up.ms,
    url,
    async restart() {
      await cli("down");
      return (await run(gsv, ["up", "--port", String(port)], env)).ms;
    },
    token,
    env,
    home,
    cli,
    async open(id) {
      const client = await BenchClient.open(`ws://127.0.0.1:${port}/ws`);
      await client.hello(token, id);
      return client;
    },
    say: (client, session, message) =>
      client.call("chat.send", { sessionKey: session, message, messageId: crypto.randomUUID(), runId: crypto.randomUUID() }),
    async stop() {
      await cli("down");
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** A node of this gateway, when it is online. */
export async function startNode(system: Gsv, workspace: string, id = "bench"): Promise<{ pid: number; stop: () => Promise<void> }> {
  const child = start(system.build.gsv, ["node", "--id", id, "--workspace", workspace], { ...system.env });
  const client = await system.open("bench-node-wait");
  for (const until = performance.now() + 20_000; ; ) {
    const answer = await client.call("nodes.list", {});
    const nodes = (answer.payload?.["nodes"] ?? []) as { nodeId: string; online: boolean }[];
    if (nodes.some((n) => n.nodeId === id && n.online)) break;
    if (performance.now() > until) throw new Error("the node did not come online");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  client.close();
  return { pid: child.pid ?? 0, stop: () => stop(child) };
}

/** A tree of `count` small text files, some matching, for Grep and Glob. */
export function makeTree(count: number): string {
  const folder = mkdtempSync(join(tmpdir(), "gsv-tree-"));
  const perFolder = 200;
  for (let i = 0; i < count; i++) {
    const at = join(folder, `d${Math.floor(i / (perFolder * 50))}`, `e${Math.floor(i / perFolder) % 50}`);
    if (i % perFolder === 0) mkdirSync(at, { recursive: true });
    const body = `file ${i}\n${"lorem ipsum dolor sit amet, consectetur adipiscing elit\n".repeat(8)}${i % 5000 === 0 ? "needle in here\n" : ""}`;
    writeFileSync(join(at, i % 7 === 0 ? `f${i}.rs` : `f${i}.txt`), body);
  }
  return folder;
}
