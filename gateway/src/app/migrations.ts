/** The Gateway object's tables. Append only: a released migration never changes. */
import type { Migration } from "../platform/sql.ts";

export const GATEWAY_MIGRATIONS: readonly Migration[] = [
  {
    name: "registries, pending calls, audit",
    up: (sql) => {
      sql.exec(`CREATE TABLE tokens(
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, last4 TEXT NOT NULL, label TEXT, node_id TEXT, channel TEXT, account_id TEXT,
        created_at INTEGER NOT NULL, expires_at INTEGER, last_used_at INTEGER, revoked_at INTEGER, imported INTEGER NOT NULL DEFAULT 0
      ) STRICT`);
      sql.exec(`CREATE TABLE sessions(
        key TEXT PRIMARY KEY, ref TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, last_active_at INTEGER NOT NULL, label TEXT
      ) STRICT`);
      sql.exec("CREATE INDEX sessions_by_activity ON sessions(last_active_at)");
      sql.exec(`CREATE TABLE nodes(
        id TEXT PRIMARY KEY, first_seen_at INTEGER NOT NULL, last_seen_at INTEGER NOT NULL, last_connected_at INTEGER, last_disconnected_at INTEGER,
        platform TEXT, version TEXT, ledger INTEGER NOT NULL, tools TEXT NOT NULL, host_capabilities TEXT NOT NULL, tool_capabilities TEXT NOT NULL, waiting TEXT NOT NULL
      ) STRICT`);
      sql.exec(`CREATE TABLE pending_calls(
        call TEXT PRIMARY KEY, kind TEXT NOT NULL, conn TEXT NOT NULL, request TEXT NOT NULL, token TEXT NOT NULL, node TEXT NOT NULL, tool TEXT NOT NULL,
        name TEXT, repeatable INTEGER NOT NULL, state TEXT NOT NULL, created_at INTEGER NOT NULL, deadline INTEGER NOT NULL
      ) STRICT`);
      sql.exec(`CREATE TABLE audit(
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, target TEXT, decision TEXT NOT NULL,
        detail TEXT, args_hash TEXT, prev_hash TEXT, hash TEXT
      ) STRICT`);
    },
  },
  {
    name: "pending calls: the grace beside the deadline",
    up: (sql) => {
      sql.exec("ALTER TABLE pending_calls ADD COLUMN grace_until INTEGER");
    },
  },
  {
    name: "skills: what was approved",
    up: (sql) => {
      sql.exec(`CREATE TABLE skill_pins(
        agent_id TEXT NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL, approved_at INTEGER NOT NULL, approved_by TEXT NOT NULL,
        next_sha256 TEXT, next_at INTEGER, next_by TEXT, PRIMARY KEY(agent_id, name)
      ) STRICT, WITHOUT ROWID`);
    },
  },
  {
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
    // What was made before is nobody's but by its name: whoever wrote there first is not known any more.
    name: "sessions: whose they are",
    up: (sql) => {
      sql.exec("ALTER TABLE sessions ADD COLUMN owned INTEGER NOT NULL DEFAULT 0");
      sql.exec("CREATE INDEX sessions_owned ON sessions(key) WHERE owned = 1");
    },
  },
  {
    name: "channels: forgetting",
    up: (sql) => {
      sql.exec("CREATE INDEX channel_counts_by_day ON channel_counts(day)");
      sql.exec("CREATE INDEX pairs_waiting ON pairs(requested_at) WHERE state = 'pending'");
    },
  },
  {
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
    name: "channels: programs that write in a row",
    up: (sql) => {
      sql.exec("ALTER TABLE channel_peers ADD COLUMN bots INTEGER NOT NULL DEFAULT 0");
    },
  },
];
