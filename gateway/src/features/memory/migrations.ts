/** The tables of long-term memory. Append only: a released migration never changes. */
import type { RowMigration } from "../../storage/rows.ts";

export const MEMORY_MIGRATIONS: readonly RowMigration[] = [
  {
    name: "long-term memory",
    statements: [
      `CREATE TABLE long_term_memory(
        id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, agent_id TEXT NOT NULL,
        content TEXT NOT NULL CHECK(length(CAST(content AS BLOB)) <= 8192), metadata TEXT NOT NULL,
        source TEXT NOT NULL, taint TEXT NOT NULL, taint_source TEXT NOT NULL, session_key TEXT NOT NULL, call_id TEXT NOT NULL,
        supersedes TEXT, superseded_by TEXT,
        embedding_provider TEXT, embedding_model TEXT, embedding_dimensions INTEGER, embedding_state TEXT NOT NULL DEFAULT 'none',
        created_at INTEGER NOT NULL) STRICT`,
      "CREATE UNIQUE INDEX memory_of_call ON long_term_memory(tenant_id, agent_id, session_key, call_id)",
      "CREATE INDEX memory_in_order ON long_term_memory(tenant_id, agent_id, id)",
      // The last change of each memory, also of a removed one: what was derived from it is brought up to date by this list.
      "CREATE TABLE memory_changes(seq INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT NOT NULL, agent_id TEXT NOT NULL, memory_id TEXT NOT NULL UNIQUE) STRICT",
      "CREATE INDEX memory_changes_in_order ON memory_changes(tenant_id, agent_id, seq)",
      `CREATE TRIGGER memory_written AFTER INSERT ON long_term_memory BEGIN
        INSERT OR REPLACE INTO memory_changes(tenant_id, agent_id, memory_id) VALUES(new.tenant_id, new.agent_id, new.id); END`,
      `CREATE TRIGGER memory_superseded AFTER UPDATE OF superseded_by ON long_term_memory BEGIN
        INSERT OR REPLACE INTO memory_changes(tenant_id, agent_id, memory_id) VALUES(new.tenant_id, new.agent_id, new.id); END`,
      `CREATE TRIGGER memory_removed AFTER DELETE ON long_term_memory BEGIN
        INSERT OR REPLACE INTO memory_changes(tenant_id, agent_id, memory_id) VALUES(old.tenant_id, old.agent_id, old.id); END`,
    ],
  },
  {
    name: "vectors of embedding services",
    statements: [
      // With the row, so that forgetting the row forgets its vector, and an index that is rebuilt costs nothing.
      "ALTER TABLE long_term_memory ADD COLUMN embedding_vector TEXT",
      "CREATE INDEX memory_embedding ON long_term_memory(tenant_id, embedding_state, id)",
      `CREATE TRIGGER memory_embedded AFTER UPDATE OF embedding_vector ON long_term_memory BEGIN
        INSERT OR REPLACE INTO memory_changes(tenant_id, agent_id, memory_id) VALUES(new.tenant_id, new.agent_id, new.id); END`,
    ],
  },
  {
    name: "the vector index",
    statements: [
      // none: the index never had a vector of the row. stale: it may have an older one. sent: it has accepted this one. indexed: it finds it.
      "ALTER TABLE long_term_memory ADD COLUMN vector_state TEXT NOT NULL DEFAULT 'none'",
      // The last row of those that were sent together.
      "ALTER TABLE long_term_memory ADD COLUMN vector_batch TEXT",
      "CREATE INDEX memory_vector ON long_term_memory(tenant_id, vector_state, id)",
      `CREATE TRIGGER memory_indexed AFTER UPDATE OF vector_state ON long_term_memory
        WHEN (old.vector_state = 'indexed') <> (new.vector_state = 'indexed') BEGIN
        INSERT OR REPLACE INTO memory_changes(tenant_id, agent_id, memory_id) VALUES(new.tenant_id, new.agent_id, new.id); END`,
      // Written with the removal of the row, so that its vector is removed whatever happens in between.
      "CREATE TABLE vector_removals(id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, due_at INTEGER NOT NULL, again INTEGER NOT NULL) STRICT",
      "CREATE INDEX vector_removals_in_order ON vector_removals(tenant_id, due_at)",
    ],
  },
];
