/** Invitations. Their secrets are stored as digests. Those that were used or have expired are kept for a day, to tell them from wrong ones. */
import type { InviteKind } from "../../../../protocol/gen/types.ts";
import { sameDigest } from "../../platform/ids.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface Invite {
  readonly id: string;
  readonly kind: InviteKind;
  readonly name?: string;
  readonly expiresAt: number;
  /** What it was exchanged for. */
  readonly used?: { readonly nonceHash: string; readonly tokenId: string };
}
export const isUsedWith = ({ nonceHash }: NonNullable<Invite["used"]>, other: string): boolean => sameDigest(nonceHash, other);
type Row = {
  id: string;
  hash: string;
  kind: string;
  name: string | null;
  expires_at: number;
  nonce_hash: string | null;
  token_id: string | null;
};
const KEEP_ENDED_MS = 86_400_000;

export class InviteStore {
  readonly #db: Database;
  constructor(db: Database) {
    this.#db = db;
  }

  atomic<T>(work: () => T): T {
    return this.#db.transactionSync(work);
  }

  /** Invitations that can still be used. */
  open(now: number): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM invites WHERE token_id IS NULL AND expires_at > ?", now)?.n ?? 0;
  }

  /** Those that can still be used, the one that expires first at the start. */
  list(now: number): readonly Invite[] {
    return all<Row>(this.#db.sql, "SELECT * FROM invites WHERE token_id IS NULL AND expires_at > ? ORDER BY expires_at, id", now).map(
      inviteOf,
    );
  }
  /** Revokes open invitations by ending them now, and returns their ids. `id`: only this one. */
  revoke(id: string | undefined, now: number): readonly string[] {
    return all<{ id: string }>(
      this.#db.sql,
      "UPDATE invites SET expires_at = ?1 WHERE token_id IS NULL AND expires_at > ?1 AND (?2 IS NULL OR id = ?2) RETURNING id",
      now,
      id ?? null,
    ).map((row) => row.id);
  }
  /** The token that an invitation was exchanged for. */
  tokenOf(id: string): string | undefined {
    return one<{ token_id: string | null }>(this.#db.sql, "SELECT token_id FROM invites WHERE id = ?", id)?.token_id ?? undefined;
  }

  add(invite: Invite, hash: string, now: number): void {
    run(this.#db.sql, "DELETE FROM invites WHERE expires_at < ?", now - KEEP_ENDED_MS);
    const { id, kind, name, expiresAt } = invite;
    run(
      this.#db.sql,
      "INSERT INTO invites(id, hash, kind, name, expires_at) VALUES(?, ?, ?, ?, ?)",
      id,
      hash,
      kind,
      name ?? null,
      expiresAt,
    );
  }

  /** Every row is compared completely, so that the time reveals nothing about any of them. */
  find(hash: string): Invite | undefined {
    let found: Row | undefined;
    for (const row of all<Row>(this.#db.sql, "SELECT * FROM invites")) if (sameDigest(row.hash, hash)) found = row;
    return found === undefined ? undefined : inviteOf(found);
  }

  use(id: string, nonceHash: string, tokenId: string): void {
    run(this.#db.sql, "UPDATE invites SET nonce_hash = ?, token_id = ? WHERE id = ?", nonceHash, tokenId, id);
  }
}

function inviteOf({ id, kind, name, expires_at: expiresAt, nonce_hash: nonceHash, token_id: tokenId }: Row): Invite {
  return {
    id,
    kind: kind === "node" ? "node" : "client",
    ...(name === null ? {} : { name }),
    expiresAt,
    ...(nonceHash === null || tokenId === null ? {} : { used: { nonceHash, tokenId } }),
  };
}
