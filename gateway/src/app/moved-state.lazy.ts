/**
 * What moves with a home to another gateway, and what stays (rules MV1, MV2). Each table of the gateway's object is in one of the two lists;
 * a test compares them with the tables that there are.
 */
import { DEFAULT_FILES } from "../features/agents/default-files.ts";
import { EVENT_ROWS } from "../features/events/migrations.ts";
import { MEMORY_MIGRATIONS } from "../features/memory/migrations.ts";
import type { MovedState } from "../ports/moving.ts";
import { STATE_VERSION } from "../session/machine/state.ts";
import { SESSION_MIGRATIONS, SESSION_TABLES } from "../session/store/schema.ts";
import { MARKER } from "../storage/keys.ts";
import { migrateRows, type RowDatabase } from "../storage/rows.ts";

const MOVED: readonly string[] = [
  "agent_definitions",
  "agent_job_keys",
  "agent_job_turns",
  "agent_jobs",
  "approval_reports",
  "approvals",
  "changed_files",
  "changing_calls",
  "channel_counts",
  "channel_inbox",
  "channel_peers",
  "cron_jobs",
  "cron_made",
  "cron_needs",
  "cron_runs",
  "delegations",
  "event_outbox",
  "grants",
  "held",
  "held_sessions",
  "hook_deliveries",
  "hooks",
  "notifications",
  "open_undos",
  "pairs",
  "sessions",
  "skill_pins",
  "spend_grants",
  "spend_raises",
  "spend_reports",
  "spend_told",
  "spend_usage",
  "task_watches",
  "tasks",
  "undone",
];
/** Each with the reason. */
export const STAYING: Readonly<Record<string, string>> = {
  audit: "the log of this gateway's own acts, in a chain of hashes",
  channel_accounts: "logins are in the channels, which belong to one gateway",
  channel_down: "as the accounts",
  channel_files: "files that wait for messages of these channels",
  client_calls: "calls on machines that are connected here",
  client_commands: "as the calls",
  deliveries: "they are in the outboxes of these channels",
  invites: "secrets of this gateway",
  memory_embedding: "how far the texts of memories are turned into vectors here",
  memory_vector_index: "how far the vectors are in this deployment's index",
  move_keys: "this import",
  move_parts: "this import",
  node_processes: "processes that machines have reported here",
  node_waits: "the sessions report them again",
  nodes: "machines join each gateway with a token of their own",
  session_deletions: "an export waits for their end",
  skill_upload_chunks: "uploads that have not ended",
  skill_uploads: "uploads that have not ended",
  telemetry_runs: "this gateway exports them itself",
  telemetry_state: "as the runs",
  tokens: "secrets of this gateway",
  transfers: "copies between machines that are connected here",
};

export const movedState = (rows: RowDatabase | undefined): MovedState => ({
  tables: MOVED,
  blank: { hooks: ["secret"] },
  fresh: [
    ...["agent_definitions", "agent_jobs", "channel_accounts", "channel_inbox", "cron_jobs", "delegations", "held", "hooks", "pairs"],
    ...["session_deletions", "sessions", "tasks", "transfers"],
  ],
  unsettled: ["session_deletions"],
  objects: { session: { table: "sessions", column: "key" }, job: { table: "agent_jobs", column: "id" } },
  named: {
    hooks: { table: "hooks", columns: ["name"] },
    machines: { table: "nodes", columns: ["id"] },
    channels: { table: "channel_accounts", columns: ["channel", "account"] },
  },
  rows: {
    tables: ["event_log", "event_starts", "long_term_memory"],
    without: { long_term_memory: ["vector_batch", "vector_state"] },
    levels: { "memory rows": MEMORY_MIGRATIONS.length, "event rows": EVENT_ROWS.length },
    migrate: async (now) => {
      if (rows === undefined) return;
      await migrateRows(rows, "memory", MEMORY_MIGRATIONS, now);
      await migrateRows(rows, "events", EVENT_ROWS, now);
    },
  },
  sessionLevels: { [SESSION_TABLES]: SESSION_MIGRATIONS.length, "session state": STATE_VERSION },
  defaultFiles: new Map(DEFAULT_FILES.map(({ name, text }) => [name, text])),
  marker: MARKER,
});
