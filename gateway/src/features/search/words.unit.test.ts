/** [SE2] [SE3] Words are found and scored as SQLite's FTS5 would: it is the other implementation here. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { database } from "../../../test/features/search/recall-measure.ts";
import { stem, wordNumbers } from "./stems.ts";
import { withMarks } from "./marks.ts";
import { MARK_BEGIN, MARK_END, segment } from "./text.ts";
import { type Doc, TextStore } from "./text-store.ts";
import { VectorStore } from "./vector-store.ts";
import { AskedWords, TextSet } from "./asked-words.ts";
import { WordMatches } from "./word-matches.ts";
import { MOST_LOOKED_AT } from "./word-memory.ts";
import { WordStore } from "./word-store.ts";
import { WordTable } from "./word-table.ts";

const TOKENS = "tokenize = 'porter unicode61 remove_diacritics 2'";

/** The types are those of the Workers runtime, which compiles nothing. */
const compiled: WebAssembly.Module = Reflect.construct(WebAssembly.Module, [readFileSync(join(import.meta.dirname, "word-places.wasm"))]);

function indexed(mostWords?: number, module?: WebAssembly.Module) {
  const db = database();
  const [vectors, words] = [new VectorStore(db), new WordStore(db, module, mostWords)];
  const texts = new TextStore(db, vectors, words);
  vectors.create();
  texts.create();
  const found = (...asked: readonly string[]) =>
    [...words.find(asked).best()].map(({ id, score }) => [id, score] as const).sort(([left], [right]) => left - right);
  db.sql.exec(`CREATE VIRTUAL TABLE fts USING fts5(text, day, content = 'docs', content_rowid = 'id', ${TOKENS})`);
  const rebuilt = (): void => void db.sql.exec("INSERT INTO fts(fts) VALUES('rebuild')");
  const expected = (query: string) =>
    db.sql
      .exec<{ id: number; score: number }>(
        "SELECT rowid AS id, -bm25(fts, 1.0, 1.0) AS score FROM fts WHERE fts MATCH ? ORDER BY rowid",
        query,
      )
      .toArray()
      .map(({ id, score }) => [id, score] as const);
  const marks = (query: string) => {
    rebuilt();
    return db.sql
      .exec<{ text: string; marked: string }>(
        "SELECT d.text, highlight(fts, 0, ?, ?) AS marked FROM fts JOIN docs d ON d.id = fts.rowid WHERE fts MATCH ?",
        MARK_BEGIN,
        MARK_END,
        query,
      )
      .toArray();
  };
  return { texts, words, found, rebuilt, expected, marks };
}
type Found = readonly (readonly [id: number, score: number])[];
/** Sums of the same numbers in another order differ in their last bits. */
function assertSame(found: Found, expected: Found): void {
  assert.deepEqual(
    found.map(([id]) => id),
    expected.map(([id]) => id),
  );
  for (const [index, [, score]] of found.entries()) assert.ok(Math.abs(score - (expected[index]?.[1] ?? 0)) <= 1e-9 * score);
}
const doc = (text: string, position = 0, at = 0): Doc => ({ position, at, text });

/** Hashes of the words below, as indexes have stored them. */
const FIVE = [1689844019, 1689844019, -1224110520, -190928548, 1076444563];

describe("[SE2] words", () => {
  test("have the stems that FTS5 gives them", () => {
    const parts = ["b", "tr", "sk", "y", "ll", "ss", "at", "iz", "e", "ee", "o", "ou", "ay", "hop", "real", "gener", "w", "x", "9"];
    const ends =
      "s es ies sses ed eed ing y ational tional enci anci izer logi bli alli entli eli ousli ization ation ator alism iveness fulness ousness aliti iviti biliti icate ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion sion tion ou ism ate iti ous ive ize e ll".split(
        " ",
      );
    const words = fc.sample(
      fc
        .tuple(fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 4 }), fc.array(fc.constantFrom(...ends), { maxLength: 3 }))
        .map(([begin, end]) => [...begin, ...end].join("")),
      { numRuns: 20_000, seed: 1 },
    );
    const db = database();
    db.sql.exec(`CREATE VIRTUAL TABLE fts USING fts5(text, ${TOKENS})`);
    db.sql.exec("CREATE VIRTUAL TABLE terms USING fts5vocab(fts, 'instance')");
    db.sql.exec("INSERT INTO fts(rowid, text) SELECT key + 1, value FROM json_each(?)", JSON.stringify(words));
    const terms = db.sql.exec<{ term: string; doc: number }>("SELECT term, doc FROM terms").toArray();
    assert.equal(terms.length, words.length);
    assert.deepEqual(
      terms.filter(({ term, doc }) => stem(words[doc - 1] ?? "") !== term),
      [],
    );
  });
  test("are numbers that do not differ by case and accents; signs separate them", () => {
    const numbers = (...words: readonly string[]): readonly number[] => words.flatMap((word) => wordNumbers(word));
    assert.deepEqual(
      wordNumbers("Café  CAFÉ cafe\u0301: well-known, don't 3.5"),
      numbers("cafe", "cafe", "cafe", "well", "known", "don", "t", "3", "5"),
    );
    assert.deepEqual(wordNumbers(segment("東京 tower")), numbers("東", "京", "tower"));
    assert.deepEqual(wordNumbers("\u200b…!? "), []);
    assert.equal(wordNumbers("हिन्दी").length, 3, "signs of vowels separate, as they do in FTS5");
    assert.equal(wordNumbers("x".repeat(200)).length, 1);
    assert.deepEqual(
      numbers("paint", "painting", "Café", "東", "2026"),
      FIVE,
      "stored numbers must stay as they are, or SCHEMA in index-store.ts must rise",
    );
    const vocabulary = Array.from({ length: 50_000 }, (_, index) => `word${index}x`);
    assert.ok(new Set(numbers(...vocabulary)).size > 49_990);
    assert.ok(numbers(...vocabulary).every((number) => number !== 0 && number === (number | 0)));
  });
});

const VOCABULARY = ["paint", "painted", "painting", "boiler", "well", "known", "café", "東京", "京都", "anna", "a", "x1", "x12", "e-mail"];
const text = fc.array(fc.constantFrom(...VOCABULARY), { minLength: 1, maxLength: 30 }).map((words) => words.join(" "));
const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ add: fc.array(text, { minLength: 1, maxLength: 20 }), source: fc.integer({ min: 1, max: 4 }) }) },
    fc.record({ remove: fc.integer({ min: 0, max: 30 }), source: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ drop: fc.constant(true) }),
  ),
  { maxLength: 12 },
);

describe("[SE3] what a word says about texts", () => {
  test("is what FTS5's bm25 says, after any texts were added and removed, in memory and without", () => {
    fc.assert(
      fc.property(steps, fc.constantFrom(undefined, 20), fc.constantFrom(undefined, compiled), (all, mostWords, module) => {
        const { texts, words, found, rebuilt, expected } = indexed(mostWords, module);
        const nexts = new Map<number, number>();
        found("paint");
        for (const step of all) {
          if ("drop" in step) words.drop();
          else if ("remove" in step) texts.remove(step.source, step.remove, -1);
          else {
            const from = nexts.get(step.source) ?? 0;
            nexts.set(step.source, from + step.add.length);
            texts.insert(
              step.source,
              step.add.map((one, index) => ({ ...doc(one, from + index), day: index % 2 === 0 ? "" : "2026-01-01 thursday 1 january" })),
            );
          }
          rebuilt();
          for (const word of ["paint", "boiler", "café", "january", "nothing", "a", "well-known", "e-mail", "2026-01-01"])
            assertSame(found(`"${word}"`), expected(`"${word}"`));
          for (const word of ["東京", "京"]) assertSame(found(segment(`"${word}"`)), expected(segment(`"${word}"`)));
          assertSame(found('"paint"', '"anna"'), expected('"paint" OR "anna"'));
        }
      }),
      { numRuns: 20 },
    );
  });
  test("counts each place of a phrase, and the beginning of a word once in each text that has it", () => {
    const { texts, found } = indexed();
    texts.insert(1, [
      doc("a well-known painter"),
      doc("well, not known"),
      doc(`${"x12 ".repeat(5)}東京`),
      doc("nothing here"),
      doc("nothing there"),
    ]);
    const ids = (word: string): readonly number[] => found(word).map(([id]) => id);
    texts.insert(2, [{ ...doc("the kite flew"), day: "2026-01-20 tuesday 20 january" }]);
    assert.deepEqual(ids('"flew-2026"'), [], "no phrase goes from a text into its date");
    for (const beginning of ["janu", "2026-01", "20", "flew"]) assert.deepEqual(ids(`"${beginning}" *`), [6], beginning);
    assert.deepEqual(ids('"well-known"'), [1]);
    assert.deepEqual(ids('"x1" *'), [3]);
    assert.deepEqual(ids(segment('"東京"')), [3]);
    assert.deepEqual(found('"x1" *'), found(segment('"東京"')), "once, as the phrase that is there once");
    assert.ok((found('"x12"')[0]?.[1] ?? 0) > (found('"x1" *')[0]?.[1] ?? 0));
    assert.deepEqual(ids('"京都"'), []);
  });
});

test("[SE3] a table finds the same words in WebAssembly and in JavaScript, also among many, after texts were removed and their ids used again", () => {
  const many = { min: 0, max: 5 };
  const step = fc.record({
    put: fc.oneof(
      { weight: 20, arbitrary: fc.array(fc.integer(many), { minLength: 1, maxLength: 8 }) },
      // More often than a count can say, and more than one call looks at.
      fc.integer(many).map((word) => new Array<number>(MOST_LOOKED_AT + 5).fill(word)),
      // More words than the first memory has room for.
      fc.integer(many).map((word) => Array.from({ length: 40_000 }, (_, at) => (at % 1_000 === 0 ? word : -at))),
    ),
    remove: fc.integer({ min: 1, max: 12 }),
  });
  const phrase = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 3 });
  const asked = fc.uniqueArray(phrase, { minLength: 1, maxLength: 4, selector: String });
  const begun = fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 3 });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), asked, begun, (all, phrases, ids) => {
      const tables = [new WordTable(), new WordTable(undefined, compiled)];
      const texts = new TextSet(40);
      for (const id of ids) texts.add(id);
      const words = [...phrases.map((numbers) => ({ kind: "phrase", numbers }) as const), { kind: "prefix", texts } as const];
      const found = (table: WordTable) => {
        const matches = new WordMatches(words.length);
        table.find(new AskedWords(words), matches);
        return [...matches.best()];
      };
      const check = (kept: ReadonlyMap<number, readonly number[]>): void => {
        const [plain, fast] = tables.map(found);
        assert.deepEqual(fast, plain);
        const expected = [...kept].filter(([id, text]) => texts.has(id) || phrases.some((numbers) => has(text, numbers)));
        assert.deepEqual(
          (plain ?? []).map(({ id }) => id).sort((left, right) => left - right),
          expected.map(([one]) => one),
        );
      };
      const kept = new Map<number, readonly number[]>();
      let id = 0;
      for (const { put, remove } of all) {
        const text = { id: ++id, source: 1, ord: id, at: id, words: Int32Array.from(put) };
        const taken = tables.map((table) => table.put(text));
        assert.deepEqual(taken, [true, true]);
        kept.set(id, put);
        check(kept);
        for (const table of tables) table.remove(remove);
        kept.delete(remove);
        if (remove === id) id--;
      }
      check(kept);
    }),
    { numRuns: 100 },
  );
});
const has = (text: readonly number[], numbers: readonly number[]): boolean =>
  text.some((_, at) => numbers.every((number, step) => text[at + step] === number));

test("[SE3] words are marked as FTS5 marks them", () => {
  const queries = [
    '"paint"',
    '"boiler"',
    '"well-known"',
    '"cafe"',
    '"x1" *',
    '"pai" *',
    '"e-mail"',
    '"known café"',
    '"e-ma" *',
    '"nothing"',
  ];
  const asked = [...queries, segment('"東京"'), segment('"京"')];
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 20 }), fc.subarray(asked, { minLength: 1 }), (all, some) => {
      const { texts, marks } = indexed();
      texts.insert(
        1,
        all.map((one, index) => doc(one, index)),
      );
      const mark = withMarks(some);
      for (const { text: plain, marked } of marks(some.join(" OR "))) assert.equal(mark(plain), marked);
    }),
    { numRuns: 60 },
  );
});

test("[SE3] many removed texts leave the others where they are, and ids are used again", () => {
  const { texts, words, found, rebuilt, expected } = indexed();
  const many = (word: string): readonly Doc[] => Array.from({ length: 1_500 }, (_, at) => doc(`${word} number${at}`, at));
  for (const [source, word] of ["anna", "boiler", "paint"].entries()) texts.insert(source + 1, many(word));
  const check = (word: string): void => {
    rebuilt();
    assertSame(found(`"${word}"`), expected(`"${word}"`));
  };
  check("number7");
  for (const step of [
    () => texts.removeAll(3),
    () => texts.insert(4, many("kitchen")),
    () => texts.removeAll(1),
    () => texts.removeAll(2),
  ]) {
    step();
    for (const word of ["anna", "boiler", "paint", "kitchen", "number7", "number1499"]) check(word);
  }
  words.drop();
  check("kitchen");
});

test("[SE3] texts come by their scores to two decimals, then the later one first", () => {
  const { texts, words } = indexed();
  texts.insert(1, [
    doc("boiler", 0, 5),
    doc("boiler", 1, 9),
    doc("boiler paint", 2, 1),
    doc("boiler", 3, 5),
    doc("other", 4),
    doc("another", 5),
    doc("more", 6),
  ]);
  const ids = (...asked: readonly string[]): readonly number[] => [...words.find(asked).best()].map(({ id }) => id);
  assert.deepEqual(ids('"boiler"'), [2, 4, 1, 3]);
  assert.deepEqual(ids('"boiler"', '"paint"'), [3, 2, 4, 1]);
});
