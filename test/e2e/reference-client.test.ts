/**
 * The published command-line client of the reference implementation (1 March 2026) works here unchanged. These are its frames, as it
 * sends them: UUIDs as request ids, no messageId, no ledger, `tools.list` as a node's keep-alive, unknown fields ignored.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { type FakeModel, Machine, startFakeModel, until } from "./support.ts";

type Frame = {
  type: string;
  id?: string;
  ok?: boolean;
  event?: string;
  payload?: Record<string, unknown>;
  error?: { code: number; message: string };
};

class ReferenceClient {
  readonly events: Frame[] = [];
  readonly #socket: WebSocket;
  readonly #answers = new Map<string, (frame: Frame) => void>();
  onInvoke: ((invoke: { callId: string; tool: string; args: Record<string, unknown> }) => unknown) | undefined;
  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const frame = JSON.parse(String(data)) as Frame;
      if (frame.type === "res") this.#answers.get(frame.id ?? "")?.(frame);
      else this.events.push(frame);
      if (frame.event === "tool.invoke")
        void this.#invoke(frame.payload as { callId: string; tool: string; args: Record<string, unknown> });
    });
  }
  static async connect(url: string, token: string, params: Record<string, unknown>): Promise<ReferenceClient> {
    const socket = new WebSocket(url);
    await new Promise((opened, failed) => {
      socket.addEventListener("open", opened);
      socket.addEventListener("error", failed);
    });
    const client = new ReferenceClient(socket);
    const hello = await client.request("connect", { minProtocol: 1, maxProtocol: 1, ...params, auth: { token } });
    assert.equal(hello.ok, true, JSON.stringify(hello));
    assert.deepEqual([hello.payload?.["type"], hello.payload?.["protocol"]], ["hello-ok", 1]);
    return client;
  }
  request(method: string, params?: unknown): Promise<Frame> {
    const id = randomUUID();
    return new Promise((resolve) => {
      this.#answers.set(id, resolve);
      this.#socket.send(JSON.stringify({ type: "req", id, method, ...(params === undefined ? {} : { params }) }));
    });
  }
  async #invoke(invoke: { callId: string; tool: string; args: Record<string, unknown> }): Promise<void> {
    await this.request("tool.result", { callId: invoke.callId, result: this.onInvoke?.(invoke) });
  }
  /** Sends as `gsv client` does, and waits for what it waits for: final, error or paused of this run. */
  async chat(sessionKey: string, message: string): Promise<Record<string, unknown>> {
    const runId = randomUUID();
    const sent = await this.request("chat.send", { sessionKey, message, runId });
    assert.equal(sent.ok, true, JSON.stringify(sent));
    if (sent.payload?.["status"] !== "started") return sent.payload ?? {};
    return until("final, error or paused", () => {
      const chats = this.events.filter(({ event, payload }) => event === "chat" && payload?.["runId"] === runId);
      return chats.find(({ payload }) => ["final", "error", "paused"].includes(String(payload?.["state"])))?.payload;
    });
  }
  close(): void {
    this.#socket.close();
  }
}

describe("the reference implementation's command-line client", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let client: ReferenceClient;
  let node: ReferenceClient;
  before(async () => {
    fake = await startFakeModel();
    await machine.up();
    await machine.useModel(fake);
    client = await ReferenceClient.connect(machine.url, machine.token, {
      client: { id: `client-${randomUUID()}`, version: "0.2.0", platform: "linux", mode: "client" },
    });
  });
  after(async () => {
    client.close();
    node.close();
    await machine.end();
    await fake.close();
  });

  it("chats", async () => {
    const final = await client.chat("agent:main:cli:dm:main", "say hello");
    assert.equal(final["state"], "final");
    assert.deepEqual((final["message"] as { content: unknown[] }).content, [{ type: "text", text: "hello" }]);
  });

  it("gets commands answered without waiting", async () => {
    const answer = await client.chat("agent:main:cli:dm:main", "/status");
    assert.equal(answer["status"], "command");
    assert.equal(typeof answer["response"], "string");
  });

  it("is told of a model's failure", async () => {
    fake.enqueue({ status: 401 });
    const end = await client.chat("agent:main:cli:dm:main", "say x");
    assert.equal(end["state"], "error");
    assert.equal(typeof end["error"], "string");
  });

  it("[F33] learns at once that a run was stopped, and prints no text twice", async () => {
    fake.enqueue({ text: "never seen", gate: "stopped" });
    const runId = randomUUID();
    const sessionKey = "agent:main:cli:dm:main";
    const sent = await client.request("chat.send", { sessionKey, message: "say something long", runId });
    assert.equal(sent.payload?.["status"], "started", JSON.stringify(sent));
    const mine = (): Record<string, unknown>[] =>
      client.events.flatMap(({ event, payload }) => (event === "chat" && payload?.["runId"] === runId ? [payload] : []));
    assert.equal((await client.request("chat.abort", { sessionKey, runId })).payload?.["wasRunning"], true);
    const end = await until("the end that it knows", () =>
      mine().find(({ state }) => ["final", "error", "paused"].includes(String(state))),
    );
    assert.equal(end["state"], "error");
    assert.equal(typeof end["error"], "string");
    fake.openGate("stopped");
    const final = await client.chat(sessionKey, "say hello again");
    assert.equal(final["state"], "final");
    const printed = client.events.flatMap(({ event, payload }) =>
      event === "chat" && ["delta", "partial"].includes(String(payload?.["state"])) ? [payload?.["text"] ?? ""] : [],
    );
    assert.equal(printed.join(""), "");
  });

  it("sets and reads configuration, secrets masked", async () => {
    assert.equal((await client.request("config.set", { path: "timeouts.toolMs", value: 50_000 })).ok, true);
    const one = await client.request("config.get", { path: "timeouts.toolMs" });
    assert.equal(one.payload?.["value"], 50_000);
    const all = await client.request("config.get");
    assert.equal(all.ok, true);
    assert.doesNotMatch(JSON.stringify(all), /sk-fake/);
    const wrong = await client.request("config.set", { path: "no.such.path", value: 1 });
    assert.equal(wrong.ok, false);
    assert.equal(Number.isInteger(wrong.error?.code), true);
  });

  it("serves tools as a node with the one admin token, and answers without a ledger", async () => {
    node = await ReferenceClient.connect(machine.url, machine.token, {
      client: { id: "node-oldbox", version: "0.2.0", platform: "linux", mode: "node" },
      tools: [
        {
          name: "Bash",
          description: "Runs a command",
          inputSchema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
        },
      ],
      nodeRuntime: { hostCapabilities: ["shell.exec"], toolCapabilities: { Bash: ["shell.exec"] } },
    });
    node.onInvoke = ({ tool, args }) => ({ ran: `${tool} ${String(args["command"])}` });
    const listed = await client.request("tools.list");
    assert.match(JSON.stringify(listed.payload), /"name":"node-oldbox__Bash"/);
    const final = await client.chat("agent:main:cli:dm:main", 'call node-oldbox__Bash {"command":"uptime"}');
    assert.match(JSON.stringify(final), /ran.*Bash uptime/);
  });

  it("keeps its node connected with `tools.list`, its only keep-alive", async () => {
    assert.equal((await node.request("tools.list")).ok, true);
  });

  it("runs a tool for its user", async () => {
    const answer = await client.request("tool.invoke", { tool: "node-oldbox__Bash", args: { command: "date" } });
    assert.deepEqual([answer.ok, answer.payload?.["result"]], [true, { ran: "Bash date" }]);
  });

  it("[F34] sets a session's model half by half", async () => {
    const sessionKey = "agent:main:cli:dm:main";
    const settings = async (): Promise<unknown> => (await client.request("session.get", { sessionKey })).payload?.["settings"];
    const { model: before } = (await settings()) as { model?: unknown };
    for (const model of [{ provider: "openai" }, { id: "gpt-4o" }])
      assert.equal((await client.request("session.patch", { sessionKey, settings: { model } })).ok, true);
    assert.deepEqual(await settings(), { model: { provider: "openai", id: "gpt-4o" } });
    assert.equal(before, undefined);
    assert.equal((await client.request("session.patch", { sessionKey, clear: ["model"] })).ok, true);
  });

  it("[F36] uses the short forms of commands", async () => {
    const sessionKey = "agent:main:cli:dm:short";
    for (const [text, command] of [
      ["/?", "help"],
      ["/t low", "think"],
      ["/thinking off", "think"],
      ["/model o3", "model"],
    ] as const) {
      const answer = await client.chat(sessionKey, text);
      assert.deepEqual([answer["status"], answer["command"], answer["error"]], ["command", command, undefined], text);
    }
    assert.match(String((await client.chat(sessionKey, "/model"))["response"]), /openai\/o3/);
  });

  it("[F37] names sessions freely, shows all that fits, and keeps no message when asked for none", async () => {
    for (let n = 0; n < 12; n++) await client.chat("foo", `say ${n}`);
    const sessionKey = "agent:main:cli:dm:foo";
    const shown = (await client.request("session.preview", { sessionKey })).payload;
    assert.equal((shown as { messages: unknown[] }).messages.length, 24);
    const compacted = await client.request("session.compact", { sessionKey, keepMessages: 0 });
    assert.deepEqual([compacted.payload?.["trimmedMessages"], compacted.payload?.["keptMessages"]], [24, 0], JSON.stringify(compacted));
  });

  it("shows sessions", async () => {
    const list = await client.request("sessions.list", { limit: 20 });
    const sessions = list.payload?.["sessions"] as { sessionKey: string; lastActiveAt: number }[];
    assert.ok(sessions.some(({ sessionKey, lastActiveAt }) => sessionKey === "agent:main:cli:dm:main" && Number.isInteger(lastActiveAt)));
    for (const method of ["session.get", "session.stats", "session.history", "session.preview"]) {
      assert.equal((await client.request(method, { sessionKey: "agent:main:cli:dm:main" })).ok, true, method);
    }
    const compacted = await client.request("session.compact", { sessionKey: "agent:main:cli:dm:main", keepMessages: 2 });
    // The cut is never between a tool call and its result, so more messages than requested may remain.
    assert.ok(
      Number(compacted.payload?.["keptMessages"]) >= 2 && Number(compacted.payload?.["trimmedMessages"]) > 0,
      JSON.stringify(compacted),
    );
    const reset = await client.request("session.reset", { sessionKey: "agent:main:cli:dm:main" });
    assert.notEqual(reset.payload?.["newSessionId"], reset.payload?.["oldSessionId"], JSON.stringify(reset));
  });
});
