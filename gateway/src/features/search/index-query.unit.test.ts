/** [SE1] [SE2] [SE3] Searches of an index: among many texts, in many scripts, and after a transaction that failed. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { database } from "../../../test/features/search/recall-measure.ts";
import { seeded } from "../../../../test/seeded.ts";
import type { Vector } from "../../ports/embeddings.ts";
import { DIMENSIONS } from "./static-embeddings.ts";
import type { Find } from "./index-query.ts";
import { IndexStore } from "./index-store.ts";
import { parseQuery } from "./query.ts";
import { dayWords, withoutMarks } from "./text.ts";

function found(store: IndexStore, query: string, more: Partial<Find> = {}) {
  const match = parseQuery(query);
  assert.ok(match.ok);
  return store.find({ match: match.value, sources: ["archives"], limit: 10, offset: 0, ...more });
}
function indexOf(texts: readonly string[]): IndexStore {
  const store = new IndexStore(database());
  store.prepare("main");
  store.sources.listed("archives", new Map([["sessions/a.jsonl.gz", { etag: "1" }]]));
  const docs = texts.map((text, position) => ({ position, role: "user", at: 1, text, day: dayWords(Date.UTC(2026, 0, 15)) }));
  store.add(store.sources.one("archives", "sessions/a.jsonl.gz")?.id ?? 0, docs, { state: "done", sessionKey: "agent:main:main" });
  return store;
}

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
test("[LM11] beside texts with words of the question, the 50 nearest texts without any of them are found, the nearest first", () => {
  const store = indexOf(["anna sold it", "tomas sold that", ...Array.from({ length: 60 }, (_, index) => `other${index}`)]);
  const vectorOf = (first: number): Vector => {
    const bytes = new Int8Array(DIMENSIONS);
    bytes[0] = first;
    return { bytes, scale: 1 / 127 };
  };
  const embed = (text: string): Vector => vectorOf(text.startsWith("other") ? 127 - Number(text.slice(5)) : 0);
  while (!store.embedSome({ model: "test", embed }));
  const hits = found(store, "anna tomas", { near: vectorOf(127), limit: 100 });
  const others = hits.flatMap(({ marked }) => (marked.startsWith("other") ? [Number(marked.slice(5))] : []));
  assert.equal(hits.length - others.length, 2);
  assert.deepEqual(
    others.toSorted((left, right) => left - right),
    Array.from({ length: 50 }, (_, index) => index),
  );
});
describe("[SE3] a search among very many texts", () => {
  const store = filled();
  const find = (query: string, more: Partial<Find> = {}) => found(store, query, more);
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

test("[SE1] [SE2] a word finds its text in every script, also with signs at its end", () => {
  const texts = [
    "สวัสดี ครับ",
    "မြန်မာ စာ",
    "ភាសា ខ្មែរ",
    "नमस्ते दुनिया",
    "मुझे पानी चाहिए",
    "বাংলা ভাষা",
    "தமிழ் மொழி",
    "شكراً جزيلا",
    "שָׁלוֹם עולם",
    "東京 タワー",
    "한국어 공부",
    "Việt Nam",
    "cafe\u0301 au lait",
  ];
  const store = indexOf(texts);
  for (const text of texts)
    for (const word of text.split(" ")) {
      const hits = found(store, word).map(({ marked }) => withoutMarks(marked).replaceAll("\u200b", ""));
      assert.ok(hits.includes(text), `${word}: ${hits.join(", ")}`);
    }
});
test("[SE2] the date of a text counts as its words, also by a beginning; a beginning is that of a word as it is written", () => {
  const store = indexOf(["a runner came", "nothing else"]);
  for (const query of ["january", "janu*", "2026-01*", "thursday"]) assert.equal(found(store, query).length, 2, query);
  for (const query of ['"january"', "+january"]) assert.equal(found(store, query).length, 0, query);
  assert.equal(found(store, "nothing -january").length, 1);
  assert.equal(found(store, "runn*").length, 1);
  assert.equal(found(store, "running*").length, 0);
});
test("[SE3] words with one stem are one word", () => {
  const store = indexOf(["paint paint", "paint", "a cellar", "painting here"]);
  const order = (query: string) => found(store, query).map(({ position }) => position);
  assert.deepEqual(order("paint painting"), order("paint"));
});
test("[SE3] words of a text whose transaction failed are not found, and the next text with its id is", () => {
  const db = database();
  const store = new IndexStore({
    ...db,
    transactionSync: (work) => {
      db.sql.exec("SAVEPOINT one");
      try {
        const done = work();
        db.sql.exec("RELEASE one");
        return done;
      } catch (error) {
        db.sql.exec("ROLLBACK TO one");
        db.sql.exec("RELEASE one");
        throw error;
      }
    },
  });
  store.prepare("main");
  store.sources.listed("archives", new Map([["sessions/a.jsonl.gz", { etag: "1" }]]));
  const source = store.sources.one("archives", "sessions/a.jsonl.gz")?.id ?? 0;
  const doc = (text: string) => ({ position: 0, role: "user", at: 1, text });
  store.add(source, [doc("anna")], {});
  assert.equal(found(store, "anna").length, 1);
  const failing = [
    doc("boiler"),
    {
      ...doc("kitchen"),
      get at(): number {
        throw new Error("fails");
      },
    },
  ];
  assert.throws(() => store.replace(source, failing, {}), /fails/);
  assert.equal(found(store, "anna").length, 1, "what was removed before the failure is there again");
  assert.throws(() => store.add(source, failing, {}), /fails/);
  assert.equal(found(store, "boiler").length, 0);
  store.add(source, [doc("cellar")], {});
  assert.deepEqual(
    found(store, "boiler cellar anna")
      .map(({ marked }) => withoutMarks(marked))
      .sort(),
    ["anna", "cellar"],
  );
});

test("[SE3] [LM9] the best hit scores 1, however many texts there are and however common its words are", () => {
  const facts = ["The boiler is a Vaillant.", "Tomas likes tea.", "The car is red."];
  for (const count of [1, 2, 3])
    for (const query of ["boiler", '"boiler"', "+boiler", "boil*", "boiler vaillant", "the boiler"]) {
      const [best] = found(indexOf(facts.slice(0, count)), query);
      assert.match(best?.marked ?? "", /boiler/i, query);
      assert.equal(best?.score, 1, `${query} among ${count}`);
    }
});
test("[SE3] scores are from 0 to 1 and never rise, also on further pages", () => {
  for (const query of ["anna", "anna car cellar", "+anna car"]) {
    const scores = [0, 250, 500].flatMap((offset) => found(filled(), query, { limit: 250, offset }).map(({ score }) => score));
    assert.equal(scores[0], 1, query);
    assert.ok(
      scores.every((score, at) => score >= 0 && score <= (scores[at - 1] ?? 1)),
      query,
    );
  }
});
