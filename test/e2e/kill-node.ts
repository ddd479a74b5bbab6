/**
 * Nodes for the kill matrix. `ScriptedNode` follows the wire's rules for nodes (T1 to T4), with or without a ledger. A test can stop it at
 * each stage of a call, kill it or cut it off; it counts how often each call was started. `LinkProxy` is between a real `gsv node` and its
 * gateway and can cut the link.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from "node:net";
import { type Json, type Machine, until } from "./support.ts";

/** arrived, accepted durably, started, ended and stored, result written to the socket, result acknowledged. */
export type Stage = "arrived" | "accepted" | "started" | "stored" | "sent" | "acked";
/** May delay the call. "lose" at `arrived` drops the frame; at `acked` it drops the acknowledgement. */
export type Hook = (call: Call, nth: number) => unknown;
export interface Call {
  readonly callId: string;
  readonly tool: string;
  readonly args: Json;
  state: "accepted" | "started" | "finished" | "lost" | "released";
  starts: number;
  arrivals: number;
  result: Json | undefined;
}
export interface NodeOptions {
  readonly id: string;
  readonly ledger: boolean;
}

export class ScriptedNode {
  readonly id: string;
  readonly ledger: boolean;
  /** The calls on the node's disk. */
  readonly calls = new Map<string, Call>();
  readonly cancelled: string[] = [];
  /** Called at each stage of each call; `nth` counts that stage of that call from 1. */
  at: Partial<Record<Stage, Hook>> = {};
  readonly #machine: Machine;
  readonly #seen = new Map<string, number>();
  #socket: WebSocket | undefined;
  #acks = new Map<string, (ok: boolean) => void>();
  #running = new Set<string>();
  #life = 0;
  #dialling = 0;
  #ids = 0;
  #away = true;
  online = false;

  constructor(machine: Machine, { id, ledger }: NodeOptions) {
    this.#machine = machine;
    this.id = id;
    this.ledger = ledger;
  }

  /** Connects, and connects again whenever the link breaks, until `leave` or `die`. */
  async join(): Promise<void> {
    this.#away = false;
    void this.#dial(++this.#dialling);
    await until(`${this.id} is connected`, () => this.online);
  }
  /** Cuts the link; the process continues. */
  leave(): void {
    this.#away = true;
    this.online = false;
    this.#socket?.close();
  }
  /** Ends the process: started calls are lost, calls on disk remain for the next `join`. */
  die(): void {
    this.#life += 1;
    this.leave();
    for (const call of this.calls.values()) if (call.state === "started") call.state = "lost";
    this.#running.clear();
  }
  /** Sends a stored result once more. */
  async repeat(callId: string): Promise<Json> {
    const call = this.calls.get(callId);
    assert(call?.result);
    return this.#request("tool.result", call.result);
  }
  starts(): number[] {
    return [...this.calls.values()].map(({ starts }) => starts);
  }
  /** The only call of this cell, whose arguments name it. */
  callOf(cell: string): Call | undefined {
    return [...this.calls.values()].find(({ args }) => args["cell"] === cell);
  }

  async #dial(turn: number): Promise<void> {
    while (!this.#away && turn === this.#dialling) {
      const socket = new WebSocket(this.#machine.url);
      const closed = new Promise<void>((resolve) => {
        socket.addEventListener("close", () => resolve());
        // A socket that could not be opened gets no close event.
        socket.addEventListener("error", () => resolve());
      });
      socket.addEventListener("open", () => this.#hello(socket));
      socket.addEventListener("message", ({ data }) => this.#take(socket, String(data)));
      await closed;
      if (this.#socket === socket) {
        this.#socket = undefined;
        this.online = false;
        for (const fail of this.#acks.values()) fail(false);
        this.#acks.clear();
      }
      await new Promise((wake) => setTimeout(wake, 20));
    }
  }
  #hello(socket: WebSocket): void {
    const tools = [
      { name: "Do", description: "Changes something", inputSchema: { type: "object" } },
      { name: "Look", description: "Changes nothing", inputSchema: { type: "object" }, idempotent: true },
    ];
    const calls = [...this.calls.values()]
      .filter(({ state }) => state !== "released")
      .map(({ callId, state }) => ({
        callId,
        state: state === "accepted" || state === "finished" || state === "lost" ? state : "started",
      }));
    const params = {
      minProtocol: 1,
      maxProtocol: 1,
      client: { id: this.id, version: "1", platform: "test", mode: "node" },
      tools,
      nodeRuntime: { hostCapabilities: ["shell.exec"], toolCapabilities: { Do: ["shell.exec"], Look: ["shell.exec"] } },
      auth: { token: this.#machine.token },
      ...(this.ledger ? { ledger: { calls } } : {}),
    };
    socket.send(JSON.stringify({ type: "req", id: "hello", method: "connect", params }));
  }
  #take(socket: WebSocket, data: string): void {
    const frame = JSON.parse(data) as Json;
    if (frame["type"] === "res" && frame["id"] === "hello") {
      assert.equal(frame["ok"], true, data);
      this.#socket = socket;
      this.online = true;
      // Without a ledger, results that an earlier link did not deliver are lost.
      for (const call of this.ledger ? this.calls.values() : []) {
        if (call.state === "finished" || call.state === "lost") void this.#deliver(call);
        else if (call.state === "accepted" && !this.#running.has(call.callId)) void this.#run(call);
      }
    } else if (frame["type"] === "res") {
      const id = String(frame["id"]);
      this.#acks.get(id)?.(frame["ok"] === true);
      this.#acks.delete(id);
    } else if (frame["event"] === "tool.invoke") void this.#invoked(frame["payload"] as Json);
    else if (frame["event"] === "tool.cancel") this.cancelled.push(String((frame["payload"] as Json)["callId"]));
  }
  #request(method: string, params: Json): Promise<Json> {
    const socket = this.#socket;
    if (socket === undefined) return Promise.resolve({ ok: false });
    const id = `n${++this.#ids}`;
    const answered = new Promise<Json>((resolve) => this.#acks.set(id, (ok) => resolve({ ok })));
    socket.send(JSON.stringify({ type: "req", id, method, params }));
    return answered;
  }
  /** The hook's answer, or `dead` when the process died meanwhile. */
  async #stage(stage: Stage, call: Call): Promise<"go on" | "lose" | "dead"> {
    const key = `${stage} ${call.callId}`;
    const nth = (this.#seen.get(key) ?? 0) + 1;
    this.#seen.set(key, nth);
    const life = this.#life;
    const word = await this.at[stage]?.(call, nth);
    if (life !== this.#life) return "dead";
    return word === "lose" ? "lose" : "go on";
  }

  async #invoked({ callId: id, tool, args }: Json): Promise<void> {
    const callId = String(id);
    const fresh: Call = { callId, tool: String(tool), args: args as Json, state: "accepted", starts: 0, arrivals: 0, result: undefined };
    const call = this.calls.get(callId) ?? fresh;
    call.arrivals += 1;
    if ((await this.#stage("arrived", call)) !== "go on") return;
    if (this.ledger && this.calls.has(callId)) {
      if (call.state === "finished" || call.state === "released" || call.state === "lost") await this.#deliver(call);
      else if (this.#running.has(callId)) await this.#request("tool.progress", { callId, phase: call.state });
      else await this.#run(call);
      return;
    }
    this.calls.set(callId, call);
    call.state = "accepted";
    await this.#run(call);
  }
  async #run(call: Call): Promise<void> {
    const { callId } = call;
    this.#running.add(callId);
    void this.#request("tool.progress", { callId, phase: "accepted" });
    if ((await this.#stage("accepted", call)) === "dead") return;
    call.state = "started";
    call.starts += 1;
    void this.#request("tool.progress", { callId, phase: "started" });
    if ((await this.#stage("started", call)) === "dead") return;
    call.result = { callId, outcome: "ok", result: { did: call.args["cell"] ?? null, start: call.starts } };
    call.state = "finished";
    this.#running.delete(callId);
    if ((await this.#stage("stored", call)) === "dead") return;
    await this.#deliver(call);
  }
  async #deliver(call: Call): Promise<void> {
    const { callId } = call;
    const lost = { callId, outcome: "unknown", reason: "tool.outcome_unknown", error: "The node was stopped while it ran." };
    const answered = this.#request("tool.result", call.state === "lost" ? lost : (call.result ?? lost));
    if ((await this.#stage("sent", call)) === "dead") return;
    const { ok } = await answered;
    if (ok !== true) return;
    if ((await this.#stage("acked", call)) !== "go on") return;
    call.state = "released";
  }
}

/** A TCP relay to the gateway. */
export class LinkProxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #open = true;
  #port: () => number;

  private constructor(port: () => number) {
    this.#port = port;
    this.#server = createServer((near) => {
      if (!this.#open) {
        near.destroy();
        return;
      }
      const far = dial(this.#port(), "127.0.0.1");
      const pair = [near, far] as const;
      this.#pairs.add(pair);
      const end = (): void => {
        this.#pairs.delete(pair);
        near.destroy();
        far.destroy();
      };
      for (const socket of pair) socket.on("error", end).on("close", end);
      near.pipe(far);
      far.pipe(near);
    });
  }
  static async start(machine: Machine): Promise<LinkProxy> {
    const proxy = new LinkProxy(() => machine.port);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }
  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/ws`;
  }
  /** Cuts all connections and refuses new ones until `restore`. */
  cut(): void {
    this.#open = false;
    for (const [near, far] of this.#pairs) {
      near.destroy();
      far.destroy();
    }
  }
  restore(): void {
    this.#open = true;
  }
  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }
}
