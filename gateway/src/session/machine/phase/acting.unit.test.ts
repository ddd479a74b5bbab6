/** Tool calls: results, and nodes that come and go. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { MediaBlock } from "../../../ports/messages.ts";
import type { CallTarget, EventOf, ReplyCall } from "../event.ts";
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

describe("what a result brings", () => {
  const acting = (...calls: readonly ReplyCall[]): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("", calls.length === 0 ? [call()] : calls);
    return b;
  };
  const OTHER = "ref0000000/r1/1/1";
  const report = (b: Bench, more: Partial<EventOf<"ToolResult">> = {}) =>
    b.apply({ type: "ToolResult", callId: CALL, from: LAP, content: [], outcome: "ok", ...more });
  const known = (b: Bench) => b.state.processes?.map(({ nodeId, processId, callId }) => `${nodeId} ${processId} ${callId}`);

  test("its outcome, and the reason of a failure", () => {
    const b = acting(call(), call());
    report(b);
    report(b, { callId: OTHER, outcome: "error", reason: "tool.failed" });
    const [good, bad] = [b.resultOf(CALL), b.resultOf(OTHER)];
    assert.deepEqual([good.message.isError, "reason" in good], [false, false]);
    assert.deepEqual([bad.message.isError, bad.outcome, bad.reason], [true, "error", "tool.failed"]);
  });
  test("[G8] a process that runs on, once for each machine and name", () => {
    const b = acting(call(), call(), call({ nodeId: "box" }), call());
    report(b, { processId: "p1" });
    report(b, { callId: OTHER, processId: "p1" });
    report(b, { callId: "ref0000000/r1/1/2", from: { kind: "node", nodeId: "box" }, processId: "p1" });
    report(b, { callId: "ref0000000/r1/1/3", processId: "p2" });
    assert.deepEqual(known(b), [`lap p1 ${CALL}`, "box p1 ref0000000/r1/1/2", "lap p2 ref0000000/r1/1/3"]);
  });
  test("[G1] [G8] after the session has closed the call: from its own machine only, its process included", () => {
    const b = acting();
    b.apply({ type: "Abort" });
    assert.deepEqual(report(b, { from: { kind: "node", nodeId: "evil" }, processId: "p1" }).answer, { type: "unknown" });
    assert.deepEqual(known(b), []);
    assert.deepEqual(report(b, { processId: "p1" }).answer, { type: "late" });
    assert.deepEqual(known(b), [`lap p1 ${CALL}`]);
  });
  test("files for the answer: each once, and no more than a message can have", () => {
    const file = (name: string): MediaBlock => ({ type: "document", r2Key: name, mimeType: "text/plain", size: 1 }) as MediaBlock;
    const files = (b: Bench) =>
      b.state.run.phase === "idle" ? [] : "files" in b.state.run ? b.state.run.files?.map(({ r2Key }) => r2Key) : undefined;
    const b = acting(call(), call(), call());
    report(b, { callId: OTHER });
    assert.equal(files(b), undefined);
    report(b, { files: [file("f0"), file("f0")] });
    assert.deepEqual(files(b), ["f0"]);
    report(b, { callId: "ref0000000/r1/1/2" });
    assert.deepEqual(files(b), ["f0"]);
    assert.equal(b.textOf(OTHER), "");
    const most = Array.from({ length: LIMITS.attachments }, (_, index) => file(`f${index}`));
    const full = acting(call(), call(), call());
    report(full, { files: most });
    assert.equal(full.textOf(CALL), "");
    report(full, { callId: OTHER, files: [file("f0"), file("more")] });
    assert.equal(full.textOf(OTHER), `[An answer can have ${LIMITS.attachments} files at most: 1 of these were left out.]`);
    assert.deepEqual(
      files(full),
      most.map(({ r2Key }) => r2Key),
    );
  });
  test("[G4] a text of exactly the limit is not kept as a file, too", () => {
    const b = acting();
    b.result(CALL, "x".repeat(LIMITS.toolResultChars));
    assert.ok(b.state.outbox.every(({ type }) => type !== "StoreResult"));
    assert.equal(b.results.size, 0);
  });
});

describe("[G3] only what concerns a machine's own calls", () => {
  const both = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call({}, "lap__Bash"), call({ nodeId: "box" }, "box__Bash"), call({ idempotent: true }, "lap__Read")]);
    return b;
  };
  const BOX = "ref0000000/r1/1/1";
  const statusOf = (b: Bench, callId: string): string | undefined =>
    b.state.run.phase === "acting" ? b.state.run.calls.find((open) => open.callId === callId)?.status : undefined;
  const cancels = (b: Bench) =>
    b.state.outbox.flatMap((effect) => (effect.type === "CancelTool" ? [[effect.nodeId, ...effect.callIds]] : []));

  test("changes when it goes, and the message names the calls that wait for it", () => {
    const b = both();
    const away = b.apply({ type: "NodeChanged", nodeId: "box", online: false });
    assert.deepEqual([statusOf(b, CALL), statusOf(b, BOX)], ["dispatched", "in_grace"]);
    const seconds = Math.round(LIMITS.nodeGraceMs / 1000);
    assert.deepEqual(
      away.status.map(({ text }) => text),
      [`box disconnected during box__Bash. Waiting ${seconds} s for it.`],
    );
    const lap = b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    assert.deepEqual(
      lap.status.map(({ text }) => text),
      [`lap disconnected during lap__Bash. Waiting ${seconds} s for it.`],
    );
    const back = b.apply({ type: "NodeChanged", nodeId: "box", online: true, calls: [{ callId: BOX, state: "started" }] });
    assert.deepEqual(
      back.status.map(({ text }) => text),
      ["box is back."],
    );
  });
  test("a machine without a call that waits is not waited for", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call({ idempotent: true }), call({ nodeId: "box" })]);
    assert.deepEqual(b.apply({ type: "NodeChanged", nodeId: "lap", online: false }).status, []);
  });
  test("a tick before the first deadline, and a machine of no call, write nothing", () => {
    const b = both();
    const { state } = b;
    for (const event of [
      { type: "Tick", inFlight: [] },
      { type: "NodeChanged", nodeId: "other", online: true, calls: [] },
      { type: "NodeChanged", nodeId: "other", online: false },
    ] as const) {
      const step = b.apply(event);
      assert.deepEqual([step.append, step.transitions], [[], []], event.type);
    }
    assert.deepEqual(b.state, state);
  });
  test("[P14] of the calls that a machine reports, the session's own that run and are not wanted are cancelled, once", () => {
    const b = both();
    b.apply({ type: "Abort" });
    for (const effect of b.state.outbox)
      if (effect.type === "CancelTool" && effect.nodeId === "lap") b.apply({ type: "EffectDone", effectId: effect.id });
    assert.deepEqual(cancels(b), [["box", BOX]]);
    const ledger = [
      { callId: CALL, state: "accepted" },
      { callId: "ref0000000/r1/1/2", state: "finished" },
      { callId: BOX, state: "started" },
      { callId: "ref0000000/r9/1/0", state: "started" },
      { callId: "other00000/r1/1/0", state: "started" },
    ] as const;
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [...ledger] as EventOf<"NodeChanged">["calls"] & object });
    assert.deepEqual(cancels(b), [
      ["box", BOX],
      ["lap", CALL],
    ]);
    const again = b.apply({
      type: "NodeChanged",
      nodeId: "lap",
      online: true,
      calls: [...ledger] as EventOf<"NodeChanged">["calls"] & object,
    });
    assert.deepEqual([again.transitions, cancels(b).length], [[], 2]);
  });
  test("[ST2] background commands are ended when their machine comes back while everything is stopped, those that were to end", () => {
    const at = (nodeId: string, stopped?: true) => ({ nodeId, processId: "p", callId: `c-${nodeId}`, ...(stopped ? { stopped } : {}) });
    const back = (held: boolean, nodeId: string, ...processes: ReturnType<typeof at>[]) => {
      const b = new Bench();
      b.say("a");
      b.reply("one");
      b.state = { ...b.state, ...(held ? { held: true as const } : {}), processes };
      const { transitions } = b.apply({ type: "NodeChanged", nodeId, online: true });
      return [transitions.length, ...cancels(b)];
    };
    assert.deepEqual(back(true, "lap", at("lap", true), at("box", true)), [1, ["lap", "c-lap"]]);
    assert.deepEqual(back(true, "lap", at("lap"), at("box", true)), [0]);
    assert.deepEqual(back(false, "lap", at("lap", true)), [0]);
  });
});
