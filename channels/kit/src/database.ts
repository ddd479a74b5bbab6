/** The account's SQLite behind a small interface, so that tests can use a plain SQLite. Knows no rules. */

export type Value = string | number | null;
export interface Database {
  /** All rows of a statement. Synchronous. */
  query<T>(statement: string, ...params: readonly Value[]): T[];
  /** Atomic. May be nested. */
  transaction<T>(work: () => T): T;
}

export function durableDatabase(storage: Pick<DurableObjectStorage, "sql" | "transactionSync">): Database {
  return {
    query: <T>(statement: string, ...params: readonly Value[]) => storage.sql.exec(statement, ...params).toArray() as T[],
    transaction: (work) => storage.transactionSync(work),
  };
}

/** Append only: a released migration never changes. */
const MIGRATIONS: readonly (readonly string[])[] = [
  [
    // Inbound messages that the gateway has not taken yet. `key` identifies the message on its platform.
    `CREATE TABLE inbox(
       id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, peer TEXT NOT NULL, body TEXT NOT NULL, files TEXT NOT NULL,
       receipt TEXT, received INTEGER NOT NULL, attempts INTEGER NOT NULL, next_at INTEGER NOT NULL, last_error TEXT) STRICT`,
    "CREATE INDEX inbox_by_peer ON inbox(peer, id)",
    // Ids of all messages that were taken, for as long as a platform may redeliver them.
    "CREATE TABLE seen(key TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX seen_by_time ON seen(at)",
    // Outbound messages, in parts. `state`: waiting, trying.
    `CREATE TABLE outbox(
       id INTEGER PRIMARY KEY AUTOINCREMENT, delivery TEXT NOT NULL, part INTEGER NOT NULL, peer TEXT NOT NULL, body TEXT NOT NULL,
       state TEXT NOT NULL, attempts INTEGER NOT NULL, first_at INTEGER NOT NULL, next_at INTEGER NOT NULL, last_error TEXT,
       UNIQUE(delivery, part)) STRICT`,
    "CREATE INDEX outbox_by_peer ON outbox(peer, id)",
    // All deliveries: their state and the platform's ids of their messages. `state`: queued, sent, failed, unknown.
    `CREATE TABLE deliveries(
       id TEXT PRIMARY KEY, at INTEGER NOT NULL, state TEXT NOT NULL, messages TEXT NOT NULL, error TEXT, reported INTEGER NOT NULL,
       report_attempts INTEGER NOT NULL, report_at INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
    "CREATE INDEX deliveries_by_time ON deliveries(at)",
    "CREATE INDEX deliveries_to_report ON deliveries(report_at) WHERE reported = 0",
    // Answers that are shown while they are generated.
    "CREATE TABLE live(delivery TEXT PRIMARY KEY, message TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE kv(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
  ],
  [
    // From when on the gateway must be asked whether the message may leave. 0: no agent wrote it, or an earlier version stored it.
    "ALTER TABLE outbox ADD COLUMN ask_from INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX outbox_of_agents ON outbox(id) WHERE ask_from > 0",
    // 1: the outcome of an attempt is unknown.
    "ALTER TABLE outbox ADD COLUMN unsure INTEGER NOT NULL DEFAULT 0",
  ],
];

export function migrate(db: Database): void {
  db.query("CREATE TABLE IF NOT EXISTS schema_version(only INTEGER PRIMARY KEY CHECK(only = 1), version INTEGER NOT NULL) STRICT");
  const done = db.query<{ version: number }>("SELECT version FROM schema_version")[0]?.version ?? 0;
  if (done > MIGRATIONS.length)
    throw new Error(
      `the account's tables are of version ${done}, but this program knows only ${MIGRATIONS.length}; install the newer program`,
    );
  for (const [index, statements] of MIGRATIONS.entries()) {
    if (index < done) continue;
    db.transaction(() => {
      for (const statement of statements) db.query(statement);
      db.query("INSERT INTO schema_version VALUES(1, ?) ON CONFLICT(only) DO UPDATE SET version = excluded.version", index + 1);
    });
  }
}
