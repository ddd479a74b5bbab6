/** Memories with vectors, found by a scan or through a vector index: the index, the clock and kills are the test's. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { FakeVectorize } from "../../support/vectorize.ts";
import { sqliteRows } from "../../support/rows.ts";
import { database } from "../search/recall-measure.ts";
import { cursors, Killed } from "./embedding-world.ts";
import { memory } from "./rows-contract.ts";
import { shortened } from "../../../src/embeddings/answer.ts";
import { D1Memory } from "../../../src/features/memory/d1-store.ts";
import { MemoryKeeper } from "../../../src/features/memory/keeper.ts";
import { VectorIndexPass } from "../../../src/features/memory/vector-index-pass.ts";
import { VECTOR_INDEX_MIGRATION, VectorIndexStateStore } from "../../../src/features/memory/vector-index-state-store.ts";
import { Vectorize } from "../../../src/features/memory/vectorize.ts";
import { followMemories } from "../../../src/features/search/catch-up.ts";
import { IndexStore } from "../../../src/features/search/index-store.ts";
import { parseQuery } from "../../../src/features/search/query.ts";
import { type EmbeddingModel, modelKey, type Vector } from "../../../src/ports/embeddings.ts";
import type { SearchPort } from "../../../src/ports/search.ts";

export const SIZE = 8;
export const SMALL: EmbeddingModel = { provider: "openai", model: "small", dimensions: SIZE };
export const OTHER: EmbeddingModel = { provider: "openai", model: "other", dimensions: SIZE };
export const vector = (numbers: readonly number[]): Vector => {
  const made = shortened(numbers);
  assert.ok(made);
  return made;
};
const sha256 = async (text: string): Promise<string> => createHash("sha256").update(text).digest("hex");
const noLog = { warn: () => undefined, error: () => undefined } as never;
/** Words that no memory has: only vectors find something. */
const QUESTION = "entirely unrelated wording";

export type World = ReturnType<typeof world>;
/** `fake` of undefined: every vector is compared. */
export function world(fake: FakeVectorize | undefined) {
  const db = database();
  VECTOR_INDEX_MIGRATION.up(db.sql);
  const state = new VectorIndexStateStore(cursors(db));
  const given = { now: 1_000, model: SMALL, killAfter: Number.POSITIVE_INFINITY };
  const rowsDb = sqliteRows(() => {
    if (--given.killAfter <= 0) throw new Killed();
  });
  const rowsOf = (): D1Memory =>
    new D1Memory(
      rowsDb,
      () => given.now,
      () => undefined,
    );
  const rows = rowsOf();
  const index = fake && new Vectorize(fake, sha256);
  const stores = new Map<string, { readonly store: IndexStore; readonly follow: () => Promise<boolean>; readonly db: typeof db }>();
  const storeOf = (agentId: string, tenantId = "default") => {
    const key = `${tenantId} ${agentId}`;
    let made = stores.get(key);
    if (made === undefined) {
      const own = database();
      const store = new IndexStore(own);
      store.prepare(agentId);
      const memories = (after: number, limit: number) => rowsOf().changes({ tenantId, agentId }, after, limit);
      made = { store, db: own, follow: () => followMemories(agentId, { store, memories, now: () => given.now } as never) };
      stores.set(key, made);
    }
    return made;
  };
  const searchIndex = (agentId: string): SearchPort =>
    ({
      memoriesWillChange: async () => undefined,
      memoriesChanged: async () => {
        if (!(await storeOf(agentId).follow())) throw new Killed();
      },
    }) as unknown as SearchPort;
  let asked: readonly number[] = [];
  const keeper = new MemoryKeeper({
    rows,
    searchIndex,
    definitionOf: () => undefined,
    ids: {} as never,
    log: noLog,
    now: () => given.now,
    scrub: (text) => text,
    vectors: {
      ...(index === undefined ? {} : { index }),
      announceToIndex: (dueAt) => state.announce(dueAt),
      announce: () => undefined,
      isChosen: () => true,
      question: async () => ({ ok: true, value: { model: modelKey(given.model), vector: vector(asked) } }),
    },
    memorySearch: {
      find: async ({ agentId, query, near, limit, offset }) => {
        const match = parseQuery(query);
        assert.ok(match.ok);
        const nearRows = await near?.();
        const { store, follow } = storeOf(agentId);
        assert.ok(await follow());
        const found = store.find({
          match: match.value,
          sources: ["memory"],
          limit,
          offset,
          ...(nearRows === undefined ? {} : { nearRows }),
        });
        const hits = found.map(({ name, at, score, marked }) => ({
          kind: "memory" as const,
          id: name,
          text: marked,
          at,
          score,
          taint: { label: "self" as const, source: "" },
        }));
        return { ok: true, value: { hits, more: false, notes: [] } };
      },
    },
  });
  /** As after a start of the gateway. */
  const step = async (): Promise<void> => {
    if (index === undefined) return;
    await new VectorIndexPass({
      rows: rowsOf().vectorIndex,
      index,
      state,
      model: () => given.model,
      log: noLog,
      now: () => given.now,
    }).run();
  };
  const embed = async (
    id: string,
    numbers: readonly number[],
    { agentId = "main", tenantId = "default", of = given.model }: { agentId?: string; tenantId?: string; of?: EmbeddingModel } = {},
  ): Promise<void> => {
    state.announce(given.now);
    const kept = await rows.keepVectors({ tenantId, agentId }, of, [{ id, vector: vector(numbers) }]);
    if (!kept.ok) throw new Killed();
  };
  const put = async (numbers: readonly number[], more: Parameters<typeof embed>[2] & { supersedes?: string } = {}): Promise<string> => {
    const { agentId = "main", tenantId = "default", supersedes } = more;
    const row = memory(`fact ${JSON.stringify(numbers)}`, supersedes === undefined ? {} : { supersedes });
    state.announce(given.now);
    if (!(await rows.store({ tenantId, agentId }, row, true)).ok) throw new Killed();
    await embed(row.id, numbers, more);
    return row.id;
  };
  const recall = async (numbers: readonly number[], agentId = "main", limit = 100) => {
    asked = numbers;
    const found = await keeper.recall({ agentId, query: QUESTION, limit, snippetChars: 100 });
    assert.ok(found.ok, JSON.stringify(found));
    return { ids: found.value.hits.flatMap((hit) => (hit.kind === "memory" ? [hit.id] : [])), notes: found.value.notes };
  };
  /** Runs steps until nothing but the daily look is left. */
  const settle = async (): Promise<void> => {
    for (let steps = 0; index !== undefined; steps++) {
      assert.ok(steps < 1_000, "it does not end");
      fake?.arrive();
      fake?.settle();
      const { dueAt, problem, tries } = state.read();
      if (dueAt - given.now > 3_600_000 && problem === undefined && tries === 0) return;
      given.now = Math.max(given.now, dueAt);
      await step();
    }
  };
  /** `scan`: whether the agent's own index would compare the row. */
  const isScanned = async (id: string, agentId = "main"): Promise<boolean> => {
    const { follow, db: own } = storeOf(agentId);
    assert.ok(await follow());
    const sql = "SELECT 1 FROM row_vectors v JOIN sources s ON s.id = v.source WHERE s.name = ? AND v.indexed = 0";
    return own.sql.exec(sql, id).toArray().length > 0;
  };
  return { given, state, rows, index, keeper, step, embed, put, recall, settle, isScanned, storeOf };
}
