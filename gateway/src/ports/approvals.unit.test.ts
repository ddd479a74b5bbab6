import assert from "node:assert/strict";
import { test } from "node:test";
import { endText } from "./approvals.ts";

test("[AU1] who has answered a question is named by their program and the id of their token", () => {
  const by = "client:cli-0000477546f02e34 token:first-bb019e";
  assert.equal(endText("ABC12", { outcome: "denied", by }, 0), "ABC12 is denied, and nothing of it is done. (gsv (token first-bb019e))");
  assert.match(endText("ABC12", { outcome: "allowed", by, endedAt: 0 }, 1000), /, by gsv \(token first-bb019e\)\), and this/);
});
