/** [LM8] Writes, searches and removals of memories at the same time, in random order: what is forgotten is gone when the answer comes. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { database } from "../../../test/features/search/recall-measure.ts";
import { memory } from "../../../test/features/memory/rows-contract.ts";
import { sqliteRows } from "../../../test/support/rows.ts";
import { seeded } from "../../../../test/seeded.ts";
import { sized } from "../../../../test/sizes.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { IndexStore } from "../search/index-store.ts";
import { parseQuery } from "../search/query.ts";
import { SearchService } from "../search/service.ts";
import { D1Memory } from "./d1-store.ts";

const unexpected = (what: string, error: unknown): void => assert.fail(`${what}: ${String(error)}`);
const SCOPE = { tenantId: "default", agentId: "main" };
const empty = { objects: [], delimitedPrefixes: [], truncated: false };

function world(seed: number) {
  const random = seeded(seed);
  const rows = new D1Memory(sqliteRows(), () => 1, unexpected, "gateway");
  const db = database();
  const store = new IndexStore(db);
  /** Takes some turns of the event loop, so that others come in between. */
  const turns = async (): Promise<void> => {
    for (let left = Math.floor(random() * 6); left > 0; left--) await new Promise(setImmediate);
  };
  const service = new SearchService({
    store,
    bucket: { list: async () => empty, get: async () => null } as unknown as Bucket,
    sessions: async () => ({ sessions: [], more: false }),
    rows: async () => ({ ok: false, error: { reason: "session.not_found", message: "none" } }),
    memories: async (after, limit) => {
      await turns();
      const page = await rows.changes(SCOPE, after, limit);
      await turns();
      return page;
    },
    now: () => 1,
    wakeIn: () => undefined,
    after: () => () => undefined,
  });
  const search = async (word: string): Promise<readonly string[]> => {
    const match = parseQuery(word);
    assert.ok(match.ok);
    const rowsState = rows.state() ?? "";
    const { hits } = await service.query({ agentId: "main", match: match.value, sources: ["memory"], limit: 20, offset: 0, rowsState });
    return hits.map(({ name }) => name);
  };
  const indexed = (): string => {
    const { sql } = db;
    return JSON.stringify([sql.exec("SELECT text FROM docs").toArray(), sql.exec("SELECT name FROM sources").toArray()]);
  };
  return { random, rows, service, search, indexed, turns };
}

describe("[LM8] forgetting among other requests", () => {
  const HISTORIES = sized(30, 150);
  it(`${HISTORIES} random histories: a removed memory is in no table when its removal is answered, nor at the end`, async () => {
    for (let seed = 0; seed < HISTORIES; seed++) {
      const { random, rows, service, search, indexed, turns } = world(seed);
      const kept = new Set<string>();
      const gone = new Set<string>();
      await search("zebra");
      const one = async (): Promise<void> => {
        await turns();
        if (random() < 0.5) {
          const row = memory(`zebra ${seed} ${random()}`);
          assert.ok((await rows.store(SCOPE, row)).ok);
          kept.add(row.id);
        }
        if (random() < 0.5) await search("zebra");
        const [id] = [...kept].sort(() => random() - 0.5);
        if (id !== undefined && random() < 0.6) {
          kept.delete(id);
          await service.memoriesWillChange();
          await rows.remove(SCOPE, [id]);
          await service.memoriesChanged();
          gone.add(id);
          assert.ok(!indexed().includes(id), `seed ${seed}: ${id} is left`);
        }
        for (const id of gone) assert.ok(!indexed().includes(id), `seed ${seed}: ${id} came back`);
      };
      await Promise.all(Array.from({ length: 8 }, one));
      assert.deepEqual([...(await search("zebra"))].sort(), [...kept].sort(), `seed ${seed}`);
      assert.ok(
        [...gone].every((id) => !indexed().includes(id)),
        `seed ${seed}`,
      );
    }
  });
});
