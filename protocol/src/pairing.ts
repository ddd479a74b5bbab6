/** Strangers who wrote to the agent and wait to be let in. */
import { method, struct, t } from "./dsl.ts";

export const PendingPair = struct("PendingPair", "Somebody who waits.", {
  channel: t.string(64),
  senderId: t.string(256),
  senderName: t.optional(t.string(256)),
  requestedAt: t.time(),
  firstMessage: t.optional(t.string(1024)),
});
const who = { channel: t.string(64, { minLength: 1 }), senderId: t.string(256, { minLength: 1 }) };
method("pair.list", { doc: "Who waits.", result: { pairs: t.map(PendingPair) }, callers: ["client"], scope: "operate", idempotent: true });
method("pair.approve", {
  doc: "Lets somebody in.",
  params: who,
  result: { approved: t.literal(true), senderId: t.string(256), senderName: t.optional(t.string(256)) },
  callers: ["client"],
  scope: "admin",
  errors: ["pair.not_found"],
});
method("pair.reject", {
  doc: "Turns somebody away.",
  params: who,
  result: { rejected: t.literal(true), senderId: t.string(256) },
  callers: ["client"],
  scope: "admin",
  errors: ["pair.not_found"],
});
