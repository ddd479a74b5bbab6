/** Strangers who wrote to the agent and wait to be let in. */
import { enumOf, method, struct, t } from "./dsl.ts";

export const PendingPair = struct("PendingPair", "Somebody who waits.", {
  channel: t.string(64),
  senderId: t.string(256),
  senderName: t.optional(t.string(256)),
  requestedAt: t.time(),
  firstMessage: t.optional(t.string(1024)),
  /** What the stranger was told, so that you know whom you let in. */
  code: t.optional(t.string(16)),
  /** Messages that wait with them. */
  waiting: t.optional(t.int()),
});
export const PairRole = enumOf(
  "PairRole",
  "`owner`: it is you. `guest`: somebody else, in a conversation of their own, without your private notes and machines.",
  ["owner", "guest"],
);
const who = { channel: t.string(64, { minLength: 1 }), senderId: t.string(256, { minLength: 1 }) };
method("pair.list", {
  doc: "Who waits.",
  result: { pairs: t.map(PendingPair) },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  idempotent: true,
});
method("pair.approve", {
  doc: "Lets somebody in.",
  params: {
    ...who,
    /** `guest` when absent. */
    role: t.optional(PairRole),
  },
  result: { approved: t.literal(true), senderId: t.string(256), senderName: t.optional(t.string(256)), role: t.optional(PairRole) },
  callers: ["client"],
  scope: "admin",
  audit: "own",
  errors: ["pair.not_found"],
});
method("pair.reject", {
  doc: "Turns somebody away.",
  params: who,
  result: { rejected: t.literal(true), senderId: t.string(256) },
  callers: ["client"],
  scope: "admin",
  audit: "own",
  errors: ["pair.not_found"],
});
