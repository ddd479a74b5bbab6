/** Pairing requests: unknown senders who wait for approval. */
import { enumOf, method, struct, t } from "./dsl.ts";

export const PendingPair = struct("PendingPair", "A pairing request.", {
  channel: t.string(64),
  senderId: t.string(256),
  senderName: t.optional(t.string(256)),
  requestedAt: t.time(),
  firstMessage: t.optional(t.string(1024)),
  /** The code that the sender received. Compare it before you approve the request. */
  code: t.optional(t.string(16)),
  /** Messages that are kept with the request. */
  waiting: t.optional(t.int()),
});
export const PairRole = enumOf(
  "PairRole",
  "`owner`: the sender is you. `guest`: another person, with a separate conversation and without your private notes and machines.",
  ["owner", "guest"],
);
export const ApprovedPair = struct("ApprovedPair", "A sender whose pairing request was approved.", {
  channel: t.string(64),
  senderId: t.string(256),
  senderName: t.optional(t.string(256)),
  role: PairRole,
  /** When the request was approved. */
  since: t.time(),
});
const who = { channel: t.string(64, { minLength: 1 }), senderId: t.string(256, { minLength: 1 }) };
method("pair.list", {
  doc: "Lists the pairing requests, and the approved senders. People whom only the settings of a channel name are not among them.",
  result: {
    pairs: t.map(PendingPair),
    /** By channel, the latest approval first. */
    approved: t.optional(t.array(ApprovedPair, 1000)),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  idempotent: true,
});
method("pair.approve", {
  doc: "Approves a pairing request.",
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
  doc: "Rejects a pairing request.",
  params: who,
  result: { rejected: t.literal(true), senderId: t.string(256) },
  callers: ["client"],
  scope: "admin",
  audit: "own",
  errors: ["pair.not_found"],
});
