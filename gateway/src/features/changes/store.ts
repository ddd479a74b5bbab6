/** Rows of calls that change files, and of agents' files before their changes. Kept for 7 days. Never contents. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { ChangingCall, FileChanging } from "../../ports/changes.ts";

type CallRow = { id: number; call: string; node: string; session: string; run: string; tool: string; at: number };
type FileRow = {
  id: number;
  call: string;
  agent: string;
  path: string;
  before_version: string | null;
  before_sha256: string | null;
  after_sha256: string | null;
};

/** Rows of each table; the oldest go first. */
const MAX_ROWS = 200_000;
const PRUNE_EVERY_MS = 3_600_000;
/** Calls of one run. */
const MAX_CALLS = 20_000;
const RUN_OF_CALL = /^[a-z0-9]{1,32}\/r[0-9]{1,15}$/;
/** Runs among which the newest one that is not undone is looked for. */
const LAST_RUNS = 500;
/** Undos of undos that are followed. */
const MAX_CHAIN = 100;
/** `{ref}/r{number}/`, of a call's id. */
const SCOPE = "substr(call, 1, instr(call, '/') + instr(substr(call, instr(call, '/') + 1), '/'))";
/** Numbers of values in one query. */
const IN_LIST = 50;

export class ChangeStore {
  readonly #db: Database;
  #prunedAt = 0;

  constructor(db: Database) {
    this.#db = db;
  }

  called({ callId, sessionKey = "", runId = "", nodeId = "", tool, at }: ChangingCall): void {
    // A look first: a write, also one that changes nothing, holds the answer back until it is on the disk.
    if (one(this.#db.sql, "SELECT 1 FROM changing_calls WHERE call = ? AND node = ?", callId, nodeId) !== undefined) return;
    this.#prune(at);
    run(
      this.#db.sql,
      `INSERT INTO changing_calls(call, node, session, run, tool, at) VALUES(?, ?, ?, ?, ?, ?)
       ON CONFLICT(call, node) DO NOTHING`,
      callId,
      nodeId,
      sessionKey,
      runId,
      tool,
      at,
    );
  }

  changing({ callId, agentId, path, before, after }: FileChanging, at: number): void {
    this.#db.transactionSync(() => {
      // A new row, so that the rows of one file are in the order of their changes.
      run(this.#db.sql, "DELETE FROM changed_files WHERE call = ? AND agent = ? AND path = ?", callId, agentId, path);
      run(
        this.#db.sql,
        "INSERT INTO changed_files(call, agent, path, before_version, before_sha256, after_sha256, at) VALUES(?, ?, ?, ?, ?, ?, ?)",
        callId,
        agentId,
        path,
        before?.version ?? null,
        before?.sha256 ?? null,
        after ?? null,
        at,
      );
    });
  }

  /** The oldest first. */
  calls(target: string, sessionKey: string | undefined, now: number): readonly ChangingCall[] {
    const since = now - LIMITS.undoMs;
    if (RUN_OF_CALL.test(target)) {
      const rows = this.#calls("call >= ? AND call < ? AND at >= ?", `${target}/`, `${target}0`, since);
      return rows.filter(({ session }) => sessionKey === undefined || session === sessionKey).map(callOf);
    }
    if (target.includes("/")) return this.#calls("call = ? AND at >= ?", target, since).map(callOf);
    // Clients choose the names of runs, so two conversations may have a run of one name: the newest is meant.
    const session =
      sessionKey ??
      one<{ session: string }>(this.#db.sql, "SELECT session FROM changing_calls WHERE run = ? ORDER BY id DESC LIMIT 1", target)?.session;
    if (session === undefined) return [];
    return this.#calls("session = ? AND run = ? AND at >= ?", session, target, since).map(callOf);
  }

  lastRun(sessionKey: string, tools: readonly string[], skip: number, now: number): readonly ChangingCall[] {
    const runs = all<{ scope: string; last: number }>(
      this.#db.sql,
      `SELECT ${SCOPE} AS scope, max(id) AS last FROM changing_calls
       WHERE session = ? AND at >= ? AND run <> '' AND (node = '' OR tool IN (${marks(tools)})) GROUP BY scope ORDER BY last DESC LIMIT ?`,
      sessionKey,
      now - LIMITS.undoMs,
      ...tools,
      LAST_RUNS,
    );
    const newest = runs.filter(({ scope }) => !this.#isUndone(scope))[skip];
    return newest === undefined ? [] : this.calls(newest.scope.slice(0, -1), sessionKey, now);
  }
  commandsAfter(sessionKey: string, callId: string, tools: readonly string[]): readonly ChangingCall[] {
    const known = one<{ id: number }>(this.#db.sql, "SELECT max(id) AS id FROM changing_calls WHERE call = ?", callId)?.id;
    const others = `session = ? AND id > ? AND run <> '' AND node <> '' AND tool NOT IN (${marks(tools)})`;
    return this.#calls(others, sessionKey, known ?? 0, ...tools).map(callOf);
  }
  /** An undo that is undone itself has undone nothing. */
  #isUndone(calls: string): boolean {
    let undone = false;
    let [of, left]: [string | undefined, number] = [calls, MAX_CHAIN];
    while (of !== undefined && left-- > 0) {
      of = one<{ undo: string }>(this.#db.sql, "SELECT undo FROM undone WHERE calls = ?", of)?.undo;
      if (of !== undefined) undone = !undone;
    }
    return undone;
  }

  /** The name of an undo of these calls: that of an earlier one that was not finished, else `fresh`. */
  begin(calls: string, fresh: string, now: number): string {
    const open = one<{ undo: string }>(this.#db.sql, "SELECT undo FROM open_undos WHERE calls = ? AND at >= ?", calls, now - LIMITS.undoMs);
    if (open !== undefined) return open.undo;
    run(this.#db.sql, "INSERT OR REPLACE INTO open_undos(calls, undo, at) VALUES(?, ?, ?)", calls, fresh, now);
    return fresh;
  }
  finish(undoId: string, undone: number | undefined, now: number): void {
    this.#db.transactionSync(() => {
      const calls = one<{ calls: string }>(this.#db.sql, "SELECT calls FROM open_undos WHERE undo = ?", undoId)?.calls;
      run(this.#db.sql, "DELETE FROM open_undos WHERE undo = ?", undoId);
      // An undo that had nothing to do does not replace the earlier undo that did it.
      if (calls === undefined || undone === undefined || (undone === 0 && this.#isUndone(calls))) return;
      run(this.#db.sql, "INSERT OR REPLACE INTO undone(calls, undo, at) VALUES(?, ?, ?)", calls, undoId, now);
    });
  }

  /** The oldest first. */
  files(callIds: readonly string[]): readonly FileChanging[] {
    const rows: FileRow[] = [];
    for (let at = 0; at < callIds.length; at += IN_LIST) {
      const some = callIds.slice(at, at + IN_LIST);
      rows.push(...all<FileRow>(this.#db.sql, `SELECT * FROM changed_files WHERE call IN (${marks(some)})`, ...some));
    }
    return rows.sort((a, b) => a.id - b.id).map(fileOf);
  }

  #calls(where: string, ...params: readonly (string | number)[]): readonly CallRow[] {
    return all<CallRow>(this.#db.sql, `SELECT * FROM changing_calls WHERE ${where} ORDER BY id LIMIT ${MAX_CALLS}`, ...params);
  }

  /** Bounded work now and then: rows are many only when calls are. */
  #prune(now: number): void {
    if (now - this.#prunedAt < PRUNE_EVERY_MS) return;
    this.#prunedAt = now;
    for (const table of ["open_undos", "undone"]) run(this.#db.sql, `DELETE FROM ${table} WHERE at < ?`, now - LIMITS.undoMs);
    for (const table of ["changing_calls", "changed_files"]) {
      const last = one<{ id: number | null }>(this.#db.sql, `SELECT max(id) AS id FROM ${table}`)?.id ?? 0;
      run(this.#db.sql, `DELETE FROM ${table} WHERE at < ? OR id <= ?`, now - LIMITS.undoMs, last - MAX_ROWS);
    }
  }
}

const marks = (values: readonly unknown[]): string => values.map(() => "?").join(", ");
const callOf = ({ call, node, session, run: runId, tool, at }: CallRow): ChangingCall => ({
  callId: call,
  tool,
  at,
  ...(node === "" ? {} : { nodeId: node }),
  ...(session === "" ? {} : { sessionKey: session }),
  ...(runId === "" ? {} : { runId }),
});
const fileOf = ({ call, agent, path, before_version, before_sha256, after_sha256 }: FileRow): FileChanging => ({
  callId: call,
  agentId: agent,
  path,
  ...(before_version === null ? {} : { before: { version: before_version, ...(before_sha256 === null ? {} : { sha256: before_sha256 }) } }),
  ...(after_sha256 === null ? {} : { after: after_sha256 }),
});
