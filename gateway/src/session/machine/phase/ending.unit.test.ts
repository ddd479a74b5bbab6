/** Stopping a run. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { REPLIES_WAITING } from "../limits.ts";
import { Bench, CALL, call, LAP } from "../../../../test/session/machine-bench.ts";

describe("stopping", () => {
  test("[R3] [P14] open calls get a result, nodes are told, the next message starts", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call({ nodeId: "old", ledger: false })]);
    b.say("b");
    const { answer } = b.apply({ type: "Abort" });
    assert.deepEqual(answer, { type: "aborted", wasRunning: true, runId: "run-a", cancelled: 2, waiting: 1 });
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

describe("[P9] the end of a run is sent to the platform that its message came from", () => {
  const reply = { channel: "test", accountId: "default", peer: { kind: "dm", id: "anna" } } as const;
  const replies = (b: Bench) => b.state.outbox.flatMap((effect) => (effect.type === "Reply" ? [[effect.id, effect.seq]] : []));
  const running = (): Bench => {
    const b = new Bench();
    b.say("a", { reply });
    return b;
  };
  test("an answer, an error and a stop, each with its row", () => {
    for (const end of [
      (b: Bench) => b.reply("one"),
      (b: Bench) => b.fail({ retryable: false }),
      (b: Bench) => b.apply({ type: "Abort" }),
    ]) {
      const b = running();
      end(b);
      assert.deepEqual(replies(b), [["reply/r1", 2]]);
    }
    const b = new Bench();
    b.say("a");
    b.reply("one");
    assert.deepEqual(replies(b), []);
  });
  test("of more than wait for a channel at most the oldest are no longer sent, and nothing else is dropped", () => {
    const b = running();
    const waiting = Array.from(
      { length: REPLIES_WAITING },
      (_, n) => ({ type: "Reply", id: `reply/x${n}`, route: reply, seq: 1, deliveryId: `x${n}` }) as const,
    );
    b.state = { ...b.state, outbox: [...waiting, ...b.state.outbox, { type: "DeleteMedia", id: "media/1", before: 0, from: 1 }] };
    b.reply("one");
    assert.equal(replies(b).length, REPLIES_WAITING);
    assert.deepEqual([replies(b)[0]?.[0], replies(b).at(-1)?.[0]], ["reply/x1", "reply/r1"]);
    assert.ok(b.effect("DeleteMedia"));
  });
});
test("[P6] only where the outcome is not known the user is told by the model", () => {
  const b = new Bench();
  b.say("a");
  b.reply("", [call(), call({ idempotent: true })]);
  b.now = 60_000;
  b.apply({ type: "Tick", inFlight: [] });
  assert.match(b.textOf(CALL), / Tell the user\.$/);
  assert.doesNotMatch(b.textOf("ref0000000/r1/1/1"), /Tell the user/);
});
