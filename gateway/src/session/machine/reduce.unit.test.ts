/** Events that belong to no phase, settings, and steps that break an invariant. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { EventBody, EventOf } from "./event.ts";
import { checkStep, InvariantError } from "./invariants.ts";
import type { CutPlan, IncomingMessage, State } from "./state.ts";
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
    assert.deepEqual(b.notices(), ["settings:"]);
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
    assert.deepEqual(held.answer, { type: "aborted", wasRunning: true, runId: "run-a", cancelled: 0, waiting: 1 });
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

describe("events in any phase", () => {
  const talked = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    return b;
  };
  const texts = (b: Bench): readonly string[] => b.log.flatMap((row) => (row.kind === "notice" ? [row.text] : []));
  test("[C3] clients can't have received more than the log", () => {
    const b = talked();
    const { transitions } = b.apply({ type: "Delivered", upto: 99 });
    assert.deepEqual([transitions, b.state.deliveredSeq], [["delivered"], b.state.nextSeq - 1]);
  });
  test("a note is for people, and for the model where it says so", () => {
    const b = talked();
    b.apply({ type: "Noted", text: "one" });
    b.apply({ type: "Noted", text: "two", forModel: true });
    const notes = b.log.flatMap((row) => (row.kind === "notice" ? [[row.text, row.forModel]] : []));
    assert.deepEqual(notes, [
      ["one", undefined],
      ["two", "two"],
    ]);
  });
  test("[SP2] a call that was stopped counts as what it may have cost", () => {
    const b = talked();
    const zero = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const spent = { day: "2026-03-01", model: "p/m", calls: 1, costUsd: 0.5, tokens: 0, ...zero };
    assert.deepEqual(b.apply({ type: "Spent", spent }).transitions, ["stoppedCallCounted"]);
    assert.equal(b.state.spend?.count, 1);
  });
  test("an effect that fails again and again is told about while it is open, and stays open", () => {
    const b = talked();
    b.state = { ...b.state, outbox: [...b.state.outbox, { type: "DeleteMedia", id: "media/1", before: 0, from: 1 }] };
    const { transitions } = b.apply({ type: "Parked", effectId: "media/1", text: "It fails." });
    assert.deepEqual([transitions, texts(b), b.effect("DeleteMedia").id], [["effectParked"], ["It fails."], "media/1"]);
    const { state } = b;
    assert.deepEqual(b.apply({ type: "Parked", effectId: "media/2", text: "It fails." }).transitions, []);
    assert.deepEqual(b.state, state);
  });
  test("[P9] [P10] a waiting message that is stopped is answered on its platform", () => {
    const b = talked();
    b.say("b");
    b.say("c", { reply: { channel: "test", accountId: "default", peer: { kind: "dm", id: "anna" } } });
    b.apply({ type: "Abort", runId: "run-c" });
    assert.deepEqual(
      b.state.outbox.flatMap((effect) => (effect.type === "Reply" ? [effect.id] : [])),
      [`reply/q${b.state.nextSeq - 1}`],
    );
  });
  test("[R3] a stop ends a compaction when it names the run behind it, or no run", () => {
    const compacting = (): Bench => {
      const b = talked();
      b.say("b");
      b.full(b.plan(3));
      return b;
    };
    for (const [runId, phase] of [
      [undefined, "idle"],
      ["run-b", "idle"],
      ["run-x", "archiving"],
    ] as const) {
      const b = compacting();
      const { answer } = b.apply({ type: "Abort", ...(runId === undefined ? {} : { runId }) });
      assert.deepEqual([b.state.run.phase, answer?.type === "aborted" && answer.wasRunning], [phase, phase === "idle"], runId);
    }
  });
  test("[ST2] a stop of everything ends a compaction, and leaves a reset that goes on", () => {
    const b = talked();
    b.apply({ type: "Compact" });
    const { answer } = b.apply({ type: "Held", held: true });
    assert.deepEqual([b.state.run.phase, answer?.type === "aborted" && answer.wasRunning], ["idle", true]);
    const c = talked();
    c.apply({ type: "Reset" });
    c.apply({ type: "Held", held: true });
    assert.equal(c.state.run.phase, "archiving");
    const d = talked();
    assert.ok(!("processes" in d.state && d.state.processes?.length));
    const { processes } = d.state;
    assert.deepEqual(d.apply({ type: "Held", held: true }).state.processes, processes);
    assert.deepEqual(d.apply({ type: "Held", held: false }).transitions, ["holdEnds", "heldWorkGoesOn", "nothingWaits"]);
    assert.deepEqual(d.apply({ type: "Held", held: false }).transitions, []);
  });
  test("[PO8] a mode ends the time of the mode before it; what is cleared is as configured", () => {
    const b = talked();
    const patched = (event: Partial<EventOf<"SettingsPatched">>) => {
      b.apply({ text: "x", ...event, type: "SettingsPatched" });
      return b.state.settings;
    };
    patched({ settings: { mode: "full", modeUntil: 5 } });
    assert.deepEqual(patched({ settings: { maxTokens: 7 } }), { mode: "full", modeUntil: 5, maxTokens: 7 });
    assert.deepEqual(patched({ settings: { mode: "plan" } }), { mode: "plan", maxTokens: 7 });
    assert.deepEqual(patched({ settings: { mode: "full", modeUntil: 9 } }), { mode: "full", modeUntil: 9, maxTokens: 7 });
    assert.deepEqual(patched({ clear: ["mode", "maxTokens"] }), {});
    patched({ settings: { model: { provider: "p", id: "m" }, systemPrompt: "s", thinkingLevel: "high" } });
    assert.deepEqual(patched({ clear: ["model"] }), { systemPrompt: "s", thinkingLevel: "high" });
    assert.deepEqual(patched({ clear: ["systemPrompt"] }), { thinkingLevel: "high" });
    assert.deepEqual(patched({ clear: ["thinkingLevel"] }), {});
  });
  test("[R7] the known token count ends with its model and its prompt, and with nothing else", () => {
    const isKnown = (event: Partial<EventOf<"SettingsPatched">>): boolean => {
      const b = talked();
      assert.ok(b.state.context);
      b.apply({ text: "x", ...event, type: "SettingsPatched" });
      return b.state.context !== undefined;
    };
    for (const other of [{}, { settings: { maxTokens: 5 } }, { clear: ["mode"] }, { label: "x" }] as const)
      assert.ok(isKnown(other), JSON.stringify(other));
    for (const own of [
      { settings: { model: { provider: "p", id: "m" } } },
      { settings: { systemPrompt: "" } },
      { clear: ["model"] },
      { clear: ["systemPrompt"] },
    ] as const)
      assert.ok(!isKnown(own), JSON.stringify(own));
  });
  test("[R5] a policy for resets is added to what is set, and cleared as a whole", () => {
    const b = talked();
    const patched = (event: Partial<EventOf<"SettingsPatched">>) => {
      b.apply({ text: "x", ...event, type: "SettingsPatched" });
      return b.state.resetPolicy;
    };
    assert.deepEqual(patched({ resetPolicy: { mode: "idle" } }), { mode: "idle" });
    assert.deepEqual(patched({ resetPolicy: { idleMinutes: 5 } }), { mode: "idle", idleMinutes: 5 });
    assert.deepEqual(patched({ clear: ["resetPolicy"] }), {});
  });
  test("[R6] [R8] a compaction says what left and what stays, and quotes a task without a summary", () => {
    const done = (keep: number | undefined, plan: (b: Bench) => CutPlan, summary = "what was said"): string => {
      const b = talked();
      b.say("b");
      b.reply("two");
      b.apply({ type: "Compact", ...(keep === undefined ? {} : { keep }) });
      b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: plan(b) });
      if (keep === undefined) b.summarize({ summary });
      b.archive();
      return `${texts(b).at(-1)} ${b.state.summary?.task ?? "-"}`;
    };
    assert.equal(
      done(undefined, (b) => b.plan(4)),
      "3 earlier messages were archived and left the context; a summary stands for them; 1 stays. -",
    );
    assert.equal(
      done(3, (b) => b.plan(2)),
      "1 earlier message was archived and left the context; 3 stay. -",
    );
    assert.match(
      done(undefined, (b) => b.plan(3, { task: "the task" }), ""),
      /; 2 stay\. the task$/,
    );
  });
});
