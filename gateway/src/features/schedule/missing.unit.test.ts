import assert from "node:assert/strict";
import { test } from "node:test";
import { asNodeId } from "../../../../protocol/gen/types.ts";
import { undoneText } from "./missing.ts";

const away = (count: number) =>
  Array.from({ length: count }, (_, number) => ({ nodeId: asNodeId("lap"), tool: `lap__T${number}`, waitedMs: 600_000 }));
const unknown = (count: number) => Array.from({ length: count }, (_, number) => `lap__U${number}`);

test("[OM11] calls with an unknown outcome are always told of, and what is left out is counted", () => {
  assert.equal(undoneText({ away: [], unknown: [] }), undefined);
  const mixed = undoneText({ away: away(6), unknown: unknown(1) }) ?? "";
  assert.match(mixed, /^lap__U0 gave no result/);
  assert.match(mixed, /lap__T2 was not run\. And 3 more calls were not run\.$/);
  const many = undoneText({ away: away(1), unknown: unknown(6) }) ?? "";
  assert.match(many, /lap__U3 gave no result, .* And 2 more calls gave no result\. And 1 more call was not run\.$/);
  assert.doesNotMatch(undoneText({ away: away(2), unknown: unknown(2) }) ?? "", /more/);
});
