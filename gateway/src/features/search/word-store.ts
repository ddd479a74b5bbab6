/** Finds the texts with words of a question by a scan over the words of all texts, which it keeps in memory. Must not know the texts' sources. */
import type { Database } from "../../platform/sql.ts";
import { isBeginning } from "./query.ts";
import { wordNumbers } from "./stems.ts";
import { type AskedWord, AskedWords } from "./asked-words.ts";
import { WordMatches } from "./word-matches.ts";
import { type WordedText, WordTable } from "./word-table.ts";

/** Words in memory: 24 MB of the 128 MB that the platform gives, for about 200,000 messages. With more, each search reads them again. */
const MOST_WORDS = 6_000_000;
/** Texts that are read at once. */
const SCAN_STEP = 4_000;
/** Of one read: more than all its texts can have. */
const STEP_WORDS = SCAN_STEP * 4_096;
type Row = { id: number; source: number; ord: number; at: number; words: ArrayBuffer };

/** As they are stored with the text: the words of its date follow its own. */
export const wordsOf = (text: string, day: string): ArrayBuffer => new Int32Array(wordNumbers(text).concat(wordsOfDay(day))).buffer;
/** Texts in a row are mostly of one day. */
let lastDay: { readonly day: string; readonly words: readonly number[] } = { day: "", words: [] };
function wordsOfDay(day: string): readonly number[] {
  if (lastDay.day !== day) lastDay = { day, words: wordNumbers(day) };
  return lastDay.words;
}

export class WordStore {
  readonly #storage: Database;
  readonly #mostWords: number;
  #table: WordTable | undefined;
  #isTooLarge = false;

  constructor(storage: Database, mostWords = MOST_WORDS) {
    this.#storage = storage;
    this.#mostWords = mostWords;
  }
  added(text: Omit<WordedText, "words">, words: ArrayBuffer): void {
    if (this.#table?.put({ ...text, words: new Int32Array(words) }) === false) this.drop();
  }
  removed(ids: readonly number[]): void {
    this.#isTooLarge = false;
    for (const id of ids) this.#table?.remove(id);
    if (this.#table?.isSparse === true) this.drop();
  }
  /** What is in memory may differ from the table: it is read again. */
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
        const some = new WordTable(STEP_WORDS);
        for (const row of rows) some.put(row);
        some.find(asked, matches);
      }
    return matches;
  }
  /** FTS5 finds the beginning of a word. Such a text counts it once. */
  #asked(word: string): AskedWord {
    if (!isBeginning(word)) return wordNumbers(word);
    const { ids } = this.#storage.sql
      .exec<{ ids: string }>("SELECT json_group_array(rowid) AS ids FROM places WHERE places MATCH ?", word)
      .one();
    return new Set(JSON.parse(ids) as readonly number[]);
  }
  /** Undefined: there are too many words to keep them in memory. */
  #whole(): WordTable | undefined {
    if (this.#table !== undefined || this.#isTooLarge) return this.#table;
    const table = new WordTable(this.#mostWords);
    for (const rows of this.#rows())
      for (const row of rows)
        if (!table.put(row)) {
          this.#isTooLarge = true;
          return undefined;
        }
    this.#table = table;
    return table;
  }
  *#rows(): IterableIterator<readonly WordedText[]> {
    for (let after = -1; ; ) {
      const rows = this.#storage.sql
        .exec<Row>("SELECT id, source, ord, at, words FROM docs WHERE id > ? ORDER BY id LIMIT ?", after, SCAN_STEP)
        .toArray();
      yield rows.map((row) => ({ ...row, words: numbersIn(row.words) }));
      const last = rows.at(-1);
      if (last === undefined || rows.length < SCAN_STEP) return;
      after = last.id;
    }
  }
}
/** SQLite in Node gives a view, which may begin anywhere. */
function numbersIn(bytes: ArrayBuffer | Uint8Array): Int32Array {
  return new Int32Array(bytes instanceof ArrayBuffer ? bytes : bytes.slice().buffer);
}
