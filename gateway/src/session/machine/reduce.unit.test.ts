/** Events that belong to no phase, settings, and steps that break an invariant. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { EventBody } from "./event.ts";
import { checkStep, InvariantError } from "./invariants.ts";
import type { IncomingMessage, State } from "./state.ts";
import { Bench, CALL, call } from "../../../test/session/machine-bench.ts";

describe("events and settings", () => {
  test("[C3] [P11] every event has its own number, and deliveries are recorded with later commits", () => {
    const b = new Bench();
    b.say("a");
    b.reply("let me look", [call(), call()]);
    assert.deepEqual(
      b.log.map((row) => row.seq),
      [1, 2],
    );
    assert.equal(b.state.nextSeq, 5);
    b.published = 4;
    b.result(CALL, "one");
    assert.equal(b.state.deliveredSeq, 4);
    assert.equal(b.effect("Deliver").upto, 5);
  });
  test("an event that changes nothing writes nothing", () => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.published = 99;
    const state = b.state;
    for (const body of [
      { type: "Tick", inFlight: [] },
      { type: "Woke" },
      { type: "NodeChanged", nodeId: "lap", online: false },
      { type: "EffectDone", effectId: "nope" },
    ] as const satisfies EventBody[]) {
      const step = b.apply(body);
      assert.deepEqual([step.append.length, step.queue.length, step.effects.length], [0, 0, 0], body.type);
    }
    assert.deepEqual(b.state, state);
  });
  test("settings are set and cleared", () => {
    const b = new Bench();
    b.say("a");
    b.apply({
      type: "SettingsPatched",
      settings: { thinkingLevel: "high", maxTokens: 5 },
      label: "mine",
      resetPolicy: { mode: "idle" },
      text: "x",
    });
    assert.deepEqual(b.state.settings, { thinkingLevel: "high", maxTokens: 5 });
    b.apply({ type: "SettingsPatched", clear: ["thinkingLevel", "label", "resetPolicy"], text: "y" });
    assert.deepEqual([b.state.settings, b.state.label, b.state.resetPolicy], [{ maxTokens: 5 }, undefined, {}]);
  });
  test("a step that breaks an invariant is refused", () => {
    const b = new Bench();
    b.say("a");
    const step = b.apply({ type: "Delivered", upto: 0 });
    const broken: State = { ...b.state, run: { phase: "idle" } };
    assert.throws(() => checkStep(b.state, { ...step, state: broken }), InvariantError);
  });
});

describe("[ST2] everything is stopped", () => {
  test("the run ends, its calls are cancelled, and what waited and what comes waits in order until the session goes on", () => {
    const b = new Bench();
    b.say("a");
    b.say("b");
    const held = b.apply({ type: "Held", held: true });
    assert.deepEqual(held.answer, { type: "aborted", wasRunning: true, runId: "run-a", cancelled: 0 });
    assert.deepEqual([b.state.run, b.state.queue.count], [{ phase: "idle" }, 1]);
    assert.deepEqual(b.say("c"), { type: "accepted", runId: "run-c", queued: true });
    assert.deepEqual(b.say("quiet", { quiet: true }), { type: "accepted", runId: "run-quiet", queued: true });
    for (const type of ["Reset", "Compact"] as const) assert.equal(b.apply({ type }).answer?.type, "refused");
    b.apply({ type: "Woke" });
    assert.deepEqual([b.state.run, b.state.queue.count], [{ phase: "idle" }, 3]);
    b.apply({ type: "Held", held: false });
    assert.equal(b.state.run.phase === "thinking" && b.state.run.runId, "run-b");
    b.reply("one");
    b.reply("two");
    assert.deepEqual(
      b.log.flatMap((row) => (row.kind === "user" ? [row.messageId] : [])),
      ["a", "b", "c", "quiet"],
    );
    assert.deepEqual([b.state.run, b.state.held, b.queue.length], [{ phase: "idle" }, undefined, 0]);
  });
  test("a stop of a stopped session and a resume of a running one change nothing", () => {
    const b = new Bench();
    b.apply({ type: "Held", held: false });
    b.say("a");
    b.apply({ type: "Held", held: false });
    assert.equal(b.state.run.phase, "thinking");
    b.apply({ type: "Held", held: true });
    assert.deepEqual(b.apply({ type: "Held", held: true }).answer, { type: "aborted", wasRunning: false, cancelled: 0 });
    b.apply({ type: "Held", held: false });
    assert.deepEqual(b.state.run, { phase: "idle" });
  });
  test("commands in the background are ended too, also when their machine comes back later, and their ends wake no one", () => {
    const b = new Bench();
    const process = { nodeId: "lap", processId: "p1", callId: "ref0000000/r1/1/0" };
    b.say("a");
    b.reply("one");
    b.state = { ...b.state, processes: [process] };
    b.apply({ type: "Held", held: true });
    const { nodeId, callIds } = b.effect("CancelTool");
    assert.deepEqual([nodeId, callIds], ["lap", [process.callId]]);
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true });
    assert.equal(b.state.outbox.filter(({ type }) => type === "CancelTool").length, 2);
    b.apply({ type: "Held", held: true });
    assert.equal(b.state.outbox.filter(({ type }) => type === "CancelTool").length, 2);
    const incoming: IncomingMessage = {
      messageId: "exec:lap:1",
      runId: "x1",
      origin: { kind: "node_event", nodeId: "lap" },
      message: { role: "user", content: "process p1 ended", timestamp: 0 },
      directives: {},
    };
    assert.equal(b.apply({ type: "ExecEnded", nodeId: "lap", processId: "p1", incoming, bytes: 100 }).answer?.type, "taken");
    b.apply({ type: "Held", held: false });
    assert.deepEqual([b.state.run, b.state.queue.count, b.state.processes], [{ phase: "idle" }, 0, []]);
  });
  test("a message that waits can still be taken off", () => {
    const b = new Bench();
    b.say("a");
    b.apply({ type: "Held", held: true });
    b.say("b");
    assert.deepEqual(b.apply({ type: "Abort", runId: "run-b" }).answer, {
      type: "aborted",
      wasRunning: true,
      runId: "run-b",
      cancelled: 0,
    });
    b.apply({ type: "Held", held: false });
    assert.deepEqual(b.state.run, { phase: "idle" });
  });
});
