/** What an agent's search index is made of: its sources, and how far each is read. Must not know their texts. */
import type { Database } from "../../platform/sql.ts";
import type { IndexKind } from "../../ports/search.ts";

/**
 * `new`: not indexed, or indexed in an older version. `partial`: partly indexed. `done`: indexed. `skipped`: has no searchable text.
 * `damaged`: the readable part is indexed. `gone`: the source was deleted, and its texts are being removed.
 */
export type SourceState = "new" | "partial" | "done" | "skipped" | "damaged" | "gone";
export type SourceRow = {
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
  taint: string | null;
};

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
export type SourceChange = Partial<Omit<Source, "id" | "kind" | "name">> & SourceTaint;
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

export class SourceStore {
  readonly #storage: Database;

  constructor(storage: Database) {
    this.#storage = storage;
  }

  /** Makes the table; first drops that of another version. */
  create(): void {
    const { sql } = this.#storage;
    sql.exec("DROP TABLE IF EXISTS sources");
    sql.exec(
      "CREATE TABLE sources(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, etag TEXT NOT NULL, state TEXT NOT NULL, session_key TEXT, session_id TEXT, next INTEGER NOT NULL DEFAULT 0, context_from INTEGER NOT NULL DEFAULT 0, checked_at INTEGER NOT NULL DEFAULT 0, note TEXT, taint TEXT, UNIQUE(kind, name)) STRICT",
    );
    // Each search asks for those that must be read or removed, or that have a note: they are few.
    sql.exec("CREATE INDEX sources_by_state ON sources(state, kind)");
    sql.exec("CREATE INDEX sources_with_note ON sources(kind, name) WHERE note IS NOT NULL");
  }

  of(kind: IndexKind): Source[] {
    return this.#storage.sql.exec<SourceRow>("SELECT * FROM sources WHERE kind = ? ORDER BY name", kind).toArray().map(sourceOf);
  }
  one(kind: IndexKind, name: string): Source | undefined {
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
    this.#storage.transactionSync(() => {
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
  addSession(key: string): Source {
    this.#storage.sql.exec(
      "INSERT INTO sources(kind, name, etag, state, session_key) VALUES('sessions', ?, '', 'new', ?) ON CONFLICT(kind, name) DO NOTHING",
      key,
      key,
    );
    const source = this.one("sessions", key);
    if (source === undefined) throw new Error("the row that was just written is missing");
    return source;
  }
  /** Adds a memory, which is read with its text. Returns its number. */
  addMemory(name: string): number {
    return this.#storage.sql
      .exec<{ id: number }>("INSERT INTO sources(kind, name, etag, state) VALUES('memory', ?, '', 'done') RETURNING id", name)
      .one().id;
  }
  /** What is known of a source now. */
  change(id: number, change: SourceChange): void {
    const names = (Object.keys(COLUMNS) as (keyof typeof COLUMNS)[]).filter((name) => Object.hasOwn(change, name));
    if (names.length === 0) return;
    this.#storage.sql.exec(
      `UPDATE sources SET ${names.map((name) => `${COLUMNS[name]} = ?`).join(", ")} WHERE id = ?`,
      ...names.map((name) => change[name] ?? null),
      id,
    );
  }
  /** The id of a deleted source; undefined: none is left. */
  gone(): number | undefined {
    return this.#storage.sql.exec<{ id: number }>("SELECT id FROM sources WHERE state = 'gone' LIMIT 1").toArray()[0]?.id;
  }
  remove(id: number): void {
    this.#storage.sql.exec("DELETE FROM sources WHERE id = ?", id);
  }
}
