/** Vectors of texts, the exact search in them, and what they add to the words of a question. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { database, measure, table, tableOf } from "../../../test/features/search/recall-measure.ts";
import { conversations } from "../../../test/features/search/recall-set.ts";
import { IndexStore } from "./index-store.ts";
import { parseQuery } from "./query.ts";
import { cosine, DIMENSIONS, type Embedder, piecesOf, readTable } from "./static-embeddings.ts";
import type { Vector } from "../../ports/embeddings.ts";

const embedder = table();
const near = (one: string, two: string): number => {
  const [a, b] = [embedder.embed(one), embedder.embed(two)];
  assert.ok(a && b);
  return cosine(a, b.bytes, b.scale);
};
const all = <Row extends Record<string, unknown>>(db: ReturnType<typeof database>, query: string): Row[] =>
  db.sql.exec<Row & Record<string, SqlStorageValue>>(query).toArray();

describe("[LM12] vectors from the table", () => {
  test("words are split into the longest pieces; case and accents do not count, and words without pieces are left out", () => {
    const ids = new Map(["un", "##believ", "##able", "unbe", "cafe", ",", "##s"].map((piece, id) => [piece, id]));
    const pieces = (text: string) => piecesOf(text, ids);
    assert.deepEqual(pieces("Unbelievable"), [], "the longest first piece leaves a rest without pieces");
    assert.deepEqual(pieces("CAFÉS, café"), [4, 6, 5, 4]);
    assert.deepEqual(pieces("\u0000 zzz 東京 \u200b"), []);
    assert.deepEqual(pieces("c".repeat(100_000)), []);
    const letters = new Map([
      ["c", 0],
      ["##c", 1],
    ]);
    assert.deepEqual(
      [64, 65].map((length) => piecesOf("c".repeat(length), letters).length),
      [64, 0],
      "a longer word is no word",
    );
    assert.equal(piecesOf("cafe ".repeat(10_000), ids).length, 512);
  });
  test("have the length 1, and texts about the same are near", () => {
    const vector = embedder.embed("The automobile needs repair.");
    assert.ok(vector && vector.bytes.length === DIMENSIONS);
    assert.ok(Math.abs(cosine(vector, vector.bytes, vector.scale) - 1) < 1e-6);
    assert.ok(near("The automobile needs repair.", "My car is at the workshop.") > near("The automobile needs repair.", "I baked a cake."));
    for (const text of ["", " \n"]) assert.equal(embedder.embed(text), undefined, JSON.stringify(text));
  });
  test("a file of another size is no table", () => {
    assert.throws(() => readTable(new ArrayBuffer(64)), /another size/);
  });
});

describe("[LM12] the index", () => {
  const filled = (count: number) => {
    const db = database();
    const store = new IndexStore(db);
    store.prepare("main");
    const docs = Array.from({ length: count }, (_, number) => [{ position: 0, at: 1, text: `fact ${number} about gardens` }]);
    store.memories(
      docs.map((doc, number) => ({ id: `m${number}`, docs: doc })),
      { from: 0, to: count },
    );
    return { db, store };
  };
  const counts = (db: ReturnType<typeof database>) =>
    ["docs", "vectors", "unembedded"].map((name) => Number(all<{ n: number }>(db, `SELECT count(*) AS n FROM ${name}`)[0]?.n));

  test("embeds in steps, goes on after an interruption, and embeds all again for another model", () => {
    const { db, store } = filled(1_200);
    assert.equal(store.isEmbedding(), false, "nothing was ever asked");
    assert.equal(store.embedSome(embedder), false);
    assert.deepEqual(counts(db), [1_200, 500, 700]);
    const next = new IndexStore(db);
    next.prepare("main");
    assert.equal(next.isEmbedding(), true);
    assert.equal(next.embedSome(embedder), false);
    assert.equal(next.embedSome(embedder), true);
    assert.deepEqual(counts(db), [1_200, 1_200, 0]);
    assert.equal(next.embedSome({ ...embedder, model: "another" }), false);
    assert.deepEqual(counts(db), [1_200, 500, 700]);
  });
  test("refuses a vector of another size, and keeps the text waiting", () => {
    const { db, store } = filled(1);
    const wrong: Embedder = { model: embedder.model, embed: (): Vector => ({ bytes: new Int8Array(DIMENSIONS - 1), scale: 1 }) };
    assert.throws(() => store.embedSome(wrong), /another size/);
    assert.deepEqual(counts(db), [1, 0, 1]);
  });
  test("[LM8] removes a vector with its text, also one that waits", () => {
    const { db, store } = filled(3);
    store.embedSome(embedder);
    store.memories([{ id: "m3", docs: [{ position: 0, at: 1, text: "another" }] }], { from: 3, to: 4 });
    assert.deepEqual(counts(db), [4, 3, 1]);
    store.memories(
      ["m0", "m3"].map((id) => ({ id, docs: undefined })),
      { from: 4, to: 6 },
    );
    assert.deepEqual(counts(db), [2, 2, 0]);
  });
  test("[LM11] finds what has none of the words, but not what has an excluded one, and not without the question", () => {
    const db = database();
    const store = new IndexStore(db);
    store.prepare("main");
    const texts = ["My car is at the workshop.", "The cake needs an hour.", "A red lorry broke down."];
    store.memories(
      texts.map((text, number) => ({ id: `m${number}`, docs: [{ position: 0, at: 1, text }] })),
      { from: 0, to: 1 },
    );
    store.embedSome(embedder);
    const found = (query: string, isAsked = true): string[] => {
      const match = parseQuery(query);
      assert.ok(match.ok);
      const vector = embedder.embed(query);
      const more = isAsked && vector !== undefined ? { near: vector } : {};
      return store.find({ match: match.value, sources: ["memory"], limit: 5, offset: 0, ...more }).map(({ name, marked }) => {
        assert.ok(marked.length > 5);
        return name;
      });
    };
    assert.equal(found("automobile garage vehicle repair")[0], "m0");
    assert.ok(!found("automobile garage vehicle repair -car").includes("m0"));
    assert.deepEqual(found("automobile garage vehicle repair", false), []);
    assert.deepEqual(found("automobile"), [], "one word");
    assert.deepEqual(found('"automobile repair"'), [], "an exact text");
  });
});

describe("[LM11] more than 1,000 questions about 20 conversations", () => {
  test("are answered by words and vectors together at least as well as by words alone", () => {
    assert.ok(conversations().length === 20 && conversations().every(({ turns }) => turns.length > 400));
    const scores = measure(embedder);
    console.log(tableOf(scores));
    const { words, both } = scores.get("all") ?? assert.fail();
    assert.ok(both.questions >= 1_000);
    assert.ok(both.any5 >= 0.75 && both.rec10 >= 0.8, tableOf(scores));
    assert.ok(both.any5 >= words.any5 && both.rec10 >= words.rec10, tableOf(scores));
    for (const [kind, one] of scores) assert.ok(one.both.any5 >= one.words.any5, kind);
  });
});
