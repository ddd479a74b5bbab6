/** Rows of transfers: all that an attempt needs after a restart. Decides nothing. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { Transfer } from "../../../../protocol/gen/types.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { Taint } from "../../ports/taint.ts";
import type { Facts } from "./attempt.ts";

export type State = Transfer["state"];
export interface NewTransfer {
  readonly id: string;
  readonly agentId: string;
  readonly source: string;
  readonly destination: string;
  readonly isForced: boolean;
  /** Who asked for it. */
  readonly by: string;
  /** The token of the program that asked for it. Absent: an agent has, or an earlier version of the gateway did not note it. */
  readonly tokenId?: string;
  /** The conversation of the agent that asked for it. */
  readonly sessionKey?: string;
  /** What that conversation had read. */
  readonly taint?: Taint;
}
/** How a conversation learns of the end: in a run of its own, or with its next message. */
export type Tell = "run" | "note";
export interface TransferRow extends NewTransfer {
  readonly state: State;
  readonly facts: Facts;
  readonly doneBytes: number;
  readonly reason?: string;
  readonly problem?: string;
  readonly createdAt: number;
  /** When it last made progress. */
  readonly movedAt: number;
  /** When an end last said that it works, without new bytes. */
  readonly aliveAt?: number;
  readonly endedAt?: number;
  /** The conversation is to be told of the end. */
  readonly tell?: Tell;
}
interface Stored extends Record<string, string | number | null> {
  id: string;
  agent_id: string;
  source: string;
  destination: string;
  forced: number;
  by: string;
  state: string;
  size_bytes: number | null;
  version: string | null;
  sha256: string | null;
  done_bytes: number;
  reason: string | null;
  problem: string | null;
  created_at: number;
  moved_at: number;
  ended_at: number | null;
  session_key: string | null;
  taint: string | null;
  tell: string | null;
  token_id: string | null;
  alive_at: number | null;
  again: number | null;
}

/** An attempt without progress and without a sign of life for this long is given up, and another one begins. */
export const STALL_MS = 120_000;
/** When an open transfer has been idle for too long. */
const IDLE_SQL = `max(moved_at, coalesce(alive_at, 0)) + ${LIMITS.transferIdleMs}`;

/** Until the parts of an ended transfer are looked for: a write of an attempt that was given up has ended by then. */
const PARTS_MS = 60_000;

export class TransferStore {
  readonly #db: Database;
  constructor(db: Database) {
    this.#db = db;
  }

  add({ id, agentId, source, destination, isForced, by, tokenId, sessionKey, taint }: NewTransfer, now: number): void {
    run(
      this.#db.sql,
      `INSERT INTO transfers(id, agent_id, source, destination, forced, by, state, done_bytes, created_at, moved_at, due_at, session_key, taint,
       token_id) VALUES(?, ?, ?, ?, ?, ?, 'waiting', 0, ?, ?, ?, ?, ?, ?)`,
      ...[id, agentId, source, destination, isForced ? 1 : 0, by, now, now, now + STALL_MS],
      ...[sessionKey ?? null, taint === undefined ? null : JSON.stringify(taint), tokenId ?? null],
    );
  }
  get(id: string): TransferRow | undefined {
    const row = one<Stored>(this.#db.sql, "SELECT * FROM transfers WHERE id = ?", id);
    return row && readRow(row);
  }
  open(): readonly TransferRow[] {
    return all<Stored>(this.#db.sql, "SELECT * FROM transfers WHERE ended_at IS NULL ORDER BY created_at").map(readRow);
  }

  /** The state of an open transfer. It has moved when the destination has more of the file than ever before. */
  save(id: string, state: State, facts: Facts, doneBytes: number, now: number): void {
    run(
      this.#db.sql,
      `UPDATE transfers SET state = ?, size_bytes = ?, version = ?, sha256 = ?, moved_at = iif(? > done_bytes, ?, moved_at),
       done_bytes = max(done_bytes, ?) WHERE id = ? AND ended_at IS NULL`,
      ...[state, facts.sizeBytes ?? null, facts.version ?? null, facts.sha256 ?? null, doneBytes, now, doneBytes, id],
    );
    this.#due(id, now + STALL_MS);
  }
  /** An end works, without new bytes. */
  alive(id: string, now: number): void {
    run(this.#db.sql, "UPDATE transfers SET alive_at = ? WHERE id = ? AND ended_at IS NULL", now, id);
    this.#due(id, now + STALL_MS);
  }
  /** Its attempt is over, and another one follows. */
  waits(id: string, now: number, forMs = STALL_MS): void {
    run(this.#db.sql, "UPDATE transfers SET state = 'waiting' WHERE id = ? AND ended_at IS NULL", id);
    this.#due(id, now + forMs);
  }
  /** The destination has removed all that it had: the next attempt is the first one with its whole content. */
  beginAgain(id: string, now: number): void {
    run(this.#db.sql, "UPDATE transfers SET done_bytes = 0, again = 1, moved_at = ? WHERE id = ? AND ended_at IS NULL", now, id);
  }
  /** Not later than the time at which it has been idle for too long. */
  #due(id: string, at: number): void {
    run(this.#db.sql, `UPDATE transfers SET due_at = min(?, ${IDLE_SQL}) WHERE id = ? AND ended_at IS NULL`, at, id);
  }
  /** The time in which it waited for a slot is no time without progress. */
  addQueuedTime(id: string, forMs: number): void {
    run(
      this.#db.sql,
      "UPDATE transfers SET moved_at = moved_at + ?, alive_at = alive_at + ? WHERE id = ? AND ended_at IS NULL",
      ...[forMs, forMs, id],
    );
  }
  /** It is being stored, or waits for a slot, which may take longer than that. */
  postpone(id: string, until: number): void {
    run(this.#db.sql, "UPDATE transfers SET due_at = ? WHERE id = ? AND ended_at IS NULL", until, id);
  }
  /** `leftover`: the machine that may still have the temporary file. */
  end(id: string, outcome: { sha256: string } | { reason: string; problem: string; leftover?: string }, now: number): void {
    const until = now + LIMITS.transferKeptMs;
    // A conversation that waits is told at once.
    const due = `due_at = iif(tell IS NULL, ?, ?), parts_at = iif(destination LIKE 'gsv:%', ${now + PARTS_MS}, NULL)`;
    if ("sha256" in outcome)
      run(
        this.#db.sql,
        `UPDATE transfers SET state = 'done', sha256 = ?, done_bytes = size_bytes, ended_at = ?, ${due} WHERE id = ? AND ended_at IS NULL`,
        ...[outcome.sha256, now, until, now, id],
      );
    else
      run(
        this.#db.sql,
        `UPDATE transfers SET state = 'failed', reason = ?, problem = ?, leftover = ?, ended_at = ?, ${due} WHERE id = ? AND ended_at IS NULL`,
        ...[outcome.reason, outcome.problem.slice(0, 1000), outcome.leftover ?? null, now, until, now, id],
      );
  }
  /** Ended transfers whose temporary file this machine may still have. */
  leftovers(nodeId: string): readonly TransferRow[] {
    return all<Stored>(this.#db.sql, "SELECT * FROM transfers WHERE leftover = ?", nodeId).map(readRow);
  }
  removed(id: string): void {
    run(this.#db.sql, "UPDATE transfers SET leftover = NULL WHERE id = ?", id);
  }

  /** Open transfers that are due. */
  due(now: number): readonly TransferRow[] {
    return all<Stored>(this.#db.sql, "SELECT * FROM transfers WHERE ended_at IS NULL AND due_at <= ?", now).map(readRow);
  }
  prune(now: number): void {
    run(this.#db.sql, "DELETE FROM transfers WHERE ended_at IS NOT NULL AND due_at <= ? AND tell IS NULL AND parts_at IS NULL", now);
  }
  /** Ended transfers whose parts are looked for now. They are due again later, until there are none. */
  partsDue(now: number): readonly string[] {
    const due = all<{ id: string }>(
      this.#db.sql,
      "UPDATE transfers SET parts_at = ? WHERE parts_at <= ? RETURNING id",
      now + PARTS_MS,
      now,
    );
    return due.map(({ id }) => id);
  }
  hasNoParts(id: string): void {
    run(this.#db.sql, "UPDATE transfers SET parts_at = NULL WHERE id = ?", id);
  }

  // ------------------------------------------------------------ transfers of agents

  /** The call has not waited for the end. */
  tellLater(id: string, tell: Tell): void {
    run(this.#db.sql, "UPDATE transfers SET tell = ? WHERE id = ? AND ended_at IS NULL", tell, id);
  }
  /** Transfers that have ended, and of which no conversation knows yet. */
  untold(now: number): readonly TransferRow[] {
    return all<Stored>(this.#db.sql, "SELECT * FROM transfers WHERE tell IS NOT NULL AND ended_at IS NOT NULL AND due_at <= ?", now).map(
      readRow,
    );
  }
  told(id: string): void {
    run(this.#db.sql, "UPDATE transfers SET tell = NULL, due_at = ended_at + ? WHERE id = ?", LIMITS.transferKeptMs, id);
  }
  /** Not for longer than an ended transfer is kept. */
  tellAgain(id: string, now: number, inMs: number): void {
    run(
      this.#db.sql,
      "UPDATE transfers SET tell = iif(ended_at + ? <= ?, NULL, tell), due_at = ? WHERE id = ?",
      ...[LIMITS.transferKeptMs, now, now + inMs, id],
    );
  }
}

function readRow(row: Stored): TransferRow {
  return {
    id: row.id,
    agentId: row.agent_id,
    source: row.source,
    destination: row.destination,
    isForced: row.forced === 1,
    by: row.by,
    ...(row.token_id === null ? {} : { tokenId: row.token_id }),
    state: row.state as State,
    facts: {
      ...(row.size_bytes === null ? {} : { sizeBytes: row.size_bytes }),
      ...(row.version === null ? {} : { version: row.version }),
      ...(row.sha256 === null ? {} : { sha256: row.sha256 }),
      ...(row.again === null ? {} : { again: true }),
    },
    doneBytes: row.done_bytes,
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.problem === null ? {} : { problem: row.problem }),
    createdAt: row.created_at,
    movedAt: row.moved_at,
    ...(row.alive_at === null ? {} : { aliveAt: row.alive_at }),
    ...(row.ended_at === null ? {} : { endedAt: row.ended_at }),
    ...(row.session_key === null ? {} : { sessionKey: row.session_key }),
    ...(row.taint === null ? {} : { taint: JSON.parse(row.taint) as Taint }),
    ...(row.tell === null ? {} : { tell: row.tell as Tell }),
  };
}
