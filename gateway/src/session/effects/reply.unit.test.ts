import assert from "node:assert/strict";
import { test } from "node:test";
import type { Effect, Reply } from "../machine/effect.ts";
import { inReplyOrder } from "./reply.ts";

const reply = (id: string, peer: string, kind: "dm" | "group" = "dm", accountId = "default"): Reply => ({
  type: "Reply",
  id,
  route: { channel: "example", accountId, peer: { kind, id: peer } },
  seq: 1,
  deliveryId: id,
});
const idsOf = (effects: readonly Effect[]): string[] => effects.map(({ id }) => id);

test("[CH22][P3] of the replies to one conversation only the first is under way; what is not a reply waits for none", () => {
  const archive: Effect = { type: "Archive", id: "archive", notBefore: 0 };
  const open = [
    reply("a1", "ann"),
    reply("a2", "ann"),
    archive,
    reply("b1", "bob"),
    reply("g1", "ann", "group"),
    reply("w1", "ann", "dm", "work"),
    reply("a3", "ann"),
  ];
  assert.deepEqual(idsOf(inReplyOrder(open)), ["a1", "archive", "b1", "g1", "w1"]);
  assert.deepEqual(idsOf(inReplyOrder(open.slice(1))), ["a2", "archive", "b1", "g1", "w1"]);
  // The same conversation, named anew: names are no part of who it is.
  const named: Reply = {
    ...reply("a2", "ann"),
    route: { channel: "example", accountId: "default", peer: { kind: "dm", id: "ann", name: "Ann" } },
  };
  assert.deepEqual(idsOf(inReplyOrder([reply("a1", "ann"), named])), ["a1"]);
});
