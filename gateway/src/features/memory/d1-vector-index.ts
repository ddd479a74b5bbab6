/**
 * What the rows of long-term memory know about the vector index (rules LM21 and LM23): which vectors it was sent, which it finds, and which
 * must be removed from it. Must not call the index.
 */
import type { EmbeddingModel } from "../../ports/embeddings.ts";
import type { MemoryScope } from "../../ports/long-term-memory.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { VectorIndexRows, VectorRemoval, VectorRow } from "../../ports/vector-index.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import { unpacked } from "./vector-text.ts";

/** The states of `vector_state` (migrations.ts). */
const [NONE, STALE, SENT] = ["none", "stale", "sent"] as const;
export const INDEXED = "indexed";
/** The row has another vector now. */
export const OUTDATED = `vector_state = CASE vector_state WHEN '${NONE}' THEN '${NONE}' ELSE '${STALE}' END`;
/** Rows that recall finds by a vector of this model. */
const OF_MODEL =
  "embedding_state = 'done' AND superseded_by IS NULL AND embedding_provider = ? AND embedding_model = ? AND embedding_dimensions = ?";
const AMONG = "id IN (SELECT value FROM json_each(?))";
const MOST_COUNTED = 100_000;
type Row = { id: string; agent_id: string; embedding_vector: string | null };
type Guard = <T>(what: string, work: () => Promise<Result<T>>) => Promise<Result<T>>;

/** A statement that notes which vectors of these rows must be removed from the index. It stands in the batch that takes them out of recall. */
export const removalOf = (
  db: RowDatabase,
  condition: string,
  params: readonly string[],
  { tenantId, agentId }: MemoryScope,
  ids: readonly string[],
  now: number,
): D1PreparedStatement =>
  db
    .prepare(
      `INSERT OR REPLACE INTO vector_removals(id, tenant_id, due_at, again) SELECT id, tenant_id, ?, 0 FROM long_term_memory
       WHERE ${condition} tenant_id = ? AND agent_id = ? AND ${AMONG} AND vector_state <> '${NONE}'`,
    )
    .bind(now, ...params, tenantId, agentId, JSON.stringify(ids));

export class D1VectorIndexRows implements VectorIndexRows {
  readonly #db: RowDatabase;
  readonly #reading: Guard;
  readonly #writing: Guard;

  constructor(db: RowDatabase, reading: Guard, writing: Guard) {
    this.#db = db;
    this.#reading = reading;
    this.#writing = writing;
  }

  unsent(tenantId: string, of: EmbeddingModel, limit: number): Promise<Result<readonly VectorRow[]>> {
    return this.#reading("read the vectors", async () =>
      succeed(await this.#rows(of, `tenant_id = ? AND vector_state IN ('${NONE}', '${STALE}')`, [tenantId], "id", limit)),
    );
  }
  sending(tenantId: string, ids: readonly string[]): Promise<Result<readonly string[]>> {
    return this.#writing("mark the vectors", async () => {
      const { results } = await this.#db
        .prepare(
          `UPDATE long_term_memory SET vector_state = '${STALE}' WHERE tenant_id = ? AND ${AMONG}
           AND vector_state IN ('${NONE}', '${STALE}') AND superseded_by IS NULL RETURNING id`,
        )
        .bind(tenantId, JSON.stringify(ids))
        .all<{ id: string }>();
      return succeed(results.map(({ id }) => id));
    });
  }
  sent(tenantId: string, of: EmbeddingModel, ids: readonly string[]): Promise<Result<void>> {
    return this.#write(
      `UPDATE long_term_memory SET vector_state = '${SENT}', vector_batch = ? WHERE tenant_id = ? AND ${AMONG} AND vector_state = '${STALE}' AND ${OF_MODEL}`,
      [ids.at(-1) ?? "", tenantId, JSON.stringify(ids), of.provider, of.model, of.dimensions],
    );
  }
  batches(
    tenantId: string,
    of: EmbeddingModel,
    limit: number,
  ): Promise<Result<readonly { readonly id: string; readonly probe: VectorRow | undefined }[]>> {
    return this.#reading("read the vectors", async () => {
      const { results } = await this.#db
        .prepare(
          `SELECT DISTINCT vector_batch AS id FROM long_term_memory WHERE tenant_id = ? AND vector_state = '${SENT}' ORDER BY vector_batch LIMIT ?`,
        )
        .bind(tenantId, limit)
        .all<{ id: string }>();
      const ids = JSON.stringify(results.map(({ id }) => id));
      const where = `tenant_id = ? AND ${AMONG} AND vector_state = '${SENT}' AND vector_batch = id`;
      const probes = new Map((await this.#rows(of, where, [tenantId, ids], "id", limit)).map((row) => [row.id, row]));
      return succeed(results.map(({ id }) => ({ id, probe: probes.get(id) })));
    });
  }
  found(tenantId: string, batch: string): Promise<Result<void>> {
    return this.#write(
      `UPDATE long_term_memory SET vector_state = '${INDEXED}' WHERE tenant_id = ? AND vector_state = '${SENT}' AND vector_batch = ?`,
      [tenantId, batch],
    );
  }
  resend(tenantId: string, which: { readonly batch: string } | "not found" | "all"): Promise<Result<void>> {
    const set = `UPDATE long_term_memory SET vector_state = '${STALE}' WHERE tenant_id = ? AND`;
    if (which === "all") return this.#write(`${set} vector_state IN ('${SENT}', '${INDEXED}')`, [tenantId]);
    if (which === "not found") return this.#write(`${set} vector_state = '${SENT}'`, [tenantId]);
    return this.#write(`${set} vector_state = '${SENT}' AND vector_batch = ?`, [tenantId, which.batch]);
  }
  samples(tenantId: string, of: EmbeddingModel): Promise<Result<readonly VectorRow[]>> {
    return this.#reading("read the vectors", async () => {
      const one = (order: string) => this.#rows(of, `tenant_id = ? AND vector_state = '${INDEXED}'`, [tenantId], order, 1);
      return succeed([...(await one("id")), ...(await one("id DESC"))]);
    });
  }
  behind(tenantId: string, of: EmbeddingModel): Promise<Result<number>> {
    return this.#reading("count the vectors", async () => {
      const row = await this.#db
        .prepare(
          `SELECT count(*) AS n FROM (SELECT 1 FROM long_term_memory WHERE tenant_id = ? AND vector_state IN ('${NONE}', '${STALE}', '${SENT}') AND ${OF_MODEL} LIMIT ${MOST_COUNTED})`,
        )
        .bind(tenantId, of.provider, of.model, of.dimensions)
        .first<{ n: number }>();
      return succeed(row?.n ?? 0);
    });
  }
  removals(tenantId: string, limit: number): Promise<Result<readonly VectorRemoval[]>> {
    return this.#reading("read the removals of vectors", async () => {
      const { results } = await this.#db
        .prepare("SELECT id, due_at, again FROM vector_removals WHERE tenant_id = ? ORDER BY due_at, id LIMIT ?")
        .bind(tenantId, limit)
        .all<{ id: string; due_at: number; again: number }>();
      return succeed(results.map(({ id, due_at: dueAt, again }) => ({ id, dueAt, again: again === 1 })));
    });
  }
  removed(tenantId: string, removals: readonly VectorRemoval[], again: number): Promise<Result<void>> {
    const ids = (isAgain: boolean): string => JSON.stringify(removals.flatMap((one) => (one.again === isAgain ? [one.id] : [])));
    return this.#writing("note the removals of vectors", async () => {
      await this.#db.batch([
        this.#db.prepare(`DELETE FROM vector_removals WHERE tenant_id = ? AND ${AMONG} AND again = 1`).bind(tenantId, ids(true)),
        this.#db
          .prepare(`UPDATE vector_removals SET again = 1, due_at = ? WHERE tenant_id = ? AND ${AMONG} AND again = 0`)
          .bind(again, tenantId, ids(false)),
      ]);
      return succeed(undefined);
    });
  }

  #write(statement: string, params: readonly (string | number)[]): Promise<Result<void>> {
    return this.#writing("mark the vectors", async () => {
      await this.#db
        .prepare(statement)
        .bind(...params)
        .run();
      return succeed(undefined);
    });
  }
  async #rows(of: EmbeddingModel, where: string, params: readonly string[], order: string, limit: number): Promise<readonly VectorRow[]> {
    const { results } = await this.#db
      .prepare(`SELECT id, agent_id, embedding_vector FROM long_term_memory WHERE ${where} AND ${OF_MODEL} ORDER BY ${order} LIMIT ?`)
      .bind(...params, of.provider, of.model, of.dimensions, limit)
      .all<Row>();
    return results.flatMap(({ id, agent_id: agentId, embedding_vector: text }) => {
      const vector = text === null ? undefined : unpacked(text);
      return vector?.bytes.length !== of.dimensions ? [] : [{ id, agentId, vector }];
    });
  }
}
