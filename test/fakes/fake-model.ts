/**
 * A fake model provider for tests and benchmarks: real HTTP on loopback, both wire formats, every fault of a real provider.
 * Deterministic. Never waits for time: an answer that has to wait waits for a gate that the test opens.
 *
 *   const fake = await startFakeModel();            in a test
 *   node test/fakes/fake-model.ts --port 0          as a program; prints {"port", "url"} and serves until SIGTERM
 *
 * Anthropic's format is served at `.../messages`, OpenAI's at `.../chat/completions` under any prefix.
 * The answer is the first match of:
 *   1. the queue: `fake.enqueue(script, ...)`, or `POST /__control/script` with one script or a list of them
 *   2. a marker in the last user message: `[[script {"fault":"reset"}]]`
 *   3. after tool results: text that quotes them. Else the phrases below; else `You said: ...`
 *        say TEXT | call NAME {json arguments} (several lines: several calls) | stream N (N words) | loop NAME (calls NAME without end)
 * Control: `POST /__control/gate/NAME` opens a gate, `GET /__control/requests` lists requests (`?bodies=0` without bodies),
 * `POST /__control/reset` clears scripts, gates and requests.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { pathToFileURL } from "node:url";
import { anthropicEvents, errorBody, type FakeAnswer, openaiEvents, type Wire, type WireEvent } from "./model-wire.ts";

export type Fault =
  /** The connection is reset before anything is answered. */
  | "reset"
  /** Nothing is ever answered. */
  | "stall"
  /** Headers and half of the text, then silence. */
  | "idle"
  /** Headers and half of the events, then the connection is reset. */
  | "reset_midway"
  /** The body ends, properly, in the middle of the text. */
  | "cut_text"
  /** The body ends, properly, in the middle of a tool call's arguments. */
  | "cut_args"
  /** An error event after half of the text. */
  | "error_in_band"
  /** Bytes that are no UTF-8 inside the text. */
  | "bad_utf8"
  /** Lines end in CRLF. */
  | "crlf"
  /** One byte to a packet. */
  | "dribble"
  /** Junk after the end, and the connection stays open. */
  | "garbage_after"
  /** Junk in the middle. */
  | "garbage_midway"
  | "redirect"
  | "html"
  /** A whole JSON answer instead of a stream. */
  | "json";

export interface Script extends FakeAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body of an error; absent: the provider's usual body. */
  readonly body?: string;
  readonly message?: string;
  readonly fault?: Fault;
  /** Nothing is sent until this gate opens. */
  readonly gate?: string;
  /** After the first `after` text pieces nothing more is sent until this gate opens. */
  readonly midGate?: { readonly name: string; readonly after: number };
  /** How often this script answers before the next one; default 1. */
  readonly times?: number;
}
export interface RecordedRequest {
  readonly n: number;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly wire: Wire;
  readonly body: Readonly<Record<string, unknown>>;
  /** Resolves when the client has gone or all was sent. */
  readonly closed: Promise<void>;
}
export interface FakeModel {
  readonly port: number;
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly requests: readonly RecordedRequest[];
  enqueue(...scripts: Script[]): void;
  /**
   * The run's next answer by the number of tool results that it has already: a request that is made again gets the same answer again,
   * which a queue can't do. Undefined ends it.
   */
  answerSteps(answer: ((results: number) => Script) | undefined): void;
  openGate(name: string): void;
  /** The nth request (from 1), as soon as it has arrived. */
  request(n: number): Promise<RecordedRequest>;
  reset(): void;
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 64 * 1024 * 1024;
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((block: unknown) => (isRecord(block) && typeof block["text"] === "string" ? block["text"] : "")).join("");
}
interface Turn {
  readonly userText: string;
  /** Texts of the tool results that the request ends with. */
  readonly results: readonly string[];
}
function lastTurn(body: Readonly<Record<string, unknown>>): Turn {
  const messages = (Array.isArray(body["messages"]) ? body["messages"] : []).filter(isRecord);
  const results: string[] = [];
  let userText: string | undefined;
  let open = true;
  for (const message of messages.toReversed()) {
    const content = message["content"];
    const toolBlocks = Array.isArray(content)
      ? content.filter((block) => isRecord(block) && block["type"] === "tool_result").filter(isRecord)
      : [];
    if (message["role"] === "tool") {
      if (open) results.unshift(textOf(content));
    } else if (toolBlocks.length > 0) {
      if (open) results.unshift(...toolBlocks.map((block) => textOf(block["content"])));
    } else {
      open = false;
      if (message["role"] === "user" && userText === undefined) userText = textOf(content);
    }
  }
  return { userText: userText ?? "", results };
}

/** The tool results since the last message of the user. */
function resultsOfRun(body: Readonly<Record<string, unknown>>): number {
  const messages = (Array.isArray(body["messages"]) ? body["messages"] : []).filter(isRecord);
  let results = 0;
  for (const message of messages.toReversed()) {
    const content = message["content"];
    const blocks = Array.isArray(content) ? content.filter((block) => isRecord(block) && block["type"] === "tool_result").length : 0;
    if (message["role"] === "user" && blocks === 0) break;
    results += message["role"] === "tool" ? 1 : blocks;
  }
  return results;
}

/** The answer when nothing was scripted. */
export function defaultScript(body: Readonly<Record<string, unknown>>): Script {
  const { userText, results } = lastTurn(body);
  const marker = /\[\[script (\{.*\})\]\]/s.exec(userText);
  if (marker && (results.length === 0 || /"always":true/.test(marker[1] ?? ""))) return JSON.parse(marker[1] ?? "{}") as Script;
  const loop = /^\s*loop (\S+)/m.exec(userText);
  if (loop) return { toolCalls: [{ name: loop[1] ?? "" }] };
  if (results.length > 0) return { text: `The tools said: ${results.join(" | ")}` };
  const calls = [...userText.matchAll(/^\s*call (\S+)(?:\s+(\{.*\}))?\s*$/gm)].map((match) => ({
    name: match[1] ?? "",
    arguments: match[2] ?? "{}",
  }));
  if (calls.length > 0) return { text: "Let me see. ", toolCalls: calls };
  const stream = /^\s*stream (\d+)/m.exec(userText);
  if (stream) return { text: Array.from({ length: Math.min(100_000, Number(stream[1])) }, (_, i) => `w${i} `) };
  const say = /^\s*say (.*)$/m.exec(userText);
  return { text: say ? (say[1] ?? "") : `You said: ${userText}` };
}

class Gates {
  #open = new Set<string>();
  #waiting = new Map<string, (() => void)[]>();
  open(name: string): void {
    this.#open.add(name);
    for (const go of this.#waiting.get(name) ?? []) go();
    this.#waiting.delete(name);
  }
  wait(name: string): Promise<void> {
    if (this.#open.has(name)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), resolve]);
    });
  }
  reset(): void {
    this.#open.clear();
    for (const name of [...this.#waiting.keys()]) this.open(name);
    this.#open.clear();
  }
}

const OVERFLOW: Record<Wire, string> = {
  "anthropic-messages": "prompt is too long: 213462 tokens > 200000 maximum",
  "openai-completions": "This model's maximum context length is 128000 tokens. However, your messages resulted in 213462 tokens.",
};
const NEVER = new Promise<never>(() => {});

function damaged(events: readonly WireEvent[], script: Script, wire: Wire): Buffer[] {
  const whole = (list: readonly WireEvent[]): Buffer[] => list.map((event) => Buffer.from(event.bytes));
  const middleOf = (kind: WireEvent["kind"]): number => {
    const at = events.flatMap((event, i) => (event.kind === kind ? [i] : []));
    return at[Math.floor(at.length / 2)] ?? Math.floor(events.length / 2);
  };
  switch (script.fault) {
    case "cut_text":
    case "idle":
    case "reset_midway":
      return whole(events.slice(0, middleOf("text") + 1));
    case "cut_args":
      return whole(events.slice(0, middleOf("args") + 1));
    case "error_in_band": {
      const error =
        wire === "anthropic-messages"
          ? `event: error\ndata: ${errorBody(wire, 529, script.message ?? "Overloaded")}\n\n`
          : `data: ${JSON.stringify({ error: { message: script.message ?? "Overloaded", code: 502 } })}\n\n`;
      return [...whole(events.slice(0, middleOf("text") + 1)), Buffer.from(error)];
    }
    case "bad_utf8":
      return whole(events).map((bytes, i) =>
        i === middleOf("text")
          ? Buffer.from(bytes.toString("latin1").replace(/"(text|content)":"(?=[^"])/, '"$1":"\xff\xfe'), "latin1")
          : bytes,
      );
    case "crlf":
      return events.map((event) => Buffer.from(event.bytes.replaceAll("\n", "\r\n")));
    case "dribble":
      return whole(events).flatMap((bytes) => [...bytes].map((byte) => Buffer.of(byte)));
    case "garbage_after":
      return [...whole(events), Buffer.from("data: {not json\n\nevent: content_block_delta\ndata: nonsense\n\nxyz\n\n")];
    case "garbage_midway": {
      const at = middleOf("text") + 1;
      return [
        ...whole(events.slice(0, at)),
        Buffer.from(wire === "anthropic-messages" ? "event: content_block_delta\ndata: {]nonsense\n\n" : "data: <oops>\n\n"),
        ...whole(events.slice(at)),
      ];
    }
    default:
      return whole(events);
  }
}

export async function startFakeModel(options: { port?: number } = {}): Promise<FakeModel> {
  const queue: { script: Script; left: number }[] = [];
  const gates = new Gates();
  const requests: RecordedRequest[] = [];
  let waiting: { n: number; resolve: (request: RecordedRequest) => void }[] = [];
  const sockets = new Set<Socket>();
  let counter = 0;
  let steps: ((results: number) => Script) | undefined;
  const nextId = (): string => `fake_${++counter}`;

  const take = (): Script | undefined => {
    const head = queue[0];
    if (!head) return undefined;
    if (--head.left <= 0) queue.shift();
    return head.script;
  };
  const enqueue = (scripts: readonly Script[]): void => {
    for (const script of scripts) queue.push({ script, left: script.times ?? 1 });
  };

  async function answer(wire: Wire, body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const script = take() ?? steps?.(resultsOfRun(body)) ?? defaultScript(body);
    if (script.gate !== undefined) await gates.wait(script.gate);
    if (script.fault === "stall") return NEVER;
    if (script.fault === "reset") {
      response.socket?.resetAndDestroy();
      return;
    }
    if (script.fault === "redirect") {
      response.writeHead(script.status ?? 307, { location: "http://127.0.0.1:9/elsewhere" }).end();
      return;
    }
    if (script.fault === "html") {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end("<!doctype html><title>Sign in</title>");
      return;
    }
    if (script.fault === "json") {
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(script.body ?? JSON.stringify({ id: "x", choices: [{ message: { role: "assistant", content: "hello" } }] }));
      return;
    }
    if (script.status !== undefined && script.status !== 200) {
      const message = script.message === "overflow" ? OVERFLOW[wire] : (script.message ?? `fake ${script.status}`);
      response
        .writeHead(script.status, { "content-type": "application/json", ...script.headers })
        .end(script.body ?? errorBody(wire, script.status, message));
      return;
    }
    const model = typeof body["model"] === "string" ? body["model"] : "fake";
    const events = (wire === "anthropic-messages" ? anthropicEvents : openaiEvents)(script, model, nextId);
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", ...script.headers });
    response.flushHeaders();
    let texts = 0;
    const chunks = damaged(events, script, wire);
    for (const [i, chunk] of chunks.entries()) {
      if (script.midGate && texts === script.midGate.after && events[i]?.kind === "text") await gates.wait(script.midGate.name);
      if (events[i]?.kind === "text") texts++;
      if (response.destroyed) return;
      const flowing = response.write(chunk);
      if (script.fault === "dribble") await new Promise(setImmediate);
      else if (!flowing) await new Promise<void>((resolve) => response.once("drain", resolve).once("close", resolve));
    }
    if (script.fault === "reset_midway") {
      // Written data must be sent before the reset, or it is discarded with the connection.
      await new Promise<void>((resolve) => response.write("", () => resolve()));
      await new Promise(setImmediate);
      response.socket?.resetAndDestroy();
      return;
    }
    if (script.fault === "idle" || script.fault === "garbage_after") return NEVER;
    response.end();
  }

  function control(path: string, body: string, response: ServerResponse): void {
    const json = (value: unknown): void => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    if (path === "/__control/script") {
      const given: unknown = JSON.parse(body);
      enqueue((Array.isArray(given) ? given : [given]) as Script[]);
      return json({ queued: queue.length });
    }
    if (path.startsWith("/__control/gate/")) {
      gates.open(decodeURIComponent(path.slice("/__control/gate/".length)));
      return json({ ok: true });
    }
    if (path.startsWith("/__control/requests")) {
      const bare = path.includes("bodies=0");
      return json(
        requests.map(({ n, method, url, headers, wire, body }) => ({ n, method, url, headers, wire, ...(bare ? {} : { body }) })),
      );
    }
    if (path === "/__control/reset") {
      reset();
      return json({ ok: true });
    }
    response.writeHead(404).end();
  }
  function reset(): void {
    queue.length = 0;
    requests.length = 0;
    gates.reset();
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of request) {
      const buffer = part as Buffer;
      bytes += buffer.length;
      if (bytes > MAX_BODY_BYTES) {
        response.writeHead(413).end();
        return;
      }
      parts.push(buffer);
    }
    const text = Buffer.concat(parts).toString("utf8");
    const url = request.url ?? "/";
    const path = url.split("?")[0] ?? "/";
    if (path.startsWith("/__control/")) return control(url, text, response);
    const wire: Wire | undefined = path.endsWith("/messages")
      ? "anthropic-messages"
      : path.endsWith("/chat/completions")
        ? "openai-completions"
        : undefined;
    if (!wire || request.method !== "POST") {
      response
        .writeHead(404, { "content-type": "application/json" })
        .end(JSON.stringify({ error: { message: `no such path: ${path}`, type: "not_found_error" } }));
      return;
    }
    const parsed: unknown = JSON.parse(text);
    const body = isRecord(parsed) ? parsed : {};
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(request.headers)) headers[name] = Array.isArray(value) ? value.join(", ") : (value ?? "");
    const closed = new Promise<void>((resolve) => response.once("close", () => resolve()));
    const recorded: RecordedRequest = { n: requests.length + 1, method: request.method, url, headers, wire, body, closed };
    requests.push(recorded);
    waiting = waiting.filter(({ n, resolve }) => {
      if (n > requests.length) return true;
      const found = requests[n - 1];
      if (found) resolve(found);
      return false;
    });
    await Promise.race([answer(wire, body, response), closed]);
  }

  const server: Server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500, { "content-type": "text/plain" });
      response.end(`fake model: ${String(error)}`);
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    port,
    url: `http://127.0.0.1:${port}`,
    requests,
    enqueue: (...scripts) => enqueue(scripts),
    answerSteps: (answer) => {
      steps = answer;
    },
    openGate: (name) => gates.open(name),
    request(n) {
      const found = requests[n - 1];
      if (found) return Promise.resolve(found);
      return new Promise((resolve) => waiting.push({ n, resolve }));
    },
    reset,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const at = process.argv.indexOf("--port");
  const port = at === -1 ? 0 : Number(process.argv[at + 1]);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    process.stderr.write("usage: node test/fakes/fake-model.ts [--port PORT]\n");
    process.exit(2);
  }
  const fake = await startFakeModel({ port });
  process.stdout.write(`${JSON.stringify({ port: fake.port, url: fake.url })}\n`);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void fake.close().then(() => process.exit(0)));
}
