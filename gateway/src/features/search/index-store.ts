/**
 * The tables of an agent's search index, in SQLite's FTS5. All of them are derived: they can be dropped at any time, and the next
 * search rebuilds them. Each call is one bounded transaction. Must not know the sources of texts.
 */
import type { Database } from "../../platform/sql.ts";
import type { IndexKind, SearchPlace } from "../../ports/search.ts";
import { type Find, IndexQuery, type SourceRow, type SourceState } from "./index-query.ts";
import type { Embedder } from "./static-embeddings.ts";
import { segment } from "./text.ts";
import type { MemoryChanged } from "../../ports/long-term-memory.ts";
import { RowVectorStore } from "./row-vector-store.ts";
import { VectorStore } from "./vector-store.ts";

/** When this number changes, all tables are dropped and rebuilt. */
const SCHEMA = 7;
/** Rows that one transaction removes. */
const REMOVE_STEP = 500;
/** SQLite's "no limit". */
const ALL = -1;
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
interface SourceTaint {
  /** The label of the read object; undefined: it has none. Absent: unchanged. */
  readonly taint?: string | undefined;
}
/** An object of the bucket, as a listing has it. */
export interface Listed {
  readonly etag: string;
  /** The label in its metadata, as text. */
  readonly taint?: string;
}
export interface Doc {
  readonly position: number;
  readonly role?: string;
  readonly at: number;
  readonly text: string;
  /** The words of its date. */
  readonly day?: string;
}
/** `docs` of undefined: the memory is not found any more. */
export interface MemoryChange extends Pick<MemoryChanged, "id" | "vector"> {
  readonly docs: readonly Doc[] | undefined;
}
type SourceChange = Partial<Omit<Source, "id" | "kind" | "name">> & SourceTaint;
const COLUMNS = {
  etag: "etag",
  state: "state",
  sessionKey: "session_key",
  sessionId: "session_id",
  next: "next",
  contextFrom: "context_from",
  checkedAt: "checked_at",
  note: "note",
  taint: "taint",
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
  readonly #vectors: VectorStore;
  readonly #rowVectors: RowVectorStore;
  #isPrepared = false;

  constructor(storage: Database) {
    this.#storage = storage;
    this.#vectors = new VectorStore(storage);
    this.#rowVectors = new RowVectorStore(storage);
  }

  /** Creates the tables; first drops tables of another version. */
  prepare(agentId: string): void {
    if (this.#isPrepared) return;
    this.#create(agentId);
    this.#isPrepared = true;
  }
  #create(agentId: string): void {
    const { sql } = this.#storage;
    this.#transaction(() => {
      sql.exec("CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID");
      if (this.#meta("schema") === String(SCHEMA)) return;
      for (const table of ["places", "stems", "docs", "sources"]) sql.exec(`DROP TABLE IF EXISTS ${table}`);
      sql.exec(
        "CREATE TABLE sources(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, etag TEXT NOT NULL, state TEXT NOT NULL, session_key TEXT, session_id TEXT, next INTEGER NOT NULL DEFAULT 0, context_from INTEGER NOT NULL DEFAULT 0, checked_at INTEGER NOT NULL DEFAULT 0, note TEXT, taint TEXT, UNIQUE(kind, name)) STRICT",
      );
      // Each search asks for those that must be read or removed, or that have a note: they are few.
      sql.exec("CREATE INDEX sources_by_state ON sources(state, kind)");
      sql.exec("CREATE INDEX sources_with_note ON sources(kind, name) WHERE note IS NOT NULL");
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
      this.#vectors.create();
      this.#rowVectors.create();
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

  /** What a transaction that fails has changed in memory is not in the tables. */
  #transaction<T>(work: () => T): T {
    try {
      return this.#storage.transactionSync(work);
    } catch (error) {
      this.#vectors.dropCache();
      throw error;
    }
  }

  // ---------------------------------------------------------------- sources

  sources(kind: IndexKind): Source[] {
    return this.#storage.sql.exec<SourceRow>("SELECT * FROM sources WHERE kind = ? ORDER BY name", kind).toArray().map(sourceOf);
  }
  source(kind: IndexKind, name: string): Source | undefined {
    const row = this.#storage.sql.exec<SourceRow>("SELECT * FROM sources WHERE kind = ? AND name = ?", kind, name).toArray()[0];
    return row && sourceOf(row);
  }
  /** Those with a note. */
  noted(kind: IndexKind): { readonly note: string; readonly sessionKey: string | undefined }[] {
    return this.#storage.sql
      .exec<{ note: string; session_key: string | null }>(
        "SELECT note, session_key FROM sources WHERE kind = ? AND note IS NOT NULL ORDER BY name",
        kind,
      )
      .toArray()
      .map(({ note, session_key: sessionKey }) => ({ note, sessionKey: sessionKey ?? undefined }));
  }
  /** Those that must be read. */
  unread(kind: IndexKind): Source[] {
    return this.#storage.sql
      .exec<SourceRow>("SELECT * FROM sources WHERE +kind = ? AND state IN ('new', 'partial') ORDER BY name", kind)
      .toArray()
      .map(sourceOf);
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
  /** Applies a listing of the bucket: new and changed objects must be read, missing ones become `gone`. `isListed`: of the names that it would have. */
  listed(kind: "workspace" | "archives", found: ReadonlyMap<string, Listed>, isListed: (name: string) => boolean = () => true): void {
    const { sql } = this.#storage;
    const known = new Map(
      sql
        .exec<Pick<SourceRow, "id" | "name" | "etag" | "state" | "taint">>(
          "SELECT id, name, etag, state, taint FROM sources WHERE kind = ?",
          kind,
        )
        .toArray()
        .map((source) => [source.name, source]),
    );
    const added = [...found].filter(([name]) => !known.has(name));
    const changed = [...known.values()].filter((source) => {
      const now = found.get(source.name);
      return now === undefined
        ? source.state !== "gone" && isListed(source.name)
        : source.state === "gone" || now.etag !== source.etag || (now.taint ?? null) !== source.taint;
    });
    if (added.length + changed.length === 0) return;
    this.#transaction(() => {
      for (const [name, { etag, taint }] of added)
        sql.exec("INSERT INTO sources(kind, name, etag, state, taint) VALUES(?, ?, ?, 'new', ?)", kind, name, etag, taint ?? null);
      for (const { id, name, etag, state } of changed) {
        const now = found.get(name);
        if (now === undefined) sql.exec("UPDATE sources SET state = 'gone' WHERE id = ?", id);
        else if (now.etag === etag && state !== "gone") sql.exec("UPDATE sources SET taint = ? WHERE id = ?", now.taint ?? null, id);
        // The texts are those of the version before, with its label, until the new one is read.
        else sql.exec("UPDATE sources SET etag = ?, state = 'new', next = 0, note = NULL WHERE id = ?", now.etag, id);
      }
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
   * own tables. One transaction. False: others have applied changes since `from`, so these may be old, and nothing was applied.
   */
  memories(changes: readonly MemoryChange[], { from, to }: { readonly from: number; readonly to: number }): boolean {
    const { sql } = this.#storage;
    return this.#transaction(() => {
      if (this.memoriesSeen() !== from) return false;
      const removed: number[] = [];
      for (const { id, docs, vector } of changes) {
        const known = this.source("memory", id);
        if (docs === undefined) {
          if (known !== undefined) removed.push(known.id);
        } else if (known !== undefined) this.#rowVectors.put(known.id, vector);
        else {
          const { source } = sql
            .exec<{ source: number }>(
              "INSERT INTO sources(kind, name, etag, state) VALUES('memory', ?, '', 'done') RETURNING id AS source",
              id,
            )
            .one();
          this.#insert(source, docs);
          this.#rowVectors.put(source, vector);
        }
      }
      if (removed.length > 0) {
        this.#erasing(() => {
          for (const source of removed) {
            this.#remove(source, Number.MAX_SAFE_INTEGER, ALL);
            this.#rowVectors.remove(source);
            sql.exec("DELETE FROM sources WHERE id = ?", source);
          }
        });
      }
      this.#setMeta("memories", String(to));
      return true;
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
    this.#transaction(() => {
      this.#insert(sourceId, docs);
      this.#change(sourceId, change);
    });
  }
  /** Replaces all texts of a source. For sources that fit one transaction. */
  replace(sourceId: number, docs: readonly Doc[], change: SourceChange): void {
    this.#transaction(() => {
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
    this.#vectors.added(sourceId, from);
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
    this.#vectors.removing(some, params);
    return sql.exec(`DELETE FROM docs ${some} RETURNING id`, ...params).toArray().length;
  }
  /** Removes one step of a source's texts with a position below `below`. True when none remain. */
  removeBelow(sourceId: number, below: number): boolean {
    return this.#transaction(() => this.#remove(sourceId, below, REMOVE_STEP) < REMOVE_STEP);
  }
  /** Removes words of texts from the pages of the tables too; without this they stay until the pages are merged. It takes longer. */
  #erasing<T>(work: () => T): T {
    const set = (value: 0 | 1): void => {
      for (const table of ["places", "stems"])
        this.#storage.sql.exec(`INSERT INTO ${table}(${table}, rank) VALUES('secure-delete', ${value})`);
    };
    set(1);
    const done = work();
    set(0);
    return done;
  }
  /** Removes one step of a deleted source. True when nothing of any remains. */
  removeGone(): boolean {
    const gone = this.#storage.sql.exec<{ id: number }>("SELECT id FROM sources WHERE state = 'gone' LIMIT 1").toArray()[0];
    if (gone === undefined) return true;
    this.#transaction(() => {
      const isEmpty = this.#erasing(() => this.#remove(gone.id, Number.MAX_SAFE_INTEGER, REMOVE_STEP) < REMOVE_STEP);
      if (isEmpty) this.#storage.sql.exec("DELETE FROM sources WHERE id = ?", gone.id);
    });
    return false;
  }

  // ---------------------------------------------------------------- vectors and queries

  /** Embeds one step of the texts. With another model than before, all texts are embedded again. True when none wait. */
  embedSome(embedder: Embedder): boolean {
    if (this.#meta("vectors") !== embedder.model)
      this.#transaction(() => {
        this.#vectors.restart();
        this.#setMeta("vectors", embedder.model);
      });
    try {
      return this.#vectors.embedSome(embedder);
    } catch (error) {
      this.#vectors.dropCache();
      throw error;
    }
  }
  /** Texts wait for their vectors, and an embedder was there before. */
  isEmbedding(): boolean {
    return this.#meta("vectors") !== undefined && this.#vectors.isWaiting();
  }
  find(request: Find): SearchPlace[] {
    return new IndexQuery(this.#storage, this.#vectors, this.#rowVectors).find(request);
  }
}
