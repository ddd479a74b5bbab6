/** Access tokens: create, list and revoke them. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { TokenId } from "./ids.ts";

export const TokenKind = enumOf("TokenKind", "The role of a token's holder. `client-ro` may only read.", [
  "client",
  "client-ro",
  "node",
  "channel",
  "admin",
]);
export const TokenEntry = struct("TokenEntry", "A token, without its secret.", {
  tokenId: TokenId,
  kind: TokenKind,
  label: t.optional(t.string(128)),
  nodeId: t.optional(t.string(64)),
  channel: t.optional(t.string(64)),
  accountId: t.optional(t.string(128)),
  last4: t.string(4),
  createdAt: t.time(),
  expiresAt: t.optional(t.time()),
  /** Within an hour: a use soon after another one is not stored. */
  lastUsedAt: t.optional(t.time()),
  /** A connection uses it now. */
  connected: t.optional(t.literal(true)),
  revokedAt: t.optional(t.time()),
});
method("tokens.create", {
  doc: "Creates a token. Only this answer contains its secret.",
  params: {
    kind: TokenKind,
    nodeId: t.optional(t.string(64)),
    channel: t.optional(t.string(64)),
    accountId: t.optional(t.string(128)),
    label: t.optional(t.string(128)),
    expiresInMs: t.optional(t.int(1000, 315360000000)),
  },
  result: { token: t.string(512), entry: TokenEntry },
  callers: ["client"],
  scope: "admin",
  audit: { target: "kind" },
  errors: ["token.limit", "protocol.invalid_params"],
});
method("tokens.list", {
  doc: "Lists the tokens, without their secrets.",
  result: { tokens: t.array(TokenEntry, 1000), count: t.int() },
  callers: ["client"],
  scope: "admin",
  audit: "none",
  idempotent: true,
});
method("tokens.revoke", {
  doc: "Revokes a token. Its connections are closed within a second.",
  params: { tokenId: TokenId },
  result: { ok: t.literal(true), tokenId: TokenId, closed: t.int() },
  callers: ["client"],
  scope: "admin",
  audit: { target: "tokenId" },
  errors: ["token.not_found", "token.last_admin"],
  idempotent: true,
});
