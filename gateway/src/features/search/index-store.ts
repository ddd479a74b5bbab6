/**
 * The tables of an agent's search index, in SQLite's FTS5. All of them are derived: they can be dropped at any time, and the next
 * search rebuilds them. Each call is one bounded transaction. Must not know the sources of texts.
 */
import type { Database } from "../../platform/sql.ts";
import type { IndexKind, SearchPlace, SearchRequest } from "../../ports/search.ts";
import { AFTER, apart, BEFORE, type Candidate, type Place, ranked } from "./ranking.ts";
import { isMemory, linesBefore, MARK_BEGIN, MARK_END, segment } from "./text.ts";

/** When this number changes, all tables are dropped and rebuilt. */
const SCHEMA = 3;
/** Rows that one transaction removes. */
const REMOVE_STEP = 500;
/** SQLite's "no limit". */
const ALL = -1;
/** The best texts by their own words. These are ranked with their places; further ones follow as they are. */
const POOL = 300;
/** Words that rank; more are only searched. */
const RANKING_WORDS = 24;
/** A word of the date is worth as much as a word of the text. */
const BM25 = "bm25(stems, 1.0, 1.0)";

/**
 * `new`: not indexed, or indexed in an older version. `partial`: partly indexed. `done`: indexed. `skipped`: has no searchable text.
 * `damaged`: the readable part is indexed. `gone`: the source was deleted, and its texts are being removed.
 */
export type SourceState = "new" | "partial" | "done" | "skipped" | "damaged" | "gone";
/** A file, a transcript, a conversation or a memory. */
export interface Source {
  readonly id: number;
  readonly kind: IndexKind;
  /** A path in the workspace, a session's key, or the id of a memory. */
  readonly name: string;
  readonly etag: string;
  readonly state: SourceState;
  readonly sessionKey: string | undefined;
  readonly sessionId: string | undefined;
  /** For a transcript: the next message. For a session: the last number that was read. */
  readonly next: number;
  /** For a session: the first number that it has now. */
  readonly contextFrom: number;
  /** For a session: everything before this time is indexed. */
  readonly checkedAt: number;
  readonly note: string | undefined;
}
export interface Doc {
  readonly position: number;
  readonly role?: string;
  readonly at: number;
  readonly text: string;
  /** The words of its date. */
  readonly day?: string;
}
export type Find = Omit<SearchRequest, "agentId">;
type SourceRow = {
  id: number;
  kind: IndexKind;
  name: string;
  etag: string;
  state: SourceState;
  session_key: string | null;
  session_id: string | null;
  next: number;
  context_from: number;
  checked_at: number;
  note: string | null;
};
type SourceChange = Partial<Omit<Source, "id" | "kind" | "name">>;
const COLUMNS = {
  etag: "etag",
  state: "state",
  sessionKey: "session_key",
  sessionId: "session_id",
  next: "next",
  contextFrom: "context_from",
  checkedAt: "checked_at",
  note: "note",
} as const satisfies Record<keyof SourceChange, string>;

const sourceOf = (row: SourceRow): Source => ({
  id: row.id,
  kind: row.kind,
  name: row.name,
  etag: row.etag,
  state: row.state,
  sessionKey: row.session_key ?? undefined,
  sessionId: row.session_id ?? undefined,
  next: row.next,
  contextFrom: row.context_from,
  checkedAt: row.checked_at,
  note: row.note ?? undefined,
});

export class IndexStore {
  readonly #storage: Database;

  constructor(storage: Database) {
    this.#storage = storage;
  }

  /** Creates the tables; first drops tables of another version. */
  prepare(agentId: string): void {
    const { sql } = this.#storage;
    this.#storage.transactionSync(() => {
      sql.exec("CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID");
      if (this.#meta("schema") === String(SCHEMA)) return;
      for (const table of ["places", "stems", "docs", "sources"]) sql.exec(`DROP TABLE IF EXISTS ${table}`);
      sql.exec(
        "CREATE TABLE sources(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, etag TEXT NOT NULL, state TEXT NOT NULL, session_key TEXT, session_id TEXT, next INTEGER NOT NULL DEFAULT 0, context_from INTEGER NOT NULL DEFAULT 0, checked_at INTEGER NOT NULL DEFAULT 0, note TEXT, UNIQUE(kind, name)) STRICT",
      );
      sql.exec(
        "CREATE TABLE docs(id INTEGER PRIMARY KEY, source INTEGER NOT NULL, position INTEGER NOT NULL, ord INTEGER NOT NULL, role TEXT, at INTEGER NOT NULL, text TEXT NOT NULL, day TEXT NOT NULL) STRICT",
      );
      sql.exec("CREATE INDEX docs_of_source ON docs(source, position)");
      sql.exec("CREATE INDEX docs_in_order ON docs(source, ord)");
      // Both read their texts from `docs`: words as they are written, and their stems.
      sql.exec(
        "CREATE VIRTUAL TABLE places USING fts5(text, content = 'docs', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2')",
      );
      sql.exec(
        "CREATE VIRTUAL TABLE stems USING fts5(text, day, content = 'docs', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2')",
      );
      for (const [name, value] of [
        ["memories", "0"],
        ["schema", String(SCHEMA)],
        ["agent", agentId],
      ] as const)
        this.#setMeta(name, value);
    });
  }
  /** The agent of this index; undefined before the first search. */
  agent(): string | undefined {
    const made = this.#storage.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'").toArray().length > 0;
    return made ? this.#meta("agent") : undefined;
  }
  #meta(name: string): string | undefined {
    return this.#storage.sql.exec<{ value: string }>("SELECT value FROM meta WHERE name = ?", name).toArray()[0]?.value;
  }

  #setMeta(name: string, value: string): void {
    this.#storage.sql.exec(
      "INSERT INTO meta(name, value) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
      name,
      value,
    );
  }

  // ---------------------------------------------------------------- sources

  sources(kind: IndexKind): Source[] {
    return this.#storage.sql.exec<SourceRow>("SELECT * FROM sources WHERE kind = ? ORDER BY name", kind).toArray().map(sourceOf);
  }
  source(kind: IndexKind, name: string): Source | undefined {
    const row = this.#storage.sql.exec<SourceRow>("SELECT * FROM sources WHERE kind = ? AND name = ?", kind, name).toArray()[0];
    return row && sourceOf(row);
  }
  open(kind: IndexKind): number {
    const row = this.#storage.sql
      .exec<{ n: number }>("SELECT count(*) AS n FROM sources WHERE kind = ? AND state IN ('new', 'partial')", kind)
      .toArray()[0];
    return row?.n ?? 0;
  }
  /** Whether a transcript of this session, or of a still unknown session, is not indexed yet. */
  archiveOpenFor(sessionKey: string): boolean {
    return (
      this.#storage.sql
        .exec(
          "SELECT 1 FROM sources WHERE kind = 'archives' AND state IN ('new', 'partial') AND (session_key IS NULL OR session_key = ?) LIMIT 1",
          sessionKey,
        )
        .toArray().length > 0
    );
  }
  /** Applies a listing of the bucket: new and changed objects must be read, missing ones become `gone`. */
  listed(kind: "workspace" | "archives", found: ReadonlyMap<string, string>): void {
    const known = new Map(this.sources(kind).map((source) => [source.name, source]));
    this.#storage.transactionSync(() => {
      const { sql } = this.#storage;
      for (const [name, etag] of found) {
        const source = known.get(name);
        if (source === undefined) sql.exec("INSERT INTO sources(kind, name, etag, state) VALUES(?, ?, ?, 'new')", kind, name, etag);
        else if (source.etag !== etag || source.state === "gone")
          sql.exec("UPDATE sources SET etag = ?, state = 'new', next = 0, note = NULL WHERE id = ?", etag, source.id);
      }
      for (const [name, source] of known)
        if (!found.has(name) && source.state !== "gone") sql.exec("UPDATE sources SET state = 'gone' WHERE id = ?", source.id);
    });
  }
  /** A deleted session and its transcripts become `gone`. */
  forget(sessionKey: string, sessionIds: readonly string[]): void {
    this.#storage.sql.exec(
      `UPDATE sources SET state = 'gone' WHERE (kind = 'sessions' AND name = ?1)
        OR (kind = 'archives' AND (session_key = ?1 OR session_id IN (SELECT value FROM json_each(?2))))`,
      sessionKey,
      JSON.stringify(sessionIds),
    );
  }
  /** Memories may be removed until this time (epoch ms); undefined: no removal is under way. */
  memoriesExpected(): number | undefined {
    const until = this.#meta("memories-expected");
    return until === undefined ? undefined : Number(until);
  }
  expectMemories(until: number | undefined): void {
    if (until === undefined) this.#storage.sql.exec("DELETE FROM meta WHERE name = 'memories-expected'");
    else this.#setMeta("memories-expected", String(until));
  }
  /** The last change of a memory that is indexed. */
  memoriesSeen(): number {
    return Number(this.#meta("memories") ?? 0);
  }
  /**
   * Applies changes of memories: `docs` of undefined removes a memory with everything that was made of it, down to the words in FTS5's
   * own tables. One transaction.
   */
  memories(changes: readonly { readonly id: string; readonly docs: readonly Doc[] | undefined }[], seen: number): void {
    const { sql } = this.#storage;
    this.#storage.transactionSync(() => {
      const removed: number[] = [];
      for (const { id, docs } of changes) {
        const known = this.source("memory", id);
        if (docs === undefined) {
          if (known !== undefined) removed.push(known.id);
        } else if (known === undefined) {
          const { source } = sql
            .exec<{ source: number }>(
              "INSERT INTO sources(kind, name, etag, state) VALUES('memory', ?, '', 'done') RETURNING id AS source",
              id,
            )
            .one();
          this.#insert(source, docs);
        }
      }
      if (removed.length > 0) {
        for (const table of ["places", "stems"]) sql.exec(`INSERT INTO ${table}(${table}, rank) VALUES('secure-delete', 1)`);
        for (const source of removed) {
          this.#remove(source, Number.MAX_SAFE_INTEGER, ALL);
          sql.exec("DELETE FROM sources WHERE id = ?", source);
        }
        for (const table of ["places", "stems"]) sql.exec(`INSERT INTO ${table}(${table}, rank) VALUES('secure-delete', 0)`);
      }
      this.#setMeta("memories", String(seen));
    });
  }
  addSession(key: string): Source {
    this.#storage.sql.exec(
      "INSERT INTO sources(kind, name, etag, state, session_key) VALUES('sessions', ?, '', 'new', ?) ON CONFLICT(kind, name) DO NOTHING",
      key,
      key,
    );
    const source = this.source("sessions", key);
    if (source === undefined) throw new Error("the row that was just written is missing");
    return source;
  }
  /** Adds texts to a source and records its progress, in one transaction. */
  add(sourceId: number, docs: readonly Doc[], change: SourceChange): void {
    this.#storage.transactionSync(() => {
      this.#insert(sourceId, docs);
      this.#change(sourceId, change);
    });
  }
  /** Replaces all texts of a source. For sources that fit one transaction. */
  replace(sourceId: number, docs: readonly Doc[], change: SourceChange): void {
    this.#storage.transactionSync(() => {
      this.#remove(sourceId, Number.MAX_SAFE_INTEGER, ALL);
      this.#insert(sourceId, docs);
      this.#change(sourceId, change);
    });
  }
  /** One table after the other: FTS5 flushes its pending words whenever a statement writes to another table. */
  #insert(sourceId: number, docs: readonly Doc[]): void {
    const { sql } = this.#storage;
    if (docs.length === 0) return;
    const from = sql.exec<{ next: number }>("SELECT coalesce(max(ord) + 1, 0) AS next FROM docs WHERE source = ?", sourceId).one().next;
    for (const [index, { position, role, at, text, day = "" }] of docs.entries())
      sql.exec(
        "INSERT INTO docs(source, position, ord, role, at, text, day) VALUES(?, ?, ?, ?, ?, ?, ?)",
        sourceId,
        position,
        from + index,
        role ?? null,
        at,
        segment(text),
        day,
      );
    sql.exec("INSERT INTO places(rowid, text) SELECT id, text FROM docs WHERE source = ? AND ord >= ?", sourceId, from);
    sql.exec("INSERT INTO stems(rowid, text, day) SELECT id, text, day FROM docs WHERE source = ? AND ord >= ?", sourceId, from);
  }
  #change(sourceId: number, change: SourceChange): void {
    const names = (Object.keys(COLUMNS) as (keyof typeof COLUMNS)[]).filter((name) => Object.hasOwn(change, name));
    if (names.length === 0) return;
    this.#storage.sql.exec(
      `UPDATE sources SET ${names.map((name) => `${COLUMNS[name]} = ?`).join(", ")} WHERE id = ?`,
      ...names.map((name) => change[name] ?? null),
      sourceId,
    );
  }
  /** Removes up to `most` texts of a source with a position below `below`. Returns their number. */
  #remove(sourceId: number, below: number, most: number): number {
    const { sql } = this.#storage;
    const some = "WHERE id IN (SELECT id FROM docs WHERE source = ? AND position < ? ORDER BY position, id LIMIT ?)";
    const params = [sourceId, below, most];
    sql.exec(`INSERT INTO places(places, rowid, text) SELECT 'delete', id, text FROM docs ${some}`, ...params);
    sql.exec(`INSERT INTO stems(stems, rowid, text, day) SELECT 'delete', id, text, day FROM docs ${some}`, ...params);
    return sql.exec(`DELETE FROM docs ${some} RETURNING id`, ...params).toArray().length;
  }
  /** Removes one step of a source's texts with a position below `below`. True when none remain. */
  removeBelow(sourceId: number, below: number): boolean {
    return this.#storage.transactionSync(() => this.#remove(sourceId, below, REMOVE_STEP) < REMOVE_STEP);
  }
  /** Removes one step of a deleted source. True when nothing of any remains. */
  removeGone(): boolean {
    const gone = this.#storage.sql.exec<{ id: number }>("SELECT id FROM sources WHERE state = 'gone' LIMIT 1").toArray()[0];
    if (gone === undefined) return true;
    if (this.removeBelow(gone.id, Number.MAX_SAFE_INTEGER)) this.#storage.sql.exec("DELETE FROM sources WHERE id = ?", gone.id);
    return false;
  }

  // ---------------------------------------------------------------- query

  find(request: Find): SearchPlace[] {
    const { match, limit, offset, memoryOf } = request;
    const rows = this.#best(request, Math.max(POOL, offset + limit));
    // Beyond the pool the order is that of the texts' own words, so that pages stay pages of one list.
    const order = [...this.#ranked(rows.slice(0, POOL), match.words), ...rows.slice(POOL)];
    const page = this.#whole((memoryOf === undefined ? order : apart(order)).slice(offset, offset + limit));
    if (page.length === 0) return [];
    const texts = this.#marked(
      match,
      page.map(({ id }) => id),
    );
    const beside = this.#beside(page);
    return page.map((row) => {
      const marked = texts.get(row.id) ?? "";
      return {
        kind: row.kind,
        name: row.name,
        sessionKey: row.session_key ?? undefined,
        sessionId: row.session_id ?? undefined,
        role: row.role ?? undefined,
        at: row.at,
        position: row.kind === "workspace" ? row.position + linesBefore(marked) : row.position,
        score: row.score,
        marked,
        ...beside(row),
      };
    });
  }
  /** Texts that match, the best by their own words first. */
  #best({ match, sources, sessionKey, memoryOf }: Find, limit: number): Scored[] {
    const isExact = match.exact !== undefined;
    const where: string[] = [];
    const params: SqlStorageValue[] = [];
    if (match.without !== undefined) {
      where.push("d.id NOT IN (SELECT rowid FROM places WHERE places MATCH ?)");
      params.push(match.without);
    }
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
    const [table, score] = isExact ? ["places", "bm25(places)"] : ["stems", BM25];
    // Scores are cut to two decimals, and among equal ones the later text comes first (round() is several times slower). `CROSS JOIN` keeps this order of tables:
    // a look-up of each text in the index would be slower by far. For the same reason `+rowid` below.
    return this.#storage.sql
      .exec<Scored>(
        `SELECT d.id, d.source, d.ord, d.at, -${score} AS score FROM ${table} CROSS JOIN docs d ON d.id = ${table}.rowid CROSS JOIN sources s ON s.id = d.source WHERE ${table} MATCH ? AND s.state <> 'gone' AND ${where.join(" AND ")} ORDER BY CAST(score * 100 AS INTEGER) DESC, d.at DESC, d.id DESC LIMIT ?`,
        match.exact ?? match.words.join(" OR "),
        ...params,
        limit,
      )
      .toArray();
  }
  /** The pool by its texts' own words and the words of their places. */
  #ranked(pool: readonly Scored[], words: readonly string[]): readonly Scored[] {
    const asked = words.slice(0, RANKING_WORDS);
    // Every text of the pool has the only word of a search for one word: its place adds nothing.
    if (asked.length < 2 || pool.length === 0) return pool;
    const { sql } = this.#storage;
    const places = this.#docs<Place>("d.id, d.source, d.ord", pool);
    const ids = JSON.stringify(places.map(({ id }) => id));
    const values = asked.map(
      (word) =>
        new Map(
          sql
            .exec<{ id: number; score: number }>(
              `SELECT rowid AS id, -${BM25} AS score FROM stems WHERE stems MATCH ? AND +rowid IN (SELECT value FROM json_each(?))`,
              word,
              ids,
            )
            .toArray()
            .map(({ id, score }) => [id, score]),
        ),
    );
    return ranked(pool, places, values);
  }
  /** Scored texts with what is known of them and of their sources. */
  #whole(scored: readonly Scored[]): Row[] {
    const known = new Map(
      this.#storage.sql
        .exec<Known>(
          "SELECT d.id, d.position, d.role, s.kind, s.name, s.session_key, s.session_id FROM json_each(?) w JOIN docs d ON d.id = w.value JOIN sources s ON s.id = d.source",
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
          `SELECT rowid AS id, highlight(${table}, 0, ?, ?) AS marked FROM ${table} WHERE ${table} MATCH ? AND +rowid IN (${ids.join(", ")})`,
          MARK_BEGIN,
          MARK_END,
          exact ?? words.join(" OR "),
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
  /** Columns of these texts and of the ones around them, each text once. */
  #docs<Columns extends Record<string, SqlStorageValue>>(columns: string, around: readonly Pick<Place, "source" | "ord">[]): Columns[] {
    const wanted = new Map<number, Set<number>>();
    for (const { source, ord } of around) {
      const known = wanted.get(source) ?? new Set();
      for (const at of range(ord - BEFORE, ord + AFTER)) known.add(at);
      wanted.set(source, known);
    }
    return this.#storage.sql
      .exec<Columns>(
        `SELECT ${columns} FROM json_each(?) w JOIN docs d ON d.source = w.value ->> 0 AND d.ord = w.value ->> 1`,
        JSON.stringify([...wanted].flatMap(([source, ords]) => [...ords].map((ord) => [source, ord]))),
      )
      .toArray();
  }
}

type Scored = Candidate & { readonly score: number };
type Known = Pick<SourceRow, "kind" | "name" | "session_key" | "session_id"> & { id: number; position: number; role: string | null };
type Row = Scored & Known;
const range = (first: number, last: number): readonly number[] => Array.from({ length: last - first + 1 }, (_, step) => first + step);
