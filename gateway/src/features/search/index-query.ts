/** Queries of an agent's search index: what matches, in the order of rule SE3, with marks and neighbours. Reads only. */
import type { Database } from "../../platform/sql.ts";
import type { Vector } from "../../ports/embeddings.ts";
import type { SearchPlace, SearchRequest } from "../../ports/search.ts";
import { withMarks } from "./marks.ts";
import type { Near } from "./nearest-texts.ts";
import { usesMeaning } from "./query.ts";
import { AFTER, apart, BEFORE, textKey, ORDS, type IndexedText, ranked, relative, scaled } from "./ranking.ts";
import type { RowVectorStore } from "./row-vector-store.ts";
import { SearchedSources, sourceConditions } from "./searched-sources.ts";
import type { SourceRow } from "./source-store.ts";
import { isMemory, linesBefore, MARK_BEGIN, MARK_END } from "./text.ts";
import type { VectorStore } from "./vector-store.ts";
import type { Scored, WordMatches } from "./word-matches.ts";
import type { WordStore } from "./word-store.ts";

/** The best texts by their own words. These are ranked with their places; further ones follow as they are. */
const POOL = 300;
/** The nearest texts that are ranked beside those with a word of the question. */
const NEAR = 50;
/** Those that are looked at first: as many as are left when half of them are of sources that are not searched. */
const LOOKED_AT = 2 * NEAR;
/** A text that is less near has nothing to do with the question. */
const LEAST_COSINE = 0.3;
/** Models of services give lower cosines to related texts than the table. */
const LEAST_SERVICE_COSINE = 0.2;

export interface Find extends Omit<SearchRequest, "agentId" | "question"> {
  /** The question as a vector: near texts are found, too. */
  readonly near?: Vector;
}
export class IndexQuery {
  readonly #storage: Database;
  readonly #words: WordStore;
  readonly #vectors: VectorStore;
  readonly #rowVectors: RowVectorStore;

  constructor(storage: Database, words: WordStore, vectors: VectorStore, rowVectors: RowVectorStore) {
    this.#storage = storage;
    this.#words = words;
    this.#vectors = vectors;
    this.#rowVectors = rowVectors;
  }

  find(request: Find): SearchPlace[] {
    const { match, limit, offset, memoryOf } = request;
    const hits = (all: readonly Scored[]): readonly Scored[] => (memoryOf === undefined ? all : apart(all, offset + limit));
    const { order: found, others } = this.#order(request);
    const order = relative(found, 1);
    let shown = hits(order);
    // Beyond the pool the order is that of the texts' own words, so that pages stay pages of one list.
    if (shown.length < offset + limit && others !== undefined) {
      const known = new Set(order.map(({ id }) => id));
      const further = relative(others(offset + limit + order.length), order.at(-1)?.score ?? 1);
      shown = hits([...order, ...further.filter(({ id }) => !known.has(id))]);
    }
    const page = this.#whole(shown.slice(offset, offset + limit));
    if (page.length === 0) return [];
    const textOf = this.#marks(match, page);
    const beside = this.#beside(page);
    return page.map((row) => {
      const marked = textOf(row);
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
  /** The first hits in their order, and what gives the texts that match by their own words alone; undefined: there are no others. */
  #order(request: Find): { readonly order: readonly Scored[]; readonly others?: (limit: number) => readonly Scored[] } {
    const { match } = request;
    const searched = new SearchedSources(this.#storage, request);
    // Beside what must be exact, one word ranks nothing.
    const least = match.exact === undefined ? 1 : 2;
    const matches = match.words.length >= least ? this.#words.find(match.words) : undefined;
    const excluded = this.#excluded(match);
    const best = (limit: number): readonly Scored[] =>
      match.exact !== undefined || matches === undefined ? this.#exact(request, limit) : taken(matches, searched, excluded, limit);
    const pool = best(POOL);
    const more = pool.length < POOL ? {} : { others: best };
    // Every text of the pool has the only word of a search for one word: its place adds nothing.
    if (matches === undefined || matches.words < 2) return { order: pool, ...more };
    if ((request.near === undefined && request.nearRows === undefined) || !usesMeaning(match))
      return { order: rankedBy(matches, pool), ...more };
    const known = new Set(pool.map(({ id }) => id));
    const near = this.#candidates([...this.#near(request, searched)].filter((id) => !known.has(id) && !excluded.has(id)));
    const candidates = [...pool, ...near];
    const nearness = this.#nearness(
      request,
      candidates.map(({ id }) => id),
    );
    return { order: rankedBy(matches, candidates, nearness), ...more };
  }
  #excluded({ without }: Find["match"]): ReadonlySet<number> {
    if (without === undefined) return new Set();
    const { ids } = this.#storage.sql
      .exec<{ ids: string }>("SELECT json_group_array(rowid) AS ids FROM places WHERE places MATCH ?", ofText(without))
      .one();
    return new Set(JSON.parse(ids) as readonly number[]);
  }
  /** Texts that match exactly, the best by their own words first. */
  #exact(request: Find, limit: number): Scored[] {
    const { where, params } = sourceConditions(request);
    // Scores are cut to two decimals, and among equal ones the later text comes first (round() is several times slower). `CROSS JOIN` keeps this order of tables:
    // a look-up of each text in the index would be slower by far.
    return this.#scored(
      `SELECT d.id, d.source, d.ord, d.at, -bm25(places) AS score FROM places CROSS JOIN docs d ON d.id = places.rowid CROSS JOIN sources s ON s.id = d.source WHERE places MATCH ? AND ${where} ORDER BY CAST(score * 100 AS INTEGER) DESC, d.at DESC, d.id DESC LIMIT ?`,
      ofText(request.match.exact ?? ""),
      ...params,
      limit,
    );
  }
  /** Texts that are near the question, of the sources that are searched. */
  #near({ near, nearRows }: Find, searched: SearchedSources): ReadonlySet<number> {
    const ofTexts =
      near === undefined ? [] : nearestOf(searched, (isSearched, limit) => this.#vectors.nearest(near, isSearched, limit, LEAST_COSINE));
    const ofRows =
      nearRows === undefined
        ? []
        : nearestOf(searched, (isSearched, limit) => this.#rowVectors.nearest(nearRows, isSearched, limit, LEAST_SERVICE_COSINE));
    return new Set([...ofTexts, ...ofRows].map(({ id }) => id));
  }
  /** A row that has a vector of the embedding service is compared by that one alone. */
  #nearness({ near, nearRows }: Find, ids: readonly number[]): ReadonlyMap<number, number> {
    const byService = nearRows === undefined ? new Map<number, number>() : this.#rowVectors.cosines(nearRows, ids);
    const others = ids.filter((id) => !byService.has(id));
    const byTable = near === undefined ? new Map<number, number>() : this.#vectors.cosines(near, others);
    return new Map([...scaled(byService), ...scaled(byTable)]);
  }
  #candidates(near: readonly number[]): Scored[] {
    return this.#scored(
      "SELECT d.id, d.source, d.ord, d.at, 0 AS score FROM json_each(?) w JOIN docs d ON d.id = w.value",
      JSON.stringify(near),
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
  #marks({ exact, words }: Find["match"], page: readonly Row[]): (row: Row) => string {
    if (exact === undefined) {
      const mark = withMarks(words);
      return ({ text }) => mark(text);
    }
    const marked = new Map(
      this.#storage.sql
        .exec<{ id: number; marked: string }>(
          // In this order of tables FTS5 goes to each text; else it would go through all that match.
          "SELECT places.rowid AS id, highlight(places, 0, ?, ?) AS marked FROM json_each(?) w CROSS JOIN places ON places.rowid = w.value WHERE places MATCH ?",
          MARK_BEGIN,
          MARK_END,
          JSON.stringify(page.map(({ id }) => id)),
          ofText(exact),
        )
        .toArray()
        .map((row) => [row.id, row.marked]),
    );
    return ({ id, text }) => marked.get(id) ?? text;
  }
  /** The texts beside each of these lines and messages. Parts of other files are long enough by themselves. */
  #beside(page: readonly Row[]): (row: Row) => Pick<SearchPlace, "before" | "after"> {
    const isShown = ({ kind, name }: Row): boolean => kind !== "workspace" || isMemory(name);
    const texts = new Map(
      this.#docs<Pick<IndexedText, "source" | "ord"> & { text: string }>("d.source, d.ord, d.text", page.filter(isShown)).map(
        ({ source, ord, text }) => [`${source} ${ord}`, text],
      ),
    );
    return (row) => {
      const from = (first: number, last: number): string[] =>
        range(row.ord + first, row.ord + last).flatMap((ord) => texts.get(`${row.source} ${ord}`) ?? []);
      return isShown(row) ? { before: from(-BEFORE, -1), after: from(1, AFTER) } : { before: [], after: [] };
    };
  }
  /** Columns of these texts and of the ones around them, each text once. */
  #docs<Columns extends Record<string, SqlStorageValue>>(
    columns: string,
    around: readonly Pick<IndexedText, "source" | "ord">[],
  ): Columns[] {
    return this.#storage.sql
      .exec<Columns>(
        `SELECT ${columns} FROM json_each(?) w JOIN docs d ON d.source = w.value / ${ORDS} AND d.ord = w.value % ${ORDS}`,
        JSON.stringify(numbersAround(around)),
      )
      .toArray();
  }
}

type Known = Pick<SourceRow, "kind" | "name" | "session_key" | "session_id" | "taint"> & {
  id: number;
  text: string;
  position: number;
  role: string | null;
};
type Row = Scored & Known;
/** An exact word must be in the text itself: FTS5's table has the text's date only for beginnings of words. */
const ofText = (expression: string): string => `{text} : (${expression})`;
/** Texts with one of the words, the best by their own words first. */
function taken(matches: WordMatches, searched: SearchedSources, excluded: ReadonlySet<number>, limit: number): readonly Scored[] {
  const found: Scored[] = [];
  for (const some of batches(matches.best(), limit)) {
    const sources = searched.among(some.map(({ source }) => source));
    found.push(...some.filter(({ id, source }) => sources.has(source) && !excluded.has(id)));
    if (found.length >= limit) break;
  }
  return found.slice(0, limit);
}
/** In the order of their words, of the words of their places and of their nearness. */
const rankedBy = (matches: WordMatches, candidates: readonly Scored[], nearness?: ReadonlyMap<number, number>): readonly Scored[] =>
  ranked(candidates, matches.termScoresAround(candidates), matches.words, nearness);
/** The nearest of all texts are looked at first: most of them are of sources that are searched. */
function nearestOf(
  searched: SearchedSources,
  nearest: (isSearched: (source: number) => boolean, limit: number) => readonly Near[],
): readonly Near[] {
  const first = nearest(() => true, LOOKED_AT);
  const some = searched.among(first.map(({ source }) => source));
  const found = first.filter(({ source }) => some.has(source)).slice(0, NEAR);
  if (found.length === NEAR || first.length < LOOKED_AT) return found;
  const all = searched.all();
  return nearest((source) => all.has(source), NEAR);
}
function* batches<T>(all: Iterable<T>, size: number): IterableIterator<readonly T[]> {
  let batch: T[] = [];
  for (const one of all) {
    batch.push(one);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
/** The numbers of texts and of the ones around them. */
function numbersAround(around: readonly Pick<IndexedText, "source" | "ord">[]): readonly number[] {
  const wanted = new Set<number>();
  for (const { source, ord } of around)
    for (let at = Math.max(0, ord - BEFORE); at <= Math.min(ORDS - 1, ord + AFTER); at++) wanted.add(textKey(source, at));
  return [...wanted];
}
const range = (first: number, last: number): readonly number[] => Array.from({ length: last - first + 1 }, (_, step) => first + step);
