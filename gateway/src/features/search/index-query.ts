/** Queries of an agent's search index: what matches, in the order of rule SE3, with marks and neighbours. Reads only. */
import type { Database } from "../../platform/sql.ts";
import type { SearchPlace, SearchRequest } from "../../ports/search.ts";
import { MOST_COUNTED, narrowed, needsAll } from "./narrowing.ts";
import type { Near } from "./nearest-texts.ts";
import { AFTER, apart, BEFORE, type Candidate, type Place, ranked, scaled } from "./ranking.ts";
import type { Vector } from "../../ports/embeddings.ts";
import { usesMeaning } from "./query.ts";
import type { RowVectorStore } from "./row-vector-store.ts";
import type { SourceRow } from "./source-store.ts";
import { isMemory, linesBefore, MARK_BEGIN, MARK_END } from "./text.ts";
import type { VectorStore } from "./vector-store.ts";

/** The best texts by their own words. These are ranked with their places; further ones follow as they are. */
const POOL = 300;
/** With so many, texts with fewer words of the question are left out of the pool. */
const ENOUGH = 100;
/** How many common words of the question a text must have: tried in this order. */
const TOGETHER = [3, 2] as const;
/** The nearest texts that are ranked beside those with a word of the question. */
const NEAR = 100;
/** Those that are looked at first: as many as are left when half of them are of sources that are not searched. */
const LOOKED_AT = 2 * NEAR;
/** A text that is less near has nothing to do with the question. */
const LEAST_COSINE = 0.3;
/** Models of services give lower cosines to related texts than the table. */
const LEAST_SERVICE_COSINE = 0.2;
/** Sources that are asked about one by one. */
const MOST_ASKED = 500;
/** A source and the number of a text in it are one number: SQLite takes pairs apart several times slower. More than the texts of a source. */
const ORDS = 2 ** 22;
/** Words that rank; more are only searched. */
const RANKING_WORDS = 24;
/** A word of the date is worth as much as a word of the text. */
const BM25 = "bm25(stems, 1.0, 1.0)";

export interface Find extends Omit<SearchRequest, "agentId" | "question"> {
  /** The question as a vector: near texts are found, too. */
  readonly near?: Vector;
}
export class IndexQuery {
  readonly #storage: Database;
  readonly #vectors: VectorStore;
  readonly #rowVectors: RowVectorStore;

  constructor(storage: Database, vectors: VectorStore, rowVectors: RowVectorStore) {
    this.#storage = storage;
    this.#vectors = vectors;
    this.#rowVectors = rowVectors;
  }

  find(request: Find): SearchPlace[] {
    const { match, limit, offset, memoryOf } = request;
    const { order, isAll } = this.#order(request);
    const hits = (all: readonly Scored[]): readonly Scored[] => (memoryOf === undefined ? all : apart(all));
    let shown = hits(order);
    // Beyond the pool the order is that of the texts' own words, so that pages stay pages of one list.
    if (shown.length < offset + limit && !isAll) {
      const known = new Set(order.map(({ id }) => id));
      const others = this.#best(request, offset + limit + order.length).filter(({ id }) => !known.has(id));
      shown = hits([...order, ...others]);
    }
    const page = this.#whole(shown.slice(offset, offset + limit));
    if (page.length === 0) return [];
    const texts = this.#marked(
      match,
      page.map(({ id }) => id),
    );
    const beside = this.#beside(page);
    return page.map((row) => {
      const marked = texts.get(row.id) ?? row.text;
      return {
        kind: row.kind,
        name: row.name,
        sessionKey: row.session_key ?? undefined,
        sessionId: row.session_id ?? undefined,
        role: row.role ?? undefined,
        at: row.at,
        ...(row.taint === null ? {} : { taint: row.taint }),
        position: row.kind === "workspace" ? row.position + linesBefore(marked) : row.position,
        score: row.score,
        marked,
        ...beside(row),
      };
    });
  }
  /** The first hits in their order, and whether there are no others. */
  #order(request: Find): { readonly order: readonly Scored[]; readonly isAll: boolean } {
    const { match, near, nearRows } = request;
    const { pool, isAll } = this.#pool(request);
    if ((near === undefined && nearRows === undefined) || !usesMeaning(match))
      return { order: this.#ranked(pool, match.words, undefined), isAll };
    const known = new Set(pool.map(({ id }) => id));
    const others = this.#candidates(
      [...this.#near(request)].filter((id) => !known.has(id)),
      match,
    );
    const nearness = this.#nearness(
      request,
      [...pool, ...others].map(({ id }) => id),
    );
    return { order: this.#ranked([...pool, ...others], match.words, nearness), isAll };
  }
  /** The texts that are ranked with their places: the best by their own words. Of very many, only those with a rare word or with several words. */
  #pool(request: Find): { readonly pool: readonly Scored[]; readonly isAll: boolean } {
    const { words, exact } = request.match;
    const counts = exact === undefined && words.length > 1 ? words.map((word) => this.#count(word)) : [];
    for (const together of TOGETHER) {
      const some = narrowed(words, counts, together);
      const pool = some === undefined ? [] : this.#best(request, ENOUGH, { some, isAlone: needsAll(words, counts, together) });
      if (pool.length === ENOUGH) return { pool, isAll: false };
    }
    const pool = this.#best(request, POOL);
    return { pool, isAll: pool.length < POOL };
  }
  /** In how many texts a word is; many are not counted to the end. */
  #count(word: string): number {
    const counted = "SELECT count(*) AS count FROM (SELECT 1 FROM stems WHERE stems MATCH ? LIMIT ?)";
    return this.#storage.sql.exec<{ count: number }>(counted, word, MOST_COUNTED).one().count;
  }
  /** Texts that are near the question, of the sources that are searched. */
  #near(request: Find): ReadonlySet<number> {
    const { near, nearRows } = request;
    const ofTexts =
      near === undefined
        ? []
        : this.#searchedOf(request, (isSearched, limit) => this.#vectors.nearest(near, isSearched, limit, LEAST_COSINE));
    const ofRows =
      nearRows === undefined
        ? []
        : this.#searchedOf(request, (isSearched, limit) => this.#rowVectors.nearest(nearRows, isSearched, limit, LEAST_SERVICE_COSINE));
    return new Set([...ofTexts, ...ofRows].map(({ id }) => id));
  }
  /** Asking about each source takes longer than comparing it, so the nearest of all are looked at first. */
  #searchedOf(request: Find, nearest: (isSearched: (source: number) => boolean, limit: number) => readonly Near[]): readonly Near[] {
    const first = nearest(() => true, LOOKED_AT);
    const { where, params } = sourceConditions(request);
    const rows = this.#storage.sql.exec<{ id: number }>(
      `SELECT s.id FROM json_each(?) w CROSS JOIN sources s ON s.id = w.value WHERE ${where}`,
      JSON.stringify([...new Set(first.map(({ source }) => source))]),
      ...params,
    );
    const searched = new Set(rows.toArray().map(({ id }) => id));
    const found = first.filter(({ source }) => searched.has(source)).slice(0, NEAR);
    return found.length === NEAR || first.length < LOOKED_AT ? found : nearest(this.#searched(request), NEAR);
  }
  /** A row that has a vector of the embedding service is compared by that one alone. */
  #nearness({ near, nearRows }: Find, ids: readonly number[]): ReadonlyMap<number, number> {
    const byService = nearRows === undefined ? new Map<number, number>() : this.#rowVectors.cosines(nearRows, ids);
    const others = ids.filter((id) => !byService.has(id));
    const byTable = near === undefined ? new Map<number, number>() : this.#vectors.cosines(near, others);
    return new Map([...scaled(byService), ...scaled(byTable)]);
  }
  /** Whether a request may find something in a source. Few are asked about; when they are many, all are read at once. */
  #searched(request: Find): (source: number) => boolean {
    const { where, params } = sourceConditions(request);
    const { sql } = this.#storage;
    const known = new Map<number, boolean>();
    let all: ReadonlySet<number> | undefined;
    return (source) => {
      if (all !== undefined) return all.has(source);
      const asked = known.get(source);
      if (asked !== undefined) return asked;
      if (known.size === MOST_ASKED) {
        const rows = sql.exec<{ id: number }>(`SELECT s.id FROM sources s WHERE ${where}`, ...params).toArray();
        all = new Set(rows.map(({ id }) => id));
        return all.has(source);
      }
      const found = sql.exec(`SELECT 1 FROM sources s WHERE s.id = ? AND ${where}`, source, ...params).toArray().length > 0;
      known.set(source, found);
      return found;
    };
  }
  /** Near texts as candidates, without those that have an excluded word. */
  #candidates(near: readonly number[], { without }: Find["match"]): Scored[] {
    const excluded = without === undefined ? "" : " AND d.id NOT IN (SELECT rowid FROM places WHERE places MATCH ?)";
    return this.#scored(
      `SELECT d.id, d.source, d.ord, d.at, 0 AS score FROM json_each(?) w JOIN docs d ON d.id = w.value WHERE TRUE${excluded}`,
      JSON.stringify(near),
      ...(without === undefined ? [] : [without]),
    );
  }
  /** Texts that match, the best by their own words first. `some`: only texts that match this, too; `isAlone`: this has all words, so that it is asked alone. */
  #best(request: Find, limit: number, { some, isAlone = false }: { readonly some?: string; readonly isAlone?: boolean } = {}): Scored[] {
    const { match } = request;
    const isExact = match.exact !== undefined;
    const ofSources = sourceConditions(request);
    const where: string[] = [];
    const params: SqlStorageValue[] = [];
    if (match.without !== undefined) {
      where.push("d.id NOT IN (SELECT rowid FROM places WHERE places MATCH ?)");
      params.push(match.without);
    }
    if (some !== undefined && !isAlone) {
      where.unshift("+stems.rowid IN (SELECT rowid FROM stems WHERE stems MATCH ?)");
      params.unshift(some);
    }
    where.push(ofSources.where);
    params.push(...ofSources.params);
    const [table, score] = isExact ? ["places", "bm25(places)"] : ["stems", BM25];
    // Scores are cut to two decimals, and among equal ones the later text comes first (round() is several times slower). `CROSS JOIN` keeps this order of tables:
    // a look-up of each text in the index would be slower by far. For the same reason `+rowid` below.
    return this.#scored(
      `SELECT d.id, d.source, d.ord, d.at, -${score} AS score FROM ${table} CROSS JOIN docs d ON d.id = ${table}.rowid CROSS JOIN sources s ON s.id = d.source WHERE ${table} MATCH ? AND ${where.join(" AND ")} ORDER BY CAST(score * 100 AS INTEGER) DESC, d.at DESC, d.id DESC LIMIT ?`,
      isAlone && some !== undefined ? some : (match.exact ?? match.words.join(" OR ")),
      ...params,
      limit,
    );
  }
  /** As one text: the platform takes longer to make an object of each row than SQLite takes to find it. */
  #scored(select: string, ...params: readonly SqlStorageValue[]): Scored[] {
    const { rows } = this.#storage.sql
      .exec<{ rows: string }>(`SELECT json_group_array(json_array(id, source, ord, at, score)) AS rows FROM (${select})`, ...params)
      .one();
    return (JSON.parse(rows) as readonly (readonly [number, number, number, number, number])[]).map(([id, source, ord, at, score]) => ({
      id,
      source,
      ord,
      at,
      score,
    }));
  }
  /** The pool by its texts' own words and the words of their places. */
  #ranked(pool: readonly Scored[], words: readonly string[], nearness: ReadonlyMap<number, number> | undefined): readonly Scored[] {
    const asked = words.slice(0, RANKING_WORDS);
    // Every text of the pool has the only word of a search for one word: its place adds nothing.
    if (asked.length < 2 || pool.length === 0) return pool;
    const { sql } = this.#storage;
    const places = this.#places(pool);
    const ids = JSON.stringify(places.map(({ id }) => id));
    // As lists, for the same reason as above. bm25 needs the inner query to stay one (`LIMIT -1 OFFSET 0`).
    const values = asked.map((word) => {
      const { found, scores } = sql
        .exec<{ found: string; scores: string }>(
          `SELECT json_group_array(id) AS found, json_group_array(score) AS scores FROM (
             SELECT rowid AS id, -${BM25} AS score FROM stems WHERE stems MATCH ? AND +rowid IN (SELECT value FROM json_each(?)) LIMIT -1 OFFSET 0)`,
          word,
          ids,
        )
        .one();
      const ofWord = JSON.parse(scores) as readonly number[];
      return new Map((JSON.parse(found) as readonly number[]).map((id, index) => [id, ofWord[index] ?? 0]));
    });
    return ranked(pool, places, values, nearness);
  }
  /** Scored texts with what is known of them and of their sources. */
  #whole(scored: readonly Scored[]): Row[] {
    const known = new Map(
      this.#storage.sql
        .exec<Known>(
          "SELECT d.id, d.text, d.position, d.role, s.kind, s.name, s.session_key, s.session_id, s.taint FROM json_each(?) w JOIN docs d ON d.id = w.value JOIN sources s ON s.id = d.source",
          JSON.stringify(scored.map(({ id }) => id)),
        )
        .toArray()
        .map((row) => [row.id, row]),
    );
    return scored.flatMap((text) => {
      const more = known.get(text.id);
      return more === undefined ? [] : { ...text, ...more };
    });
  }
  /** Texts with marks around what matches. */
  #marked({ exact, words }: Find["match"], ids: readonly number[]): ReadonlyMap<number, string> {
    const table = exact === undefined ? "stems" : "places";
    return new Map(
      this.#storage.sql
        .exec<{ id: number; marked: string }>(
          `SELECT rowid AS id, highlight(${table}, 0, ?, ?) AS marked FROM ${table} WHERE ${table} MATCH ? AND +rowid IN (SELECT value FROM json_each(?))`,
          MARK_BEGIN,
          MARK_END,
          exact ?? words.join(" OR "),
          JSON.stringify(ids),
        )
        .toArray()
        .map(({ id, marked }) => [id, marked]),
    );
  }
  /** The texts beside each of these lines and messages. Parts of other files are long enough by themselves. */
  #beside(page: readonly Row[]): (row: Row) => Pick<SearchPlace, "before" | "after"> {
    const isShown = ({ kind, name }: Row): boolean => kind !== "workspace" || isMemory(name);
    const texts = new Map(
      this.#docs<Pick<Place, "source" | "ord"> & { text: string }>("d.source, d.ord, d.text", page.filter(isShown)).map(
        ({ source, ord, text }) => [`${source} ${ord}`, text],
      ),
    );
    return (row) => {
      const from = (first: number, last: number): string[] =>
        range(row.ord + first, row.ord + last).flatMap((ord) => texts.get(`${row.source} ${ord}`) ?? []);
      return isShown(row) ? { before: from(-BEFORE, -1), after: from(1, AFTER) } : { before: [], after: [] };
    };
  }
  /** These texts and the ones around them, each once. */
  #places(around: readonly Place[]): readonly Place[] {
    const { ids, sources, ords } = this.#storage.sql
      .exec<{ ids: string; sources: string; ords: string }>(
        `SELECT json_group_array(d.id) AS ids, json_group_array(d.source) AS sources, json_group_array(d.ord) AS ords
         FROM json_each(?) w CROSS JOIN docs d ON d.source = w.value / ${ORDS} AND d.ord = w.value % ${ORDS}`,
        JSON.stringify(numbersAround(around)),
      )
      .one();
    const [ofSource, ofOrd] = [JSON.parse(sources) as readonly number[], JSON.parse(ords) as readonly number[]];
    return (JSON.parse(ids) as readonly number[]).map((id, index) => ({ id, source: ofSource[index] ?? 0, ord: ofOrd[index] ?? 0 }));
  }
  /** Columns of these texts and of the ones around them, each text once. */
  #docs<Columns extends Record<string, SqlStorageValue>>(columns: string, around: readonly Pick<Place, "source" | "ord">[]): Columns[] {
    return this.#storage.sql
      .exec<Columns>(
        `SELECT ${columns} FROM json_each(?) w JOIN docs d ON d.source = w.value / ${ORDS} AND d.ord = w.value % ${ORDS}`,
        JSON.stringify(numbersAround(around)),
      )
      .toArray();
  }
}

type Scored = Candidate & { readonly score: number };
type Known = Pick<SourceRow, "kind" | "name" | "session_key" | "session_id" | "taint"> & {
  id: number;
  text: string;
  position: number;
  role: string | null;
};
type Row = Scored & Known;
/** Which sources a request searches, as a condition on `s`. */
function sourceConditions({ sources, sessionKey, memoryOf }: Find): {
  readonly where: string;
  readonly params: readonly SqlStorageValue[];
} {
  const where = ["s.state <> 'gone'"];
  const params: SqlStorageValue[] = [];
  if (memoryOf !== undefined) {
    where.push(
      "(s.kind = 'memory' OR (s.kind = 'workspace' AND (s.name = 'MEMORY.md' OR (s.name >= 'memory/' AND s.name < 'memory0'))) OR (s.kind = 'archives' AND (s.session_key IN (SELECT value FROM json_each(?)) OR (s.session_key >= ? AND s.session_key < ?))))",
    );
    params.push(JSON.stringify(memoryOf.keys), memoryOf.prefix, `${memoryOf.prefix}\u{10ffff}`);
  }
  where.push(`s.kind IN (${sources.map(() => "?").join(", ")})`);
  params.push(...sources);
  if (sessionKey !== undefined) {
    where.push("s.session_key = ?");
    params.push(sessionKey);
  }
  return { where: where.join(" AND "), params };
}
/** The numbers of texts and of the ones around them. */
function numbersAround(around: readonly Pick<Place, "source" | "ord">[]): readonly number[] {
  const wanted = new Set<number>();
  for (const { source, ord } of around)
    for (let at = Math.max(0, ord - BEFORE); at <= Math.min(ORDS - 1, ord + AFTER); at++) wanted.add(source * ORDS + at);
  return [...wanted];
}
const range = (first: number, last: number): readonly number[] => Array.from({ length: last - first + 1 }, (_, step) => first + step);
