/**
 * The rig of the kill matrix: a gateway that is killed at a point chosen by an observer outside of it, and the oracle that judges every
 * cell afterwards (docs/promises.md, resume rules). Kills are synchronous, so that no test code runs between the point and the kill.
 * `GSV_E2E_KEEP=1` leaves the machine's folder behind, with all logs and ledgers.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { after, afterEach, before, beforeEach } from "node:test";
import { fileURLToPath } from "node:url";
import { type CellModel, startCellModel, tag } from "./kill-model.ts";
import { type NodeOptions, ScriptedNode } from "./kill-node.ts";
import { type Chat, type Client, isAlive, isOnline, type Json, Machine, NodeProcess, textOf, until } from "./support.ts";

export { callsThenTells, says, tag } from "./kill-model.ts";
export { type Call, LinkProxy, ScriptedNode } from "./kill-node.ts";

const BIN = process.env["GSV_BIN"] ?? join(resolve(dirname(fileURLToPath(import.meta.url)), "..", ".."), "target", "release", "gsv");
/** Whether each cell gets many seeds instead of a few. */
export const LONG = process.env["GSV_E2E_LONG"] !== undefined;
/** Errors of the test client while the gateway is away. */
const AWAY = /the socket closed|could not be opened|did not open/;
const ENDS: readonly string[] = ["final", "error", "aborted"];
/** After more kills, the supervisor waits longer and longer between restarts. */
const KILLS_PER_SUPERVISOR = 2;

/** Milliseconds between a point and its kill; the seeds of one cell. */
export const delays = (short: readonly number[]): readonly number[] =>
  LONG ? [...new Set([...short, 0, 0.5, 1, 2, 3, 5, 6, 8, 13, 21, 34])] : short;
/** Waits without a timer, whose resolution is a millisecond or worse. */
export function spin(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

interface Pids {
  /** Absent between two starts. */
  readonly workerdPid?: number;
  readonly supervisorPid: number;
  readonly restarts: number;
  readonly phase: string;
}

export class Rig {
  readonly machine = new Machine();
  readonly model: CellModel;
  readonly #nodes: ScriptedNode[] = [];
  readonly #processes: NodeProcess[] = [];
  #shot: { pid: number; restarts: number } | undefined;
  kills = 0;
  /** Time of the last completed restart of the gateway. */

  private constructor(model: CellModel) {
    this.model = model;
  }
  static async start(): Promise<Rig> {
    const rig = new Rig(await startCellModel());
    await rig.machine.up();
    await rig.use("openai");
    return rig;
  }
  async use(provider: "openai" | "anthropic"): Promise<void> {
    const client = await this.machine.client();
    const baseUrl = `${this.model.url}${provider === "openai" ? "/v1" : ""}`;
    await client.call("config.set", { path: "model", value: { provider, id: "cell-1", baseUrl } });
    await client.call("config.set", { path: "apiKeys", value: { [provider]: SECRET } });
    await client.call("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
    client.close();
  }
  async node(options: NodeOptions): Promise<ScriptedNode> {
    const node = new ScriptedNode(this.machine, options);
    this.#nodes.push(node);
    await node.join();
    return node;
  }

  /** `gsv node` as a process, connected or not; with `url` it connects through a proxy. */
  realNode(id: string, url?: string): NodeProcess {
    const workspace = join(this.machine.folder, id);
    mkdirSync(workspace, { recursive: true });
    const env = this.machine.env(url === undefined ? {} : { GSV_URL: url });
    const child = spawn(BIN, ["node", "--id", id, "--workspace", workspace], { cwd: workspace, env, stdio: ["ignore", "pipe", "pipe"] });
    const node = new NodeProcess(id, workspace, child);
    this.#processes.push(node);
    return node;
  }
  async isOnline(id: string): Promise<void> {
    await until(`node ${id} is online`, () => this.with(async (client) => isOnline(await client.call("nodes.list"), id)));
  }

  // ---------------------------------------------------------------- killing

  #pids(): Pids {
    return JSON.parse(readFileSync(join(this.machine.home, "gateway", "state.json"), "utf8")) as Pids;
  }
  /** SIGKILL of workerd, synchronously. Does nothing while it is dead. */
  shoot(): void {
    const { workerdPid: pid, restarts } = this.#pids();
    if (this.#shot !== undefined || pid === undefined) return;
    process.kill(pid, "SIGKILL");
    this.#shot = { pid, restarts };
    this.kills += 1;
  }
  get isShot(): boolean {
    return this.#shot !== undefined;
  }
  /** Waits for the kill, then for the restarted gateway. */
  async risen(): Promise<void> {
    const shot = await until("the gateway was killed", () => this.#shot);
    await until("the gateway is up again", () => {
      const { workerdPid, restarts, phase } = this.#pids();
      return phase === "ready" && restarts > shot.restarts && workerdPid !== shot.pid;
    });
    this.#shot = undefined;
  }
  /** SIGKILL of everything and a start by hand, as in a power failure. */
  async powerCut(): Promise<void> {
    const { workerdPid, supervisorPid } = this.#pids();
    for (const pid of [supervisorPid, workerdPid]) if (pid !== undefined) process.kill(pid, "SIGKILL");
    this.kills += 1;
    // The port is free only when its owner has ended.
    await until("both are gone", () => ![supervisorPid, workerdPid].some((pid) => pid !== undefined && isAlive(pid)));
    await this.machine.up();
    this.#shot = undefined;
  }
  /** SIGKILL of the supervisor alone and a start by hand, which replaces the orphaned workerd. */
  async orphan(): Promise<void> {
    process.kill(this.#pids().supervisorPid, "SIGKILL");
    this.kills += 1;
    await this.machine.up();
  }
  get isTired(): boolean {
    return this.#pids().restarts >= KILLS_PER_SUPERVISOR;
  }
  /** Before a cell: a supervisor without earlier kills, everything connected. */
  async calm(): Promise<void> {
    if (this.#shot !== undefined) await this.risen();
    if (this.isTired) await this.powerCut();
    for (const node of this.#nodes) await until(`${node.id} is connected`, () => node.online);
  }

  /** A client that is closed after use. */
  async with<T>(use: (client: Client) => Promise<T>): Promise<T> {
    const client = await this.machine.client();
    try {
      return await use(client);
    } finally {
      client.close();
    }
  }
  /** Repeats a message until it is accepted, as a client without an answer does. */
  async insist(said: Said): Promise<void> {
    await until("the message is accepted", () =>
      this.with((client) => client.call("chat.send", { ...said })).catch((error: unknown) => {
        if (AWAY.test(String(error))) return undefined;
        throw error;
      }),
    );
  }
  cell(name: string): Cell {
    return new Cell(this, `${name.replaceAll(/[^A-Za-z0-9]+/g, "-").toLowerCase()}-${randomUUID().slice(0, 8)}`);
  }

  /** The log has no secret and no internal error, whatever was killed. */
  checkLog(): void {
    const log = this.machine.gatewayLog();
    assert.ok(log.length > 0, "the gateway wrote a log");
    assert.ok(!log.includes(this.machine.token), "the log has the token");
    assert.ok(!log.includes(SECRET), "the log has the model's key");
    const wrong = log.split("\n").filter((line) => /"internal"|uncaught|unhandled|SQLITE_|broken\.|invariant/i.test(line));
    assert.deepEqual(wrong, []);
  }
  async end(): Promise<void> {
    for (const node of this.#nodes) node.leave();
    for (const node of this.#processes) await node.kill();
    if (process.env["GSV_E2E_KEEP"] === undefined) await this.machine.end();
    else await this.machine.ok("down");
    await this.model.close();
  }
}
const SECRET = "sk-cell-0123456789abcdef0123456789abcdef";

/** The params of a sent message, so that it can be repeated. */
export interface Said {
  readonly sessionKey: string;
  readonly message: string;
  readonly messageId: string;
  readonly runId: string;
}
type Block = { readonly type: string; readonly text?: string; readonly id?: string; readonly name?: string; readonly arguments?: Json };
export interface LogMessage {
  readonly role: "user" | "assistant" | "toolResult";
  readonly content: string | readonly Block[];
  readonly toolCallId?: string;
}
export interface Seen {
  readonly events: readonly Chat[];
  readonly messages: readonly LogMessage[];
  /** The runs' ends, in the order of the messages. */
  readonly ends: readonly Chat[];
  /** Text of the last run's end. */
  readonly text: string;
}
const contentText = (content: LogMessage["content"]): string =>
  typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");

/** One cell of the matrix: its own session, its messages, and the conditions at the end. */
export class Cell {
  readonly name: string;
  readonly sessionKey: string;
  readonly said: Said[] = [];
  readonly #rig: Rig;
  readonly #killsBefore: number;

  constructor(rig: Rig, name: string) {
    this.#rig = rig;
    this.name = name;
    this.sessionKey = `agent:main:cli:dm:${name}`;
    this.#killsBefore = rig.kills;
  }
  /** A message of this cell, not sent yet. */
  word(text = "please"): Said {
    const said = {
      sessionKey: this.sessionKey,
      message: `${tag(this.name)} ${text} #${this.said.length}`,
      messageId: randomUUID(),
      runId: randomUUID(),
    };
    this.said.push(said);
    return said;
  }
  /** Sends a message that makes the test kill the gateway. The kill may come before the answer; then the message is sent again. */
  async sayIntoKill(): Promise<void> {
    const said = this.word();
    try {
      await this.#rig.with((client) => client.call("chat.send", { ...said }));
    } catch (error) {
      if (!AWAY.test(String(error))) throw error;
      await this.#rig.insist(said);
    }
  }
  async say(client: Client, text?: string): Promise<Json> {
    return client.call("chat.send", { ...this.word(text) });
  }

  /** Waits until the session has nothing left to do, over any number of connections. */
  async settled(): Promise<void> {
    await until(
      `${this.name} is idle`,
      async () => {
        try {
          return await this.#rig.with(async (client) => {
            const stats = await client.call("session.stats", { sessionKey: this.sessionKey });
            return stats["state"] === "idle" && stats["queueSize"] === 0 && stats["isProcessing"] === false;
          });
        } catch (error) {
          // The gateway is away.
          if (this.#rig.isShot || AWAY.test(String(error))) return false;
          throw error;
        }
      },
      60_000,
    );
  }

  /** Events and messages from the first on, as a new client gets them. */
  async look(): Promise<Pick<Seen, "events" | "messages">> {
    return this.#rig.with(async (client) => {
      const replay = await client.call("session.subscribe", { sessionKey: this.sessionKey, afterSeq: 0 });
      const events = (replay["events"] as { payload: Chat }[]).map(({ payload }) => payload);
      const preview = await client.call("session.preview", { sessionKey: this.sessionKey, limit: 200 });
      return { events, messages: preview["messages"] as LogMessage[] };
    });
  }

  /** The oracle. `outcome`: how every run must have ended. `compacted`: the history was cut on purpose. */
  async judge(options: { readonly outcome?: string; readonly compacted?: boolean } = {}): Promise<Seen> {
    await this.settled();
    const seen = await this.look();
    const { events, messages } = seen;
    const what = (): string => `${this.name}\n${JSON.stringify(events, null, 1)}\n${JSON.stringify(messages, null, 1)}`;

    const seqs = events.map(({ sessionSeq }) => sessionSeq ?? -1);
    assert.ok(
      seqs.every((seq, i) => seq > (seqs[i - 1] ?? 0)),
      `sessionSeq rises: ${seqs.join(" ")}`,
    );
    const ends = this.said.map(({ runId }) => {
      const of = events.filter((event) => event.runId === runId && ENDS.includes(event.state));
      assert.equal(of.length, 1, `${of.length} ends of one run\n${what()}`);
      return of[0] as Chat;
    });
    const outcome = options.outcome ?? "final";
    assert.deepEqual(
      ends.map(({ state }) => state),
      this.said.map(() => outcome),
      what(),
    );
    assert.deepEqual(
      events.filter(({ state }) => ENDS.includes(state)).map(({ runId }) => runId),
      this.said.map(({ runId }) => runId),
      "runs end in the order of their messages, and no other run is there",
    );

    if (options.compacted !== true) this.#judgeHistory(messages, what);
    const phases = events.filter(({ state }) => state === "tool").map(({ tool }) => `${tool?.callId} ${tool?.phase}`);
    assert.deepEqual(phases, [...new Set(phases)], "no call begins or ends twice");
    const started = phases.filter((phase) => phase.endsWith(" started")).map((phase) => phase.replace(/ started$/, ""));
    for (const callId of started) assert.ok(phases.includes(`${callId} ended`), `${callId} has no end\n${what()}`);

    await this.#judgeRepetition(events.length);
    return { ...seen, ends, text: textOf(ends.at(-1) as Chat) };
  }
  /** Each user turn once and in order; each call has exactly one result before the next answer; no more extra model calls than kills. */
  #judgeHistory(messages: readonly LogMessage[], what: () => string): void {
    const turns = messages.filter(({ role }) => role === "user").map(({ content }) => contentText(content));
    assert.equal(turns.length, this.said.length, what());
    for (const [i, { message }] of this.said.entries())
      assert.ok(turns[i]?.endsWith(message), `turn ${i} should be "${message}"\n${what()}`);
    let open: string[] = [];
    for (const { role, content, toolCallId } of messages) {
      if (role === "toolResult") {
        assert.ok(open.includes(toolCallId ?? ""), `a result without its call, or its second: ${toolCallId}\n${what()}`);
        open = open.filter((id) => id !== toolCallId);
        continue;
      }
      assert.deepEqual(open, [], `calls without results before the next ${role}\n${what()}`);
      if (role === "assistant" && typeof content !== "string")
        open = content.flatMap(({ type, id }) => (type === "toolCall" ? [id ?? ""] : []));
    }
    const answers = messages.filter(({ role }) => role === "assistant").length;
    const asked = this.#rig.model.turns(this.name).length;
    const kills = this.#rig.kills - this.#killsBefore;
    assert.ok(asked - answers <= kills, `${asked} model calls for ${answers} answers, with ${kills} kills\n${what()}`);
  }
  /** Every message, sent again, is recognised and causes nothing. */
  async #judgeRepetition(events: number): Promise<void> {
    const asked = this.#rig.model.turns(this.name).length;
    await this.#rig.with(async (client) => {
      for (const said of this.said) {
        const again = await client.call("chat.send", { ...said });
        assert.deepEqual([again["status"], again["duplicate"], again["runId"]], ["started", true, said.runId]);
      }
      const stats = await client.call("session.stats", { sessionKey: this.sessionKey });
      assert.equal(stats["state"], "idle", "a repeated message starts nothing");
      const replay = await client.call("session.subscribe", { sessionKey: this.sessionKey, afterSeq: 0 });
      assert.equal((replay["events"] as unknown[]).length, events, "a repeated message leaves no trace");
    });
    assert.equal(this.#rig.model.turns(this.name).length, asked);
  }
}

/** The texts of tool results as the model received them. */
export const resultTexts = (messages: readonly LogMessage[]): string[] =>
  messages.filter(({ role }) => role === "toolResult").map(({ content }) => contentText(content));

/** For the tests of one `describe`: a rig with a node that has a ledger; after each test, no call was started twice. */
export function withRig(take: (rig: Rig, node: ScriptedNode) => void): void {
  let rig: Rig;
  let node: ScriptedNode;
  before(async () => {
    rig = await Rig.start();
    node = await rig.node({ id: "box", ledger: true });
    take(rig, node);
  });
  after(async () => {
    await rig.end();
  });
  beforeEach(async () => {
    await rig.calm();
  });
  afterEach(() => {
    rig.checkLog();
    node.at = {};
    assert.deepEqual(
      node.starts().filter((starts) => starts > 1),
      [],
      "no call was started twice",
    );
  });
}
