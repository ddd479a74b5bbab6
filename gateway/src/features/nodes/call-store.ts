/**
 * Open tool calls of clients (`tool.invoke`, `tool.request`, `logs.get`): rows, so that they outlive hibernation. Each row holds the same
 * record of a call that a session keeps (calls/open-call.ts), and who waits for its answer. A session's calls are never here.
 * A native call that only reads is kept in memory: a restart leaves nothing of it to settle, and a row would cost two commits.
 */
import { dueAt, nodeOf, type OpenCall } from "../../calls/open-call.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { Origin } from "../../ports/origin.ts";

/** Who gets the answer. */
export type Waiter =
  /** A request on a connection. */
  | { readonly kind: "client"; readonly conn: string; readonly request: string }
  /** Code of this object, in memory: after a restart there is no one to answer. */
  | { readonly kind: "inside" }
  /** `tool.request`: the call runs, and its result is not passed on. */
  | { readonly kind: "none" };

export interface ClientCall {
  readonly call: OpenCall;
  /** How the call is handed to its node, and the shape of its answer. */
  readonly kind: "tool" | "logs" | "undo";
  readonly origin: Origin;
  /** The client's own name for the call; its answer carries it. */
  readonly ownName?: string;
  readonly waiter: Waiter;
  /** A native tool that changes nothing: the record is never written, and the same call may run again. */
  readonly readsOnly?: true;
}

const MAX_OPEN_CALLS = 512;
const MAX_OPEN_CALLS_PER_TOKEN = 64;

/** Stands in call ids and limits for the token of a caller that is not a client. */
const NO_TOKEN = "session";
export const tokenOf = (origin: Origin): string => (origin.kind === "client" ? (origin.tokenId ?? NO_TOKEN) : NO_TOKEN);

type Row = { readonly id: string; readonly record: string };
const STATUSES: ReadonlySet<unknown> = new Set(["planned", "dispatched", "in_grace"] satisfies OpenCall["status"][]);
const WAITERS: ReadonlySet<unknown> = new Set(["client", "inside", "none"] satisfies Waiter["kind"][]);
/** Undefined: the row is damaged. */
function recordOf({ id, record }: Row): ClientCall | undefined {
  try {
    const read = JSON.parse(record) as ClientCall;
    return read.call.callId === id && STATUSES.has(read.call.status) && WAITERS.has(read.waiter.kind) ? read : undefined;
  } catch {
    return undefined;
  }
}

export class CallStore {
  readonly #db: Database;
  /** The calls that only read, by call id. */
  readonly #reads = new Map<string, ClientCall>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** False: there are too many open calls. */
  add(record: ClientCall): boolean {
    const token = tokenOf(record.origin);
    const count = one<{ n: number; mine: number | null }>(
      this.#db.sql,
      "SELECT count(*) AS n, sum(token = ?) AS mine FROM client_calls",
      token,
    );
    const reads = [...this.#reads.values()];
    const mine = reads.filter(({ origin }) => tokenOf(origin) === token).length;
    if ((count?.n ?? 0) + reads.length >= MAX_OPEN_CALLS || (count?.mine ?? 0) + mine >= MAX_OPEN_CALLS_PER_TOKEN) return false;
    this.put(record);
    return true;
  }

  put(record: ClientCall): void {
    const { call, origin } = record;
    if (record.readsOnly) {
      this.#reads.set(call.callId, record);
      return;
    }
    run(
      this.#db.sql,
      "INSERT OR REPLACE INTO client_calls(id, token, node, due_at, record) VALUES(?, ?, ?, ?, ?)",
      call.callId,
      tokenOf(origin),
      nodeOf(call) ?? null,
      dueAt(call),
      JSON.stringify(record),
    );
  }

  get(callId: string): ClientCall | undefined {
    return this.#reads.get(callId) ?? this.#records("WHERE id = ?", callId)[0];
  }

  /** Removes a call and answers its record. */
  take(callId: string): ClientCall | undefined {
    const read = this.#reads.get(callId);
    if (this.#reads.delete(callId)) return read;
    const row = one<Row>(this.#db.sql, "DELETE FROM client_calls WHERE id = ? RETURNING id, record", callId);
    return row === undefined ? undefined : recordOf(row);
  }

  onNodes(): readonly ClientCall[] {
    return this.#records("WHERE node IS NOT NULL ORDER BY due_at, id");
  }
  ofNode(nodeId: string): readonly ClientCall[] {
    return this.#records("WHERE node = ? ORDER BY due_at, id", nodeId);
  }
  /** Native calls of an instance before this one. */
  native(): readonly ClientCall[] {
    return this.#records("WHERE node IS NULL ORDER BY due_at, id");
  }

  /** Calls whose deadline or grace has ended. */
  due(now: number): readonly ClientCall[] {
    const reads = [...this.#reads.values()].filter(({ call }) => dueAt(call) <= now);
    return [...reads, ...this.#records("WHERE due_at <= ? ORDER BY due_at, id", now)];
  }
  nextDeadline(): number | undefined {
    const ofRows = one<{ at: number | null }>(this.#db.sql, "SELECT min(due_at) AS at FROM client_calls")?.at ?? undefined;
    const all = [...[...this.#reads.values()].map(({ call }) => dueAt(call)), ...(ofRows === undefined ? [] : [ofRows])];
    return all.length === 0 ? undefined : Math.min(...all);
  }

  /** A damaged row is removed: no one can be answered by it, and it must stop neither the gateway nor another call (G7). */
  #records(where: string, ...params: readonly (string | number)[]): readonly ClientCall[] {
    return all<Row>(this.#db.sql, `SELECT id, record FROM client_calls ${where}`, ...params).flatMap((row) => {
      const record = recordOf(row);
      if (record === undefined) run(this.#db.sql, "DELETE FROM client_calls WHERE id = ?", row.id);
      return record ?? [];
    });
  }
}
