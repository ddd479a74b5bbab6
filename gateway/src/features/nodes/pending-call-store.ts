/**
 * Calls to machines that a client asked for itself and that have not been answered: rows, so that they outlive hibernation, each with
 * a deadline. A session's calls are its own and never here.
 */
import { all, type Database, one, run } from "../../platform/sql.ts";

export type PendingKind = "tool" | "logs" | "request";
/** `waiting`: the machine dropped off after the call was sent, and has until `graceUntil` to come back. */
export type PendingState = "sent" | "waiting";
export interface PendingCall {
  readonly call: string;
  readonly kind: PendingKind;
  /** Connection and request that get the answer. */
  readonly conn: string;
  readonly request: string;
  readonly token: string;
  readonly node: string;
  readonly tool: string;
  /** What the client itself calls it. */
  readonly name: string | undefined;
  /** Running it twice would do no harm. */
  readonly repeatable: boolean;
  readonly state: PendingState;
  readonly createdAt: number;
  /** The call's own; what happens to a link never shortens it. */
  readonly deadline: number;
  readonly graceUntil: number | undefined;
}
type Row = {
  call: string;
  kind: string;
  conn: string;
  request: string;
  token: string;
  node: string;
  tool: string;
  name: string | null;
  repeatable: number;
  state: string;
  created_at: number;
  deadline: number;
  grace_until: number | null;
};
/** When a call is over, as SQL. */
const END = "min(deadline, coalesce(grace_until, deadline))";

export const MAX_PENDING = 512;
export const MAX_PENDING_PER_TOKEN = 64;

export class PendingCalls {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** False: there are too many. */
  add(call: PendingCall): boolean {
    const count = one<{ n: number; mine: number | null }>(
      this.#db.sql,
      "SELECT count(*) AS n, sum(token = ?) AS mine FROM pending_calls",
      call.token,
    );
    if ((count?.n ?? 0) >= MAX_PENDING || (count?.mine ?? 0) >= MAX_PENDING_PER_TOKEN) return false;
    run(
      this.#db.sql,
      "INSERT INTO pending_calls(call, kind, conn, request, token, node, tool, name, repeatable, state, created_at, deadline) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      call.call,
      call.kind,
      call.conn,
      call.request,
      call.token,
      call.node,
      call.tool,
      call.name ?? null,
      call.repeatable ? 1 : 0,
      call.state,
      call.createdAt,
      call.deadline,
    );
    return true;
  }

  get(call: string): PendingCall | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM pending_calls WHERE call = ?", call);
    return row === undefined ? undefined : callOf(row);
  }

  /** Removes a call and says what it was. */
  take(call: string): PendingCall | undefined {
    const row = one<Row>(this.#db.sql, "DELETE FROM pending_calls WHERE call = ? RETURNING *", call);
    return row === undefined ? undefined : callOf(row);
  }

  ofNode(node: string): readonly PendingCall[] {
    return all<Row>(this.#db.sql, "SELECT * FROM pending_calls WHERE node = ?", node).map(callOf);
  }

  /** Someone else asks for the same call: the answer goes there. */
  redirect(call: string, conn: string, request: string): void {
    run(this.#db.sql, "UPDATE pending_calls SET conn = ?, request = ? WHERE call = ?", conn, request, call);
  }

  /** The machine dropped off. */
  wait(call: string, graceUntil: number): void {
    run(this.#db.sql, "UPDATE pending_calls SET state = 'waiting', grace_until = ? WHERE call = ?", graceUntil, call);
  }
  /** The machine is back and answers for the call; it has at least until `atLeast` to do so. */
  goOn(call: string, atLeast: number): void {
    run(
      this.#db.sql,
      "UPDATE pending_calls SET state = 'sent', grace_until = NULL, deadline = max(deadline, ?) WHERE call = ?",
      atLeast,
      call,
    );
  }

  due(now: number): readonly PendingCall[] {
    return all<Row>(this.#db.sql, `SELECT * FROM pending_calls WHERE ${END} <= ? ORDER BY ${END}`, now).map(callOf);
  }

  nextDeadline(): number | undefined {
    return one<{ at: number | null }>(this.#db.sql, `SELECT min(${END}) AS at FROM pending_calls`)?.at ?? undefined;
  }
}

const callOf = (row: Row): PendingCall => ({
  call: row.call,
  kind: row.kind === "tool" || row.kind === "logs" ? row.kind : "request",
  conn: row.conn,
  request: row.request,
  token: row.token,
  node: row.node,
  tool: row.tool,
  name: row.name ?? undefined,
  repeatable: row.repeatable === 1,
  state: row.state === "waiting" ? "waiting" : "sent",
  createdAt: row.created_at,
  deadline: row.deadline,
  graceUntil: row.grace_until ?? undefined,
});
