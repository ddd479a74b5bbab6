import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChannelInbound } from "../../../../protocol/gen/types.ts";
import { LATE_MS, unansweredWhy } from "./attention.ts";

const NOW = 1_800_000_000_000;
const said = (message: Partial<ChannelInbound["message"]>, receivedAt = NOW): ChannelInbound => ({
  peer: { kind: "dm", id: "p" },
  message: { id: "1", text: "x", ...message },
  receivedAt,
});
const why = (inbound: ChannelInbound, knowsOriginal = false) => unansweredWhy({ inbound, now: NOW, knowsOriginal });

test("[P2] a message is unanswered from exactly one day of delay on", () => {
  assert.equal(why(said({})), undefined);
  assert.equal(why(said({ timestamp: NOW - LATE_MS })), undefined);
  assert.equal(why(said({ timestamp: NOW - LATE_MS - 1 })), "late");
  assert.equal(why(said({}, NOW - LATE_MS - 1)), "late");
  // The platform's clock is ahead, or the channel kept it for long: the earlier one counts.
  assert.equal(why(said({ timestamp: NOW + LATE_MS }, NOW - LATE_MS - 1)), "late");
  assert.equal(why(said({ timestamp: NOW + LATE_MS })), undefined);
});
test("reactions, deletions and edits of answered messages start no run", () => {
  assert.equal(why(said({ reaction: "👍", replyToId: "0" })), "event");
  assert.equal(why(said({ reaction: "", replyToId: "0" })), "event");
  assert.equal(why(said({ editOf: "0", deleted: true })), "event");
  assert.equal(why(said({ editOf: "0" }), true), "event");
  assert.equal(why(said({ editOf: "0" }), false), undefined);
  assert.equal(why(said({ editOf: "0", timestamp: NOW - LATE_MS - 1 }), false), "late");
});
