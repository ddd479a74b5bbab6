/** A minimal client of the wire for the benchmarks, so that its own cost does not count. */
export interface Frame {
  type: string;
  id?: string;
  ok?: boolean;
  event?: string;
  payload?: { state?: string; sessionKey?: string; runId?: string; text?: string; [key: string]: unknown };
  error?: { reason?: string; message?: string };
}
type Listener = (frame: Frame, bytes: number) => void;

export class BenchClient {
  bytesIn = 0;
  framesIn = 0;
  #socket: WebSocket;
  #id = 0;
  #pending = new Map<string, (frame: Frame) => void>();
  #listeners = new Set<Listener>();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", (event) => {
      const data = String(event.data);
      this.bytesIn += data.length;
      this.framesIn++;
      if (data === "pong") return;
      const frame = JSON.parse(data) as Frame;
      if (frame.type === "res" && frame.id !== undefined) {
        this.#pending.get(frame.id)?.(frame);
        this.#pending.delete(frame.id);
        return;
      }
      for (const listener of this.#listeners) listener(frame, data.length);
    });
  }
  static async open(url: string): Promise<BenchClient> {
    const socket = new WebSocket(url);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve(), { once: true });
      socket.addEventListener("error", () => reject(new Error(`can't connect to ${url}`)), { once: true });
    });
    return new BenchClient(socket);
  }
  async hello(token: string, id: string): Promise<void> {
    await this.call("connect", {
      minProtocol: 1,
      maxProtocol: 1,
      client: { id, version: "bench", platform: process.platform, mode: "client" },
      fingerprint: "bench",
      auth: { token },
    });
  }
  on(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  raw(text: string): void {
    this.#socket.send(text);
  }
  call(method: string, params: unknown): Promise<Frame> {
    const id = String(++this.#id);
    return new Promise((resolve, reject) => {
      this.#pending.set(id, (frame) =>
        frame.ok ? resolve(frame) : reject(new Error(`${method}: ${frame.error?.reason ?? ""} ${frame.error?.message ?? ""}`)),
      );
      this.#socket.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }
  close(): void {
    this.#socket.close();
  }
}
