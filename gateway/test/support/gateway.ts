/** Shared by the gateway's tests: a peer on a socket, tokens, and fake sessions that record their requests. */
import { env } from "cloudflare:workers";
import { createExecutionContext, runInDurableObject, waitOnExecutionContext } from "cloudflare:test";
import { vi } from "vitest";
import { asAgentId, asRunId, asSessionKey, type ErrorShape, type Frame, type TokenKind } from "../../../protocol/gen/types.ts";
import type { EventName, MethodName } from "../../../protocol/gen/methods.ts";
import type { Env } from "../../src/platform/env.ts";
import type { Gateway } from "../../src/app/gateway-do.ts";
import { parts } from "../../src/app/compose.ts";
import { type ChannelProps, GatewayEntrypoint } from "../../src/app/gateway-service.ts";
import { Tokens } from "../../src/kernel/token-store.ts";
import worker from "../../src/app/worker.ts";
import type { GatewayPort } from "../../src/ports/gateway.ts";
import type { SessionPort } from "../../src/ports/session.ts";

/** The gateway as sessions see it. */
export const port = (): GatewayPort => gateway();
export const gateway = (): DurableObjectStub<Gateway> => env.GATEWAY.getByName("singleton");

/** The entrypoint for channels, over a binding of this channel. */
export function channelEntrypoint(channel: string | undefined = "test"): GatewayEntrypoint {
  const props: ChannelProps = channel === undefined ? {} : { channel };
  const ctx = Object.defineProperty(createExecutionContext(), "props", { value: props }) as ExecutionContext<ChannelProps>;
  return new GatewayEntrypoint(ctx, env);
}
/** A log of which a test reads nothing. */
export const silent = { error: () => undefined };
/** The clock of tests: so far ahead that alarms fire only when a test fires them. */
export const FAR = Date.UTC(2100, 0, 1);
/** Longer than any step takes on a slow machine with other work. */
const DEADLINE_MS = 30_000;
/** Waits until `check` passes; at the deadline it fails with the last failure. */
export const eventually = <T>(check: () => T | Promise<T>): Promise<T> => vi.waitFor(check, { timeout: DEADLINE_MS, interval: 5 });

/**
 * Waits until `probe` returns a value, or fails with the name of the expected value. Retries after each turn of the event loop. The
 * deadline does not use `Date.now`, because tests move or stop that clock.
 */
export async function until<T>(what: string, probe: () => T | undefined | false, timeoutMs = DEADLINE_MS): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const found = probe();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`);
    await scheduler.wait(2);
  }
}

type Res = Extract<Frame, { type: "res" }>;
type Evt = Extract<Frame, { type: "evt" }>;

/** One end of a socket. */
export class Peer {
  readonly frames: Frame[] = [];
  readonly texts: string[] = [];
  closed: { code: number; reason: string } | undefined;
  #next = 1;
  readonly socket: WebSocket;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.addEventListener("message", ({ data }) => {
      if (typeof data !== "string") return;
      this.texts.push(data);
      if (data.startsWith("{")) this.frames.push(JSON.parse(data) as Frame);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      this.closed ??= { code, reason };
    });
    socket.accept();
  }

  send(value: unknown): void {
    this.socket.send(typeof value === "string" ? value : JSON.stringify(value));
  }
  /** Sends a request without waiting; returns its id. */
  ask(method: MethodName | string, params?: unknown): string {
    const id = `q${this.#next++}`;
    this.send({ type: "req", id, method, ...(params === undefined ? {} : { params }) });
    return id;
  }
  answer(id: string): Promise<Res> {
    return until(`the answer to ${id}`, () => this.frames.find((frame): frame is Res => frame.type === "res" && frame.id === id));
  }
  /** The answer, successful or not. */
  async call(method: MethodName | string, params?: unknown): Promise<Res> {
    return this.answer(this.ask(method, params));
  }
  /** The payload of an answer that must be successful. */
  async ok<T = Record<string, unknown>>(method: MethodName, params?: unknown): Promise<T> {
    const res = await this.call(method, params);
    if (!res.ok) throw new Error(`${method}: ${JSON.stringify(res.error)}`);
    return res.payload as T;
  }
  /** The error of an answer that must be an error. */
  async refused(method: MethodName | string, params?: unknown): Promise<ErrorShape> {
    const res = await this.call(method, params);
    if (res.ok || res.error === undefined) throw new Error(`${method} was not refused`);
    return res.error;
  }
  events(name?: EventName): Evt[] {
    return this.frames.filter((frame): frame is Evt => frame.type === "evt" && (name === undefined || frame.event === name));
  }
  event(name: EventName, matches: (payload: Record<string, unknown>) => boolean = () => true): Promise<Evt> {
    return until(`the event ${name}`, () => this.events(name).find((frame) => matches((frame.payload ?? {}) as Record<string, unknown>)));
  }
  ended(): Promise<{ code: number; reason: string }> {
    return until("the socket to close", () => this.closed);
  }
}

export const WS = "http://gsv.test/ws";
export const upgrade = (headers: Record<string, string> = {}): Promise<Response> =>
  fetchWorker(WS, { headers: { Upgrade: "websocket", ...headers } });
export async function fetchWorker(
  url: string,
  init?: RequestInit<IncomingRequestCfProperties>,
  bindings: Partial<Env> = {},
): Promise<Response> {
  const ctx = createExecutionContext();
  const response = await worker.fetch(new Request<unknown, IncomingRequestCfProperties>(url, init), { ...env, ...bindings }, ctx);
  await waitOnExecutionContext(ctx);
  return response;
}

export async function open(headers?: Record<string, string>): Promise<Peer> {
  const response = await upgrade(headers);
  if (response.webSocket === null) throw new Error(`no socket: ${response.status} ${await response.text()}`);
  return new Peer(response.webSocket);
}

/** The first admin token of every test. */
export const ADMIN = "admin-token-of-the-tests";
export async function sha256(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
/** Makes ADMIN the gateway's first token, as BOOTSTRAP_TOKEN_HASH does. */
export async function seed(): Promise<void> {
  const hash = await sha256(ADMIN);
  await runInDurableObject(gateway(), (_gateway, state) => new Tokens(state.storage).importFirst(hash, Date.now()));
}
/** Creates a token like a person does. */
export async function token(kind: TokenKind, more: Record<string, unknown> = {}): Promise<{ token: string; tokenId: string }> {
  const made = await runInDurableObject(gateway(), async (_gateway, state) =>
    new Tokens(state.storage).create({ kind, ...more }, Date.now()),
  );
  if (!made.ok) throw new Error(made.error.message);
  return { token: made.value.token, tokenId: made.value.entry.tokenId };
}

export const connectParams = (mode: string, id: string, auth: string | undefined, more: Record<string, unknown> = {}) => ({
  minProtocol: 1,
  maxProtocol: 1,
  client: { id, version: "1", platform: "test", mode },
  ...(mode === "client" ? { fingerprint: "tests" } : {}),
  ...(auth === undefined ? {} : { auth: { token: auth } }),
  ...more,
});
let serial = 0;
export async function client(auth = ADMIN, more: Record<string, unknown> = {}, id = `client-${++serial}`): Promise<Peer> {
  const peer = await open();
  await peer.ok("connect", connectParams("client", id, auth, more));
  return peer;
}
export const TOOLS = [
  { name: "Read", description: "reads", inputSchema: { type: "object" }, idempotent: true },
  { name: "Bash", description: "runs", inputSchema: { type: "object" } },
];
export async function node(id: string, auth = ADMIN, more: Record<string, unknown> = { ledger: { calls: [] } }): Promise<Peer> {
  const peer = await open();
  await peer.ok("connect", connectParams("node", id, auth, { tools: TOOLS, ...more }));
  return peer;
}

export interface Asked {
  readonly key: string;
  readonly what: string;
  readonly args: readonly unknown[];
}
const tokens = { input: 0, output: 0, total: 0 };
/** The default answer of a fake session. */
function usual(key: string): SessionPort {
  const sessionKey = asSessionKey(key);
  return {
    send: async (input) => ({ ok: true, value: { status: "started", runId: asRunId(input.runId) } }),
    abort: async () => ({ ok: true, value: { ok: true, wasRunning: true, pendingToolsCancelled: 0 } }),
    hold: async () => ({ wasRunning: false, cancelled: 0 }),
    toolResult: async () => ({ taken: "taken" }),
    answerApproval: async () => ({ ok: true, value: { outcome: "allowed" } }),
    recheckLimit: async () => {},
    spent: async () => ({ report: { base: 0, count: 0, sums: [] }, open: { costUsd: 0, tokens: 0 } }),
    nodeChanged: async ({ calls = [] }) => calls.map(({ callId }) => callId),
    execEvent: async () => "taken",
    get: async () => ({
      ok: true,
      value: { sessionId: "s", sessionKey, createdAt: 1, updatedAt: 1, messageCount: 0, tokens, settings: {}, previousSessionIds: [] },
    }),
    stats: async () => ({
      ok: true,
      value: {
        sessionKey,
        sessionId: "s",
        messageCount: 0,
        tokens,
        createdAt: 1,
        updatedAt: 1,
        uptime: 0,
        isProcessing: false,
        queueSize: 0,
      },
    }),
    story: async () => ({ ok: false, error: { reason: "run.not_found", message: "no run" } }),
    record: async () => ({ ok: false, error: { reason: "run.not_found", message: "no run" } }),
    patch: async () => ({ ok: true, value: { ok: true } }),
    reset: async () => ({
      ok: true,
      value: { ok: true, sessionKey, oldSessionId: "a", newSessionId: "b", archivedMessages: 0, tokensCleared: tokens },
    }),
    compact: async () => ({ ok: true, value: { ok: true, trimmedMessages: 0, keptMessages: 0 } }),
    history: async () => ({ ok: true, value: { sessionKey, currentSessionId: "s", previousSessionIds: [] } }),
    preview: async () => ({ ok: true, value: { sessionKey, sessionId: "s", messageCount: 0, messages: [] } }),
    result: async () => ({ ok: false, error: { reason: "run.not_found", message: "no call" } }),
    prompt: async ({ agentId }) => ({
      ok: true,
      value: {
        sessionKey,
        agentId: asAgentId(agentId),
        model: { provider: "demo", id: "demo" },
        sections: [],
        tools: [],
        systemTokens: 0,
        toolTokens: 0,
        messageCount: 0,
        messageTokens: 0,
        totalTokens: 0,
        contextWindow: 1,
        sha256: "",
      },
    }),
    messages: async () => ({ ok: true, value: { sessionKey, sessionId: "s", messages: [], offset: 0, total: 0 } }),
    events: async () => ({ ok: true, value: { sessionKey, seq: 0, events: [], state: "idle" } }),
    end: async () => ({ ok: true, value: { report: { base: 0, count: 0, sums: [] }, open: { costUsd: 0, tokens: 0 } } }),
    erase: async () => undefined,
    resume: async () => ({ busy: false }),
    searchRows: async () => ({ ok: false, error: { reason: "session.not_found", message: "no" } }),
    runEnd: async () => ({ state: "unknown" }),
    runReport: async () => ({ end: { state: "unknown" } }),
    note: async () => undefined,
  };
}
/** The last request of a fake session. */
export function last<T>(asked: readonly Asked[]): T {
  const item = asked.at(-1);
  if (item === undefined) throw new Error("nothing was asked");
  return item.args[0] as T;
}
/** Fake sessions that give prepared answers and record every request. */
export function fakeSessions(overrides: (key: string) => Partial<SessionPort> = () => ({})): {
  readonly asked: Asked[];
  of(what: keyof SessionPort): Asked[];
} {
  const asked: Asked[] = [];
  vi.spyOn(parts, "session").mockImplementation(
    (_env, key) =>
      new Proxy<SessionPort>(
        { ...usual(key), ...overrides(key) },
        {
          get: (target, name) => {
            const act: unknown = Reflect.get(target, name);
            if (typeof act !== "function") return act;
            return (...args: unknown[]): unknown => {
              asked.push({ key, what: String(name), args });
              return Reflect.apply(act, target, args);
            };
          },
        },
      ),
  );
  return { asked, of: (what) => asked.filter((item) => item.what === what) };
}
