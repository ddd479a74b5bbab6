/** Commands of clients that go on in the background, and those that a stop has cancelled while their machine was away (rule ST8). */
import type { LedgerCall } from "../../../../protocol/gen/types.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

/** For each machine. The oldest are removed first. */
const MAX_COMMANDS = 256;

export class ClientCommands {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** A result says that a command goes on. The machine ends it by the call that began it, which is the first one with its name. */
  started(nodeId: string, callId: string, processId: string, now: number): void {
    const known = "SELECT call FROM client_commands WHERE node = ? AND process = ?";
    if (one<{ call: string }>(this.#db.sql, known, nodeId, processId) === undefined) this.#put(nodeId, callId, processId, false, now);
  }
  ended(nodeId: string, processId: string): void {
    run(this.#db.sql, "DELETE FROM client_commands WHERE node = ? AND process = ?", nodeId, processId);
  }
  /** A call that had not ended: the machine may have it, and may be away. */
  stoppedCall(nodeId: string, callId: string, now: number): void {
    this.#put(nodeId, callId, undefined, true, now);
  }
  /** The machine has reported how a call ended. True: the stop has cancelled the call, but its command goes on in the background. */
  reported(nodeId: string, callId: string, processId: string | undefined): boolean {
    const { sql } = this.#db;
    if (processId === undefined) run(sql, "DELETE FROM client_commands WHERE node = ? AND call = ? AND process IS NULL", nodeId, callId);
    const update = "UPDATE client_commands SET process = ? WHERE node = ? AND call = ? AND stopped = 1 RETURNING call";
    return processId !== undefined && one<{ call: string }>(sql, update, processId, nodeId, callId) !== undefined;
  }
  /** Those in the background, each once. */
  stopAll(): readonly { readonly nodeId: string; readonly callId: string }[] {
    return all<{ nodeId: string; callId: string }>(
      this.#db.sql,
      "UPDATE client_commands SET stopped = 1 WHERE stopped = 0 RETURNING node AS nodeId, call AS callId",
    );
  }
  /** The commands that a machine must end when it connects. A call that is not in its ledger has ended there. */
  toCancel(nodeId: string, ledger: readonly LedgerCall[] | undefined): readonly string[] {
    const rows = all<{ callId: string; process: string | null }>(
      this.#db.sql,
      "SELECT call AS callId, process FROM client_commands WHERE node = ? AND stopped = 1 ORDER BY at, call",
      nodeId,
    );
    const open = new Set((ledger ?? []).flatMap(({ callId, state }) => (state === "accepted" || state === "started" ? callId : [])));
    const over = ledger === undefined ? [] : rows.filter(({ callId, process }) => process === null && !open.has(callId));
    for (const { callId } of over) run(this.#db.sql, "DELETE FROM client_commands WHERE node = ? AND call = ?", nodeId, callId);
    return rows.filter((row) => !over.includes(row)).map(({ callId }) => callId);
  }

  #put(nodeId: string, callId: string, processId: string | undefined, isStopped: boolean, now: number): void {
    const { sql } = this.#db;
    run(
      sql,
      "INSERT OR REPLACE INTO client_commands(node, call, process, stopped, at) VALUES(?, ?, ?, ?, ?)",
      nodeId,
      callId,
      processId ?? null,
      isStopped ? 1 : 0,
      now,
    );
    const count = one<{ n: number }>(sql, "SELECT count(*) AS n FROM client_commands WHERE node = ?", nodeId)?.n ?? 0;
    if (count > MAX_COMMANDS)
      run(
        sql,
        "DELETE FROM client_commands WHERE node = ?1 AND call IN (SELECT call FROM client_commands WHERE node = ?1 ORDER BY at DESC, call LIMIT -1 OFFSET ?2)",
        nodeId,
        MAX_COMMANDS,
      );
  }
}
