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
  MemoryVectors,
  NewMemory,
  StoredMemory,
  WaitingText,
} from "../../ports/long-term-memory.ts";
import type { EmbeddingModel, Vector } from "../../ports/embeddings.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { VectorIndexRows } from "../../ports/vector-index.ts";
import { isForeign, SOURCE_CHARS, TAINT_LABELS } from "../../ports/taint.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import { guardedRows, migrateRows, type RowDatabase } from "../../storage/rows.ts";
import { D1VectorIndexRows, INDEXED, OUTDATED, removalOf } from "./d1-vector-index.ts";
import { MEMORY_MIGRATIONS } from "./migrations.ts";
import { isSameMemory } from "./same-memory.ts";
import { packed, unpacked } from "./vector-text.ts";

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
  embedding_state: string;
  embedding_provider: string | null;
  embedding_model: string | null;
  embedding_dimensions: number | null;
  created_at: number;
};
const COLUMNS =
  "id, content, metadata, source, taint, taint_source, session_key, call_id, supersedes, superseded_by, embedding_state, embedding_provider, embedding_model, embedding_dimensions, created_at";
/** The states of `embedding_state`. */
const [NONE, PENDING, DONE, REFUSED] = ["none", "pending", "done", "refused"] as const;
const MOST_COUNTED = 100_000;
const SCOPED = "tenant_id = ? AND agent_id = ?";
/** A page is a frame on the wire at most. */
const MAX_PAGE_BYTES = LIMITS.pageBytes;
const scoped = ({ tenantId, agentId }: MemoryScope): readonly [string, string] => [tenantId, agentId];

export class D1Memory implements LongTermMemory, MemoryVectors {
  readonly #db: RowDatabase;
  readonly #now: () => number;
  readonly #failed: (what: string, error: unknown) => void;
  readonly #writer: string | undefined;
  readonly #most: () => number;
  readonly vectorIndex: VectorIndexRows;
  #writes = 0;
  readonly #ready = once(() => migrateRows(this.#db, "memory", MEMORY_MIGRATIONS, this.#now()));

  /**
   * `failed` gets the exceptions of the database; `writer` is a name that no other one has, of the only one that writes; `most`: memories
   * of an agent.
   */
  constructor(
    db: RowDatabase,
    now: () => number,
    failed: (what: string, error: unknown) => void,
    writer?: string,
    most: () => number = () => LIMITS.memories,
  ) {
    this.#db = db;
    this.#most = most;
    this.vectorIndex = new D1VectorIndexRows(
      db,
      (what, work) => this.#guarded(what, work),
      (what, work) => this.#writing(what, work),
    );
    this.#writer = writer;
    this.#now = now;
    this.#failed = failed;
  }

  state(): string | undefined {
    return this.#writer === undefined ? undefined : `${this.#writer} ${this.#writes}`;
  }

  store(scope: MemoryScope, memory: NewMemory, awaitsVector = false): Promise<Result<MemoryStored>> {
    return this.#writing("store the memory", async () => {
      const refused = problemOf(memory);
      if (refused !== undefined) return refused;
      const { supersedes } = memory;
      const known = (await this.#ofCall(scope, memory)) ?? (await this.#ofEarlierVersion(scope, memory));
      if (known !== undefined) return succeed(await this.#stored(scope, known, false));
      if (supersedes !== undefined) {
        const older = (await this.#rows(scope, [supersedes])).get(supersedes);
        if (older === undefined) return fail("memory.unknown", `There is no memory ${supersedes}.`);
        // A memory that others may have written supersedes none that they have not written (rule LM7).
        if (isForeign(memory.taint) && !isForeign(older.taint)) return this.#insert(scope, memory, undefined, awaitsVector);
      }
      return this.#insert(scope, memory, supersedes, awaitsVector);
    });
  }
  /** `hides`: the older memory that is taken out of recall, in the same transaction. */
  async #insert(scope: MemoryScope, memory: NewMemory, hides: string | undefined, awaitsVector: boolean): Promise<Result<MemoryStored>> {
    const { id, content, metadata, author, taint, sessionKey, callId, supersedes, createdAt } = memory;
    const most = this.#most();
    const insert = this.#db
      .prepare(
        `INSERT INTO long_term_memory(id, tenant_id, agent_id, content, metadata, source, taint, taint_source, session_key, call_id, supersedes, created_at, embedding_state)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?14
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
        most,
        awaitsVector ? PENDING : NONE,
      );
    // Only when this very row was written: a repeated call changes nothing.
    const hide = this.#db
      .prepare(
        `UPDATE long_term_memory SET superseded_by = ?1 WHERE id = ?2 AND tenant_id = ?3 AND agent_id = ?4 AND superseded_by IS NULL
         AND EXISTS(SELECT 1 FROM long_term_memory WHERE id = ?1 AND tenant_id = ?3 AND agent_id = ?4)`,
      )
      .bind(id, hides ?? "", ...scoped(scope));
    // A superseded memory needs no vector in an index: no recall finds it.
    const removal = removalOf(this.#db, "superseded_by = ? AND", [id], scope, [hides ?? ""], this.#now());
    await this.#db.batch(hides === undefined ? [insert] : [insert, hide, removal]);
    const kept = await this.#ofCall(scope, memory);
    if (kept === undefined)
      return fail("memory.full", `The agent has ${most.toLocaleString("en-US")} memories, which is the most that one may have.`);
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

  async #ofEarlierVersion(scope: MemoryScope, memory: NewMemory): Promise<StoredMemory | undefined> {
    if (memory.earlierCallId === undefined) return undefined;
    const row = await this.#ofCall(scope, { ...memory, callId: memory.earlierCallId });
    return row !== undefined && isSameMemory(row, memory) ? row : undefined;
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
    return this.#writing("remove the memories", async () => {
      const remove = this.#db
        .prepare(`DELETE FROM long_term_memory WHERE ${SCOPED} AND id IN (SELECT value FROM json_each(?)) RETURNING id`)
        .bind(...scoped(scope), JSON.stringify(ids));
      const [, removed] = await this.#db.batch<{ id: string }>([removalOf(this.#db, "", [], scope, ids, this.#now()), remove]);
      return succeed(removed?.results.length ?? 0);
    });
  }

  changes(scope: MemoryScope, afterSeq: number, limit: number): Promise<Result<readonly MemoryChanged[]>> {
    return this.#guarded("read the memories", async () => {
      const { results } = await this.#db
        .prepare(
          `SELECT c.seq, c.memory_id, m.embedding_vector, m.vector_state, ${COLUMNS.split(", ")
            .map((name) => `m.${name}`)
            .join(", ")} FROM memory_changes c LEFT JOIN long_term_memory m ON m.id = c.memory_id
           WHERE c.tenant_id = ? AND c.agent_id = ? AND c.seq > ? ORDER BY c.seq LIMIT ?`,
        )
        .bind(...scoped(scope), afterSeq, limit)
        .all<{ seq: number; memory_id: string; embedding_vector: string | null; vector_state: string } & (Row | { id: null })>();
      return succeed(
        results.map((row): MemoryChanged => {
          const about = { seq: row.seq, id: row.memory_id };
          if (row.id === null) return about;
          const memory = memoryOf(row);
          const vector = memory.embedding?.state === "done" && row.embedding_vector !== null ? unpacked(row.embedding_vector) : undefined;
          const of = memory.embedding?.of;
          const isIndexed = row.vector_state === INDEXED;
          return { ...about, memory, ...(vector === undefined || of === undefined ? {} : { vector: { of, vector, isIndexed } }) };
        }),
      );
    });
  }

  // ---------------------------------------------------------------- vectors

  awaitVectors(tenantId: string, of: EmbeddingModel): Promise<Result<void>> {
    return this.#writing("mark the memories", async () => {
      await this.#db
        .prepare(
          `UPDATE long_term_memory SET embedding_state = '${PENDING}' WHERE tenant_id = ? AND embedding_state <> '${PENDING}'
           AND NOT (embedding_state IN ('${DONE}', '${REFUSED}') AND embedding_provider IS ? AND embedding_model IS ? AND embedding_dimensions IS ?)`,
        )
        .bind(tenantId, of.provider, of.model, of.dimensions)
        .run();
      return succeed(undefined);
    });
  }
  waiting(
    tenantId: string,
    { withoutAgents, limit }: { readonly withoutAgents: readonly string[]; readonly limit: number },
  ): Promise<Result<{ readonly agentId: string; readonly texts: readonly WaitingText[] } | undefined>> {
    return this.#guarded("read the memories", async () => {
      const { results } = await this.#db
        .prepare(
          `SELECT id, agent_id, content FROM long_term_memory WHERE tenant_id = ? AND embedding_state = '${PENDING}' AND superseded_by IS NULL
           AND agent_id NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?`,
        )
        .bind(tenantId, JSON.stringify(withoutAgents), limit)
        .all<WaitingText & { agent_id: string }>();
      const agentId = results[0]?.agent_id;
      if (agentId === undefined) return succeed(undefined);
      const texts = results.flatMap(({ id, agent_id, content }) => (agent_id === agentId ? [{ id, content }] : []));
      return succeed({ agentId, texts });
    });
  }
  keepVectors(
    scope: MemoryScope,
    of: EmbeddingModel,
    vectors: readonly { readonly id: string; readonly vector: Vector }[],
  ): Promise<Result<void>> {
    return this.#writing("keep the vectors", async () => {
      const update = this.#db.prepare(
        `UPDATE long_term_memory SET embedding_state = '${DONE}', embedding_provider = ?, embedding_model = ?, embedding_dimensions = ?,
         embedding_vector = ?, ${OUTDATED} WHERE id = ? AND ${SCOPED}`,
      );
      if (vectors.length > 0)
        await this.#db.batch(
          vectors.map(({ id, vector }) => update.bind(of.provider, of.model, of.dimensions, packed(vector), id, ...scoped(scope))),
        );
      return succeed(undefined);
    });
  }
  noVector(scope: MemoryScope, of: EmbeddingModel, id: string): Promise<Result<void>> {
    return this.#writing("mark the memory", async () => {
      await this.#db
        .prepare(
          `UPDATE long_term_memory SET embedding_state = '${REFUSED}', embedding_provider = ?, embedding_model = ?, embedding_dimensions = ?,
           embedding_vector = NULL, ${OUTDATED} WHERE id = ? AND ${SCOPED}`,
        )
        .bind(of.provider, of.model, of.dimensions, id, ...scoped(scope))
        .run();
      return succeed(undefined);
    });
  }
  hasVectors(scope: MemoryScope, of: EmbeddingModel): Promise<Result<boolean>> {
    return this.#guarded("read the memories", async () => {
      const found = await this.#db
        .prepare(
          `SELECT 1 AS found FROM long_term_memory WHERE ${SCOPED} AND embedding_state = '${DONE}' AND embedding_provider = ?
           AND embedding_model = ? AND embedding_dimensions = ? AND superseded_by IS NULL LIMIT 1`,
        )
        .bind(...scoped(scope), of.provider, of.model, of.dimensions)
        .first();
      return succeed(found !== null);
    });
  }
  countVectors(tenantId: string): Promise<Result<{ readonly waiting: number; readonly refused: number }>> {
    return this.#guarded("count the memories", async () => {
      const count = async (state: string): Promise<number> => {
        const row = await this.#db
          .prepare(
            `SELECT count(*) AS n FROM (SELECT 1 FROM long_term_memory WHERE tenant_id = ? AND embedding_state = ? AND superseded_by IS NULL LIMIT ${MOST_COUNTED})`,
          )
          .bind(tenantId, state)
          .first<{ n: number }>();
        return row?.n ?? 0;
      };
      return succeed({ waiting: await count(PENDING), refused: await count(REFUSED) });
    });
  }

  /** Counted before and after: what is read in between is not the state after it. */
  async #writing<T>(what: string, work: () => Promise<Result<T>>): Promise<Result<T>> {
    this.#writes++;
    try {
      return await this.#guarded(what, work);
    } finally {
      this.#writes++;
    }
  }
  #guarded<T>(what: string, work: () => Promise<Result<T>>): Promise<Result<T>> {
    const ready = async (): Promise<Result<T>> => {
      await this.#ready();
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
function embeddingOf(row: Row): Pick<StoredMemory, "embedding"> {
  const { embedding_state: state, embedding_provider: provider, embedding_model: model, embedding_dimensions: dimensions } = row;
  if (state !== PENDING && state !== DONE && state !== REFUSED) return {};
  const of = provider === null || model === null || dimensions === null ? {} : { of: { provider, model, dimensions } };
  return { embedding: { state, ...of } };
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
  ...embeddingOf(row),
  createdAt: row.created_at,
});
