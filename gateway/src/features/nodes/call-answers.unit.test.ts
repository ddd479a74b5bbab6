import assert from "node:assert/strict";
import { test } from "node:test";
import { asCallId, type ToolResultParams } from "../../../../protocol/gen/types.ts";
import { logsAnswer, nativeAnswer, toolAnswer } from "./call-answers.ts";

type Waiting = Parameters<typeof toolAnswer>[0];
const waiting = (ownName?: string) =>
  ({ call: { callId: "gw/t/~1" }, ...(ownName === undefined ? {} : { ownName }) }) as unknown as Waiting;
const report = (more: Partial<ToolResultParams>): ToolResultParams => ({ callId: asCallId("gw/t/~1"), ...more });
const reasonOf = (more: Partial<ToolResultParams>): string | undefined => {
  const answer = toolAnswer(waiting(), report(more));
  return answer.ok ? undefined : answer.error.reason;
};

test("[G1] a client's call is answered under the client's own name for it", () => {
  assert.deepEqual(toolAnswer(waiting(), report({ result: 5 })), { ok: true, value: { result: 5, callId: "gw/t/~1" } });
  assert.deepEqual(toolAnswer(waiting("mine"), report({ outcome: "ok" })), { ok: true, value: { callId: "mine" } });
  assert.deepEqual(nativeAnswer(waiting("mine"), { ok: true, result: 5 }), { ok: true, value: { result: 5, callId: "mine" } });
  assert.deepEqual(nativeAnswer(waiting(), { ok: true, result: undefined }), { ok: true, value: { callId: "gw/t/~1" } });
});
test("[P10] a failed call has the machine's reason, if machines have such a reason, else that of its outcome", () => {
  assert.equal(reasonOf({ error: "no" }), "tool.failed");
  assert.equal(reasonOf({ error: "no", outcome: "ok" }), "tool.failed");
  assert.equal(reasonOf({ outcome: "timeout" }), "tool.timeout");
  assert.equal(reasonOf({ outcome: "cancelled", error: "no" }), "tool.cancelled");
  assert.equal(reasonOf({ error: "no", reason: "path.not_a_file" }), "path.not_a_file");
  for (const reason of ["auth.forbidden", "tool.made_up", "constructor", ""])
    assert.equal(reasonOf({ error: "no", reason }), "tool.failed", reason);
});
test("[P10] a machine's log is answered with the number of its lines, and whether it was cut", () => {
  const answer = logsAnswer("lap", { callId: asCallId("c"), lines: ["a", "b"], truncated: true });
  assert.deepEqual(answer, { ok: true, value: { nodeId: "lap", lines: ["a", "b"], count: 2, truncated: true } });
  assert.deepEqual(logsAnswer("lap", { callId: asCallId("c") }), {
    ok: true,
    value: { nodeId: "lap", lines: [], count: 0, truncated: false },
  });
  assert.equal(logsAnswer("lap", { callId: asCallId("c"), error: "no" }).ok, false);
});
