/**
 * The package `ws`, as @discordjs/ws uses it, on the runtime's own WebSocket (an alias of the bundler puts it in place). A close always
 * ends: a peer that is gone would never answer it, and the library waits for that answer. Knows nothing of Discord.
 */

const CLOSE_MS = 3_000;
type Handler<T> = ((event: T) => void) | null;

export class WebSocket {
  static readonly CONNECTING = 0;
  static readonly OPEN = 1;
  static readonly CLOSING = 2;
  static readonly CLOSED = 3;

  readyState = 0;
  binaryType = "arraybuffer";
  onopen: Handler<object> = null;
  onmessage: Handler<{ readonly data: unknown }> = null;
  onerror: Handler<{ readonly error: Error }> = null;
  onclose: Handler<{ readonly code: number; readonly reason: string }> = null;
  readonly #socket: globalThis.WebSocket;
  #giveUp: ReturnType<typeof setTimeout> | undefined;

  constructor(url: string) {
    const socket = new globalThis.WebSocket(url);
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => {
      if (this.readyState !== WebSocket.CONNECTING) return;
      this.readyState = WebSocket.OPEN;
      // The library drops a connecting socket without closing it.
      if (this.onmessage === null && this.onclose === null) return this.close(1000);
      this.onopen?.({});
    });
    socket.addEventListener("message", ({ data }) => this.onmessage?.({ data }));
    socket.addEventListener("error", ({ message }) => this.onerror?.({ error: new Error(message || "the socket failed") }));
    socket.addEventListener("close", ({ code, reason }) => this.#closed(code, reason));
  }
  send(data: string | ArrayBuffer): void {
    // A late heartbeat on a closed socket is dropped.
    if (this.readyState === WebSocket.OPEN) this.#socket.send(data);
  }
  close(code?: number, reason?: string): void {
    if (this.readyState >= WebSocket.CLOSING) return;
    this.readyState = WebSocket.CLOSING;
    try {
      this.#socket.close(code, reason);
    } catch {
      // It was never open; it must only end.
    }
    this.#giveUp = setTimeout(() => this.#closed(code ?? 1006, reason ?? ""), CLOSE_MS);
  }
  #closed(code: number, reason: string): void {
    if (this.readyState === WebSocket.CLOSED) return;
    this.readyState = WebSocket.CLOSED;
    clearTimeout(this.#giveUp);
    this.onclose?.({ code, reason });
  }
}
export default WebSocket;
