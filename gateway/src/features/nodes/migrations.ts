/** Tables of the nodes feature. Released migrations never change. */
import type { OpenCall } from "../../calls/open-call.ts";
import type { HistoricalMigration } from "../../kernel/feature.ts";
import type { Migration } from "../../platform/sql.ts";
import { machineToolName } from "../../tools/registry.ts";
import type { ClientCall } from "./call-store.ts";

export const NODE_HISTORY: readonly HistoricalMigration[] = [
  {
    position: 1,
    name: "registries, pending calls, audit",
    up: (sql) => {
      sql.exec(`CREATE TABLE nodes(
        id TEXT PRIMARY KEY, first_seen_at INTEGER NOT NULL, last_seen_at INTEGER NOT NULL, last_connected_at INTEGER, last_disconnected_at INTEGER,
        platform TEXT, version TEXT, ledger INTEGER NOT NULL, tools TEXT NOT NULL, host_capabilities TEXT NOT NULL, tool_capabilities TEXT NOT NULL, waiting TEXT NOT NULL
      ) STRICT`);
      sql.exec(`CREATE TABLE pending_calls(
        call TEXT PRIMARY KEY, kind TEXT NOT NULL, conn TEXT NOT NULL, request TEXT NOT NULL, token TEXT NOT NULL, node TEXT NOT NULL, tool TEXT NOT NULL,
        name TEXT, repeatable INTEGER NOT NULL, state TEXT NOT NULL, created_at INTEGER NOT NULL, deadline INTEGER NOT NULL
      ) STRICT`);
    },
  },
  {
    position: 2,
    name: "pending calls: the grace beside the deadline",
    up: (sql) => {
      sql.exec("ALTER TABLE pending_calls ADD COLUMN grace_until INTEGER");
    },
  },
];

/** A row of `pending_calls`, with what is known of its machine. */
type PendingRow = {
  call: string;
  kind: string;
  conn: string;
  request: string;
  token: string;
  node: string;
  tool: string;
  name: string | null;
  repeatable: number;
  state: string;
  created_at: number;
  deadline: number;
  grace_until: number | null;
  ledger: number | null;
};
function convertedCall(row: PendingRow): ClientCall {
  const isLog = row.kind === "logs";
  const base = {
    callId: row.call,
    index: 0,
    name: isLog ? "logs.get" : machineToolName(row.node, row.tool),
    target: { kind: "node", nodeId: row.node },
    ledger: !isLog && row.ledger === 1,
    idempotent: row.repeatable === 1,
    dispatch: 0,
    startedAt: row.created_at,
    deadline: row.deadline,
  } as const;
  const call: OpenCall =
    row.state === "waiting"
      ? { ...base, status: "in_grace", graceUntil: row.grace_until ?? row.deadline }
      : { ...base, status: "dispatched", restarts: 0 };
  const isInside = row.conn === "inside";
  return {
    call,
    kind: isLog ? "logs" : "tool",
    // The rows did not keep the client's id.
    origin: isInside ? { kind: "gateway" } : { kind: "client", clientId: "unknown", tokenId: row.token },
    ...(row.name === null ? {} : { ownName: row.name }),
    waiter: isInside
      ? { kind: "inside" }
      : row.kind === "request"
        ? { kind: "none" }
        : { kind: "client", conn: row.conn, request: row.request },
  };
}

export const NODE_MIGRATIONS: readonly Migration[] = [
  {
    name: "client calls have the record of every tool call",
    up: (sql) => {
      sql.exec(`CREATE TABLE client_calls(
        id TEXT PRIMARY KEY, token TEXT NOT NULL, node TEXT, due_at INTEGER NOT NULL, record TEXT NOT NULL
      ) STRICT`);
      const rows = sql.exec<PendingRow>(
        "SELECT pending_calls.*, nodes.ledger FROM pending_calls LEFT JOIN nodes ON nodes.id = pending_calls.node",
      );
      for (const row of rows.toArray())
        sql.exec(
          "INSERT INTO client_calls(id, token, node, due_at, record) VALUES(?, ?, ?, ?, ?)",
          row.call,
          row.token,
          row.node,
          Math.min(row.deadline, row.grace_until ?? row.deadline),
          JSON.stringify(convertedCall(row)),
        );
      sql.exec("DROP TABLE pending_calls");
    },
  },
  {
    name: "background processes of nodes that do not name their calls",
    up: (sql) => {
      sql.exec(`CREATE TABLE node_processes(
        node TEXT NOT NULL, process TEXT NOT NULL, ref TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(node, process)
      ) STRICT, WITHOUT ROWID`);
    },
  },
  {
    name: "the sandbox of each machine",
    up: (sql) => {
      sql.exec("ALTER TABLE nodes ADD COLUMN sandbox TEXT");
    },
  },
  {
    name: "whether each machine can show notifications",
    up: (sql) => {
      sql.exec("ALTER TABLE nodes ADD COLUMN desktop TEXT");
    },
  },
  {
    name: "machines whose link was silent",
    up: (sql) => {
      sql.exec("ALTER TABLE nodes ADD COLUMN silent_at INTEGER");
    },
  },
  {
    name: "calls of sessions that wait for machines",
    up: (sql) => {
      // `until`: the end of the last wait. `calls`: JSON.
      sql.exec(`CREATE TABLE node_waits(
        session_key TEXT PRIMARY KEY, revision INTEGER NOT NULL, until INTEGER NOT NULL, calls TEXT NOT NULL
      ) STRICT, WITHOUT ROWID`);
    },
  },
  {
    name: "commands of clients that go on, and that a stop has cancelled",
    up: (sql) => {
      // `process`: of a command in the background.
      sql.exec(`CREATE TABLE client_commands(
        node TEXT NOT NULL, call TEXT NOT NULL, process TEXT, stopped INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(node, call)
      ) STRICT, WITHOUT ROWID`);
    },
  },
  {
    name: "the workspace of each machine",
    up: (sql) => {
      sql.exec("ALTER TABLE nodes ADD COLUMN workspace TEXT");
    },
  },
  {
    name: "the only folder of each machine's tools for files",
    up: (sql) => {
      sql.exec("ALTER TABLE nodes ADD COLUMN file_roots TEXT");
    },
  },
];
