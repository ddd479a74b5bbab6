/** Since when started accounts are not connected any more (rule NT11). */
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { ChannelRef } from "../../ports/channels.ts";

export class DownAccounts {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Keeps the first time. */
  begin({ channel, accountId }: ChannelRef, now: number): void {
    run(
      this.#db.sql,
      "INSERT INTO channel_down(channel, account, since, told) VALUES(?, ?, ?, 0) ON CONFLICT(channel, account) DO NOTHING",
      channel,
      accountId,
      now,
    );
  }
  clear({ channel, accountId }: ChannelRef): void {
    run(this.#db.sql, "DELETE FROM channel_down WHERE channel = ? AND account = ?", channel, accountId);
  }
  told({ channel, accountId }: ChannelRef): void {
    run(this.#db.sql, "UPDATE channel_down SET told = 1 WHERE channel = ? AND account = ?", channel, accountId);
  }
  /** The first time that was not told. */
  first(): number | undefined {
    return one<{ since: number | null }>(this.#db.sql, "SELECT min(since) AS since FROM channel_down WHERE told = 0")?.since ?? undefined;
  }
  /** Those that were not told and are down since `latest` or longer. */
  since(latest: number): readonly (ChannelRef & { readonly since: number })[] {
    return all<{ channel: string; account: string; since: number }>(
      this.#db.sql,
      "SELECT channel, account, since FROM channel_down WHERE told = 0 AND since <= ? ORDER BY since LIMIT 64",
      latest,
    ).map(({ channel, account, since }) => ({ channel, accountId: account, since }));
  }
}
