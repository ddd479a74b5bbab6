/** Tables of the channels feature. Released migrations never change. */
import type { HistoricalMigration } from "../../kernel/feature.ts";
import type { Migration } from "../../platform/sql.ts";

export const CHANNEL_HISTORY: readonly HistoricalMigration[] = [
  {
    position: 4,
    name: "channels: accounts, messages taken in, people",
    up: (sql) => {
      sql.exec(`CREATE TABLE channel_accounts(
        channel TEXT NOT NULL, account TEXT NOT NULL, connected_at INTEGER NOT NULL, last_message_at INTEGER, state TEXT, PRIMARY KEY(channel, account)
      ) STRICT, WITHOUT ROWID`);
      sql.exec(
        "CREATE TABLE channel_inbox(key TEXT PRIMARY KEY, session TEXT NOT NULL, outcome TEXT, at INTEGER NOT NULL) STRICT, WITHOUT ROWID",
      );
      sql.exec("CREATE INDEX channel_inbox_by_time ON channel_inbox(at)");
      sql.exec(`CREATE TABLE channel_counts(
        channel TEXT NOT NULL, sender TEXT NOT NULL, day TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(channel, sender)
      ) STRICT, WITHOUT ROWID`);
      sql.exec(`CREATE TABLE pairs(
        channel TEXT NOT NULL, sender TEXT NOT NULL, account TEXT NOT NULL, state TEXT NOT NULL, name TEXT, code TEXT NOT NULL, first_message TEXT NOT NULL,
        requested_at INTEGER NOT NULL, noticed_at INTEGER NOT NULL, decided_at INTEGER, PRIMARY KEY(channel, sender)
      ) STRICT, WITHOUT ROWID`);
      sql.exec(
        "CREATE TABLE held(id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, sender TEXT NOT NULL, account TEXT NOT NULL, body TEXT NOT NULL) STRICT",
      );
      sql.exec("CREATE INDEX held_by_sender ON held(channel, sender)");
    },
  },
  {
    position: 6,
    name: "channels: forgetting",
    up: (sql) => {
      sql.exec("CREATE INDEX channel_counts_by_day ON channel_counts(day)");
      sql.exec("CREATE INDEX pairs_waiting ON pairs(requested_at) WHERE state = 'pending'");
    },
  },
  {
    position: 7,
    name: "channels: deliveries",
    up: (sql) => {
      sql.exec(`CREATE TABLE deliveries(
        id TEXT PRIMARY KEY, channel TEXT NOT NULL, account TEXT NOT NULL, peer TEXT, state TEXT NOT NULL, error TEXT, at INTEGER NOT NULL, told INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`);
      sql.exec("CREATE INDEX deliveries_queued ON deliveries(at) WHERE state = 'queued'");
      sql.exec("CREATE INDEX deliveries_problems ON deliveries(at) WHERE state <> 'queued'");
      sql.exec("CREATE INDEX deliveries_untold ON deliveries(at) WHERE told < 2 AND state <> 'queued'");
    },
  },
  {
    position: 8,
    name: "channels: conversations on platforms",
    up: (sql) => {
      sql.exec(`CREATE TABLE channel_peers(
        channel TEXT NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL, peer TEXT NOT NULL, name TEXT, sender TEXT NOT NULL, phone TEXT,
        self INTEGER NOT NULL, last_at INTEGER NOT NULL, PRIMARY KEY(channel, account, kind, peer)
      ) STRICT, WITHOUT ROWID`);
      sql.exec("CREATE INDEX channel_peers_by_time ON channel_peers(last_at)");
    },
  },
  {
    position: 9,
    name: "channels: programs that write in a row",
    up: (sql) => {
      sql.exec("ALTER TABLE channel_peers ADD COLUMN bots INTEGER NOT NULL DEFAULT 0");
    },
  },
];

export const CHANNEL_MIGRATIONS: readonly Migration[] = [
  {
    name: "files of deliveries",
    up: (sql) => {
      // A list of keys as JSON. NULL: from an earlier version, which did not store them.
      sql.exec("ALTER TABLE deliveries ADD COLUMN files TEXT");
    },
  },
  {
    name: "files that wait for their message",
    up: (sql) => {
      sql.exec(
        "CREATE TABLE channel_files(key TEXT PRIMARY KEY, channel TEXT NOT NULL, size INTEGER NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID",
      );
      sql.exec("CREATE INDEX channel_files_by_channel ON channel_files(channel)");
      sql.exec("CREATE INDEX channel_files_by_time ON channel_files(at)");
    },
  },
  {
    name: "accounts that are down",
    up: (sql) => {
      sql.exec(`CREATE TABLE channel_down(
        channel TEXT NOT NULL, account TEXT NOT NULL, since INTEGER NOT NULL, told INTEGER NOT NULL, PRIMARY KEY(channel, account)
      ) STRICT, WITHOUT ROWID`);
    },
  },
];
