/**
 * The rows of long-term memory in D1 (rules LM1 to LM4): the truth, from which every index is derived. Each write is one batch, which D1
 * runs as one transaction. Must not decide who may ask.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { fail } from "../../kernel/outcome.ts";
import type {
  LongTermMemory,
  MemoryChanged,
  MemoryPage,
  MemoryScope,
  MemoryStored,
  NewMemory,
  StoredMemory,
} from "../../ports/long-term-memory.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { isForeign, SOURCE_CHARS, TAINT_LABELS } from "../../ports/taint.ts";
import { guardedRows, migrateRows, type RowDatabase } from "../../storage/rows.ts";
import { MEMORY_MIGRATIONS } from "./migrations.ts";

type Row = {
  id: string;
  content: string;
  metadata: string;
  source: string;
  taint: string;
  taint_source: string;
  session_key: string;
  call_id: string;
  supersedes: string | null;
  superseded_by: string | null;
  created_at: number;
};
const COLUMNS = "id, content, metadata, source, taint, taint_source, session_key, call_id, supersedes, superseded_by, created_at";
const SCOPED = "tenant_id = ? AND agent_id = ?";
/** A page is a frame on the wire at most. */
const MAX_PAGE_BYTES = LIMITS.pageBytes;
const scoped = ({ tenantId, agentId }: MemoryScope): readonly [string, string] => [tenantId, agentId];

export class D1Memory implements LongTermMemory {
  readonly #db: RowDatabase;
  readonly #now: () => number;
  readonly #failed: (what: string, error: unknown) => void;
  #ready: Promise<void> | undefined;

  /** `failed` gets the exceptions of the database. */
  constructor(db: RowDatabase, now: () => number, failed: (what: string, error: unknown) => void) {
    this.#db = db;
    this.#now = now;
    this.#failed = failed;
  }

  store(scope: MemoryScope, memory: NewMemory): Promise<Result<MemoryStored>> {
    return this.#guarded("store the memory", async () => {
      const refused = problemOf(memory);
      if (refused !== undefined) return refused;
      const { supersedes } = memory;
      const known = await this.#ofCall(scope, memory);
      if (known !== undefined) return succeed(await this.#stored(scope, known, false));
      if (supersedes !== undefined) {
        const older = (await this.#rows(scope, [supersedes])).get(supersedes);
        if (older === undefined) return fail("memory.unknown", `There is no memory ${supersedes}.`);
        // What others may have written hides nothing that they have not (rule LM7).
        if (isForeign(memory.taint) && !isForeign(older.taint)) return this.#insert(scope, memory, undefined);
      }
      return this.#insert(scope, memory, supersedes);
    });
  }
  /** `hides`: the older memory that is taken out of recall, in the same transaction. */
  async #insert(scope: MemoryScope, memory: NewMemory, hides: string | undefined): Promise<Result<MemoryStored>> {
    const { id, content, metadata, author, taint, sessionKey, callId, supersedes, createdAt } = memory;
    const insert = this.#db
      .prepare(
        `INSERT INTO long_term_memory(id, tenant_id, agent_id, content, metadata, source, taint, taint_source, session_key, call_id, supersedes, created_at)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12
         WHERE (SELECT count(*) FROM long_term_memory WHERE tenant_id = ?2 AND agent_id = ?3) < ?13
         ON CONFLICT(tenant_id, agent_id, session_key, call_id) DO NOTHING`,
      )
      .bind(
        id,
        ...scoped(scope),
        content,
        JSON.stringify(metadata),
        author,
        taint.label,
        taint.source.slice(0, SOURCE_CHARS),
        sessionKey,
        callId,
        supersedes ?? null,
        createdAt,
        LIMITS.memories,
      );
    // Only when this very row was written: a repeated call changes nothing.
    const hide = this.#db
      .prepare(
        `UPDATE long_term_memory SET superseded_by = ?1 WHERE id = ?2 AND tenant_id = ?3 AND agent_id = ?4 AND superseded_by IS NULL
         AND EXISTS(SELECT 1 FROM long_term_memory WHERE id = ?1 AND tenant_id = ?3 AND agent_id = ?4)`,
      )
      .bind(id, hides ?? "", ...scoped(scope));
    await this.#db.batch(hides === undefined ? [insert] : [insert, hide]);
    const kept = await this.#ofCall(scope, memory);
    if (kept === undefined)
      return fail("memory.full", `The agent has ${LIMITS.memories.toLocaleString("en-US")} memories, which is the most that one may have.`);
    return succeed(await this.#stored(scope, kept, kept.id === id));
  }
  async #stored(scope: MemoryScope, memory: StoredMemory, isNew: boolean): Promise<MemoryStored> {
    const { supersedes } = memory;
    const older = supersedes === undefined ? undefined : (await this.#rows(scope, [supersedes])).get(supersedes);
    return { memory, isNew, superseded: older !== undefined && older.supersededBy !== undefined };
  }
  async #ofCall(scope: MemoryScope, { sessionKey, callId }: NewMemory): Promise<StoredMemory | undefined> {
    const row = await this.#db
      .prepare(`SELECT ${COLUMNS} FROM long_term_memory WHERE ${SCOPED} AND session_key = ? AND call_id = ?`)
      .bind(...scoped(scope), sessionKey, callId)
      .first<Row>();
    return row === null ? undefined : memoryOf(row);
  }

  get(scope: MemoryScope, ids: readonly string[]): Promise<Result<ReadonlyMap<string, StoredMemory>>> {
    return this.#guarded("read the memories", async () => succeed(await this.#rows(scope, ids)));
  }
  async #rows(scope: MemoryScope, ids: readonly string[]): Promise<ReadonlyMap<string, StoredMemory>> {
    if (ids.length === 0) return new Map();
    const { results } = await this.#db
      .prepare(`SELECT ${COLUMNS} FROM long_term_memory WHERE ${SCOPED} AND id IN (SELECT value FROM json_each(?))`)
      .bind(...scoped(scope), JSON.stringify(ids))
      .all<Row>();
    return new Map(results.map((row) => [row.id, memoryOf(row)]));
  }

  list(
    scope: MemoryScope,
    asked: { readonly before?: string; readonly superseded: boolean; readonly limit: number },
  ): Promise<Result<MemoryPage>> {
    return this.#guarded("list the memories", async () => {
      const { results } = await this.#db
        .prepare(
          `SELECT ${COLUMNS} FROM long_term_memory WHERE ${SCOPED} AND (? OR superseded_by IS NULL) AND id < ? ORDER BY id DESC LIMIT ?`,
        )
        .bind(...scoped(scope), asked.superseded ? 1 : 0, asked.before ?? "~", asked.limit + 1)
        .all<Row>();
      const memories: StoredMemory[] = [];
      let bytes = 0;
      for (const row of results.slice(0, asked.limit)) {
        bytes += utf8Bytes(JSON.stringify(row));
        if (bytes > MAX_PAGE_BYTES && memories.length > 0) break;
        memories.push(memoryOf(row));
      }
      return succeed({ memories, more: memories.length < results.length });
    });
  }

  remove(scope: MemoryScope, ids: readonly string[]): Promise<Result<number>> {
    return this.#guarded("remove the memories", async () => {
      const { results } = await this.#db
        .prepare(`DELETE FROM long_term_memory WHERE ${SCOPED} AND id IN (SELECT value FROM json_each(?)) RETURNING id`)
        .bind(...scoped(scope), JSON.stringify(ids))
        .all<{ id: string }>();
      return succeed(results.length);
    });
  }

  changes(scope: MemoryScope, afterSeq: number, limit: number): Promise<Result<readonly MemoryChanged[]>> {
    return this.#guarded("read the memories", async () => {
      const { results } = await this.#db
        .prepare(
          `SELECT c.seq, c.memory_id, ${COLUMNS.split(", ")
            .map((name) => `m.${name}`)
            .join(", ")} FROM memory_changes c LEFT JOIN long_term_memory m ON m.id = c.memory_id
           WHERE c.tenant_id = ? AND c.agent_id = ? AND c.seq > ? ORDER BY c.seq LIMIT ?`,
        )
        .bind(...scoped(scope), afterSeq, limit)
        .all<{ seq: number; memory_id: string } & (Row | { id: null })>();
      return succeed(
        results.map((row): MemoryChanged => {
          const about = { seq: row.seq, id: row.memory_id };
          return row.id === null ? about : { ...about, memory: memoryOf(row) };
        }),
      );
    });
  }

  #guarded<T>(what: string, work: () => Promise<Result<T>>): Promise<Result<T>> {
    const ready = async (): Promise<Result<T>> => {
      this.#ready ??= migrateRows(this.#db, "memory", MEMORY_MIGRATIONS, this.#now());
      // Tried again with the next call.
      this.#ready.catch(() => {
        this.#ready = undefined;
      });
      await this.#ready;
      return work();
    };
    return guardedRows(what, ready, this.#failed);
  }
}

function problemOf({ content, metadata }: NewMemory) {
  if (utf8Bytes(content) > LIMITS.memoryBytes)
    return fail("memory.too_large", `The memory has more than ${LIMITS.memoryBytes.toLocaleString("en-US")} bytes.`);
  if (utf8Bytes(JSON.stringify(metadata)) > LIMITS.memoryMetadataBytes)
    return fail("memory.too_large", `The metadata has more than ${LIMITS.memoryMetadataBytes.toLocaleString("en-US")} bytes.`);
  return undefined;
}
/** The gateway wrote the row. A label that this version does not know counts as the highest one. */
const memoryOf = (row: Row): StoredMemory => ({
  id: row.id,
  content: row.content,
  metadata: JSON.parse(row.metadata) as Record<string, string>,
  author: row.source === "owner" ? "owner" : "agent",
  taint: { label: TAINT_LABELS.find((label) => label === row.taint) ?? "world", source: row.taint_source },
  sessionKey: row.session_key,
  callId: row.call_id,
  ...(row.supersedes === null ? {} : { supersedes: row.supersedes }),
  ...(row.superseded_by === null ? {} : { supersededBy: row.superseded_by }),
  createdAt: row.created_at,
});
