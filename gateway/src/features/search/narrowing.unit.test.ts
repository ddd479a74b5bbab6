/** [SE3] Of very many texts only those are scored that can be among the first, and pages stay pages of one list. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { database } from "../../../test/features/search/recall-measure.ts";
import { seeded } from "../../../../test/seeded.ts";
import type { Find } from "./index-query.ts";
import { IndexStore } from "./index-store.ts";
import { narrowed, needsAll } from "./narrowing.ts";
import { parseQuery } from "./query.ts";

describe("[SE3] which texts are scored", () => {
  test("few texts, and few words: all", () => {
    assert.equal(narrowed(["a", "b"], [500, 500], 2), undefined);
    assert.equal(narrowed(["a"], [4_000], 2), undefined);
    assert.equal(narrowed(["a", "b", "c"], [2_000, 2_000, 2_000], 3), undefined, "three words together only among very many");
  });
  test("rare words alone, common words together", () => {
    assert.equal(narrowed(["a", "b", "c"], [2_000, 10, 3_000], 2), "b OR (a AND c)");
    assert.equal(narrowed(["a", "b", "c"], [4_000, 4_000, 3_000], 2), "((c AND (a OR b)) OR (a AND b))");
    assert.equal(
      narrowed(["a", "b", "c", "d"], [4_000, 4_000, 4_000, 4_000], 3),
      "((a AND ((b AND (c OR d)) OR (c AND d))) OR (b AND (c AND d)))",
    );
  });
  test("texts with all words are asked for alone, unless a word is rare", () => {
    assert.equal(narrowed(["a", "b", "c"], [4_000, 4_000, 4_000], 3), "(a AND (b AND c))");
    assert.equal(needsAll(["a", "b", "c"], [4_000, 4_000, 4_000], 3), true);
    assert.equal(needsAll(["a", "b", "c"], [4_000, 4_000, 4_000], 2), false);
    assert.equal(narrowed(["a", "b", "c"], [4_000, 4_000, 300], 2), "c OR (a AND b)");
    assert.equal(needsAll(["a", "b", "c"], [4_000, 4_000, 300], 3), false);
  });
});

const WORDS = "anna tomas mira jonas car boat house garden cellar attic station bridge".split(" ");
/** Texts of three common words each; some have a rare word. */
function filled(): IndexStore {
  const store = new IndexStore(database());
  store.prepare("main");
  store.sources.listed("archives", new Map([["sessions/a.jsonl.gz", { etag: "1" }]]));
  const random = seeded(5);
  const word = (): string => WORDS[Math.floor(random() * WORDS.length)] ?? "";
  const docs = Array.from({ length: 6_000 }, (_, position) => ({
    position,
    role: "user",
    at: position + 1,
    text: position % 2_000 === 77 ? `${word()} zeppelin` : `${word()} ${word()} ${word()}`,
  }));
  store.add(store.sources.one("archives", "sessions/a.jsonl.gz")?.id ?? 0, docs, { state: "done", sessionKey: "agent:main:main" });
  return store;
}
describe("[SE3] a search among very many texts", () => {
  const store = filled();
  const find = (query: string, more: Partial<Find> = {}) => {
    const match = parseQuery(query);
    assert.ok(match.ok);
    return store.find({ match: match.value, sources: ["archives"], limit: 10, offset: 0, ...more });
  };
  test("texts with all words come first", () => {
    const hits = find("anna car cellar");
    for (const { marked } of hits) for (const word of ["anna", "car", "cellar"]) assert.ok(marked.includes(word), marked);
  });
  test("a text with a rare word is found beside common ones", () => {
    assert.ok(find("anna car zeppelin", { limit: 5 }).every(({ marked }) => marked.includes("zeppelin") || marked.includes("anna")));
    assert.equal(find("anna car zeppelin", { limit: 60 }).filter(({ marked }) => marked.includes("zeppelin")).length, 3);
  });
  test("excluded words stay excluded", () => {
    assert.ok(find("anna car cellar -boat", { limit: 100 }).every(({ marked }) => !marked.includes("boat")));
  });
  test("all pages together have every text with a word once", () => {
    const seen = new Map<number, number>();
    for (let offset = 0; ; offset += 500) {
      const page = find("anna car cellar", { limit: 500, offset });
      for (const { position } of page) seen.set(position, (seen.get(position) ?? 0) + 1);
      if (page.length < 500) break;
    }
    const match = find("anna OR car OR cellar", { limit: 10_000 });
    assert.deepEqual([...seen.keys()].sort(), match.map(({ position }) => position).sort());
    assert.ok([...seen.values()].every((times) => times === 1));
  });
});
