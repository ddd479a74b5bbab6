/**
 * The bench's model: an OpenAI-completions server in the bench's own process, so that its timestamps and the client's come from one
 * clock. It answers at once. The marker in the last user message decides the answer:
 *   `[text N]`   N chunks of 32 characters
 *   `[tool NAME JSON]`   one call of that tool, then, when its result is there, `done`
 * Calls that are queued come before, one list an answer.
 * It never fails on purpose (test/fakes does that) and never looks at anything but the last messages.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ModelMark {
  /** When the request's last byte was read, and when the answer's first and last bytes were written (performance.now()). */
  requestAt: number;
  firstByteAt: number;
  endAt: number;
  requestBytes: number;
}
export interface QueuedCall {
  readonly name: string;
  readonly args: object;
}
interface Waiter {
  resolve: (mark: ModelMark) => void;
}

const CHUNK = "the quick brown fox jumps over, ";
const sse = (delta: object, finish: string | null): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "bench", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const usage = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "bench", choices: [], usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } })}\n\ndata: [DONE]\n\n`;

export class BenchModel {
  readonly marks: ModelMark[] = [];
  /** Requests read so far, answered or not. */
  requests = 0;
  /** Milliseconds between text chunks; 0 writes all at once. */
  gapMs = 0;
  readonly queued: (readonly QueuedCall[])[] = [];
  #server: Server;
  #waiters: Waiter[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }
  static async start(): Promise<BenchModel> {
    const server = createServer();
    const model = new BenchModel(server);
    server.on("request", (request: IncomingMessage, response: ServerResponse) => void model.#answer(request, response));
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return model;
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }
  /** The mark of the next answer that is finished after this call. */
  next(): Promise<ModelMark> {
    return new Promise((resolve) => this.#waiters.push({ resolve }));
  }
  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    const requestAt = performance.now();
    this.requests++;
    // Reads only the end: parsing 2,000 messages here would count as the gateway's time.
    const tail = body.toString("utf8", Math.max(0, body.length - 65536));
    const lastUser = Math.max(tail.lastIndexOf("[text "), tail.lastIndexOf("[tool "));
    const afterTool = tail.lastIndexOf('"role":"tool"') > lastUser;
    const marker = /^\[(text|tool) ([^\]]*)\]/.exec(tail.slice(lastUser).replaceAll('\\"', '"'));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.socket?.setNoDelay(true);
    const firstByteAt = performance.now();
    const queued = this.queued.shift();
    if (queued !== undefined) {
      const calls = queued.map(({ name, args }, index) => ({
        index,
        id: `call_${this.marks.length}_${index}`,
        type: "function",
        function: { name, arguments: JSON.stringify(args) },
      }));
      response.end(sse({ role: "assistant", tool_calls: calls }, null) + sse({}, "tool_calls") + usage);
    } else if (marker?.[1] === "tool" && !afterTool) {
      const [, name = "", args = "{}"] = /^(\S+) (.*)$/s.exec(marker[2] ?? "") ?? [];
      const call = { index: 0, id: `call_${this.marks.length}`, type: "function", function: { name, arguments: args } };
      response.end(sse({ role: "assistant", tool_calls: [call] }, null) + sse({}, "tool_calls") + usage);
    } else {
      const chunks = marker?.[1] === "text" ? Number(marker[2]) : 1;
      if (this.gapMs === 0) {
        let text = "";
        for (let i = 0; i < chunks; i++) text += sse({ content: CHUNK }, null);
        response.end(text + sse({}, "stop") + usage);
      } else {
        for (let i = 0; i < chunks; i++) {
          response.write(sse({ content: CHUNK }, null));
          await new Promise((resolve) => setTimeout(resolve, this.gapMs));
        }
        response.end(sse({}, "stop") + usage);
      }
    }
    const mark = { requestAt, firstByteAt, endAt: performance.now(), requestBytes: body.length };
    this.marks.push(mark);
    this.#waiters.shift()?.resolve(mark);
  }
}
