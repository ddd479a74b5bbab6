/**
 * Files that channels stored for messages which have not come yet. A channel is a program of its own and may never send the message, so
 * these files are bounded for each channel, and deleted when no message has taken them in time.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface WaitingFile {
  readonly channel: string;
  readonly r2Key: string;
  readonly sizeBytes: number;
}
/** Deleted at once from the bucket. */
const SWEEP_STEP = 100;

export class WaitingFiles {
  readonly #db: Database;
  constructor(db: Database) {
    this.#db = db;
  }

  /** Call it before the file is stored. False: this channel has stored enough. Storing a file again counts once. */
  add({ channel, r2Key, sizeBytes }: WaitingFile, now: number): boolean {
    const { sql } = this.#db;
    return this.#db.transactionSync(() => {
      const others = one<{ files: number; bytes: number }>(
        sql,
        "SELECT count(*) AS files, coalesce(sum(size), 0) AS bytes FROM channel_files WHERE channel = ? AND key <> ?",
        channel,
        r2Key,
      ) ?? { files: 0, bytes: 0 };
      if (others.files >= LIMITS.channelFiles || others.bytes + sizeBytes > LIMITS.channelFilesBytes) return false;
      run(
        sql,
        "INSERT INTO channel_files(key, channel, size, at) VALUES(?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET size = excluded.size, at = excluded.at",
        r2Key,
        channel,
        sizeBytes,
        now,
      );
      return true;
    });
  }
  /** A message of the channel has come with these files. */
  taken(channel: string, keys: readonly string[]): void {
    for (const key of keys) run(this.#db.sql, "DELETE FROM channel_files WHERE key = ? AND channel = ?", key, channel);
  }
  /** Some files that no message has taken in time. */
  expired(now: number): readonly string[] {
    const before = now - LIMITS.channelFileMs;
    const rows = all<{ key: string }>(this.#db.sql, "SELECT key FROM channel_files WHERE at <= ? ORDER BY at LIMIT ?", before, SWEEP_STEP);
    return rows.map(({ key }) => key);
  }
  /** The expired files are deleted. */
  forget(keys: readonly string[], now: number): void {
    for (const key of keys) run(this.#db.sql, "DELETE FROM channel_files WHERE key = ? AND at <= ?", key, now - LIMITS.channelFileMs);
  }
  /** When the first file expires; undefined: none waits. */
  nextExpiry(): number | undefined {
    const first = one<{ at: number | null }>(this.#db.sql, "SELECT min(at) AS at FROM channel_files")?.at ?? undefined;
    return first === undefined ? undefined : first + LIMITS.channelFileMs;
  }
}
