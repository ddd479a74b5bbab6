/** Measures how well the index finds the answers of recall-set.ts: by words, by vectors, and by both. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { IndexStore } from "../../../src/features/search/index-store.ts";
import { parseQuery } from "../../../src/features/search/query.ts";
import { type Embedder, readTable } from "../../../src/features/search/static-embeddings.ts";
import { dayWords } from "../../../src/features/search/text.ts";
import { VectorStore } from "../../../src/features/search/vector-store.ts";
import type { Database } from "../../../src/platform/sql.ts";
import { statementsOf } from "../../../../test/statements.ts";
import { type Conversation, conversations } from "./recall-set.ts";

export const MODES = ["words", "vectors", "both"] as const;
export type Mode = (typeof MODES)[number];
export interface Score {
  readonly questions: number;
  /** Share of the questions with an answer among the first five hits. */
  readonly any5: number;
  /** Share of the answers among the first ten hits. */
  readonly rec10: number;
}
export function table(): Embedder {
  const file = readFileSync(join(import.meta.dirname, "../../../embeddings/embeddings.bin"));
  return readTable(new Uint8Array(file).buffer);
}

/** What the index needs of the platform's SQLite. */
export function database(): Database {
  const prepared = statementsOf(new DatabaseSync(":memory:"));
  const sql = {
    exec: (query: string, ...values: (SQLInputValue | ArrayBuffer)[]) => {
      const rows = prepared(query).all(...values.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value)));
      return { toArray: () => rows, one: () => rows[0] };
    },
  };
  return Object.assign(Object.create(null) as Database, { sql, transactionSync: (work: () => unknown) => work() });
}

function indexed({ turns }: Conversation, db: Database): { readonly store: IndexStore; readonly turnOf: ReadonlyMap<string, number> } {
  const store = new IndexStore(db);
  store.prepare("main");
  const days = Map.groupBy(turns.entries(), ([, { at }]) => `sessions/${new Date(at).toISOString().slice(0, 10)}.jsonl.gz`);
  store.sources.listed("archives", new Map([...days.keys()].map((name) => [name, { etag: "1" }])));
  const turnOf = new Map<string, number>();
  for (const [name, messages] of days) {
    const docs = messages.map(([turn, { at, text }], position) => {
      turnOf.set(`${name} ${position}`, turn);
      return { position, role: "user", at, text, day: dayWords(at) };
    });
    store.add(store.sources.one("archives", name)?.id ?? 0, docs, { state: "done", sessionKey: "agent:main:main" });
  }
  return { store, turnOf };
}

/** By kind of question, and of all. */
export function measure(embedder: Embedder = table()): ReadonlyMap<string, Readonly<Record<Mode, Score>>> {
  const sums = new Map<string, Record<Mode, [questions: number, any5: number, rec10: number]>>();
  for (const one of conversations()) {
    const db = database();
    const { store, turnOf } = indexed(one, db);
    while (!store.embedSome(embedder));
    const vectors = new VectorStore(db);
    const sources = new Set(store.sources.of("archives").map(({ id }) => id));
    for (const { kind, text, evidence } of one.questions) {
      const match = parseQuery(text);
      const near = embedder.embed(text);
      if (!match.ok || near === undefined) throw new Error(`not a question: ${text}`);
      const find = { match: match.value, sources: ["archives"] as const, limit: 10, offset: 0 };
      const turnsOf = (more: { readonly near?: typeof near }) =>
        store.find({ ...find, ...more }).map(({ name, position }) => turnOf.get(`${name} ${position}`) ?? -1);
      const hits: Record<Mode, readonly number[]> = {
        words: turnsOf({}),
        // Rows are numbered from 1, in the order of the messages.
        vectors: vectors.nearest(near, (source) => sources.has(source), 10, -1).map(({ id }) => id - 1),
        both: turnsOf({ near }),
      };
      for (const key of ["all", kind]) {
        const sum = sums.get(key) ?? { words: [0, 0, 0], vectors: [0, 0, 0], both: [0, 0, 0] };
        sums.set(key, sum);
        for (const mode of MODES) {
          sum[mode][0]++;
          if (evidence.some((turn) => hits[mode].slice(0, 5).includes(turn))) sum[mode][1]++;
          sum[mode][2] += evidence.filter((turn) => hits[mode].includes(turn)).length / evidence.length;
        }
      }
    }
  }
  const score = ([questions, any5, rec10]: readonly [number, number, number]): Score => ({
    questions,
    any5: any5 / questions,
    rec10: rec10 / questions,
  });
  return new Map(
    [...sums].map(([key, { words, vectors, both }]) => [key, { words: score(words), vectors: score(vectors), both: score(both) }]),
  );
}
export function tableOf(scores: ReadonlyMap<string, Readonly<Record<Mode, Score>>>): string {
  const lines = ["questions          any@5: words  vectors  both     rec@10: words  vectors  both"];
  for (const [kind, modes] of scores) {
    const row = (name: "any5" | "rec10"): string => MODES.map((mode) => modes[mode][name].toFixed(3)).join("    ");
    lines.push(`${kind.padEnd(12)} ${String(modes.words.questions).padStart(5)}         ${row("any5")}             ${row("rec10")}`);
  }
  return lines.join("\n");
}
