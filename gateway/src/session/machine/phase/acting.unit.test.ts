/** Tool calls: results, and nodes that come and go. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CallTarget, ReplyCall } from "../event.ts";
import { LIMITS } from "../limits.ts";
import { jsonBytes } from "../text.ts";
import { Bench, CALL, call, LAP } from "../../../../test/session/machine-bench.ts";

describe("calls", () => {
  test("[G1] [W7] ids are the session's own and unique over runs and steps, whatever the provider says", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call()]);
    const row = b.log.find((candidate) => candidate.kind === "assistant");
    assert.deepEqual(row?.kind === "assistant" && row.calls.map((c) => c.callId), [CALL, "ref0000000/r1/1/1"]);
    assert.deepEqual(row?.kind === "assistant" && row.message.content.map((block) => block.type === "toolCall" && block.id), [
      "call_1_1_0",
      "call_1_1_1",
    ]);
    b.result(CALL, "one");
    b.result("ref0000000/r1/1/1", "two");
    b.reply("", [call()]);
    assert.equal(b.effect("DispatchTool").callId, "ref0000000/r1/2/0");
  });
  test("[G1] only the node that has the call can report its result", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    assert.deepEqual(b.result(CALL, "SECRET", "evil"), { type: "unknown" });
    assert.deepEqual(b.apply({ type: "ToolResult", callId: CALL, from: { kind: "native" }, content: [], outcome: "ok" }).answer, {
      type: "unknown",
    });
    assert.deepEqual(b.result(CALL, "mine"), { type: "taken" });
    assert.deepEqual(b.result(CALL, "mine"), { type: "duplicate" });
    assert.deepEqual(b.result("other00000/r1/1/0", "x"), { type: "unknown" });
    assert.deepEqual(b.result("ref0000000/r9/1/0", "x"), { type: "unknown" });
  });
  test("[W15] [K21] the next step begins with the last result, once", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call()]);
    b.result("ref0000000/r1/1/1", "two");
    assert.equal(b.state.run.phase, "acting");
    b.result(CALL, "one");
    assert.equal(b.effect("CallModel").id, "r1/t2/m0");
  });
  test("[G4] calls that can't be made get an error result and the run goes on", () => {
    const b = new Bench();
    b.say("a");
    const none: ReplyCall = {
      providerId: "x",
      name: "nope__Bash",
      arguments: {},
      target: { kind: "none", reason: "tool.unknown", message: "There is no tool nope__Bash." },
    };
    b.reply("", [none, call()]);
    assert.equal(b.resultOf(CALL).reason, "tool.unknown");
    assert.equal(b.state.run.phase, "acting");
    b.result("ref0000000/r1/1/1", "ok");
    b.reply("", [none]);
    assert.equal(b.effect("CallModel").id, "r1/t3/m0");
  });
  test("[G4] arguments that are not an object are refused", () => {
    const b = new Bench();
    b.say("a");
    const args: unknown = ["not", "an", "object"];
    b.reply("", [{ ...call(), arguments: args as ReplyCall["arguments"] }]);
    assert.equal(b.resultOf(CALL).reason, "tool.bad_args");
  });
  test("[G4] the 32nd call is made, the 33rd gets an error, the 200th is not stored", () => {
    const b = new Bench();
    b.say("a");
    b.reply(
      "",
      Array.from({ length: 200 }, () => call()),
    );
    assert.equal(b.state.run.phase === "acting" && b.state.run.calls.length, LIMITS.toolCallsPerStep);
    assert.equal(b.resultOf("ref0000000/r1/1/32").reason, "tool.queue_full");
    const row = b.log.find((candidate) => candidate.kind === "assistant");
    assert.equal(row?.kind === "assistant" && row.calls.length, 128);
  });
  test("[P5] an answer that was cut off makes no calls", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()], { stopReason: "length" });
    assert.equal(b.resultOf(CALL).reason, "tool.bad_args");
    assert.ok(!b.state.outbox.some((effect) => effect.type === "DispatchTool"));
  });
  test("[G4] a long result is cut in the middle, and the whole text is kept", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    const text = `BEGIN${"x".repeat(100_000)}END`;
    b.result(CALL, text);
    const shown = b.textOf(CALL);
    assert.ok(shown.length < LIMITS.toolResultChars + 500);
    assert.match(shown, /^BEGIN/);
    assert.match(shown, /END$/);
    assert.match(shown, /results\/ref0000000-r1-1-0\.txt/);
    assert.equal(b.results.get(CALL), text);
    assert.equal(b.effect("StoreResult").callId, CALL);
    b.apply({ type: "EffectDone", effectId: b.effect("StoreResult").id });
    assert.equal(b.results.size, 0);
  });
  test("[G4] the note of a cut result never promises more than is kept: a tool may have cut its output before", () => {
    for (const [truncated, says] of [
      [false, /characters were left out here\. The result is kept as the tool gave it: gsv__ReadFile with path "[^"]+"\. \.\.\.\]/],
      [true, /The tool itself had left out a part before; that part is not kept\./],
    ] as const) {
      const b = new Bench();
      b.say("a");
      b.reply("", [call()]);
      b.result(CALL, JSON.stringify({ output: `"truncated":true,${"x".repeat(100_000)}`, truncated }));
      assert.match(b.textOf(CALL), says);
      assert.equal(b.textOf(CALL).includes("whole text"), false);
    }
  });
  test("[G4] a result of exactly the limit is not cut", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    b.result(CALL, "x".repeat(LIMITS.toolResultChars));
    assert.equal(b.textOf(CALL).length, LIMITS.toolResultChars);
  });
  test("[W19] an answer of 5 MB and arguments of 2 MB fit their row", () => {
    const b = new Bench();
    b.say("a");
    b.reply("y".repeat(5_000_000), [{ ...call(), arguments: { content: "z".repeat(2_000_000) } }]);
    const row = b.log.find((candidate) => candidate.kind === "assistant");
    assert.ok(row && jsonBytes(row) < LIMITS.rowBytes);
    assert.equal(b.resultOf(CALL).reason, "tool.bad_args");
  });
  test("[W19] every row fits, whatever a model or a node sends", () => {
    const b = new Bench();
    b.say("a");
    const nasty = "\u0000".repeat(300_000);
    const calls = Array.from({ length: 150 }, (_, n) => ({
      ...call({}, `lap__${nasty}`),
      providerId: nasty,
      arguments: { n, nasty: nasty.slice(0, 20_000) },
    }));
    b.reply(nasty, calls);
    const image = { type: "image" as const, data: "x".repeat(900_000), mimeType: "image/png" };
    b.apply({
      type: "ToolResult",
      callId: CALL,
      from: LAP,
      content: [{ type: "text", text: nasty.slice(0, 50_000) }, image],
      outcome: "ok",
    });
    b.apply({
      type: "ToolResult",
      callId: "ref0000000/r1/1/1",
      from: LAP,
      content: [{ type: "text", text: nasty }, image],
      outcome: "ok",
    });
    for (const row of b.log) assert.ok(jsonBytes(row) < LIMITS.rowBytes, `${row.kind} ${row.seq} has ${jsonBytes(row)} bytes`);
  });
});

describe("nodes that come and go", () => {
  const acting = (over: Partial<Extract<CallTarget, { kind: "node" }>> = {}): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(over)]);
    return b;
  };
  const sent = (b: Bench): Bench => {
    b.apply({ type: "ToolSent", effectId: b.effect("DispatchTool").id, callId: CALL });
    return b;
  };
  test("[G3] the node is offline at the first hand-over: told at once, and no late result is expected", () => {
    const b = acting();
    b.apply({ type: "ToolOffline", effectId: b.effect("DispatchTool").id, callId: CALL, first: true });
    assert.equal(b.resultOf(CALL).reason, "node.offline");
    assert.equal(b.state.run.phase, "thinking");
    assert.deepEqual(b.state.closed, []);
  });
  test("[G3] [P6] the node is offline at a later hand-over: the first one may have started the call", () => {
    const b = acting();
    b.apply({ type: "ToolOffline", effectId: b.effect("DispatchTool").id, callId: CALL, first: false });
    assert.equal(b.state.run.phase, "acting");
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).reason, "tool.outcome_unknown");
  });
  test("[G3] [W5] [K16'] a changing call waits for its node, then its outcome is unknown", () => {
    const b = acting();
    const step = b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    assert.match(step.status[0]?.text ?? "", /lap disconnected/);
    b.now = LIMITS.nodeGraceMs - 1;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.state.run.phase, "acting");
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).outcome, "unknown");
    assert.match(b.textOf(CALL), /check the state of lap before you repeat it/);
  });
  test("[G3] a read-only call fails at once", () => {
    const b = acting({ idempotent: true });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    assert.equal(b.resultOf(CALL).reason, "node.offline");
  });
  test("[G3] [P7] a result after the grace becomes one late note and never restarts the run", () => {
    const b = acting();
    b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    b.reply("I don't know");
    assert.deepEqual(b.result(CALL, "deployed"), { type: "late" });
    assert.equal(b.state.run.phase, "idle");
    const note = b.log.at(-1);
    assert.match(note?.kind === "notice" ? (note.forModel ?? "") : "", /deployed/);
    assert.deepEqual(b.result(CALL, "deployed"), { type: "duplicate" });
  });
  test("[K16] the node comes back and still runs the call: the call goes on", () => {
    const b = acting();
    b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [{ callId: CALL, state: "started" }] });
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.state.run.phase, "acting");
    assert.deepEqual(b.result(CALL, "done"), { type: "taken" });
  });
  test("[K14] the node comes back and never saw the call: it is handed over again under the same id", () => {
    const b = acting();
    const first = b.effect("DispatchTool");
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [] });
    const again = b.effect("DispatchTool");
    assert.equal(again.callId, first.callId);
    assert.notEqual(again.id, first.id);
  });
  test("[K15] the node comes back with the call accepted but not started: it is handed over again", () => {
    const b = acting();
    const first = b.effect("DispatchTool");
    b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [{ callId: CALL, state: "accepted" }] });
    const again = b.effect("DispatchTool");
    assert.equal(again.callId, first.callId);
    assert.notEqual(again.id, first.id);
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.state.run.phase, "acting");
  });
  test("[T3] the node lost the call: the session waits for its report until the grace ends", () => {
    const b = acting();
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [{ callId: CALL, state: "lost" }] });
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).reason, "tool.outcome_unknown");
  });
  test("[G2] [T4] without a ledger the hand-over is committed first and never repeated", () => {
    const b = sent(acting({ ledger: false }));
    assert.ok(!b.state.outbox.some((effect) => effect.type === "DispatchTool"));
    b.apply({ type: "Woke" });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true });
    assert.ok(!b.state.outbox.some((effect) => effect.type === "DispatchTool"));
    b.now = 60_000;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).reason, "tool.outcome_unknown");
  });
  test("[G1] [G2] a result of a call that was never handed over is refused", () => {
    const b = acting({ ledger: false });
    assert.deepEqual(b.result(CALL, "made up"), { type: "unknown" });
    sent(b);
    assert.deepEqual(b.result(CALL, "real"), { type: "taken" });
  });
  test("[G2] the hand-over failed midway: the outcome is unknown after the grace, unless the result comes", () => {
    const b = sent(acting({ ledger: false }));
    const effectId = "r1/t1/d0.0";
    b.apply({ type: "ToolUncertain", effectId, callId: CALL });
    b.now = LIMITS.nodeGraceMs - 1;
    assert.deepEqual(b.result(CALL, "it was there"), { type: "taken" });
  });
  test("[G5] a call past its deadline is cancelled; a read-only one timed out, any other has an unknown outcome", () => {
    for (const [idempotent, reason] of [
      [true, "tool.timeout"],
      [false, "tool.outcome_unknown"],
    ] as const) {
      const b = acting({ idempotent });
      b.now = 59_999;
      b.apply({ type: "Tick", inFlight: [] });
      assert.equal(b.state.run.phase, "acting");
      b.now = 60_000;
      b.apply({ type: "Tick", inFlight: [] });
      assert.equal(b.resultOf(CALL).reason, reason);
      assert.deepEqual(b.effect("CancelTool").callIds, [CALL]);
    }
  });
  test("[P14] a cancelled call that its node still runs is cancelled again when the node comes back", () => {
    const b = acting();
    b.apply({ type: "Abort" });
    b.apply({ type: "EffectDone", effectId: b.effect("CancelTool").id });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [{ callId: CALL, state: "started" }] });
    assert.deepEqual(b.effect("CancelTool").callIds, [CALL]);
  });
  test("[P8] native calls run again after a crash, up to a limit", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [
      {
        providerId: "x",
        name: "gsv__WriteFile",
        arguments: {},
        target: { kind: "native", tool: "gsv__WriteFile", idempotent: false, timeoutMs: 60_000, deadlineMs: 60_000 },
      },
    ]);
    for (let n = 0; n < LIMITS.recoveryAttempts; n++) b.apply({ type: "Woke" });
    assert.equal(b.state.run.phase, "acting");
    b.apply({ type: "Woke" });
    assert.equal(b.resultOf(CALL).reason, "tool.failed");
  });
});
