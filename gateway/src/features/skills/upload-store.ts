/**
 * Stores the chunks of skills that do not fit one frame until they are installed. Bounded in number, size and time. Chunks may arrive in
 * any order and more than once. Must not know files: the installation says where each file is, and its digest.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

export const MAX_CHUNKS = Math.ceil(LIMITS.skillFilesBytes / LIMITS.skillChunkBytes);

export class SkillUploads {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Stores a chunk, and renews the upload's lease. Undefined: there are too many uploads. */
  add(id: string, chunk: number, bytes: Uint8Array<ArrayBuffer>, now: number): { receivedBytes: number; expiresAt: number } | undefined {
    const { sql } = this.#db;
    return this.#db.transactionSync(() => {
      this.prune(now);
      const known = one<{ installed: string | null }>(sql, "SELECT installed FROM skill_uploads WHERE id = ?", id);
      if (known === undefined && this.#open() >= LIMITS.skillUploads) return undefined;
      const expiresAt = now + LIMITS.skillUploadMs;
      run(
        sql,
        "INSERT INTO skill_uploads(id, expires_at) VALUES(?, ?) ON CONFLICT(id) DO UPDATE SET expires_at = excluded.expires_at",
        id,
        expiresAt,
      );
      // A late repetition of a chunk of an installed upload is not needed any more.
      if (known === undefined || known.installed === null)
        run(sql, "INSERT OR REPLACE INTO skill_upload_chunks(id, chunk, bytes) VALUES(?, ?, ?)", id, chunk, bytes.slice().buffer);
      const size = one<{ n: number | null }>(sql, "SELECT sum(length(bytes)) AS n FROM skill_upload_chunks WHERE id = ?", id)?.n;
      return { receivedBytes: size ?? 0, expiresAt };
    });
  }

  /** All bytes of an upload; undefined when it is unknown, expired, or lacks a chunk. */
  bytes(id: string, now: number): Uint8Array<ArrayBuffer> | undefined {
    this.prune(now);
    const chunks = all<{ chunk: number; bytes: ArrayBuffer }>(
      this.#db.sql,
      "SELECT chunk, bytes FROM skill_upload_chunks WHERE id = ? ORDER BY chunk",
      id,
    );
    const isWhole = chunks.every(
      ({ chunk, bytes }, at) => chunk === at && (at === chunks.length - 1 || bytes.byteLength === LIMITS.skillChunkBytes),
    );
    if (chunks.length === 0 || !isWhole) return undefined;
    const out = new Uint8Array(chunks.reduce((sum, { bytes }) => sum + bytes.byteLength, 0));
    for (const { chunk, bytes } of chunks) out.set(new Uint8Array(bytes), chunk * LIMITS.skillChunkBytes);
    return out;
  }

  /** What was installed from this upload, as `done` was told. */
  installed(id: string, now: number): string | undefined {
    this.prune(now);
    return one<{ installed: string | null }>(this.#db.sql, "SELECT installed FROM skill_uploads WHERE id = ?", id)?.installed ?? undefined;
  }
  /** Deletes the chunks, and remembers what was installed until the lease ends, so that a repeated installation is done once. */
  done(id: string, installed: string): void {
    this.#db.transactionSync(() => {
      run(this.#db.sql, "DELETE FROM skill_upload_chunks WHERE id = ?", id);
      run(this.#db.sql, "UPDATE skill_uploads SET installed = ? WHERE id = ?", installed, id);
    });
  }

  prune(now: number): void {
    this.#db.transactionSync(() => {
      run(this.#db.sql, "DELETE FROM skill_upload_chunks WHERE id IN (SELECT id FROM skill_uploads WHERE expires_at <= ?)", now);
      run(this.#db.sql, "DELETE FROM skill_uploads WHERE expires_at <= ?", now);
    });
  }
  nextExpiry(): number | undefined {
    return one<{ at: number | null }>(this.#db.sql, "SELECT min(expires_at) AS at FROM skill_uploads")?.at ?? undefined;
  }
  #open(): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM skill_uploads WHERE installed IS NULL")?.n ?? 0;
  }
}
