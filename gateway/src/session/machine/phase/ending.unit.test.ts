/** Stopping a run. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bench, CALL, call, LAP } from "../../../../test/session/machine-bench.ts";

describe("stopping", () => {
  test("[R3] [P14] open calls get a result, nodes are told, the next message starts", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call({ nodeId: "old", ledger: false })]);
    b.say("b");
    const { answer } = b.apply({ type: "Abort" });
    assert.deepEqual(answer, { type: "aborted", wasRunning: true, runId: "run-a", cancelled: 2 });
    assert.equal(b.resultOf(CALL).outcome, "cancelled");
    assert.deepEqual(
      b.state.outbox.filter((effect) => effect.type === "CancelTool").map((effect) => effect.type === "CancelTool" && effect.nodeId),
      ["lap", "old"],
    );
    assert.equal(b.log.at(-1)?.runId, "run-b");
    assert.deepEqual(b.notices(), ["aborted:run.aborted"]);
  });
  test("[P14] a call that no node runs is ended without a word to a node", () => {
    const b = new Bench();
    b.say("a");
    const native = { kind: "native", tool: "ReadFile", idempotent: true, timeoutMs: 60_000, deadlineMs: 60_000 } as const;
    b.reply("", [call(), { providerId: "call_1", name: "gsv__ReadFile", arguments: {}, target: native }]);
    b.apply({ type: "Abort" });
    assert.deepEqual(
      b.state.outbox.flatMap((effect) => (effect.type === "CancelTool" ? [[effect.nodeId, effect.callIds.length]] : [])),
      [["lap", 1]],
    );
  });
  test("[P14] a late result of a cancelled call is noted unless it is `cancelled`", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call()]);
    b.apply({ type: "Abort" });
    assert.equal(b.apply({ type: "ToolResult", callId: CALL, from: LAP, content: [], outcome: "cancelled" }).answer?.type, "late");
    assert.deepEqual(b.notices(), ["aborted:run.aborted"]);
    b.result("ref0000000/r1/1/1", "it was done already");
    assert.deepEqual(b.notices(), ["aborted:run.aborted", "late:"]);
  });
  test("[P10] a waiting message can be stopped by its run id, and its end is told", () => {
    const b = new Bench();
    b.say("a");
    b.say("b");
    b.say("c");
    assert.equal(b.apply({ type: "Abort", runId: "run-b" }).answer?.type, "aborted");
    assert.deepEqual(
      b.queue.map((message) => message.incoming.messageId),
      ["c"],
    );
    assert.equal(b.log.at(-1)?.runId, "run-b");
    assert.equal(b.state.run.phase, "thinking");
  });
  test("stopping an unknown run does nothing", () => {
    const b = new Bench();
    b.say("a");
    const before = b.state;
    assert.deepEqual(b.apply({ type: "Abort", runId: "run-z" }).answer, { type: "aborted", wasRunning: false, cancelled: 0 });
    assert.deepEqual(b.state, before);
  });
});
