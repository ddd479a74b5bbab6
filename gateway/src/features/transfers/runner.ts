/**
 * Runs transfers: begins attempts, tells each what happens at its ends (`attempt.ts`), and carries out what follows. Every fact that matters is a
 * row: without an attempt in memory, a transfer begins another one where the destination is (rules TF4, TF5).
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { CHUNK_HEADER_BYTES, readChunkId } from "../../../../protocol/runtime/chunk.ts";
import type { Connection, Connections } from "../../kernel/connections.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { DestinationEnd, Frame, SourceEnd } from "./ends.ts";
import { type Attempt, type Effect, type Facts, FIRST, type AttemptEvent, step } from "./attempt.ts";
import { type Endpoint, isInWorkspace, isOfClient, parseEndpoint } from "./endpoint.ts";
import { Leftovers } from "./leftovers.ts";
import { type Connected, type EndPorts, makeEnds, type AttemptReports } from "./make-ends.ts";
import { ProgramEnds } from "./program-ends.ts";
import { SlotQueue } from "./slot-queue.ts";
import { STALL_MS, type State, type TransferRow, type TransferStore } from "./store.ts";

export interface RunnerPorts extends EndPorts, Pick<KernelPorts, "arm" | "ids" | "now">, Pick<StopPort, "stopped"> {
  readonly store: TransferStore;
  readonly connections: Pick<Connections, "event" | "sendChunk" | "byConn" | "byIdentity" | "setTransferEnd">;
}
type Side = "source" | "destination";
interface Live {
  readonly row: TransferRow;
  attempt: Attempt;
  facts: Facts;
  doneBytes: number;
  /** When it last made progress. */
  movedAt: number;
  /** When the row was last stored, with progress or as a sign of life. */
  savedAt: number;
  source: SourceEnd;
  destination: DestinationEnd;
  /** `conn attemptId`. */
  readonly attemptKeys: string[];
}
/** Failures of an end after which another attempt follows. */
const TRANSIENT: ReadonlySet<string> = new Set(["storage.failed"]);
/** The wait before that attempt. */
const RETRY_MS = 5_000;
/** A transient failure ends a transfer that has made no progress for this long, so that a full disk is told soon. */
const TRANSIENT_MS = 60_000;
const ALIVE_GRAIN_MS = 10_000;
/** Progress that no attempt goes on from is stored at most this often: each store holds back what the object sends until it is on the disk. */
const PROGRESS_GRAIN_MS = 1_000;

const STOPPED = ["transfer.cancelled", "GSV was stopped, so the copy was ended."] as const;

interface Bound {
  readonly live: Live;
  readonly side: Side;
}
/** The source has sent all, and the copy needs it no more: nothing that it says or does changes the end. */
const isPast = ({ live, side }: Bound): boolean => side === "source" && live.attempt.status === "finishing";

const attemptKey = (conn: string, attemptId: number): string => `${conn} ${attemptId}`;

export class TransferRunner {
  readonly #ports: RunnerPorts;
  readonly #live = new Map<string, Live>();
  readonly #attempts = new Map<string, Bound>();
  readonly #programs: ProgramEnds;
  readonly #queue: SlotQueue;
  readonly #leftovers: Leftovers;
  #isFilling = false;
  /** Who waits for the end of a transfer, by its id. */
  readonly #waiting = new Map<string, { readonly end: Promise<void>; readonly resolve: () => void }>();

  constructor(ports: RunnerPorts) {
    this.#ports = ports;
    this.#programs = new ProgramEnds(ports.connections);
    this.#queue = new SlotQueue(ports);
    this.#leftovers = new Leftovers(ports);
  }

  /** Begins every open transfer whose machines are connected, the oldest first, while there are slots. */
  beginAll(): void {
    for (const row of this.#ports.store.open()) this.begin(row);
  }
  begin(row: TransferRow): void {
    if (row.endedAt !== undefined || this.#live.has(row.id)) return;
    if (this.#ports.stopped() !== undefined) return this.#end(row, ...STOPPED);
    const [source, destination] = [parseEndpoint(row.source), parseEndpoint(row.destination)];
    if (!source.ok || !destination.ok) return this.#end(row, "transfer.bad_endpoint", "The transfer can't be read.");
    const from = this.#connection(source.value, row.id);
    const to = this.#connection(destination.value, row.id);
    if (from === null || to === null) return void this.#queue.leave(row.id, this.#ports.now());
    if (this.#live.size >= LIMITS.transfers) return this.#queue.join(row.id, this.#ports.now());
    const queuedMs = this.#queue.leave(row.id, this.#ports.now());
    const live: Live = {
      row,
      attempt: FIRST,
      facts: row.facts,
      doneBytes: row.doneBytes,
      movedAt: row.movedAt + queuedMs,
      savedAt: this.#ports.now(),
      attemptKeys: [],
      ...makeEnds(
        this.#ports,
        row,
        { source: source.value, destination: destination.value },
        { from, to },
        this.#told(() => live),
      ),
    };
    this.#live.set(row.id, live);
    if (from !== undefined) this.#bind(live, "source", from.connection.conn, from.attemptId);
    if (to !== undefined) this.#bind(live, "destination", to.connection.conn, to.attemptId);
    this.#save(live, "running");
    live.source.ask();
  }
  /**
   * Begins those that wait for a slot, the oldest first. Not at once: an attempt that begins again keeps its slot, and callers go through
   * lists of rows. Begins no others: some wait before their next attempt.
   */
  #fillSlots(): void {
    if (this.#isFilling || this.#queue.isEmpty()) return;
    this.#isFilling = true;
    const filled = Promise.resolve().then(() => {
      this.#isFilling = false;
      for (const row of this.#ports.store.open()) if (this.#queue.has(row.id)) this.begin(row);
    });
    this.#ports.background("transfers", filled);
  }

  /** What a machine says about one of its attempts. False: this connection has no such attempt. */
  said(connection: Connection, attemptId: number, side: Side, event: Exclude<AttemptEvent, { kind: "chunk" }>): boolean {
    const bound = this.#attempts.get(attemptKey(connection.conn, attemptId));
    if (bound?.side !== side) return false;
    if (!isPast(bound)) this.#feed(bound.live, event);
    return true;
  }
  /** An end reads or stores its file, and has nothing else to say. False: this connection has no such attempt. */
  alive(connection: Connection, attemptId: number): boolean {
    const bound = this.#attempts.get(attemptKey(connection.conn, attemptId));
    if (bound === undefined) return false;
    if (isPast(bound)) return true;
    const { live } = bound;
    if (this.#ports.now() - live.movedAt < LIMITS.transferAliveMs) this.#alive(live);
    else this.#end(live.row, "transfer.interrupted", "The copy got no byte of its file for an hour, so it was ended.");
    return true;
  }
  /** A binary frame. False: this connection sends no such file. */
  chunk(connection: Connection, message: ArrayBuffer): boolean {
    const frame = new Uint8Array(message);
    const attemptId = readChunkId(frame);
    const bound = attemptId === undefined ? undefined : this.#attempts.get(attemptKey(connection.conn, attemptId));
    if (bound?.side !== "source") return false;
    if (!isPast(bound)) this.#chunk(bound.live, frame);
    return true;
  }

  /** The machine is connected. Continues its transfers, and removes leftovers of ended ones. */
  connected(connection: Connection): void {
    this.#leftovers.removeOn(connection, connection.principal.id);
    this.beginAll();
  }
  /** A program says that it is an end of this transfer, and on which connection (rule TF13). */
  attach(row: TransferRow, connection: Connection): void {
    if (row.endedAt !== undefined || ![row.source, row.destination].some(isOfClient)) return;
    // It may have closed while its request was checked.
    if (this.#ports.connections.byConn(connection.conn) !== connection) return;
    const live = this.#live.get(row.id);
    if (this.#programs.of(row.id)?.conn === connection.conn && live !== undefined) return;
    this.#programs.set(row.id, connection);
    // The source has sent everything; storing does not need it.
    if (live?.attempt.status === "finishing" && !isOfClient(row.destination)) return;
    if (live !== undefined) this.#drop(live);
    const again = this.#ports.store.get(row.id);
    if (again !== undefined) this.begin(again);
  }

  /** A connection is gone, and its attempts with it. */
  gone(conn: string): void {
    this.#programs.gone(conn);
    const isNeeded = (key: string): boolean => {
      const bound = this.#attempts.get(key);
      return key.startsWith(`${conn} `) && bound !== undefined && !isPast(bound);
    };
    const gone = [...this.#live.values()].filter(({ attemptKeys }) => attemptKeys.some(isNeeded));
    for (const live of gone) this.#drop(live);
    // It may have been an end of one that waits for a slot.
    this.#fillSlots();
  }

  /** A file that is being stored is not stopped any more. */
  cancel(row: TransferRow): void {
    if (row.endedAt === undefined && this.#live.get(row.id)?.attempt.status !== "finishing")
      this.#end(row, "transfer.cancelled", "The copy was cancelled.");
  }
  /** Everything is stopped (rule TF12). What is still open in the rows alone ends, too. */
  stopAll(): void {
    for (const row of this.#ports.store.open()) {
      if (this.#live.get(row.id)?.attempt.status === "finishing") continue;
      // Its run was stopped, so the end starts none.
      if (row.tell === "run") this.#ports.store.tellLater(row.id, "note");
      this.#end(row, ...STOPPED);
    }
  }
  /** What the destination has: more than the row says, which is written later. */
  doneBytes(row: TransferRow): number {
    return Math.max(row.doneBytes, this.#live.get(row.id)?.doneBytes ?? 0);
  }
  /** Its program is gone, and may come back to go on. */
  isLeft({ id, source, destination }: TransferRow): boolean {
    return !this.#live.has(id) && this.#programs.of(id) === undefined && [source, destination].some(isOfClient);
  }
  /** Resolves when the transfer has ended. */
  ended(id: string): Promise<void> {
    if (this.#ports.store.get(id)?.endedAt !== undefined) return Promise.resolve();
    const known = this.#waiting.get(id);
    if (known !== undefined) return known.end;
    const { promise: end, resolve } = Promise.withResolvers<void>();
    this.#waiting.set(id, { end, resolve });
    return end;
  }
  #tellWaiting(id: string): void {
    this.#programs.set(id, undefined);
    this.#waiting.get(id)?.resolve();
    this.#waiting.delete(id);
  }

  /** Ends what has made no progress for too long; other attempts that hang are begun again. */
  expire(at: number): void {
    for (const due of this.#ports.store.due(at)) {
      // Its time in the queue is counted; when it still needs a slot, `begin` lets it join again.
      this.#queue.leave(due.id, at);
      const row = this.#ports.store.get(due.id) ?? due;
      const live = this.#live.get(row.id);
      // A large file is checked and stored for longer than that on a slow disk.
      const isStoring = live?.attempt.status === "finishing" && at - live.savedAt < STALL_MS;
      if (isStoring) {
        this.#ports.store.postpone(row.id, live.savedAt + STALL_MS);
        continue;
      }
      if (at - Math.max(row.movedAt, row.aliveAt ?? 0) >= LIMITS.transferIdleMs) {
        this.#end(row, "transfer.interrupted", "The copy made no progress for five minutes, so it was ended.");
        continue;
      }
      if (live !== undefined) this.#drop(live);
      else this.#ports.store.waits(row.id, at);
      const again = this.#ports.store.get(row.id);
      if (again !== undefined) this.begin(again);
    }
    this.#leftovers.sweep(at);
    this.#ports.store.prune(at);
  }

  // ------------------------------------------------------------ one attempt

  /** Null: the machine is not connected. Undefined: the workspace needs none. */
  #connection(endpoint: Endpoint, id: string): Connected | null | undefined {
    if (endpoint.kind === "workspace") return undefined;
    const connection =
      endpoint.kind === "client" ? this.#programs.of(id) : this.#ports.connections.byIdentity({ mode: "node", id: endpoint.nodeId });
    if (connection === undefined) return null;
    for (;;) {
      const attemptId = new DataView(this.#ports.ids.bytes(4).slice().buffer).getUint32(0);
      if (!this.#attempts.has(attemptKey(connection.conn, attemptId))) return { connection, attemptId };
    }
  }
  #told(live: () => Live): AttemptReports {
    return {
      tell: (event) => this.#feed(live(), event),
      alive: () => this.#alive(live()),
      chunk: (frame) => this.#chunk(live(), frame),
    };
  }
  #bind(live: Live, side: Side, conn: string, attemptId: number): void {
    const key = attemptKey(conn, attemptId);
    live.attemptKeys.push(key);
    this.#attempts.set(key, { live, side });
  }

  #chunk(live: Live, frame: Frame): void {
    if (this.#step(live, { kind: "chunk", bytes: frame.length - CHUNK_HEADER_BYTES })?.some(({ kind }) => kind === "forward"))
      live.destination.chunk(frame);
  }
  #feed(live: Live, event: AttemptEvent): void {
    this.#step(live, event);
  }
  /** Undefined: the attempt is not the current one. */
  #step(live: Live, event: AttemptEvent): readonly Effect[] | undefined {
    if (this.#live.get(live.row.id) !== live) return undefined;
    if (event.kind === "failed" && TRANSIENT.has(event.reason) && this.#isRetried(live)) {
      this.#drop(live, RETRY_MS);
      return undefined;
    }
    const isBounded = [live.row.source, live.row.destination].some(isInWorkspace);
    const next = step(live.attempt, live.facts, event, isBounded ? LIMITS.transferBytes : Number.MAX_SAFE_INTEGER);
    live.attempt = next.attempt;
    live.facts = next.facts;
    for (const effect of next.effects) this.#carryOut(live, effect);
    return next.effects;
  }
  #isRetried({ row }: Live): boolean {
    return this.#ports.now() - (this.#ports.store.get(row.id)?.movedAt ?? 0) < TRANSIENT_MS;
  }
  #carryOut(live: Live, effect: Effect): void {
    switch (effect.kind) {
      case "offer":
        this.#save(live, "running");
        return live.destination.offer(effect.sizeBytes, effect.sha256);
      case "progress":
        if (effect.offset > live.doneBytes) live.movedAt = this.#ports.now();
        live.doneBytes = Math.max(live.doneBytes, effect.offset);
        if (this.#mayWait(live)) return undefined;
        return this.#save(live, live.attempt.status === "finishing" ? "storing" : "running");
      case "start":
        return live.source.start(effect.offset);
      case "acknowledge":
        return live.source.ack(effect.offset);
      case "finish":
        this.#save(live, "storing");
        return live.destination.finish(effect.sha256);
      case "succeed":
        return this.#succeed(live, effect.sha256);
      case "fail":
        return this.#end(live.row, effect.reason, effect.message);
      case "again":
        return this.#beginAgain(live);
      case "forward":
        return undefined;
    }
  }
  /** The row may be behind: a machine reports its own offset when the next attempt begins. */
  #mayWait(live: Live): boolean {
    return !isInWorkspace(live.row.destination) && this.#ports.now() - live.savedAt < PROGRESS_GRAIN_MS;
  }
  #save(live: Live, state: State): void {
    const now = this.#ports.now();
    live.savedAt = now;
    this.#ports.store.save(live.row.id, state, live.facts, live.doneBytes, now);
    this.#ports.arm();
  }
  /** Nothing has arrived, but an end works: the attempt is not given up. */
  #alive(live: Live): void {
    if (this.#live.get(live.row.id) !== live || this.#ports.now() - live.savedAt < ALIVE_GRAIN_MS) return;
    this.#save(live, live.attempt.status === "finishing" ? "storing" : "running");
    this.#ports.store.alive(live.row.id, live.savedAt);
    this.#ports.arm();
  }

  // ------------------------------------------------------------ ends

  #detach(live: Live): void {
    this.#live.delete(live.row.id);
    for (const key of live.attemptKeys) this.#attempts.delete(key);
    this.#fillSlots();
  }
  /** Ends the attempt, and not the transfer. */
  #drop(live: Live, retryMs?: number): void {
    this.#ports.store.save(live.row.id, "running", live.facts, live.doneBytes, live.movedAt);
    this.#detach(live);
    for (const end of [live.source, live.destination]) {
      end.giveUp?.();
      end.close();
    }
    this.#ports.store.waits(live.row.id, this.#ports.now(), retryMs);
    this.#ports.arm();
  }
  /** The destination has removed what it had, so that the next attempt copies the whole file. */
  #beginAgain(live: Live): void {
    this.#drop(live);
    this.#ports.store.beginAgain(live.row.id, this.#ports.now());
    const row = this.#ports.store.get(live.row.id);
    if (row !== undefined) this.begin(row);
  }
  #succeed(live: Live, sha256: string): void {
    const { id } = live.row;
    this.#detach(live);
    this.#ports.store.end(id, { sha256 }, this.#ports.now());
    this.#tellWaiting(id);
    live.source.close();
    live.destination.close();
    this.#ports.arm();
    this.#leftovers.removeParts(live.row, live.destination);
  }
  #end(row: TransferRow, reason: string, problem: string): void {
    const live = this.#live.get(row.id);
    if (live !== undefined) this.#detach(live);
    this.#queue.drop(row.id);
    const destination = parseEndpoint(row.destination);
    const node = destination.ok && destination.value.kind === "node" ? destination.value.nodeId : undefined;
    const isAccepted = row.doneBytes > 0 || row.facts.sizeBytes !== undefined || live?.facts.sizeBytes !== undefined;
    const told = live?.destination.close(problem) ?? false;
    live?.source.close(problem);
    const leftover = node !== undefined && !told && isAccepted ? { leftover: node } : {};
    this.#ports.store.end(row.id, { reason, problem, ...leftover }, this.#ports.now());
    this.#tellWaiting(row.id);
    this.#ports.arm();
    this.#leftovers.removeParts(row, live?.destination);
    const connection = node === undefined ? undefined : this.#ports.connections.byIdentity({ mode: "node", id: node });
    const ended = this.#ports.store.get(row.id);
    if ("leftover" in leftover && connection !== undefined && ended !== undefined) this.#leftovers.removeFile(connection, ended);
  }
}
