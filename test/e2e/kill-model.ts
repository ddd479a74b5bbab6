/**
 * A model whose progress is visible from outside, for the kill matrix: it reports when a request has arrived, when each piece of an
 * answer was sent, and when the answer is complete. These are the points K7, K8 and K9, without any code in the product.
 *
 * Every message of a test carries its cell's tag, which selects the answer. So many sessions can be at different points at once, and a
 * repeated request gets the same answer. Never random, never waits for time.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { anthropicEvents, type FakeAnswer, openaiEvents, type Wire, type WireEvent } from "../fakes/model-wire.ts";

export type { FakeAnswer, Wire };

/** One request of a cell. */
export interface Turn {
  /** Counts the cell's requests from 1, repeated ones too. */
  readonly n: number;
  readonly wire: Wire;
  /** The user's last message, tag included. */
  readonly text: string;
  /** Tool results since then, oldest first. */
  readonly results: readonly string[];
}
export interface Piece {
  readonly kind: WireEvent["kind"];
  /** Counts pieces of this kind in this answer from 1. */
  readonly nth: number;
  /** Pieces of this kind in the whole answer. */
  readonly of: number;
}
/** Answers a cell's requests. The other functions are called at each point and may delay the answer. */
export interface Brain {
  readonly answer: (turn: Turn) => FakeAnswer;
  readonly arrived?: (turn: Turn) => void | Promise<void>;
  readonly wrote?: (turn: Turn, piece: Piece) => void | Promise<void>;
  readonly ended?: (turn: Turn) => void;
}
export interface CellModel {
  readonly url: string;
  /** Messages with `tag(cell)` are answered by `brain` from now on. */
  serve(cell: string, brain: Brain): void;
  /** Requests of a cell so far, oldest first. */
  turns(cell: string): readonly Turn[];
  close(): Promise<void>;
}

export const tag = (cell: string): string => `<<${cell}>>`;
/** Answers `text`, word by word. */
export const says =
  (text: string): Brain["answer"] =>
  () => ({ text });
/** Calls the tools once, then answers with their results. */
export const callsThenTells =
  (...toolCalls: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[]): Brain["answer"] =>
  ({ results }) =>
    results.length === 0 ? { text: "Let me see. ", toolCalls } : { text: `Done: ${results.join(" | ")}` };

type Body = Readonly<Record<string, unknown>>;
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((block: unknown) => (isRecord(block) && typeof block["text"] === "string" ? block["text"] : "")).join("");
}
/** The last user message and the results after it, in both wire formats. */
function lastTurn(body: Body): { readonly text: string; readonly results: readonly string[] } {
  let text = "";
  let results: string[] = [];
  for (const message of Array.isArray(body["messages"]) ? body["messages"].filter(isRecord) : []) {
    const { role, content } = message;
    const blocks = Array.isArray(content) ? content.filter(isRecord).filter(({ type }) => type === "tool_result") : [];
    if (role === "tool") results.push(textOf(content));
    else if (blocks.length > 0) results.push(...blocks.map((block) => textOf(block["content"])));
    else if (role === "user") {
      text = textOf(content);
      results = [];
    }
  }
  return { text, results };
}
async function bodyOf(request: IncomingMessage): Promise<Body> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const body: unknown = JSON.parse(Buffer.concat(parts).toString("utf8"));
  return isRecord(body) ? body : {};
}

export async function startCellModel(): Promise<CellModel> {
  const brains = new Map<string, Brain>();
  const seen = new Map<string, Turn[]>();
  const sockets = new Set<Socket>();
  let ids = 0;

  async function stream(response: ServerResponse, turn: Turn, brain: Brain, model: string): Promise<void> {
    const events = (turn.wire === "anthropic-messages" ? anthropicEvents : openaiEvents)(brain.answer(turn), model, () => `cell_${++ids}`);
    const counts = new Map<WireEvent["kind"], number>();
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    for (const { bytes, kind } of events) {
      if (response.destroyed) return;
      await new Promise<void>((left) => response.write(bytes, () => left()));
      const nth = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, nth);
      await brain.wrote?.(turn, { kind, nth, of: events.filter((event) => event.kind === kind).length });
    }
    if (response.destroyed) return;
    await new Promise<void>((left) => response.end(() => left()));
    brain.ended?.(turn);
  }
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const { text, results } = lastTurn(body);
    // The fence of a task looks alike. Other fences are those of summaries, which no cell answers.
    const cell = /<<([^<>]+)>>/.exec(text.replace(/<<<task [^<>]*>>>/, ""))?.[1] ?? "";
    const brain = brains.get(cell);
    if (brain === undefined) throw new Error(`no brain for "${cell}" in: ${text.slice(0, 200)}`);
    const turns = seen.get(cell) ?? [];
    seen.set(cell, turns);
    const wire: Wire = (request.url ?? "").includes("/messages") ? "anthropic-messages" : "openai-completions";
    const turn: Turn = { n: turns.length + 1, wire, text, results };
    turns.push(turn);
    await brain.arrived?.(turn);
    await stream(response, turn, brain, typeof body["model"] === "string" ? body["model"] : "cell");
  }

  const server = createServer((request, response) => {
    const gone = new Promise<void>((resolve) => response.once("close", resolve));
    const done = handle(request, response).catch((error: unknown) => {
      // 400 is never retried, so a mistake in a test is noticed at once.
      if (!response.headersSent) response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: String(error), type: "invalid_request_error" } }));
    });
    void Promise.race([gone, done]);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    serve: (cell, brain) => void brains.set(cell, brain),
    turns: (cell) => seen.get(cell) ?? [],
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
