/** Invitations: one-time secrets with which other machines get a token of their own (gateway/spec/remote.md). */
import { enumOf, method, struct, t } from "./dsl.ts";

export const InviteKind = enumOf("InviteKind", "What an invitation is for: a machine that the agent uses, or a program of the owner.", [
  "node",
  "client",
]);
const Secret = t.string(32, { minLength: 32, pattern: "^[a-z2-7]+$" });

export const JoinRequest = struct("JoinRequest", "Exchanges the secret of an invitation for a token.", {
  secret: Secret,
  /** Made at random by the sender, once: a repeated request with it gets the same token. */
  nonce: t.string(64, { minLength: 64, pattern: "^[0-9a-f]+$" }),
  kind: InviteKind,
  /** The machine's name, which a node's token is bound to unless the invitation names one. */
  nodeId: t.optional(t.string(64)),
  /** A note for the list of tokens. */
  label: t.optional(t.string(128)),
});
export const JoinResult = struct("JoinResult", "The token of a machine or program that has joined.", {
  kind: InviteKind,
  token: t.string(512),
  nodeId: t.optional(t.string(64)),
});

method("invite.create", {
  doc: "Creates an invitation. Only this answer contains its secret, which is valid once and for 10 minutes.",
  params: {
    kind: InviteKind,
    /** The id of the node; for a client, a note for the list of tokens. */
    name: t.optional(t.string(64, { minLength: 1 })),
  },
  result: {
    inviteId: t.string(16),
    secret: t.string(64),
    expiresAt: t.time(),
    /** A machine with this name is connected: the invitation is for that one, or needs another name. */
    warning: t.optional(t.string(1024)),
  },
  callers: ["client"],
  scope: "admin",
  audit: { target: "kind" },
  errors: ["invite.limit", "protocol.invalid_params"],
});
export const InviteEntry = struct("InviteEntry", "An invitation that can still be used, without its secret.", {
  inviteId: t.string(16),
  kind: InviteKind,
  name: t.optional(t.string(64)),
  expiresAt: t.time(),
});
method("invite.list", {
  doc: "Lists the invitations that can still be used, without their secrets.",
  result: { invites: t.array(InviteEntry, 1000), count: t.int() },
  callers: ["client"],
  scope: "admin",
  audit: "none",
  idempotent: true,
});
method("invite.revoke", {
  doc: "Revokes an invitation, or without inviteId all that can still be used. Tokens that invitations were exchanged for stay valid.",
  params: { inviteId: t.optional(t.string(16)) },
  result: { ok: t.literal(true), revoked: t.array(t.string(16), 1000) },
  callers: ["client"],
  scope: "admin",
  audit: { target: "inviteId" },
  errors: ["invite.not_found", "invite.used"],
  idempotent: true,
});
