/**
 * A fake of Discord's gateway: hello, identify, ready, heartbeats, resume with replay, ops 7 and 9, close codes and silence. Only the
 * wire; the events come from fake-discord.ts. Not for production.
 */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";

export interface Dispatch {
  readonly op: 0;
  readonly t: string;
  readonly s: number;
  readonly d: unknown;
}
interface Session {
  readonly id: string;
  seq: number;
  readonly buffer: Dispatch[];
}
interface Connection {
  readonly socket: WebSocket;
  session?: Session;
  /** The fake closed the connection. */
  kicked?: boolean;
}
export interface GatewayOptions {
  readonly token: string;
  readonly heartbeatMs: number;
  readonly note: (kind: string, fields?: Record<string, unknown>) => void;
  /** READY and the events after it. */
  readonly ready: (session: string) => {
    readonly ready: Record<string, unknown>;
    readonly events: readonly (readonly [string, unknown])[];
  };
  readonly mayIdentify: () => boolean;
}

export class FakeGateway {
  readonly #options: GatewayOptions;
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #connections = new Set<Connection>();
  readonly #sessions = new Map<string, Session>();
  #live: Connection | undefined;
  /** Events for an offline bot are stored in its session while it has one. */
  #last: Session | undefined;
  /** Answers no heartbeat: the connection is silently dead. */
  muted = false;
  /** Answers IDENTIFY with this close code. */
  refuseWith: number | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => {});
    this.#server.handleUpgrade(request, socket, head, (webSocket) => this.#opened(webSocket));
  }
  #opened(socket: WebSocket): void {
    const connection: Connection = { socket };
    this.#connections.add(connection);
    this.#options.note("gateway.open");
    this.#send(connection, { op: 10, d: { heartbeat_interval: this.#options.heartbeatMs }, s: null, t: null });
    socket.on("message", (raw) => this.#heard(connection, JSON.parse(String(raw))));
    socket.on("error", () => {});
    socket.on("close", (code) => {
      this.#connections.delete(connection);
      if (this.#live === connection) this.#live = undefined;
      // The client ended the session.
      if (connection.session && connection.kicked !== true && (code === 1000 || code === 1001))
        this.#sessions.delete(connection.session.id);
      this.#options.note("gateway.close", { code });
    });
  }
  #send({ socket }: Connection, payload: unknown): void {
    if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(payload));
  }
  #heard(connection: Connection, payload: { op: number; d: Record<string, unknown> | number | null }): void {
    const { note } = this.#options;
    const data = typeof payload.d === "object" && payload.d !== null ? payload.d : {};
    if (payload.op === 1) {
      note("gateway.heartbeat");
      if (!this.muted) this.#send(connection, { op: 11 });
    } else if (payload.op === 2) this.#identify(connection, data);
    else if (payload.op === 6) this.#resume(connection, data);
  }
  #identify(connection: Connection, data: Record<string, unknown>): void {
    const { note, token, ready, mayIdentify } = this.#options;
    note("gateway.identify", { intents: data["intents"] });
    if (data["token"] !== token) return connection.socket.close(4004, "Authentication failed.");
    if (this.refuseWith !== undefined) return connection.socket.close(this.refuseWith);
    if (!mayIdentify()) return connection.socket.close(4008);
    const session: Session = { id: randomBytes(8).toString("hex"), seq: 0, buffer: [] };
    this.#sessions.set(session.id, session);
    connection.session = session;
    this.#live = connection;
    this.#last = session;
    const first = ready(session.id);
    this.dispatch("READY", first.ready);
    for (const [type, fields] of first.events) this.dispatch(type, fields);
    note("gateway.ready");
  }
  #resume(connection: Connection, data: Record<string, unknown>): void {
    const { note, token } = this.#options;
    const session = this.#sessions.get(String(data["session_id"]));
    const seq = Number(data["seq"]);
    if (data["token"] !== token) return connection.socket.close(4004);
    if (!session) {
      note("gateway.resume-refused");
      return this.#send(connection, { op: 9, d: false, s: null, t: null });
    }
    if (seq > session.seq) return connection.socket.close(4007);
    connection.session = session;
    this.#live = connection;
    this.#last = session;
    const missed = session.buffer.filter(({ s }) => s > seq);
    for (const event of missed) this.#send(connection, event);
    note("gateway.resumed", { replayed: missed.length });
    this.dispatch("RESUMED", {});
  }

  dispatch(type: string, data: unknown): void {
    const session = this.#live?.session ?? this.#last;
    if (!session) return;
    const event: Dispatch = { op: 0, t: type, s: ++session.seq, d: data };
    session.buffer.push(event);
    if (this.#live?.session === session) this.#send(this.#live, event);
  }
  get connected(): boolean {
    return this.#live !== undefined;
  }
  op(op: number, data: unknown = null): void {
    if (this.#live) this.#send(this.#live, { op, d: data, s: null, t: null });
  }
  kick(code: number): void {
    if (!this.#live) return;
    this.#live.kicked = true;
    this.#live.socket.close(code);
  }
  /** Cuts the connection without a close frame. */
  cut(): void {
    for (const { socket } of this.#connections) socket.terminate();
  }
  /** Refuses the next RESUME. */
  forgetSessions(): void {
    this.#sessions.clear();
    this.#last = undefined;
  }
  close(): void {
    this.cut();
    this.#server.close();
  }
}
