/** What the person who answered a question on a channel is told. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { endText } from "./approvals.ts";

const NOW = 100_000_000;

test("[AP3] a repeated answer is told what was decided, by whom and when", () => {
  assert.equal(
    endText("K7Q2A", { outcome: "denied", by: "client:me", endedAt: NOW - 180_000 }, NOW),
    "K7Q2A was denied before (3 min ago, by client:me), and this answer changes nothing.",
  );
  assert.equal(endText("K7Q2A", { outcome: "allowed" }, NOW), "K7Q2A is allowed, and its call goes on.");
  assert.equal(endText("K7Q2A", { outcome: "allowed", limit: true }, NOW), "K7Q2A is allowed, and the run continues.");
  assert.match(endText("K7Q2A", { outcome: "allowed", endedAt: NOW }, NOW), /^K7Q2A was allowed before \(less than a minute ago\)/);
  assert.match(endText("K7Q2A", { outcome: "allowed", endedAt: NOW - 9_000_000 }, NOW), /\(2 h ago\)/);
});
test("[SP10] the end of a question about a limit has its own words", () => {
  assert.equal(
    endText("K7Q2A", { outcome: "denied", limit: true }, NOW),
    "K7Q2A is denied: the run ends here, and what it has done stays.",
  );
  assert.equal(endText("K7Q2A", { outcome: "denied" }, NOW), "K7Q2A is denied, and nothing of it is done.");
  assert.equal(
    endText("K7Q2A", { outcome: "allowed", by: "setting:limits.dayCostUsd", endedAt: NOW - 60_000 }, NOW),
    "K7Q2A is over (1 min ago): the limit `limits.dayCostUsd` left enough again, so the run went on. This answer changes nothing.",
  );
});
test("[AP3] who has answered is named by their program and the id of their token", () => {
  const by = "client:cli-0000477546f02e34 token:first-bb019e";
  assert.equal(endText("K7Q2A", { outcome: "denied", by }, NOW), "K7Q2A is denied by gsv (token first-bb019e), and nothing of it is done.");
  assert.match(endText("K7Q2A", { outcome: "allowed", by, endedAt: NOW }, NOW), /, by gsv \(token first-bb019e\)\), and this/);
});
