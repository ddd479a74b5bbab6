/**
 * The words of an index's texts as numbers (stems.ts), and the texts that have those of a question: all words are kept in
 * memory. Derived like everything in the index. Must not know the texts' sources.
 */
import type { Database } from "../../platform/sql.ts";
import { type AskedWord, AskedWords, TextSet } from "./asked-words.ts";
import { isPrefix } from "./query.ts";
import { wordNumbers } from "./stems.ts";
import { WordMatches } from "./word-matches.ts";
import { type WordedText, WordTable } from "./word-table.ts";

/**
 * Words in memory, for more than 100,000 messages. Of the 128 MB that the platform gives, they take 32 MB and 40 bytes for each text; the
 * vectors of so many texts take 40 MB. The words of a larger index are read for each search.
 */
const MOST_WORDS = 8_000_000;
const NUMBER_BYTES = 4;
/** Texts that are read at once: the longest, in a script whose characters are words of their own, take 4 MB. */
const READ_STEP = 250;
/** Ids that are read at once. */
const IDS_STEP = 50_000;
/** Stands between the words of a text and those of its date: no word has this number, so no phrase goes over it. */
const GAP = 0;
type Row = { doc: number; source: number; ord: number; at: number; numbers: ArrayBuffer };

export class WordStore {
  readonly #storage: Database;
  readonly #module: WebAssembly.Module | undefined;
  readonly #mostWords: number;
  #table: WordTable | undefined;
  #isTooLarge = false;

  /** `module`: word-places.wasm. Undefined: words are looked for in JavaScript. */
  constructor(storage: Database, module?: WebAssembly.Module, mostWords = MOST_WORDS) {
    this.#storage = storage;
    this.#module = module;
    this.#mostWords = mostWords;
  }

  /** Makes the table; runs in the transaction that makes that of the texts. */
  create(): void {
    const { sql } = this.#storage;
    this.drop();
    sql.exec("DROP TABLE IF EXISTS words");
    sql.exec(
      "CREATE TABLE words(doc INTEGER PRIMARY KEY, source INTEGER NOT NULL, ord INTEGER NOT NULL, at INTEGER NOT NULL, numbers BLOB NOT NULL) STRICT",
    );
  }
  /** A text that is added, and the words of its date. */
  add({ id, source, ord, at }: Omit<WordedText, "words">, text: string, day: string): void {
    const words = new Int32Array(wordNumbers(text).concat(numbersOfDay(day)));
    this.#storage.sql.exec("INSERT INTO words(doc, source, ord, at, numbers) VALUES(?, ?, ?, ?, ?)", id, source, ord, at, words.buffer);
    if (this.#table?.put({ id, source, ord, at, words }) === false) this.drop();
  }
  /** Texts that are about to be removed: `some` selects them from `docs`. */
  removing(some: string, params: readonly SqlStorageValue[]): void {
    const removed = this.#storage.sql
      .exec<{ doc: number }>(`DELETE FROM words WHERE doc IN (SELECT id FROM docs ${some}) RETURNING doc`, ...params)
      .toArray();
    if (removed.length === 0) return;
    this.#isTooLarge = false;
    for (const { doc } of removed) this.#table?.remove(doc);
    if (this.#table?.isSparse === true) this.drop();
  }
  /** Reads the table again, because the memory may differ from it. */
  drop(): void {
    this.#table = undefined;
    this.#isTooLarge = false;
  }

  /** Texts with one of these words, which are expressions of FTS5 (query.ts). */
  find(words: readonly string[]): WordMatches {
    const asked = new AskedWords(words.map((word) => this.#asked(word)));
    const matches = new WordMatches(asked.size);
    const table = this.#whole();
    if (table !== undefined) table.find(asked, matches);
    else
      for (const rows of this.#rows()) {
        const some = new WordTable();
        for (const row of rows) some.put(row);
        some.find(asked, matches);
      }
    return matches;
  }
  #asked(word: string): AskedWord {
    if (!isPrefix(word)) return { kind: "phrase", numbers: wordNumbers(word) };
    const { sql } = this.#storage;
    const highest = sql.exec<{ id: number }>("SELECT coalesce(max(doc), 0) AS id FROM words").one().id;
    const texts = new TextSet(highest);
    for (let after = -1; ; ) {
      const { found } = sql
        .exec<{ found: string }>(
          "SELECT json_group_array(id) AS found FROM (SELECT rowid AS id FROM places WHERE places MATCH ? AND rowid > ? ORDER BY rowid LIMIT ?)",
          word,
          after,
          IDS_STEP,
        )
        .one();
      const ids = JSON.parse(found) as readonly number[];
      for (const id of ids) texts.add(id);
      after = ids.at(-1) ?? highest;
      if (ids.length < IDS_STEP) return { kind: "prefix", texts };
    }
  }
  /** Undefined: there are too many words to keep them in memory. */
  #whole(): WordTable | undefined {
    if (this.#table !== undefined || this.#isTooLarge) return this.#table;
    const { bytes } = this.#storage.sql.exec<{ bytes: number }>("SELECT coalesce(sum(length(numbers)), 0) AS bytes FROM words").one();
    this.#isTooLarge = bytes > this.#mostWords * NUMBER_BYTES;
    if (this.#isTooLarge) return undefined;
    const table = new WordTable(this.#mostWords, this.#module);
    for (const rows of this.#rows()) for (const row of rows) table.put(row);
    this.#table = table;
    return table;
  }
  *#rows(): IterableIterator<readonly WordedText[]> {
    for (let after = -1; ; ) {
      const rows = this.#storage.sql
        .exec<Row>("SELECT doc, source, ord, at, numbers FROM words WHERE doc > ? ORDER BY doc LIMIT ?", after, READ_STEP)
        .toArray();
      yield rows.map(({ doc, source, ord, at, numbers }) => ({ id: doc, source, ord, at, words: numbersIn(numbers) }));
      const last = rows.at(-1);
      if (last === undefined || rows.length < READ_STEP) return;
      after = last.doc;
    }
  }
}
/** Texts in a row are mostly of one day. */
let lastDay: { readonly day: string; readonly numbers: readonly number[] } = { day: "", numbers: [] };
function numbersOfDay(day: string): readonly number[] {
  if (lastDay.day !== day) lastDay = { day, numbers: day === "" ? [] : [GAP, ...wordNumbers(day)] };
  return lastDay.numbers;
}
/** SQLite in Node gives a view, which may begin anywhere. */
function numbersIn(bytes: ArrayBuffer | Uint8Array): Int32Array {
  return new Int32Array(bytes instanceof ArrayBuffer ? bytes : bytes.slice().buffer);
}
