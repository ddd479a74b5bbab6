/**
 * [LM20] [LM21] [LM22] [LM23] Memories by nearness: one contract for the scan of all vectors and for a vector index, then what the index
 * alone must hold: delays, failures, kills, and an index that is made new.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeVectorize, type Fault } from "../../../test/support/vectorize.ts";
import { OTHER, SIZE, SMALL, vector, world, type World } from "../../../test/features/memory/vector-world.ts";
import { seeded } from "../../../../test/seeded.ts";
import { sized } from "../../../../test/sizes.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { memory } from "../../../test/features/memory/rows-contract.ts";
import { sqliteRows } from "../../../test/support/rows.ts";
import { modelKey } from "../../ports/embeddings.ts";
import { IndexStore } from "../search/index-store.ts";
import { mostMemories } from "./most-memories.ts";
import { D1Memory } from "./d1-store.ts";

const X = [9, 1, 1, 1, 1, 1, 1, 1];
const NEAR_X = [9, 4, 1, 1, 1, 1, 1, 1];
const FAR = [3, 9, 9, 1, 1, 1, 1, 1];
const KINDS = {
  "a scan of every vector": () => world(undefined),
  "the vector index, which finds everything": () => world(new FakeVectorize(SIZE)),
} as const;
const numbers = (random: () => number): number[] => Array.from({ length: SIZE }, () => Math.ceil(random() * 100));
const cosine = (one: readonly number[], other: readonly number[]): number => {
  const [a, b] = [vector(one), vector(other)];
  return a.bytes.reduce((sum, value, index) => sum + value * (b.bytes[index] ?? 0), 0) * a.scale * b.scale;
};

for (const [kind, make] of Object.entries(KINDS)) {
  describe(`[LM20] the contract of vectors of memories: ${kind}`, () => {
    it("finds the rows that were put, the nearest first", async () => {
      const { put, settle, recall } = make();
      const [far, same, near] = [await put(FAR), await put(X), await put(NEAR_X)];
      await settle();
      assert.deepEqual(await recall(X), { ids: [same, near, far], notes: [] });
      assert.deepEqual((await recall(X, "main", 1)).ids, [same]);
    });
    it("200 random rows: the order is that of the exact cosines", async () => {
      const random = seeded(3);
      const { put, settle, recall } = make();
      const rows = new Map<string, number[]>();
      for (let number = 0; number < 200; number++) {
        const given = numbers(random);
        rows.set(await put(given), given);
      }
      await settle();
      for (let question = 0; question < 10; question++) {
        const asked = numbers(random);
        const { ids } = await recall(asked, "main", 20);
        const cosines = ids.map((id) => cosine(asked, rows.get(id) ?? []));
        const best = [...rows.values()].map((given) => cosine(asked, given)).sort((one, other) => other - one);
        // Scores are rounded: only rows that are as near as each other may change their places.
        assert.equal(cosines.length, 20);
        for (const [place, value] of cosines.entries())
          assert.ok(Math.abs(value - (best[place] ?? 0)) < 0.001, `place ${place}: ${value} and not ${best[place]}`);
      }
    });
    it("replaces the vector of a row", async () => {
      const { put, embed, settle, recall } = make();
      const [one, other] = [await put(X), await put(NEAR_X)];
      await settle();
      await embed(one, FAR);
      await settle();
      assert.deepEqual((await recall(X)).ids, [other, one]);
    });
    it("compares a question only with vectors of its own model", async () => {
      const { given, put, embed, settle, recall } = make();
      const [one, other] = [await put(X), await put(NEAR_X)];
      await settle();
      given.model = OTHER;
      assert.deepEqual((await recall(X)).ids, []);
      await embed(other, X);
      await settle();
      assert.deepEqual((await recall(X)).ids, [other]);
      given.model = SMALL;
      assert.deepEqual((await recall(X)).ids, [one]);
    });
    it("finds nothing of other agents and tenants", async () => {
      const { put, settle, recall } = make();
      const own = await put(X);
      await put(X, { agentId: "other" });
      await put(X, { tenantId: "other" });
      await settle();
      assert.deepEqual((await recall(X)).ids, [own]);
      assert.deepEqual((await recall(X, "none")).ids, []);
    });
    it("finds nothing that was forgotten or superseded", async () => {
      const { put, settle, recall, keeper } = make();
      const [one, other, third] = [await put(X), await put(NEAR_X), await put(FAR)];
      await settle();
      assert.deepEqual(await keeper.forget("main", [one]), { ok: true, value: 1 });
      assert.deepEqual((await recall(X)).ids, [other, third]);
      const newer = await put(X, { supersedes: other });
      assert.deepEqual((await recall(X)).ids, [newer, third]);
      await settle();
      assert.deepEqual((await recall(X)).ids, [newer, third]);
    });
    it("keeps no vector of another size than its model's", async () => {
      const { put, settle, recall } = make();
      const own = await put(X);
      await put([1, 2, 3], {});
      await settle();
      assert.deepEqual((await recall(X)).ids, [own]);
    });
  });
}

describe("[LM21] the vector index follows the rows", () => {
  const shown = async ({ recall, isScanned }: World, id: string) => ({
    isFound: (await recall(X)).ids.includes(id),
    isScanned: await isScanned(id),
  });
  it("a row is scanned until the index finds it, and is found all the time", async () => {
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const id = await made.put(X);
    assert.deepEqual(await shown(made, id), { isFound: true, isScanned: true });
    await made.step();
    assert.equal(fake.visible.size, 0);
    assert.deepEqual(await shown(made, id), { isFound: true, isScanned: true });
    fake.settle();
    made.given.now = made.state.read().dueAt;
    await made.step();
    assert.deepEqual(await shown(made, id), { isFound: true, isScanned: false });
    assert.deepEqual(
      [...fake.visible.values()].map(({ namespace, metadata }) => ({ namespace, metadata })),
      [{ namespace: "default", metadata: { agent: "main", model: modelKey(SMALL) } }],
    );
  });
  it("rows from before the index was bound are sent, 100 at a time", async () => {
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const random = seeded(1);
    for (let number = 0; number < 250; number++) await made.put(numbers(random));
    await made.settle();
    assert.equal(fake.visible.size, 250);
    assert.equal(fake.calls.filter((call) => call === "upsert").length, 3);
  });
  it("many rows are found soon after the index shows them, also with equal vectors", async () => {
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const random = seeded(2);
    for (let number = 0; number < 700; number++) await made.put(number < 350 ? numbers(random) : X);
    const from = made.given.now;
    for (let steps = 0; made.state.read().dueAt <= made.given.now; steps++) {
      assert.ok(steps < 20, "sending takes a step for each 100");
      await made.step();
    }
    fake.settle();
    made.given.now = made.state.read().dueAt;
    while (made.state.read().dueAt <= made.given.now) await made.step();
    assert.ok(made.given.now - from <= 10_000, `${made.given.now - from} ms`);
    const { db, follow } = made.storeOf("main");
    assert.ok(await follow());
    assert.deepEqual(
      db.sql
        .exec("SELECT indexed, count(*) AS n FROM row_vectors GROUP BY indexed")
        .toArray()
        .map((row) => ({ ...row })),
      [{ indexed: 1, n: 700 }],
    );
    assert.deepEqual([made.state.read().problem, made.state.read().dueAt - made.given.now], [undefined, 86_400_000]);
    made.given.now += 86_400_000;
    const before = fake.calls.length;
    await made.step();
    assert.deepEqual(fake.calls.slice(before), ["query"], "the daily look");
  });
  it("names that are too long are sent as digests, and still keep agents and models apart", async () => {
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const long = (end: string) => ({ ...SMALL, provider: `openai https://${"long.".repeat(20)}${end}` });
    made.given.model = long("a");
    const id = await made.put(X);
    await made.settle();
    const found = async (tenantId: string, model: string) => {
      const near = await made.index?.nearest({ tenantId, agentId: "main" }, { model, vector: vector(X) });
      return near?.ok === true ? near.value.map((one) => one.id) : near;
    };
    assert.deepEqual(await found("default", modelKey(long("a"))), [id]);
    assert.deepEqual(await found("default", modelKey(long("b"))), []);
    assert.deepEqual(await found("t".repeat(65), modelKey(long("a"))), []);
  });
  it("an index that is made new gets every vector again, within a day, and until then nothing is missing", async () => {
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const ids = [await made.put(X), await made.put(NEAR_X), await made.put(FAR)];
    await made.settle();
    fake.clear();
    assert.deepEqual((await made.recall(X)).ids, ids);
    made.given.now += 86_400_000;
    await made.settle();
    assert.equal(fake.visible.size, 3);
    assert.deepEqual((await made.recall(X)).ids, ids);
  });
  it("a model with longer vectors than the index is for: everything is scanned, and the problem says what to do", async () => {
    const fake = new FakeVectorize(SIZE - 1);
    const made = world(fake);
    const id = await made.put(X);
    await made.step();
    assert.match(made.state.read().problem ?? "", /not for vectors of 8 numbers/);
    const { ids } = await made.recall(X);
    assert.deepEqual(ids, [id]);
    const large = { ...SMALL, dimensions: 3_072 };
    made.given.model = large;
    const before = fake.calls.length;
    made.given.now = made.state.read().dueAt;
    await made.step();
    assert.deepEqual([made.state.read().problem, fake.calls.length], [undefined, before]);
  });
  it("without its metadata indexes the index finds nothing, which costs no memory and is said", async () => {
    const fake = new FakeVectorize(SIZE, []);
    const made = world(fake);
    const id = await made.put(X);
    for (let step = 0; step < 20; step++) {
      fake.settle();
      made.given.now = made.state.read().dueAt;
      await made.step();
    }
    assert.match(made.state.read().problem ?? "", /metadata indexes/);
    assert.deepEqual(await shown(made, id), { isFound: true, isScanned: true });
  });
});

describe("[LM22] a vector index that fails", () => {
  it("a vector of the wrong size is refused with what to do, and one of the right size is taken", async () => {
    const { index } = world(new FakeVectorize(SIZE));
    const put = (size: number, of = SMALL) =>
      index?.put("default", of, [{ id: "a", agentId: "main", vector: vector(new Array<number>(size).fill(1)) }]);
    for (const refused of [await put(SIZE - 1), await put(SIZE - 1, { ...SMALL, dimensions: SIZE - 1 })])
      assert.equal(refused?.ok === false && refused.error.reason, "embeddings.refused");
    assert.deepEqual(await put(SIZE), { ok: true, value: undefined });
  });
  it("the size comes from the index, and not from the text of an error", async () => {
    const fake = new FakeVectorize(SIZE);
    const { index } = world(fake);
    const near = { model: modelKey(SMALL), vector: vector(X) };
    const ask = async () => {
      const found = await index?.nearest({ tenantId: "default", agentId: "main" }, near);
      return found?.ok === false ? found.error.reason : "found";
    };
    assert.equal(await ask(), "found");
    const { query } = fake;
    fake.query = async () => {
      throw new Error("The service that knows the dimensions is away.");
    };
    assert.equal(await ask(), "storage.failed");
    fake.query = query;
    for (const answer of [null, {}, { dimensions: "8" }]) {
      const { describe: real } = fake;
      fake.describe = async () => answer;
      assert.equal(await ask(), "storage.failed", JSON.stringify(answer));
      fake.describe = real;
    }
    assert.equal(await ask(), "found");
  });
  it("an index that was made new for the right size is used at once", async () => {
    const fake = new FakeVectorize(SIZE - 1);
    const made = world(fake);
    const id = await made.put(X);
    await made.step();
    assert.match(made.state.read().problem ?? "", /not for vectors of 8 numbers/);
    fake.madeNew(SIZE);
    await made.settle();
    assert.deepEqual([[...fake.visible.keys()], made.state.read().problem], [[id], undefined]);
    // And one that is for another size now is noticed when it fails.
    fake.madeNew(SIZE + 1);
    await made.recall(X);
    await made.put(NEAR_X);
    made.given.now = made.state.read().dueAt;
    await made.step();
    assert.match(made.state.read().problem ?? "", /not for vectors of 8 numbers/);
  });
  it("questions compare every vector instead, and say so; writes wait and are tried again", async () => {
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const one = await made.put(X);
    await made.settle();
    fake.fault = () => "refuse";
    const other = await made.put(NEAR_X);
    const found = await made.recall(X);
    assert.deepEqual(found.ids, [one, other]);
    assert.match(found.notes.join(), /vector index did not answer/);
    const pauses: number[] = [];
    for (let step = 0; step < 12; step++) {
      made.given.now = Math.max(made.given.now, made.state.read().dueAt);
      await made.step();
      pauses.push((made.state.read().dueAt - made.given.now) / 1_000);
    }
    assert.deepEqual([pauses.slice(0, 3), pauses.at(-1)], [[5, 10, 20], 3_600]);
    fake.fault = () => undefined;
    await made.settle();
    assert.deepEqual([...fake.visible.keys()].sort(), [one, other].sort());
  });
  it("an answer of another form is a failure, and not an empty one", async () => {
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const id = await made.put(X);
    await made.settle();
    for (const answer of [null, 7, {}, { matches: "x" }, { matches: [{ id: 7, score: 1 }] }, { matches: [{ id: "a" }] }]) {
      fake.query = async () => answer;
      const found = await made.recall(X);
      assert.deepEqual([found.ids, found.notes.length], [[id], 1], JSON.stringify(answer));
    }
  });
  it("ids that are unknown, of others or repeated show nothing", async () => {
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const [own, others] = [await made.put(X), await made.put(X, { agentId: "other" })];
    await made.settle();
    fake.query = async () => ({ matches: ["none", others, own, own, "' OR 1=1 --"].map((id) => ({ id, score: 1 })) });
    assert.deepEqual((await made.recall(X)).ids, [own]);
  });
});

describe("[LM23] forgetting with a vector index", () => {
  it("a vector that was under way is removed, too", async () => {
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const id = await made.put(X);
    fake.fault = (call) => (call === "upsert" ? "late" : undefined);
    await made.step();
    fake.fault = () => undefined;
    assert.ok((await made.keeper.forget("main", [id])).ok);
    made.given.now = made.state.read().dueAt;
    await made.step();
    fake.settle();
    fake.arrive();
    fake.settle();
    assert.equal(fake.visible.size, 1);
    assert.deepEqual((await made.recall(X)).ids, []);
    await made.settle();
    assert.equal(fake.visible.size, 0);
  });
  /** One history. Returns the number of removals that were cut. */
  async function history(seed: number): Promise<number> {
    const random = seeded(seed);
    const fake = new FakeVectorize(SIZE);
    const made = world(fake);
    const live = new Map<string, string>();
    const faults: readonly (Fault | undefined)[] = ["refuse", "lose", "late", undefined, undefined, undefined, undefined];
    let cut = 0;
    const killedOrNot = async <T>(share: number, work: () => Promise<T>): Promise<T> => {
      made.given.killAfter = random() < share ? Math.ceil(random() * 10) : Number.POSITIVE_INFINITY;
      const done = await work();
      made.given.killAfter = Number.POSITIVE_INFINITY;
      return done;
    };
    const forget = async (id: string, agentId: string): Promise<void> => {
      const forgotten = await killedOrNot(0.4, () => made.keeper.forget(agentId, [id]));
      // As the owner does, who was told that it failed.
      if (!forgotten.ok) assert.ok((await made.keeper.forget(agentId, [id])).ok);
      if (!forgotten.ok) cut++;
      live.delete(id);
    };
    const turn = async (): Promise<void> => {
      const dice = random();
      const agentId = random() < 0.7 ? "main" : "other";
      const [id, owner] = [...live][Math.floor(random() * live.size)] ?? [];
      if (dice < 0.3) live.set(await made.put(numbers(random), { agentId }), agentId);
      else if (dice < 0.5 && id !== undefined && owner !== undefined) await forget(id, owner);
      else if (dice < 0.8) await killedOrNot(0.4, made.step);
      else if (dice < 0.9) fake.settle(Math.floor(random() * 3));
      else fake.arrive();
    };
    const check = async (what: string): Promise<void> => {
      for (const agent of ["main", "other"]) {
        const own = [...live].flatMap(([id, owner]) => (owner === agent ? [id] : []));
        assert.deepEqual([...(await made.recall(numbers(random), agent)).ids].sort(), own.sort(), `${what}: ${agent}`);
      }
    };
    fake.fault = () => faults[Math.floor(random() * faults.length)];
    for (let turns = 0; turns < 30; turns++) {
      made.given.now += Math.floor(random() * 20_000);
      await turn();
      await check(`seed ${seed}, turn ${turns}`);
    }
    fake.fault = () => undefined;
    await made.settle();
    assert.deepEqual([...fake.visible.keys()].sort(), [...live.keys()].sort(), `seed ${seed}`);
    for (const [id, owner] of live) assert.ok((await made.keeper.forget(owner, [id])).ok);
    live.clear();
    await made.settle();
    await check(`seed ${seed}, at the end`);
    assert.equal(fake.visible.size, 0, `seed ${seed}`);
    assert.deepEqual(await made.rows.vectorIndex.removals("default", 100), { ok: true, value: [] });
    return cut;
  }
  const HISTORIES = sized(16, 80);
  it(`${HISTORIES} random histories with delays, lost answers and kills: in the end the index has the vectors of the rows, and of nothing else`, async () => {
    let cut = 0;
    for (let seed = 0; seed < HISTORIES; seed++) cut += await history(seed);
    assert.ok(cut > HISTORIES / 8, `${cut} removals were cut`);
  });
});

describe("[LM20] tables and limits", () => {
  it("a search index from before the vector index goes on with its vectors", async () => {
    const made = world(new FakeVectorize(SIZE));
    const id = await made.put(X);
    assert.deepEqual((await made.recall(X)).ids, [id]);
    const { db, store } = made.storeOf("main");
    db.sql.exec("ALTER TABLE row_vectors DROP COLUMN indexed");
    const old = new IndexStore(db);
    assert.equal(old.agent(), "main");
    const sources = ["memory"] as const;
    const words = { words: ["nothing", "here"] };
    const nearRows = { model: modelKey(SMALL), vector: vector(X), found: ["none"] };
    assert.deepEqual(
      old.find({ match: words, sources: [...sources], nearRows, limit: 5, offset: 0 }).map(({ name }) => name),
      [id],
    );
    db.sql.exec("ALTER TABLE row_vectors DROP COLUMN indexed");
    const change = {
      id: "further",
      docs: [{ position: 0, at: 1, text: "further" }],
      vector: { of: SMALL, vector: vector(X), isIndexed: false },
    };
    const from = store.memoriesSeen();
    assert.ok(new IndexStore(db).memories([change], { from, to: from + 1 }), "a change that comes before any question");
  });
  it("an agent may have more memories where the deployment says so", async () => {
    const rows = new D1Memory(
      sqliteRows(),
      () => 1,
      (what, error) => assert.fail(`${what}: ${String(error)}`),
      undefined,
      () => 2,
    );
    const scope = { tenantId: "default", agentId: "main" };
    for (const text of ["one", "two"]) assert.ok((await rows.store(scope, memory(text))).ok);
    const refused = await rows.store(scope, memory("three"));
    assert.match(refused.ok ? "" : refused.error.message, /has 2 memories/);
    assert.deepEqual([LIMITS.memories, LIMITS.memoriesIndexed], [20_000, 100_000]);
  });
  it("an agent may have more memories only while the index finds them", async () => {
    const { index } = world(new FakeVectorize(SIZE));
    assert.ok(index);
    const of = (dimensions: number) => mostMemories({ ...SMALL, dimensions }, index);
    assert.deepEqual([mostMemories(SMALL, undefined), mostMemories(undefined, index)], [20_000, 20_000]);
    assert.deepEqual([of(1_536), of(1_537), of(3_072)], [100_000, 20_000, 20_000]);
    // Once it is known for which size the index is.
    await index.put("default", SMALL, [{ id: "a", agentId: "main", vector: vector(new Array<number>(SIZE).fill(1)) }]);
    assert.deepEqual([of(SIZE), of(1_536)], [100_000, 20_000]);
  });
});
