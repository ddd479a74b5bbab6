/**
 * The open sockets: their principals, sending frames to them, and what is stored with them so that the object can hibernate (also the
 * conversations that a client follows and the open calls of a node). Knows frames, but no method and no authorisation.
 */
import type { EventName, PayloadOf } from "../../../protocol/gen/methods.ts";
import { asNodeId } from "../../../protocol/gen/types.ts";
import type { Clock } from "../platform/clock.ts";
import { randomName } from "../platform/ids.ts";
import type { Logger } from "../platform/log.ts";
import { bufferedBytes, closeSocket, lastPingAt, remember, sendBytes, sendText, type SocketHost } from "../platform/sockets.ts";
import { countRequest, countStray, type FrameCounts, freshCounts, setTransferEnd } from "./frame-counts.ts";
import { DROP_CODES, type Dropped, type LinkEnd } from "./link-end.ts";
import { IDLE_SILENT_MS, lifeUntil, SILENT_MS } from "./link-life.ts";
import type { Result } from "../ports/result.ts";
import type { Principal } from "./authorise.ts";
import type { Dialect } from "./dialect.ts";
import { answerText, eventBody } from "./frames.ts";
import { ClosingSockets, surplusOf } from "./opening-sockets.ts";

/** Stored with the socket. After a change of its shape raise `v`: sockets of another version are closed and reconnect. */
type Kept =
  | {
      readonly v: 1;
      readonly phase: "open";
      readonly conn: string;
      readonly address: string;
      readonly openedAt: number;
      readonly vouched?: boolean;
    }
  | {
      readonly v: 1;
      readonly phase: "ready";
      readonly conn: string;
      readonly principal: Principal;
      readonly seq: number;
      readonly follows: readonly string[];
      readonly calls: readonly (readonly [callId: string, until: number])[];
      readonly manyUntil: number;
      readonly seenAt: number;
      /** Absent: current. */
      readonly dialect?: Dialect;
    }
  | { readonly v: 1; readonly phase: "closed" };

/** A socket before hello-ok. */
export interface OpenConnection {
  readonly phase: "open";
  readonly conn: string;
  readonly socket: WebSocket;
  readonly address: string;
  readonly openedAt: number;
  /** A valid token came with the upgrade. */
  readonly vouched: boolean;
  /** Its `connect` is being checked. */
  greeting: boolean;
  /** Frames that came meanwhile, in order; handled after hello-ok. */
  readonly early: string[];
}
/** A socket with a principal. */
export interface Connection extends FrameCounts {
  readonly phase: "ready";
  readonly conn: string;
  readonly socket: WebSocket;
  readonly principal: Principal;
  readonly dialect: Dialect;
  /** Number of the next event. */
  seq: number;
  /** Canonical keys of the conversations that this client follows. */
  readonly follows: Set<string>;
  /** For a node: the open calls of sessions, each with the time until which it is remembered. */
  readonly calls: Map<string, number>;
  /** Until then there may be more open calls than fit here, so every active session counts. 0: never. */
  manyUntil: number;
  /** When it last sent a frame, roughly. */
  seenAt: number;
}
export type AnyConnection = OpenConnection | Connection;

/** Characters of call ids: with the other fields they must fit the platform's limit for a socket's state. */
const MAX_CALL_CHARS = 8192;
/** A reader that is this far behind is disconnected; it reconnects and asks for the missed events. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;
/** `seenAt` is written at most this often. */
const SEEN_GRAIN_MS = 15_000;

export class Connections {
  readonly #host: SocketHost;
  readonly #clock: Clock;
  readonly #bySocket = new Map<WebSocket, AnyConnection>();
  readonly #byConn = new Map<string, Connection>();
  readonly #byIdentity = new Map<string, Connection>();
  readonly #changed = new Set<Connection>();
  /** Sockets that the gateway closed before their hello. They hold memory until the platform reports their end. */
  readonly #closing = new ClosingSockets();
  /** A connection has a principal, or was restored after a sleep. */
  onReady: (connection: Connection) => void = () => undefined;
  /** A connection with a principal has ended. */
  onGone: (connection: Connection) => void = () => undefined;
  /** This class has closed a socket on its own, because it was dead or too slow. */
  onDropped: (connection: Connection, end: LinkEnd) => void = () => undefined;

  constructor(host: SocketHost, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
    for (const socket of host.getWebSockets()) this.#restore(socket);
  }

  /** The stored state of a socket that this instance has not seen yet. */
  #read(socket: WebSocket): AnyConnection | undefined {
    const kept = socket.deserializeAttachment() as Kept | null;
    if (kept?.v !== 1) {
      closeSocket(socket, 1012, "the gateway was updated; connect again");
      return undefined;
    }
    if (kept.phase === "closed") return undefined;
    if (kept.phase === "open") return { ...kept, vouched: kept.vouched === true, socket, greeting: false, early: [] };
    return { ...freshCounts(), dialect: "current", ...kept, socket, follows: new Set(kept.follows), calls: new Map(kept.calls) };
  }
  #restore(socket: WebSocket): AnyConnection | undefined {
    const connection = this.#read(socket);
    if (connection?.phase === "ready") this.#index(connection);
    else if (connection !== undefined) this.#bySocket.set(socket, connection);
    return connection;
  }

  #index(connection: Connection): void {
    this.#bySocket.set(connection.socket, connection);
    this.#byConn.set(connection.conn, connection);
    this.#byIdentity.set(identity(connection.principal), connection);
    this.onReady(connection);
  }

  // ------------------------------------------------------------ opening and closing

  open(socket: WebSocket, address: string, vouched: boolean): OpenConnection {
    const connection: OpenConnection = {
      phase: "open",
      conn: randomName(16),
      socket,
      address,
      openedAt: this.#clock.now(),
      vouched,
      greeting: false,
      early: [],
    };
    this.#host.acceptWebSocket(socket, [connection.conn]);
    remember(socket, { v: 1, phase: "open", conn: connection.conn, address, openedAt: connection.openedAt, vouched } satisfies Kept);
    this.#bySocket.set(socket, connection);
    return connection;
  }

  /** Turns an open socket into a connection with a principal. */
  ready(open: OpenConnection, principal: Principal, dialect: Dialect = "current"): Connection {
    const { conn, socket } = open;
    const seenAt = this.#clock.now();
    const connection: Connection = {
      ...freshCounts(),
      phase: "ready",
      conn,
      socket,
      principal,
      dialect,
      seq: 0,
      follows: new Set(),
      calls: new Map(),
      manyUntil: 0,
      seenAt,
    };
    this.#index(connection);
    this.save(connection);
    return connection;
  }

  /** The connection of a socket. At a wake the platform does not list a socket that its peer is closing, though its last messages still come. */
  of(socket: WebSocket): AnyConnection | undefined {
    return this.#bySocket.get(socket) ?? this.#restore(socket);
  }

  /** Forgets a socket that is gone. Returns its connection, the first time. */
  gone(socket: WebSocket): AnyConnection | undefined {
    const connection = this.#bySocket.get(socket) ?? this.#read(socket);
    if (connection === undefined) return undefined;
    this.#bySocket.delete(socket);
    remember(socket, { v: 1, phase: "closed" } satisfies Kept);
    if (connection.phase === "open") return connection;
    if (this.#byConn.get(connection.conn) === connection) this.#byConn.delete(connection.conn);
    const key = identity(connection.principal);
    if (this.#byIdentity.get(key) === connection) this.#byIdentity.delete(key);
    this.#changed.delete(connection);
    this.onGone(connection);
    return connection;
  }

  /** Closes a socket and forgets it. Returns its connection, the first time. */
  close(socket: WebSocket, code: number, reason: string): AnyConnection | undefined {
    const connection = this.gone(socket);
    if (connection?.phase === "open") this.#closing.add(socket, connection.address, this.#clock.now());
    closeSocket(socket, code, reason);
    return connection;
  }
  /** The platform says that the socket is gone: its memory is free. */
  ended(socket: WebSocket): AnyConnection | undefined {
    const connection = this.gone(socket);
    this.#closing.ended(socket);
    return connection;
  }

  /** Closes a socket on the gateway's own decision. */
  drop(connection: Connection, end: Dropped): void {
    if (this.close(connection.socket, DROP_CODES[end.kind], end.text) !== undefined) this.onDropped(connection, end);
  }

  // ------------------------------------------------------------ finding

  *opening(): Generator<OpenConnection> {
    for (const connection of this.#bySocket.values()) if (connection.phase === "open") yield connection;
  }
  /** The socket without a hello that must make way for one more from this address. */
  surplus(address: string): OpenConnection | undefined {
    return surplusOf(this.opening(), address);
  }
  vouchedCount(): number {
    return [...this.opening()].filter(({ vouched }) => vouched).length;
  }
  /** Counts the sockets that the gateway closed before their hello and whose end the platform has not reported. */
  closingCount(address: string): { readonly total: number; readonly sameAddress: number } {
    return this.#closing.count(address, this.#clock.now());
  }
  readyCount(): number {
    return this.#byConn.size;
  }
  byConn(conn: string): Connection | undefined {
    return this.#byConn.get(conn);
  }
  byIdentity(principal: Pick<Principal, "mode" | "id">): Connection | undefined {
    return this.#byIdentity.get(identity(principal));
  }
  all(): readonly Connection[] {
    return [...this.#byConn.values()];
  }
  nodes(): readonly Connection[] {
    return this.all().filter((connection) => connection.principal.mode === "node");
  }
  /** The connected node, if its link is alive. Disconnects a node that has been silent for too long. */
  node(nodeId: string): Connection | undefined {
    const connection = this.byIdentity({ mode: "node", id: asNodeId(nodeId) });
    if (connection === undefined || !this.isSilent(connection)) return connection;
    this.drop(connection, { kind: "silent", text: "no sign of life for a minute" });
    return undefined;
  }
  /** When an idle link must have shown life again; undefined for peers that never ping. */
  idleUntil(connection: Connection): number | undefined {
    return lifeUntil(this.#heardAt(connection), IDLE_SILENT_MS);
  }
  /** Closes an idle link that has been silent for too long. */
  dropIdle(connection: Connection, now: number): void {
    if ((this.idleUntil(connection) ?? Number.POSITIVE_INFINITY) <= now)
      this.drop(connection, { kind: "silent", text: "no sign of life for two minutes" });
  }
  isOnline(nodeId: string): boolean {
    return this.#byIdentity.has(identity({ mode: "node", id: nodeId }));
  }
  /** When a link that answers pings must have shown life again; undefined for peers that never ping. */
  silentAt(connection: Connection): number | undefined {
    return lifeUntil(this.#heardAt(connection), SILENT_MS);
  }
  #heardAt({ socket, seenAt }: Connection): number | undefined {
    const pinged = lastPingAt(this.#host, socket);
    return pinged === undefined ? undefined : Math.max(pinged, seenAt);
  }
  isSilent(connection: Connection): boolean {
    const at = this.silentAt(connection);
    return at !== undefined && this.#clock.now() >= at;
  }

  // ------------------------------------------------------------ calls on nodes

  /** A session's call was handed to this node. After `until` (epoch ms) nothing waits for it. */
  callOut(node: Connection, callId: string, until: number): void {
    let characters = callId.length;
    for (const known of node.calls.keys()) characters += known.length + 12;
    if (node.calls.has(callId) || characters <= MAX_CALL_CHARS) node.calls.set(callId, until);
    else node.manyUntil = Math.max(node.manyUntil, until);
    this.save(node);
  }
  /** The call has ended. */
  callBack(node: Connection, callId: string): void {
    if (node.calls.delete(callId)) this.save(node);
  }
  hasCalls(node: Connection): boolean {
    return node.calls.size > 0 || node.manyUntil > this.#clock.now();
  }
  /** Forgets calls whose time is over. */
  forgetCalls(node: Connection, now: number): void {
    for (const [callId, until] of node.calls) if (until <= now) this.callBack(node, callId);
  }

  // ------------------------------------------------------------ sending

  /** Sends one event to one peer. False: the peer is gone. */
  event<E extends EventName>(connection: Connection, event: E, payload: PayloadOf<E>): boolean {
    return this.#sendEvent(connection, event, payload);
  }

  /** Sends event texts without numbers (`eventBody`), in order. Stops at the first failure. */
  send(connection: Connection, bodies: readonly string[]): void {
    for (const body of bodies) if (!this.#sendBody(connection, body)) return;
  }

  /** Sends a chunk of a transfer, with its number in front. False: the peer is gone. */
  sendChunk(connection: Connection, frame: Uint8Array<ArrayBuffer>): boolean {
    if (this.#byConn.get(connection.conn) !== connection) return false;
    if (sendBytes(connection.socket, frame)) return true;
    this.drop(connection, { kind: "broken", text: "the link is broken" });
    return false;
  }
  /** A frame of a transfer that is not bound to this connection was dropped (FR5). */
  strayed(connection: Connection, log: Pick<Logger, "warn">): void {
    const { count, isNews, isTooMany } = countStray(connection, this.#clock.now());
    // A flood of frames must not become a flood of log lines.
    if (isNews) log.warn("stray_chunk", { connection: connection.conn, count });
    if (isTooMany) this.drop(connection, { kind: "broken", text: "too many chunks of no transfer" });
  }

  /** Sends one event to every client. */
  broadcast<E extends EventName>(event: E, payload: PayloadOf<E>): void {
    const text = eventBody(event, payload);
    for (const connection of this.all()) if (connection.principal.mode === "client") this.#sendBody(connection, text);
  }

  /** Answers a request. An answer that does not fit a frame becomes an error. */
  answer(socket: WebSocket, id: string, result: Result<unknown>): boolean {
    const text = answerText(id, result);
    return text !== undefined && sendText(socket, text);
  }

  #sendEvent(connection: Connection, event: EventName, payload: unknown): boolean {
    return this.#sendBody(connection, eventBody(event, payload));
  }

  #sendBody(connection: Connection, body: string): boolean {
    if (this.#byConn.get(connection.conn) !== connection) return false;
    if (!sendText(connection.socket, `${body},"seq":${connection.seq}}`)) {
      this.drop(connection, { kind: "broken", text: "the link is broken" });
      return false;
    }
    connection.seq++;
    this.save(connection);
    if (bufferedBytes(connection.socket) > MAX_BUFFERED_BYTES) {
      this.drop(connection, { kind: "slow", text: "too slow; connect again and ask for what you missed" });
      return false;
    }
    return true;
  }

  // ------------------------------------------------------------ limits and memory

  /** Whether this client is an end of an open transfer. Then it acknowledges what it receives as a node does, and as often. */
  setTransferEnd(connection: Connection, isEnd: boolean): void {
    setTransferEnd(connection, isEnd);
  }
  /** Counts a request. False: over the limit of its kind. `isReport`: it is one of an end about its transfer. */
  admitRequest(connection: Connection, now: number, isReport = false): boolean {
    const isWithin = countRequest(connection, { isNode: connection.principal.mode === "node", isReport }, now);
    if (now - connection.seenAt >= SEEN_GRAIN_MS || now < connection.seenAt) {
      connection.seenAt = now;
      this.save(connection);
    }
    return isWithin;
  }

  /** Stores the state with the socket, once for all changes of this turn. */
  save(connection: Connection): void {
    if (this.#changed.size === 0) queueMicrotask(() => this.flush());
    this.#changed.add(connection);
  }
  flush(): void {
    for (const connection of this.#changed) {
      const { conn, principal, dialect, seq, manyUntil, seenAt } = connection;
      const kept: Kept = {
        v: 1,
        phase: "ready",
        conn,
        principal,
        ...(dialect === "current" ? {} : { dialect }),
        seq,
        manyUntil,
        seenAt,
        follows: [...connection.follows],
        calls: [...connection.calls],
      };
      if (!remember(connection.socket, kept)) this.drop(connection, { kind: "broken", text: "too much to remember; connect again" });
    }
    this.#changed.clear();
  }
}

const identity = ({ mode, id }: Pick<Principal, "mode" | "id">): string => `${mode} ${id}`;
