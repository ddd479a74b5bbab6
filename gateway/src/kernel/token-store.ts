/**
 * Stores tokens as digests (promises S3, S4); a token's secret is in the answer of `create` and nowhere else. What a kind of token may do
 * is decided in `authorise.ts`.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { asTokenId, type TokenEntry, type TokenKind, type TokensCreateParams } from "../../../protocol/gen/types.ts";
import { randomHex, randomName, sameDigest, sha256Hex } from "../platform/ids.ts";
import { all, type Database, one, run } from "../platform/sql.ts";
import { type Problem, type Result, succeed } from "../ports/result.ts";
import { caseProblem, machineNameProblem } from "./machine-name.ts";
import { fail } from "./outcome.ts";

/** What a token's record grants. */
export interface TokenGrant {
  readonly tokenId: string;
  readonly kind: TokenKind;
  readonly nodeId?: string;
  readonly channel?: string;
  readonly accountId?: string;
  readonly expiresAt?: number;
}
/** A token, and the sha256 of it in hex. */
export interface MadeToken {
  readonly id: string;
  readonly token: string;
  readonly hash: string;
}
type Row = {
  id: string;
  kind: string;
  hash: string;
  last4: string;
  label: string | null;
  node_id: string | null;
  channel: string | null;
  account_id: string | null;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  revoked_at: number | null;
  imported: number;
};

const KINDS: readonly TokenKind[] = ["client", "client-ro", "node", "channel", "admin"];
/** `last_used_at` is for people: an hour is exact enough, and costs no write for most connections. */
const USED_GRAIN_MS = 3_600_000;
/** Ended tokens stay listed for this long. */
const KEEP_ENDED_MS = 30 * 86_400_000;

export class Tokens {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Imports the first admin token, of which only the digest is known. A revoked one is never imported again. A new one replaces the
   * first tokens before it, which are revoked: their ids are the answer, and the caller closes their sockets.
   */
  importFirst(hash: string, now: number): readonly string[] {
    if (this.hasHash(hash)) return [];
    const replaced = all<{ id: string }>(
      this.#db.sql,
      "UPDATE tokens SET revoked_at = ? WHERE imported = 1 AND revoked_at IS NULL RETURNING id",
      now,
    );
    const id = `first-${hash.slice(0, 6)}`;
    run(
      this.#db.sql,
      "INSERT OR IGNORE INTO tokens(id, kind, hash, last4, label, created_at, imported) VALUES(?, 'admin', ?, '', 'first token', ?, 1)",
      id,
      hash,
      now,
    );
    return replaced.map(({ id: former }) => former);
  }

  /** Whether this token was ever created or imported here. */
  hasHash(hash: string): boolean {
    return one(this.#db.sql, "SELECT 1 AS there FROM tokens WHERE hash = ?", hash) !== undefined;
  }

  /** Whether a valid token exists. */
  configured(now: number): boolean {
    return (
      one(
        this.#db.sql,
        "SELECT 1 AS there FROM tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?) LIMIT 1",
        now,
      ) !== undefined
    );
  }

  /** The grant of a presented token, or nothing: wrong, expired and revoked look the same from outside. */
  async verify(token: string, now: number): Promise<TokenGrant | undefined> {
    if (token.length < 8 || token.length > 512 || !token.isWellFormed()) return undefined;
    const digest = await sha256Hex(token);
    // Every row is compared completely, so that the time reveals nothing about any of them.
    let found: Row | undefined;
    for (const row of all<Row>(this.#db.sql, "SELECT * FROM tokens")) if (sameDigest(row.hash, digest)) found = row;
    if (found === undefined || found.revoked_at !== null || (found.expires_at !== null && found.expires_at <= now)) return undefined;
    if (found.last_used_at === null || now - found.last_used_at >= USED_GRAIN_MS)
      run(this.#db.sql, "UPDATE tokens SET last_used_at = ?, last4 = ? WHERE id = ?", now, token.slice(-4), found.id);
    return grantOf(found);
  }

  /** A connection with this token has ended: it was in use until now. */
  recordUse(tokenId: string, now: number): void {
    run(this.#db.sql, "UPDATE tokens SET last_used_at = ? WHERE id = ? AND last_used_at <= ?", now, tokenId, now - USED_GRAIN_MS);
  }

  async create(params: TokensCreateParams, now: number): Promise<Result<{ readonly token: string; readonly entry: TokenEntry }>> {
    const problem = misfit(params);
    if (problem !== undefined) return fail("protocol.invalid_params", problem.message, problem.hint);
    const id = randomName(8);
    const token = `gsv_${params.kind}_${id}_${randomHex(32)}`;
    const added = this.add({ id, token, hash: await sha256Hex(token) }, params, now);
    return added.ok ? succeed({ token, entry: added.value }) : added;
  }

  /** Stores a token that was made elsewhere, at once. The caller made its secret at random. */
  add(made: MadeToken, params: TokensCreateParams, now: number): Result<TokenEntry> {
    const problem = misfit(params) ?? this.nameProblem(params.nodeId, now);
    if (problem !== undefined) return fail("protocol.invalid_params", problem.message, problem.hint);
    const { id, token, hash } = made;
    this.#prune(now);
    const active = one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM tokens WHERE revoked_at IS NULL")?.n ?? 0;
    if (active >= LIMITS.tokens) return fail("token.limit");
    run(
      this.#db.sql,
      "INSERT INTO tokens(id, kind, hash, last4, label, node_id, channel, account_id, created_at, expires_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      id,
      params.kind,
      hash,
      token.slice(-4),
      params.label ?? null,
      params.nodeId ?? null,
      params.channel ?? null,
      params.accountId ?? null,
      now,
      params.expiresInMs === undefined ? null : now + params.expiresInMs,
    );
    const entry = this.get(id);
    return entry === undefined ? fail("storage.failed") : succeed(entry);
  }

  /** Why no machine may get this name, beside those that have a valid token. */
  nameProblem(nodeId: string | undefined, now: number): Problem | undefined {
    if (nodeId === undefined) return undefined;
    const taken = all<{ node_id: string }>(
      this.#db.sql,
      "SELECT node_id FROM tokens WHERE node_id = ? COLLATE NOCASE AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)",
      nodeId,
      now,
    );
    return caseProblem(
      nodeId,
      taken.map((row) => row.node_id),
    );
  }

  get(tokenId: string): TokenEntry | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM tokens WHERE id = ?", tokenId);
    return row === undefined ? undefined : entryOf(row);
  }

  list(): readonly TokenEntry[] {
    return all<Row>(this.#db.sql, "SELECT * FROM tokens ORDER BY created_at, id LIMIT 1000").map(entryOf);
  }

  /** Revokes a token. The caller closes its sockets. */
  revoke(tokenId: string, now: number): Result<{ readonly already: boolean }> {
    const row = one<Row>(this.#db.sql, "SELECT * FROM tokens WHERE id = ?", tokenId);
    if (row === undefined) return fail("token.not_found");
    if (row.revoked_at !== null) return succeed({ already: true });
    const others =
      one<{ n: number }>(
        this.#db.sql,
        "SELECT count(*) AS n FROM tokens WHERE kind = 'admin' AND id <> ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)",
        tokenId,
        now,
      )?.n ?? 0;
    if (row.kind === "admin" && others === 0) return fail("token.last_admin");
    run(this.#db.sql, "UPDATE tokens SET revoked_at = ? WHERE id = ?", now, tokenId);
    return succeed({ already: false });
  }

  /** When the next token runs out after `after`. */
  nextExpiry(after: number): number | undefined {
    return (
      one<{ at: number | null }>(
        this.#db.sql,
        "SELECT min(expires_at) AS at FROM tokens WHERE revoked_at IS NULL AND expires_at > ?",
        after,
      )?.at ?? undefined
    );
  }

  #prune(now: number): void {
    // An imported token's row is kept: it prevents a second import of the same digest.
    run(
      this.#db.sql,
      "DELETE FROM tokens WHERE imported = 0 AND (revoked_at < ? OR expires_at < ?)",
      now - KEEP_ENDED_MS,
      now - KEEP_ENDED_MS,
    );
  }
}

function misfit({ kind, nodeId, channel, accountId }: TokensCreateParams): Problem | undefined {
  if (kind === "node" && nodeId === undefined)
    return { message: "A node token is bound to one node, and nodeId is missing.", hint: "Give nodeId, such as `laptop`." };
  if (kind !== "node" && nodeId !== undefined) return { message: "Only a node token has a nodeId." };
  if (kind === "channel" && (channel === undefined || channel === ""))
    return {
      message: "A channel token is bound to one channel, and channel is missing.",
      hint: "Give channel, and accountId unless it is `default`.",
    };
  if (kind !== "channel" && (channel !== undefined || accountId !== undefined))
    return { message: "Only a channel token has a channel and accountId." };
  return nodeId === undefined ? undefined : machineNameProblem(nodeId);
}

const isKind = (text: string): text is TokenKind => KINDS.some((kind) => kind === text);
/** A kind that this program does not know grants the least. */
const kindOf = (text: string): TokenKind => (isKind(text) ? text : "client-ro");

function grantOf(row: Row): TokenGrant {
  return {
    tokenId: row.id,
    kind: kindOf(row.kind),
    ...(row.node_id === null ? {} : { nodeId: row.node_id }),
    ...(row.channel === null ? {} : { channel: row.channel }),
    ...(row.account_id === null ? {} : { accountId: row.account_id }),
    ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
  };
}

function entryOf(row: Row): TokenEntry {
  const grant = grantOf(row);
  return {
    ...grant,
    tokenId: asTokenId(row.id),
    last4: row.last4,
    createdAt: row.created_at,
    ...(row.label === null ? {} : { label: row.label }),
    ...(row.last_used_at === null ? {} : { lastUsedAt: row.last_used_at }),
    ...(row.revoked_at === null ? {} : { revokedAt: row.revoked_at }),
  };
}
