/** Runs that have used up a limit and wait for the owner's word. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bench, BUDGET, CALL, call } from "../../../../test/session/machine-bench.ts";
import type { Origin } from "../../../ports/origin.ts";
import type { MoreOffer } from "../../../ports/spend.ts";
import type { Answer } from "../event.ts";
import { LIMITS } from "../limits.ts";
import { type Budget, isRunning, type Paused } from "../state.ts";

const paused = (b: Bench): Paused => (b.state.run.phase === "paused" ? b.state.run : assert.fail(`the run is ${b.state.run.phase}`));
const answer = (b: Bench, decision: "allow" | "deny", more: { readonly code?: string; readonly hash?: string } = {}): Answer | undefined =>
  b.apply({ type: "ApprovalAnswered", code: paused(b).question.code, answer: decision, by: "client:me", ...more }).answer;
/** A run that has used its one step. */
function short(origin?: Origin): Bench {
  const b = new Bench();
  b.say("a", origin ? { origin } : {});
  b.reply("", [call()], { budget: { ...BUDGET, steps: 1 } });
  b.result(CALL, "done");
  return b;
}
const DAY: MoreOffer = {
  of: "period",
  raise: { scope: "day", unit: "costUsd", period: "2026-03-01", amount: 1 },
  why: "Today's limit is reached.",
  setting: "limits.dayCostUsd",
};
/** A run whose first model call does not fit the limit of the day. */
function overDay(): Bench {
  const b = new Bench();
  b.say("a");
  b.fail({ error: { reason: "budget.day", message: "Today's limit is reached. Wait." }, retryable: false, offer: DAY });
  return b;
}

describe("[SP10] a run of the owner that has used up a limit", () => {
  test("pauses: nothing is under way, and the question says what an answer allows", () => {
    const b = short();
    const { question, offer, deadline } = paused(b);
    assert.deepEqual(
      b.state.outbox.map(({ type }) => type).filter((type) => type !== "Deliver" && type !== "ReportApprovals"),
      [],
    );
    assert.deepEqual([offer.of, question.rule, deadline], ["steps", "limits.stepsPerRun", LIMITS.approvalMs]);
    const row = b.log.findLast((last) => last.kind === "notice");
    assert.ok(row?.kind === "notice");
    assert.match(
      row.text,
      /^The run is paused\. The run used up its 1 step\. \(limits\.stepsPerRun\)\n\| Continue with 1 more step\?\nCode /,
    );
    assert.match(
      row.text,
      /"deny \w+" \(it ends here, and what it has done stays\).* When `limits\.stepsPerRun` is raised, the run goes on by itself\. Otherwise any other message ends the run and is answered next\.$/,
    );
    assert.deepEqual(row.question, { code: question.code, callId: "ref0000000/r1/2/limit1", step: 2, limit: true });
  });
  test("allowed: it goes on with the limit once more, and asks again when that is used up", () => {
    const b = short();
    b.now = 60_000;
    assert.deepEqual(answer(b, "allow"), { type: "approval", ended: "allowed", by: "client:me" });
    const { run } = b.state;
    assert.ok(run.phase === "thinking");
    assert.deepEqual([run.step, run.extra, run.waitedMs, run.progressAt], [2, { steps: 1 }, 60_000, 60_000]);
    b.reply("", [call()], { budget: { ...BUDGET, steps: 1 } });
    b.result("ref0000000/r1/2/0", "done");
    assert.match(paused(b).offer.why, /its 2 steps/);
    answer(b, "allow");
    assert.ok(isRunning(b.state.run));
    assert.deepEqual(b.state.run.extra, { steps: 2 });
    b.reply("all done");
    assert.equal(b.state.run.phase, "idle");
  });
  test("denied, or without an answer in time: it ends as if it had not been asked about", () => {
    const denied = short();
    assert.deepEqual(answer(denied, "deny"), { type: "approval", ended: "denied", by: "client:me" });
    const late = short();
    late.now = LIMITS.approvalMs - 1;
    late.apply({ type: "Tick", inFlight: [] });
    paused(late);
    late.now = LIMITS.approvalMs;
    late.apply({ type: "Tick", inFlight: [] });
    for (const b of [denied, late]) {
      assert.deepEqual([b.state.run.phase, b.notices()], ["idle", ["paused:", "error:budget.steps"]]);
      assert.equal(b.state.questions?.length, 1);
    }
    assert.equal(late.state.questions?.[0]?.ended, "expired");
  });
  test("[AP3] the first answer counts; a later one, and one to another question, changes nothing", () => {
    const b = short();
    const { code } = paused(b).question;
    assert.deepEqual(answer(b, "allow", { hash: "another" }), { type: "unknown" });
    assert.deepEqual(answer(b, "allow", { code: "ZZZZZ" }), { type: "unknown" });
    paused(b);
    answer(b, "allow");
    const after = b.state;
    const again = b.apply({ type: "ApprovalAnswered", code, answer: "deny", by: "client:other" }).answer;
    assert.deepEqual(again, { type: "approval", ended: "allowed", by: "client:me", before: after.clock.wall });
    assert.deepEqual(b.state, after);
  });
  test("[K12] a restart while it waits changes nothing", () => {
    const b = short();
    const before = b.state;
    b.apply({ type: "Woke" });
    b.apply({ type: "Tick", inFlight: [] });
    assert.deepEqual(b.state, before);
  });
  test("of a day: what was allowed goes to the ledger with the run's next call, under the id of the question", () => {
    const b = overDay();
    const { question } = paused(b);
    answer(b, "allow");
    assert.ok(b.state.run.phase === "thinking");
    assert.deepEqual(b.state.run.extra, {
      raises: [{ scope: "day", unit: "costUsd", period: "2026-03-01", amount: 1, id: question.hash }],
    });
    assert.equal(b.effect("CallModel").id, "r1/t1/m1");
  });
});

describe("[SP10] a limit that was raised while a tool of the run went on", () => {
  /** A run whose one step is used up by the limits of its last model call, and which looks at the current ones. */
  function looking(): Bench {
    const b = new Bench();
    b.looksAtOnce = false;
    b.say("a");
    b.reply("", [call()], { budget: { ...BUDGET, steps: 1 } });
    b.result(CALL, "done");
    return b;
  }
  test("the run goes on with its next step, and shows its model the messages that steer it", () => {
    const b = looking();
    assert.deepEqual([b.thinking().looksAtLimit, b.thinking().step, b.effect("CallModel").id], [true, 2, "r1/t2/m0"]);
    b.say("s", {}, "steer");
    assert.equal(b.state.queue.count, 1);
    b.look({ ...BUDGET, steps: 2 });
    const { step, budget, looksAtLimit } = b.thinking();
    assert.deepEqual([step, budget?.steps, looksAtLimit, b.effect("CallModel").id], [2, 2, undefined, "r1/t2/m1"]);
    assert.deepEqual([b.state.queue.count, b.log.at(-1)?.kind], [0, "user"]);
    b.reply("all done", [], { budget: { ...BUDGET, steps: 2 } });
    assert.deepEqual([b.state.run.phase, b.notices()], ["idle", []]);
  });
  test("still reached: the owner is asked, and a message that came meanwhile is answered next", () => {
    const b = looking();
    b.look({ ...BUDGET, steps: 1 });
    assert.equal(paused(b).callId, "ref0000000/r1/2/limit1");
    answer(b, "allow");
    assert.equal(b.thinking().looksAtLimit, undefined);
    const other = looking();
    other.say("b");
    other.look({ ...BUDGET, steps: 1 });
    assert.deepEqual([other.thinking().runId, other.notices()], ["run-b", ["error:budget.steps"]]);
  });
  test("[K12] a lost look is made again, and a late one changes nothing", () => {
    const b = looking();
    b.apply({ type: "Woke" });
    assert.deepEqual([b.thinking().looksAtLimit, b.thinking().failed, b.effect("CallModel").id], [true, undefined, "r1/t2/m1"]);
    const before = b.state;
    b.apply({ type: "LimitsKnown", effectId: "r1/t2/m0", budget: BUDGET });
    assert.deepEqual(b.state, before);
  });
  test("a gateway that does not say leaves the limits of the last model call", () => {
    const b = looking();
    const error = { reason: "internal", message: "The gateway did not provide the settings." } as const;
    b.apply({ type: "ModelFailed", effectId: b.effect("CallModel").id, error, retryable: true, models: 1, streamed: false });
    assert.match(paused(b).offer.why, /its 1 step/);
    answer(b, "allow");
    assert.equal(b.thinking().looksAtLimit, undefined);
  });
  test("also between two tries of a model call", () => {
    const b = new Bench();
    b.looksAtOnce = false;
    b.say("a");
    b.now = BUDGET.ms + 1;
    b.fail();
    assert.equal(b.thinking().looksAtLimit, true);
    b.look({ ...BUDGET, ms: BUDGET.ms * 2 });
    assert.deepEqual([b.thinking().step, b.thinking().looksAtLimit], [1, undefined]);
  });
});

describe("[SP10] a limit that was raised while a run waits at it", () => {
  const look = (b: Bench, budget: Budget, code = paused(b).question.code): Answer | undefined =>
    b.apply({ type: "LimitNoLongerReached", code, budget }).answer;
  test("the run goes on, and its question ends as allowed by the setting", () => {
    const b = short();
    const { code } = paused(b).question;
    b.now = 60_000;
    look(b, { ...BUDGET, steps: 2 });
    const { run, questions } = b.state;
    assert.ok(run.phase === "thinking");
    assert.deepEqual([run.step, run.budget?.steps, run.extra, run.waitedMs, run.progressAt], [2, 2, undefined, 60_000, 60_000]);
    assert.deepEqual(
      questions?.map(({ code, ended, by }) => ({ code, ended, by })),
      [{ code, ended: "allowed", by: "setting:limits.stepsPerRun" }],
    );
    b.reply("all done", [], { budget: { ...BUDGET, steps: 2 } });
    assert.deepEqual([b.state.run.phase, b.notices()], ["idle", ["paused:"]]);
  });
  test("other settings of the conversation report the question again, so that the gateway makes the session look", () => {
    const b = short();
    const reports = () => b.state.outbox.filter(({ type }) => type === "ReportApprovals").map(({ id }) => id);
    const [first = ""] = reports();
    b.apply({ type: "EffectDone", effectId: first });
    assert.deepEqual(reports(), []);
    b.apply({ type: "SettingsPatched", settings: { model: { provider: "demo", id: "demo" } }, text: "another model" });
    assert.equal(reports().length, 1);
    const idle = new Bench();
    idle.say("a");
    idle.reply("done");
    idle.apply({ type: "SettingsPatched", settings: { maxTokens: 7 }, text: "less" });
    assert.ok(idle.state.outbox.every(({ type }) => type !== "ReportApprovals"));
  });
  test("of a day: the refused call is made again", () => {
    const b = overDay();
    look(b, BUDGET);
    assert.equal(b.state.run.phase, "thinking");
    assert.equal(b.effect("CallModel").id, "r1/t1/m1");
  });
  test("nothing changes while the limit is still reached, for another question, and without a paused run", () => {
    const b = short();
    const before = b.state;
    look(b, { ...BUDGET, steps: 1 });
    look(b, { ...BUDGET, steps: 9 }, "ZZZZZ");
    assert.deepEqual(b.state, before);
    const { code } = paused(b).question;
    answer(b, "deny");
    const ended = b.state;
    look(b, { ...BUDGET, steps: 9 }, code);
    assert.deepEqual(b.state, ended);
  });
});

test("[RT2] the end of a task's run has advice for the sender of the task, and the end of another run has that for a conversation", () => {
  const text = (origin: Origin): string | undefined => {
    const b = new Bench();
    b.say("a", { origin });
    b.fail({
      error: {
        reason: "model.refused",
        message: "It declined.",
        hint: "Rephrase the message.",
        taskHint: "{again} with other instructions.",
      },
      retryable: false,
    });
    return endText(b);
  };
  assert.equal(text({ kind: "client", clientId: "me" } as Origin), "It declined. Rephrase the message.");
  assert.equal(text({ kind: "task", taskId: "t" }), "It declined. Send the task again with other instructions.");
});

const endText = (b: Bench): string | undefined => {
  const row = b.log.findLast((last) => last.kind === "notice" && last.notice === "error");
  return row?.kind === "notice" ? row.text : undefined;
};
describe("[SP10] a question about a limit blocks no conversation", () => {
  test("the next message ends the run and begins at once; quiet ones and others' wait", () => {
    const b = short();
    b.say("noise", { quiet: true });
    paused(b);
    assert.deepEqual(b.say("something else"), { type: "accepted", runId: "run-something else", queued: false, seq: 8 });
    assert.deepEqual(b.notices(), ["paused:", "error:budget.steps"]);
    assert.equal(b.state.questions?.[0]?.ended, "withdrawn");
    const { code } = b.state.questions[0];
    assert.equal(
      endText(b),
      `The run used up its 1 step. Before the question ${code} was answered, a new message came, so the run ended there. What it has done stays. To allow more, raise \`limits.stepsPerRun\`.`,
    );
    assert.deepEqual(
      b.log.flatMap((row) => (row.kind === "user" ? [row.messageId] : [])),
      ["a", "noise", "something else"],
    );
    assert.ok(b.state.run.phase === "thinking");
  });
  test("the end of a process that waits comes first", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()], { budget: { ...BUDGET, steps: 1 } });
    b.apply({
      type: "ToolResult",
      callId: CALL,
      from: { kind: "node", nodeId: "lap" },
      content: [],
      outcome: "ok",
      processId: "p1",
    });
    const incoming = {
      messageId: "end",
      runId: "run-end",
      origin: { kind: "node_event", nodeId: "lap" } as const,
      message: { role: "user" as const, content: "ended", timestamp: 0 },
      directives: {},
    };
    b.apply({ type: "ExecEnded", nodeId: "lap", processId: "p1", incoming, bytes: 10 });
    paused(b);
    assert.deepEqual(b.say("b"), { type: "accepted", runId: "run-b", queued: true });
    assert.ok(b.state.run.phase === "thinking");
    assert.equal(b.state.run.messageId, "end");
    assert.equal(b.state.queue.count, 1);
  });
  test("/compact, /reset, /stop and a stop of everything end it", () => {
    const ends = (
      [{ type: "Compact" }, { type: "Reset" }, { type: "Abort" }, { type: "Abort", runId: "run-a" }, { type: "Held", held: true }] as const
    ).map((event) => {
      const b = short();
      b.apply(event);
      return [b.state.run.phase, b.notices().at(-1), b.state.questions?.[0]?.ended];
    });
    assert.deepEqual(ends, [
      ["archiving", "error:budget.steps", "withdrawn"],
      ["archiving", "aborted:run.aborted", "withdrawn"],
      ["idle", "aborted:run.aborted", "withdrawn"],
      ["idle", "aborted:run.aborted", "withdrawn"],
      ["idle", "aborted:run.aborted", "withdrawn"],
    ]);
  });
});

describe("[SP10] no question, and the run ends", () => {
  const ended = (b: Bench): void => assert.deepEqual(b.notices(), ["error:budget.steps"]);
  const dm = { kind: "channel", channel: "whatsapp", accountId: "default", senderId: "1" } as const;
  for (const [name, origin] of [
    ["a guest", { ...dm, role: "guest", peer: { kind: "dm", id: "1" } }],
    ["the owner in a group", { ...dm, role: "owner", peer: { kind: "group", id: "2" } }],
    ["another session", { kind: "session", sessionKey: "agent:main:x", hops: 1 }],
    ["the end of a process", { kind: "node_event", nodeId: "lap" }],
  ] as const)
    test(`for ${name}`, () => ended(short(origin)));
  test("for the owner in a direct chat it is asked, there too", () => {
    const b = new Bench();
    const reply = { channel: "whatsapp", accountId: "default", peer: { kind: "dm", id: "1" } } as const;
    b.say("a", { origin: { ...dm, role: "owner", peer: { kind: "dm", id: "1" } }, reply });
    b.reply("", [call()], { budget: { ...BUDGET, steps: 1 } });
    b.result(CALL, "done");
    paused(b);
    assert.deepEqual(
      b.state.outbox.flatMap((effect) => (effect.type === "Reply" ? [effect.seq] : [])),
      [b.log.at(-1)?.seq],
    );
  });
  test("when a message waits, or a compaction", () => {
    const messages = new Bench();
    messages.say("a");
    messages.reply("", [call()], { budget: { ...BUDGET, steps: 1 } });
    messages.say("b");
    messages.result(CALL, "done");
    ended(messages);
    const compaction = new Bench();
    compaction.say("a");
    compaction.reply("", [call()], { budget: { ...BUDGET, steps: 1 } });
    compaction.apply({ type: "Compact" });
    compaction.result(CALL, "done");
    ended(compaction);
  });
});
