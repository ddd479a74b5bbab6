/**
 * The session's tables in the SQLite of its Durable Object. A plain message costs six rows in three transactions (rule D2):
 * log, seen, state; log, state; state. The first message creates the tables; reading never does.
 */
import { migrateAll } from "../../platform/sql.ts";
import type { Origin } from "../../ports/origin.ts";
import type { Answer } from "../machine/event.ts";
import type { QueueOp, ResultOp, Step } from "../machine/draft.ts";
import type { LogRow } from "../machine/log.ts";
import type { IncomingMessage, QueuedMessage, State } from "../machine/state.ts";
import { processesIn, UNREAD, withLabel } from "./upgrade.ts";
import {
  decodeMessage,
  decodeRow,
  decodeState,
  encodeMessage,
  encodeRow,
  encodeState,
  resultParts,
  STATE_PARTS,
  type StoredRow,
} from "./rows.ts";
import { SESSION_MIGRATIONS, SESSION_TABLES } from "./schema.ts";
import { frontOf, type PruneBounds, type QueueFront, type SeenEntry, type SessionStore } from "./session-store.ts";

export type SessionDatabase = Pick<DurableObjectStorage, "sql" | "kv" | "transactionSync">;

export class SqlStore implements SessionStore {
  readonly #storage: SessionDatabase;
  /** Undefined: not looked yet. */
  #hasTables: boolean | undefined;
  /** A cache, so that a busy session does not parse the queue's front at each event. */
  #front: QueueFront | undefined;
  /** Where the pruning of dedupe keys goes on. Memory only: a new incarnation begins again. */
  #pruneAfter = "";
  #isClosed = false;

  constructor(storage: SessionDatabase) {
    this.#storage = storage;
  }

  /** The session is deleted: work that is still under way can't write or read any more. */
  close(): void {
    this.#isClosed = true;
  }
  get isClosed(): boolean {
    return this.#isClosed;
  }

  transaction<T>(work: () => T): T {
    this.#prepare();
    try {
      return this.#storage.transactionSync(work);
    } catch (error) {
      this.#front = undefined;
      throw error;
    }
  }
  #prepare(): void {
    if (this.#exists()) return;
    migrateAll(this.#storage, [[SESSION_TABLES, SESSION_MIGRATIONS]]);
    this.#hasTables = true;
  }
  #exists(): boolean {
    if (this.#isClosed) throw new Error("the session was deleted");
    if (this.#hasTables === undefined) {
      const found =
        this.#storage.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'").toArray().length > 0;
      // An object with tables of an older version is migrated at its first use.
      if (found) migrateAll(this.#storage, [[SESSION_TABLES, SESSION_MIGRATIONS]]);
      this.#hasTables = found;
    }
    return this.#hasTables;
  }
  #all<T extends Record<string, SqlStorageValue>>(statement: string, ...params: SqlStorageValue[]): T[] {
    return this.#exists() ? this.#storage.sql.exec<T>(statement, ...params).toArray() : [];
  }

  load(): State | undefined {
    this.#front = undefined;
    const state = decodeState(
      new Map(
        this.#all<{ id: number; body: string }>("SELECT id, body FROM parts").map(({ id, body }) => [STATE_PARTS[id - 1] ?? "", body]),
      ),
      (runId) => this.#originOf(runId),
    );
    if (state === undefined) return undefined;
    const labelled = state.taint === UNREAD ? withLabel(state, this.#context(state)) : state;
    return labelled.processes === undefined ? { ...labelled, processes: processesIn(this.#runningResults()) } : labelled;
  }
  /** All rows of the conversation, for a state of a version that kept no label. */
  #context({ contextFrom }: State): readonly LogRow[] {
    const statement = "SELECT seq, kind, run, at, body FROM log WHERE seq >= ? ORDER BY seq";
    return this.#all<StoredRow & Record<string, SqlStorageValue>>(statement, contextFrom).map(decodeRow);
  }
  /** A program of before did not record processes. Its log says which were running. */
  #runningResults(): readonly LogRow[] {
    const statement = `SELECT seq, kind, run, at, body FROM log WHERE kind = 'toolResult' AND instr(body, '\\"status\\":\\"running\\"') > 0 ORDER BY seq`;
    return this.#all<StoredRow & Record<string, SqlStorageValue>>(statement).map(decodeRow);
  }
  #originOf(runId: string): Origin | undefined {
    const rows = this.#all<StoredRow & Record<string, SqlStorageValue>>(
      "SELECT seq, kind, run, at, body FROM log WHERE kind = 'user' AND run = ? ORDER BY seq DESC LIMIT 1",
      runId,
    );
    const [row] = rows.map(decodeRow);
    return row?.kind === "user" ? row.origin : undefined;
  }
  seen(key: string): Answer | undefined {
    const row = this.#all<{ answer: string }>("SELECT answer FROM seen WHERE key = ?", key)[0];
    if (!row) return undefined;
    const answer: Answer = JSON.parse(row.answer);
    return answer;
  }
  queueFront(withSteered = false): QueueFront {
    this.#front ??= withSteered ? frontOf(this.#waiting()) : this.#readFront();
    return this.#front;
  }
  #waiting(): readonly QueuedMessage[] {
    return this.#all<{ id: number; bytes: number; body: string }>("SELECT id, bytes, body FROM queue ORDER BY id").map(
      ({ id, bytes, body }) => ({ id, bytes, incoming: decodeMessage(body) }),
    );
  }
  #readFront(): QueueFront {
    const quiet: QueuedMessage[] = [];
    for (let after = Number.MIN_SAFE_INTEGER; ; ) {
      const head = this.#queued("SELECT id, bytes, body FROM queue WHERE id > ? ORDER BY id LIMIT 1", after);
      if (!head?.incoming.quiet) return { quiet, head };
      quiet.push(head);
      after = head.id;
    }
  }
  queued(): readonly IncomingMessage[] {
    return this.#all<{ body: string }>("SELECT body FROM queue ORDER BY id").map(({ body }) => decodeMessage(body));
  }
  queuedRun(runId: string): QueuedMessage | undefined {
    return this.#queued("SELECT id, bytes, body FROM queue WHERE run = ? ORDER BY id LIMIT 1", runId);
  }
  #queued(statement: string, ...params: SqlStorageValue[]): QueuedMessage | undefined {
    const row = this.#all<{ id: number; bytes: number; body: string }>(statement, ...params)[0];
    return row && { id: row.id, bytes: row.bytes, incoming: decodeMessage(row.body) };
  }

  write(before: State | undefined, step: Step, seen: SeenEntry | undefined): void {
    const { sql } = this.#storage;
    for (const row of step.append) {
      const { seq, kind, run, at, body } = encodeRow(row);
      sql.exec("INSERT INTO log(seq, kind, run, at, body) VALUES(?, ?, ?, ?, ?)", seq, kind, run, at, body);
    }
    for (const row of step.amend) sql.exec("UPDATE log SET body = ? WHERE seq = ? AND kind = 'user'", encodeRow(row).body, row.seq);
    for (const op of step.queue) this.#writeQueue(op);
    for (const op of step.results) this.#writeResult(op);
    if (seen) sql.exec("INSERT INTO seen(key, answer, at) VALUES(?, ?, ?)", seen.key, JSON.stringify(seen.answer), seen.at);
    if (step.state === before) return;
    for (const [name, body] of encodeState(before, step.state)) {
      const id = STATE_PARTS.indexOf(name) + 1;
      sql.exec("REPLACE INTO parts(id, body) VALUES(?, ?)", id, body);
    }
  }
  #writeQueue(op: QueueOp): void {
    const { sql } = this.#storage;
    // A message behind the head does not change the front.
    if (op.op === "remove" || this.#front?.head === undefined || op.incoming.steers !== undefined) this.#front = undefined;
    if (op.op === "add")
      sql.exec("INSERT INTO queue(run, bytes, body) VALUES(?, ?, ?)", op.incoming.runId, op.bytes, encodeMessage(op.incoming));
    else sql.exec("DELETE FROM queue WHERE id = ?", op.id);
  }
  #writeResult(op: ResultOp): void {
    const { sql } = this.#storage;
    sql.exec("DELETE FROM results WHERE call = ?", op.callId);
    if (op.op === "drop") return;
    for (const [part, body] of resultParts(op.text).entries())
      sql.exec("INSERT INTO results(call, part, body) VALUES(?, ?, ?)", op.callId, part, body);
  }

  rows(from: number, limit: number): readonly LogRow[] {
    return this.#all<StoredRow & Record<string, SqlStorageValue>>(
      "SELECT seq, kind, run, at, body FROM log WHERE seq >= ? ORDER BY seq LIMIT ?",
      from,
      limit,
    ).map(decodeRow);
  }
  rowAt(seq: number): LogRow | undefined {
    const row = this.#all<StoredRow & Record<string, SqlStorageValue>>("SELECT seq, kind, run, at, body FROM log WHERE seq = ?", seq)[0];
    return row && decodeRow(row);
  }
  oldestSeq(nextSeq: number): number {
    return this.#all<{ seq: number }>("SELECT seq FROM log ORDER BY seq LIMIT 1")[0]?.seq ?? nextSeq;
  }
  resultText(callId: string): string | undefined {
    const parts = this.#all<{ body: string }>("SELECT body FROM results WHERE call = ? ORDER BY part", callId);
    return parts.length === 0 ? undefined : parts.map((part) => part.body).join("");
  }

  mediaNumbers(keys: readonly string[]): ReadonlyMap<string, number> {
    const known = new Map<string, number>();
    const number = (key: string): number | undefined =>
      this.#all<{ number: number }>("SELECT number FROM media WHERE key = ?", key)[0]?.number;
    const missing: string[] = [];
    for (const key of keys) {
      const found = number(key);
      if (found === undefined) missing.push(key);
      else known.set(key, found);
    }
    if (missing.length > 0)
      this.transaction(() => {
        for (const key of missing) {
          this.#storage.sql.exec("INSERT OR IGNORE INTO media(key) VALUES(?)", key);
          const given = number(key);
          if (given !== undefined) known.set(key, given);
        }
      });
    return known;
  }
  mediaKey(number: number): string | undefined {
    return this.#all<{ key: string }>("SELECT key FROM media WHERE number = ?", number)[0]?.key;
  }
  dropMediaNumbers(keep: ReadonlySet<string>): void {
    const gone = this.#all<{ number: number; key: string }>("SELECT number, key FROM media").filter(({ key }) => !keep.has(key));
    if (gone.length === 0) return;
    this.transaction(() => {
      for (const { number } of gone) this.#storage.sql.exec("DELETE FROM media WHERE number = ?", number);
    });
  }

  prune({ seenBefore, contextFrom, rowsBefore, rowsBelow, step }: PruneBounds): number {
    const { sql } = this.#storage;
    return this.transaction(() => {
      const keys = this.#all<{ key: string; at: number }>(
        "SELECT key, at FROM seen WHERE key > ? ORDER BY key LIMIT ?",
        this.#pruneAfter,
        step,
      );
      this.#pruneAfter = keys.length < step ? "" : (keys.at(-1)?.key ?? "");
      let removed = 0;
      for (const { key, at } of keys) {
        if (at >= seenBefore) continue;
        sql.exec("DELETE FROM seen WHERE key = ?", key);
        removed += 1;
      }
      const rows = this.#all<{ seq: number; at: number }>("SELECT seq, at FROM log WHERE seq < ? ORDER BY seq LIMIT ?", contextFrom, step);
      // Only a prefix, so that the remaining rows have no gap.
      const stays = rows.findIndex(({ seq, at }) => at >= rowsBefore && seq >= rowsBelow);
      const gone = stays === -1 ? rows : rows.slice(0, stays);
      const last = gone.at(-1);
      if (last) sql.exec("DELETE FROM log WHERE seq <= ?", last.seq);
      return removed + gone.length;
    });
  }
}
