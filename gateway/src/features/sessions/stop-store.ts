/** Whether everything is stopped, and which sessions have to be told (rules ST1, ST3). Must not call a session. */
import type { StopState } from "../../../../protocol/gen/types.ts";
import type { Migration } from "../../platform/sql.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

const STATE = "stop-state";
/** The restored copy that has been stopped at its first start. */
const STARTED_STOPPED = "started-stopped";

export const STOP_MIGRATIONS: readonly Migration[] = [
  {
    name: "sessions that are held",
    up: (sql) => {
      sql.exec("CREATE TABLE held_sessions(key TEXT PRIMARY KEY, told INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID");
    },
  },
];

/** After the migrations of the feature that came later. */
export const HELD_MIGRATIONS: readonly Migration[] = [
  {
    name: "held sessions that had something to do",
    up: (sql) => {
      sql.exec("ALTER TABLE held_sessions ADD COLUMN had INTEGER NOT NULL DEFAULT 0");
    },
  },
];

export class StopStore {
  readonly #db: Database;
  #state: StopState | null | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  state(): StopState | undefined {
    if (this.#state === undefined) this.#state = this.#db.kv.get<StopState>(STATE) ?? null;
    return this.#state ?? undefined;
  }
  /** Every session of the list has to be told, those that were told before too. */
  stop(state: StopState, keys: readonly string[]): void {
    this.#db.transactionSync(() => {
      this.#db.kv.put(STATE, state);
      run(this.#db.sql, "UPDATE held_sessions SET told = 0");
      for (const key of keys) run(this.#db.sql, "INSERT OR IGNORE INTO held_sessions(key) VALUES(?)", key);
    });
    this.#state = state;
  }
  /** Stops a restored copy before it does anything. Its sessions are told once for each id. */
  stopCopy(id: string, { since, by }: StopState, keys: () => readonly string[]): void {
    const present = this.state();
    if (this.#db.kv.get<string>(STARTED_STOPPED) === id && present?.by === by) return;
    // In one commit, because nothing waits between them.
    const exported = present?.exportedAt === undefined ? {} : { exportedAt: present.exportedAt };
    this.stop({ since: present?.since ?? since, by, ...exported }, keys());
    this.#db.kv.put(STARTED_STOPPED, id);
  }
  /** The home was read to its end while everything is stopped: it may be live elsewhere (rule MV14). */
  exported(at: number): void {
    const present = this.state();
    if (present === undefined) return;
    this.#state = { ...present, exportedAt: at };
    this.#db.kv.put(STATE, this.#state);
  }
  resume(): void {
    this.#db.transactionSync(() => {
      this.#db.kv.delete(STATE);
      run(this.#db.sql, "UPDATE held_sessions SET told = 0");
    });
    this.#state = null;
  }
  /** The session learns it with what it gets now, which waits there. */
  note(key: string): void {
    run(this.#db.sql, "INSERT INTO held_sessions(key, had) VALUES(?, 1) ON CONFLICT(key) DO UPDATE SET had = 1", key);
  }
  /** Messages wait there already. */
  waits(key: string): void {
    run(this.#db.sql, "UPDATE held_sessions SET had = 1 WHERE key = ?", key);
  }
  /** Sessions that have to be told how things are now. */
  untold(limit: number): readonly string[] {
    return all<{ key: string }>(this.#db.sql, "SELECT key FROM held_sessions WHERE told = 0 LIMIT ?", limit).map(({ key }) => key);
  }
  /** Sessions in which something waits; a run that was stopped does not continue. */
  heldCount(): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM held_sessions WHERE had = 1")?.n ?? 0;
  }
  untoldCount(): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM held_sessions WHERE told = 0")?.n ?? 0;
  }
  /** The session has answered: it is held, or it goes on and is forgotten. */
  told(key: string): void {
    if (this.state() === undefined) run(this.#db.sql, "DELETE FROM held_sessions WHERE key = ?", key);
    else run(this.#db.sql, "UPDATE held_sessions SET told = 1 WHERE key = ?", key);
  }
}
