/** Tables of the changes feature. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";

export const CHANGES_MIGRATIONS: readonly Migration[] = [
  {
    name: "changes: calls that change files, agents' files before them, and undos that were begun",
    up: (sql) => {
      // `node` '': the agent's files. `session` and `run` '': a client made the call itself.
      sql.exec(`CREATE TABLE changing_calls(
        id INTEGER PRIMARY KEY, call TEXT NOT NULL, node TEXT NOT NULL, session TEXT NOT NULL, run TEXT NOT NULL, tool TEXT NOT NULL,
        at INTEGER NOT NULL, UNIQUE(call, node)
      ) STRICT`);
      sql.exec("CREATE INDEX changing_calls_session ON changing_calls(session, id)");
      // `before_version` NULL: there was no file. `after_sha256` NULL: the file was deleted.
      sql.exec(`CREATE TABLE changed_files(
        id INTEGER PRIMARY KEY, call TEXT NOT NULL, agent TEXT NOT NULL, path TEXT NOT NULL, before_version TEXT, before_sha256 TEXT,
        after_sha256 TEXT, at INTEGER NOT NULL, UNIQUE(call, agent, path)
      ) STRICT`);
      // `calls`: what is undone. A row is deleted when its undo has come to its end.
      sql.exec("CREATE TABLE open_undos(calls TEXT PRIMARY KEY, undo TEXT NOT NULL, at INTEGER NOT NULL) STRICT");
    },
  },
  {
    name: "changes: what is undone",
    up: (sql) => {
      // `calls`: as in open_undos. `undo`: the undo that has undone them; while that one is undone itself, they are not.
      sql.exec("CREATE TABLE undone(calls TEXT PRIMARY KEY, undo TEXT NOT NULL, at INTEGER NOT NULL) STRICT");
    },
  },
];
