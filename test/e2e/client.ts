/** A client of the end-to-end tests: a WebSocket and JSON, without any product code. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { DEADLINE_MS, within } from "./waiting.ts";

export type Json = Record<string, unknown>;
export const DEFAULT_SESSION = "agent:main:cli:dm:main";
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
