/**
 * Which session started a background process, for nodes that do not name the call in `node.exec.event`. A hint only: the session decides
 * whether the process is its own.
 */
import { type Database, one, run } from "../../platform/sql.ts";

/** For each node. The oldest are removed first. */
const MAX_PROCESSES = 64;

export class ProcessStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  started(nodeId: string, processId: string, ref: string, now: number): void {
    const { sql } = this.#db;
    run(sql, "INSERT OR REPLACE INTO node_processes(node, process, ref, at) VALUES(?, ?, ?, ?)", nodeId, processId, ref, now);
    run(
      sql,
      "DELETE FROM node_processes WHERE node = ?1 AND process IN (SELECT process FROM node_processes WHERE node = ?1 ORDER BY at DESC, process LIMIT -1 OFFSET ?2)",
      nodeId,
      MAX_PROCESSES,
    );
  }
  /** Ref of the session. */
  refOf(nodeId: string, processId: string): string | undefined {
    return one<{ ref: string }>(this.#db.sql, "SELECT ref FROM node_processes WHERE node = ? AND process = ?", nodeId, processId)?.ref;
  }
  ended(nodeId: string, processId: string): void {
    run(this.#db.sql, "DELETE FROM node_processes WHERE node = ? AND process = ?", nodeId, processId);
  }
}
