/**
 * Replaces `ws`: a client socket over fetch's upgrade, which can send the headers that the server wants. Messages arrive in order.
 * A close always ends in `close`, even when the other side is dead, because Baileys waits for that event.
 */
import { EventEmitter } from "node:events";

const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;
const HANDSHAKE_MS = 20_000;
const FORCED_CLOSE_MS = 3_000;
/** WhatsApp's frames are smaller than this. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

export interface SocketOptions {
  readonly origin?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly handshakeTimeout?: number;
}

export class WebSocket extends EventEmitter {
  static readonly CONNECTING = CONNECTING;
  static readonly OPEN = OPEN;
  static readonly CLOSING = CLOSING;
  static readonly CLOSED = CLOSED;
  readyState = CONNECTING;
  #socket: globalThis.WebSocket | undefined;
  readonly #abort = new AbortController();

  constructor(url: string | URL, options: SocketOptions = {}) {
    super();
    const timer = setTimeout(() => this.#abort.abort(new Error("the handshake took too long")), options.handshakeTimeout ?? HANDSHAKE_MS);
    this.#open(new URL(url), options)
      .catch((error: unknown) => this.#failed(error instanceof Error ? error : new Error(String(error))))
      .finally(() => clearTimeout(timer));
  }

  async #open(url: URL, { origin, headers }: SocketOptions): Promise<void> {
    url.protocol = url.protocol === "wss:" ? "https:" : "http:";
    const all = new Headers(headers);
    if (origin !== undefined) all.set("Origin", origin);
    all.set("Upgrade", "websocket");
    const { webSocket: socket, status } = await fetch(url, { headers: all, signal: this.#abort.signal });
    if (!socket) throw new Error(`the server refused the connection (HTTP ${status})`);
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => this.#received(data));
    socket.addEventListener("close", ({ code, reason }) => this.#done(code, reason));
    socket.addEventListener("error", () => this.#failed(new Error("the connection broke")));
    socket.accept();
    if (this.readyState !== CONNECTING) return socket.close(1000);
    this.readyState = OPEN;
    this.emit("open");
  }
  #received(data: unknown): void {
    if (this.readyState !== OPEN) return;
    if (!(data instanceof ArrayBuffer) || data.byteLength > MAX_MESSAGE_BYTES) {
      this.#failed(new Error("the server sent an invalid frame"));
      return;
    }
    this.emit("message", Buffer.from(data));
  }
  #failed(error: Error): void {
    if (this.readyState === CLOSED) return;
    if (this.listenerCount("error") > 0) this.emit("error", error);
    this.close();
    this.#done(1006, "");
  }
  #done(code: number, reason: string): void {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    this.emit("close", code, reason);
  }

  /** Calls back at once: the runtime does not report its send buffer. */
  send(data: Uint8Array | string, done?: (error?: Error) => void): void {
    try {
      if (this.readyState !== OPEN || !this.#socket) throw new Error("the connection is not open");
      this.#socket.send(data);
      done?.();
    } catch (error) {
      const problem = error instanceof Error ? error : new Error(String(error));
      if (done) done(problem);
      else this.#failed(problem);
    }
  }
  close(code = 1000, reason?: string): void {
    if (this.readyState === CLOSING || this.readyState === CLOSED) return;
    this.readyState = CLOSING;
    try {
      if (this.#socket) this.#socket.close(code, reason);
      else this.#abort.abort(new Error("closed"));
    } catch {
      // Already closed; `close` follows anyway.
    }
    setTimeout(() => this.#done(1006, ""), FORCED_CLOSE_MS);
  }
  terminate(): void {
    this.close();
  }
  ping(_data?: unknown, _mask?: unknown, done?: () => void): void {
    done?.();
  }
}
export default WebSocket;
