/** The tables of a session. Migrations are only ever added; their texts never change. */
import type { Migration } from "../../platform/sql.ts";

export const SESSION_TABLES = "session";
export const SESSION_MIGRATIONS: readonly Migration[] = [
  {
    name: "the log, dedupe keys, the queue, the state and long results",
    up: (sql) => {
      // The history for the model, the events for clients and the source of archives (rule D3). `body` is the row as JSON.
      sql.exec(
        "CREATE TABLE log(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, run TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL) STRICT",
      );
      // No index on `at`: it would double the write that each message pays; pruning walks the keys in bounded steps instead.
      sql.exec("CREATE TABLE seen(key TEXT PRIMARY KEY, answer TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID");
      sql.exec("CREATE TABLE queue(id INTEGER PRIMARY KEY, run TEXT NOT NULL, bytes INTEGER NOT NULL, body TEXT NOT NULL) STRICT");
      // `session` changes with each message; `settings` and `previous` seldom do.
      sql.exec("CREATE TABLE state(name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID");
      sql.exec(
        "CREATE TABLE results(call TEXT NOT NULL, part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(call, part)) STRICT, WITHOUT ROWID",
      );
    },
  },
  {
    name: "the state's parts by number",
    up: (sql) => {
      // A row with a key of text that is larger than a quarter of a page goes to a page of its own, and the state during a run always
      // is: two more pages in each of a run's commits.
      sql.exec("CREATE TABLE parts(id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT");
      for (const [index, name] of ["session", "settings", "previous", "summary", "work"].entries())
        sql.exec("INSERT INTO parts(id, body) SELECT ?, body FROM state WHERE name = ?", index + 1, name);
      sql.exec("DROP TABLE state");
    },
  },
  {
    name: "short names of files",
    up: (sql) => {
      sql.exec("CREATE TABLE media(number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE) STRICT");
    },
  },
];
