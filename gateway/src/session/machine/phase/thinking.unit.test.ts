/** Model calls: answers, failures, retries and budgets. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Origin } from "../../../ports/origin.ts";
import type { Usage } from "../../../../../protocol/gen/types.ts";
import type { AssistantMessage } from "../../../ports/messages.ts";
import type { EventOf } from "../event.ts";
import { LIMITS } from "../limits.ts";
import { jsonBytes } from "../text.ts";
import { Bench, BUDGET, CALL, call, USAGE } from "../../../../test/session/machine-bench.ts";

describe("the model", () => {
  test("[R2] [P5] four tries with 1, 2, 4 s and a quarter of chance, then an error in plain words", () => {
    const b = new Bench();
    b.say("a");
    for (const [tries, jitter, waitMs] of [
      [1, 0, 750],
      [2, 0.5, 2_000],
      [3, 1, 5_000],
    ] as const) {
      b.jitter = jitter;
      const step = b.fail();
      assert.equal(b.effect("CallModel").notBefore, b.now + waitMs);
      assert.equal(b.effect("CallModel").id, `r1/t1/m${tries}`);
      assert.equal(step.status.length, 1);
      b.now += waitMs;
    }
    b.fail();
    assert.deepEqual(b.notices(), ["error:model.overloaded"]);
    assert.equal(b.state.run.phase, "idle");
  });
  test("[F48] while it is tried again, people are told the cause and not to send the message again", () => {
    const b = new Bench();
    b.say("a");
    const shown = (reason: "model.overloaded" | "model.unreachable", message: string): string =>
      JSON.stringify(b.fail({ error: { reason, message, hint: "Send the message again." } }).status);
    const rate = shown("model.overloaded", "X rejected the request because of a rate limit (HTTP 429). It says: busy.");
    assert.match(rate, /"X rejected the request because of a rate limit \(HTTP 429\)\. It says: busy\. Trying again in \d+ s\."/);
    const lost = shown("model.unreachable", "X can't reach the model's server (HTTP 502).");
    assert.match(lost, /"X can't reach the model's server \(HTTP 502\)\. Trying again in \d+ s\."/);
  });
  test("[R2] then the next model gets its own four tries", () => {
    const b = new Bench();
    b.say("a");
    for (let n = 0; n < LIMITS.modelAttempts; n++) b.fail({ models: 2 });
    assert.equal(b.state.run.phase === "thinking" && b.state.run.modelIndex, 1);
    for (let n = 0; n < LIMITS.modelAttempts - 1; n++) b.fail({ models: 2 });
    assert.equal(b.state.run.phase, "thinking");
    b.fail({ models: 2 });
    assert.deepEqual(b.notices(), ["error:model.overloaded"]);
  });
  test("[R2] a model that is down is not asked first again at the next step", () => {
    const b = new Bench();
    b.say("a");
    for (let n = 0; n < LIMITS.modelAttempts; n++) b.fail({ models: 2 });
    b.reply("", [call()]);
    b.result(CALL, "done");
    assert.equal(b.state.run.phase === "thinking" && b.state.run.modelIndex, 1);
  });
  test("[R2] [P5] retry-after is honoured up to 60 s, longer means the next model", () => {
    const b = new Bench();
    b.say("a");
    b.fail({ retryAfterMs: 60_000, models: 2 });
    assert.equal(b.effect("CallModel").notBefore, 60_000);
    b.now = 60_000;
    const { status } = b.fail({ retryAfterMs: 60_001, models: 2 });
    assert.equal(b.state.run.phase === "thinking" && b.state.run.modelIndex, 1);
    assert.match(JSON.stringify(status), /Trying the next model\."/);
  });
  test("[R2] [W4] a failure that is not retryable ends the run at once, visibly", () => {
    const b = new Bench();
    b.say("a");
    b.fail({ retryable: false, reason: "model.auth", models: 3 });
    assert.deepEqual(b.notices(), ["error:model.auth"]);
  });
  test("[P5] an empty answer counts as a failure", () => {
    const b = new Bench();
    b.say("a");
    b.reply("  ");
    assert.equal(b.effect("CallModel").id, "r1/t1/m1");
    assert.equal(b.log.length, 1);
  });
  test("[P5] [K7] a completion of an earlier attempt, or a second completion, is dropped", () => {
    const b = new Bench();
    b.say("a");
    const old = b.effect("CallModel").id;
    b.apply({ type: "Woke" });
    const before = b.state;
    const message: AssistantMessage = {
      role: "assistant",
      content: [{ type: "text", text: "old" }],
      api: "a",
      provider: "p",
      model: "m",
      usage: USAGE,
      stopReason: "stop",
      timestamp: 0,
    };
    b.apply({ type: "ModelReplied", effectId: old, message, calls: [], usage: USAGE, budget: BUDGET });
    assert.deepEqual(b.state, before);
    const now = b.effect("CallModel").id;
    b.reply("new");
    b.apply({ type: "ModelReplied", effectId: now, message, calls: [], usage: USAGE, budget: BUDGET });
    assert.equal(b.log.filter((row) => row.kind === "assistant").length, 1);
  });
  test("[R4] [P13] [K7] restarts of one step are counted, and the run ends once", () => {
    const b = new Bench();
    b.say("a");
    for (let n = 1; n <= LIMITS.recoveryAttempts; n++) {
      b.apply({ type: "Woke" });
      assert.equal(b.effect("CallModel").id, `r1/t1/m${n}`);
    }
    b.apply({ type: "Woke" });
    assert.deepEqual(b.notices(), ["error:run.no_progress"]);
    b.apply({ type: "Woke" });
    assert.equal(b.notices().length, 1);
  });
  test("[R4] [P13] five minutes without progress, from the first interruption on, end the run", () => {
    const b = new Bench();
    b.say("a");
    // The answer may take longer than that; only what is lost again and again is stuck.
    b.now = LIMITS.noProgressMs + 60_000;
    b.apply({ type: "Woke" });
    assert.equal(b.state.run.phase, "thinking");
    b.now += LIMITS.noProgressMs;
    b.apply({ type: "Woke" });
    assert.equal(b.state.run.phase, "thinking");
    b.now += 1;
    b.apply({ type: "Woke" });
    assert.deepEqual(b.notices(), ["error:run.no_progress"]);
  });
  test("[R4] [P13] failed calls count too: five minutes after the first of them the run ends", () => {
    const b = new Bench();
    b.say("a");
    b.fail();
    b.now += LIMITS.noProgressMs;
    b.fail();
    assert.equal(b.state.run.phase, "thinking");
    b.now += 1;
    b.fail();
    assert.deepEqual(
      b.notices().filter((notice) => notice.startsWith("error:")),
      ["error:run.no_progress"],
    );
  });
  test("[P12] [D4] an expired lease restarts a lost model call, and not one that is still running", () => {
    const b = new Bench();
    b.say("a");
    const id = b.effect("CallModel").id;
    b.now = LIMITS.leaseMs;
    b.apply({ type: "Tick", inFlight: [id] });
    assert.equal(b.effect("CallModel").id, id);
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.effect("CallModel").id, "r1/t1/m1");
  });
  test("[R2] a retry that had not started yet is not counted after a wake", () => {
    const b = new Bench();
    b.say("a");
    b.fail();
    const waiting = b.effect("CallModel");
    b.apply({ type: "Woke" });
    assert.deepEqual(b.effect("CallModel"), waiting);
  });
});

/** Not the owner: a run that meets a limit ends, and is not asked about. */
const GUEST: Origin = { kind: "channel", channel: "whatsapp", accountId: "default", senderId: "7", role: "guest" };
describe("budgets", () => {
  const run = (budget: typeof BUDGET, usage: Usage = USAGE): Bench => {
    const b = new Bench();
    b.say("a", { origin: GUEST });
    b.reply("", [call()], { budget, usage });
    return b;
  };
  test("[R1] [W22] a run over its steps ends", () => {
    const b = run({ ...BUDGET, steps: 1 });
    b.result(CALL, "done");
    assert.deepEqual(b.notices(), ["error:budget.steps"]);
    assert.equal(b.say("continue")?.type, "accepted");
    b.reply("going on");
  });
  test("[R1] [P13] a run over its time on the session's clock ends", () => {
    const b = run({ ...BUDGET, ms: 30_000 });
    b.now = 30_001;
    b.result(CALL, "done");
    assert.deepEqual(b.notices(), ["error:budget.time"]);
  });
  test("[R1] a run over its cost ends; exactly the budget is allowed", () => {
    const at = run({ ...BUDGET, costUsd: 0.5 }, { ...USAGE, costUsd: 0.5 });
    at.result(CALL, "done");
    assert.equal(at.state.run.phase, "thinking");
    const over = run({ ...BUDGET, costUsd: 0.5 }, { ...USAGE, costUsd: 0.51 });
    over.result(CALL, "done");
    assert.deepEqual(over.notices(), ["error:budget.cost"]);
  });
  test("[R1] the budget also holds between two tries", () => {
    const b = run({ ...BUDGET, ms: 30_000 });
    b.result(CALL, "done");
    b.now = 31_000;
    b.apply({
      type: "ModelFailed",
      effectId: b.effect("CallModel").id,
      error: { reason: "model.overloaded", message: "x" },
      retryable: true,
      models: 1,
      streamed: true,
    });
    assert.deepEqual(b.notices(), ["error:budget.time"]);
  });
});
describe("limits of a run that are not reached yet", () => {
  const going = (more: Partial<typeof BUDGET> & { tokens?: number }, spend?: number): Bench => {
    const b = new Bench();
    b.say("a", { origin: GUEST });
    const message: AssistantMessage = {
      role: "assistant",
      content: [],
      api: "a",
      provider: "p",
      model: "m",
      usage: USAGE,
      stopReason: "toolUse",
      timestamp: 0,
    };
    const zero = { costUsd: 0, input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const spent = spend === undefined ? {} : { spent: { day: "2026-03-01", model: "p/m", calls: 1, tokens: spend, ...zero } };
    const budget = { ...BUDGET, ...more };
    b.apply({ type: "ModelReplied", effectId: "r1/t1/m0", message, calls: [call()], usage: USAGE, budget, ...spent });
    return b;
  };
  const ends = (b: Bench): readonly string[] => {
    b.result(CALL, "done");
    return b.notices();
  };
  test("[R1] [W22] exactly the steps, the time and the tokens are allowed", () => {
    assert.deepEqual([ends(going({ steps: 2 })), ends(going({ steps: 1 }))], [[], ["error:budget.steps"]]);
    assert.deepEqual([ends(going({ tokens: 5 }, 5)), ends(going({ tokens: 5 }, 6))], [[], ["error:budget.cost"]]);
    const b = going({ ms: 30_000 });
    b.now = 30_000;
    assert.deepEqual(ends(b), []);
  });
  test("[SP1] a budget that is used up ends the run, whatever a further try would do", () => {
    const b = new Bench();
    b.say("a");
    const step = b.fail({ error: { reason: "budget.cost", message: "The day's money is used up." }, retryable: false });
    assert.deepEqual([step.transitions, b.notices()], [["budgetUsedUp", "nothingWaits"], ["error:budget.cost"]]);
  });
});

describe("recordings", () => {
  const asked = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.apply({ type: "Reset" });
    b.archive();
    b.summarize();
    b.say("b");
    return b;
  };
  const row = (b: Bench, seq: number, chars = 5): EventOf<"Transcribed">["row"] => {
    const found = b.log.findLast((candidate) => candidate.kind === "user");
    assert.ok(found?.kind === "user");
    return { ...found, seq, message: { role: "user", content: "x".repeat(chars), timestamp: 0 } };
  };
  const transcribed = (b: Bench, of: EventOf<"Transcribed">["row"]) =>
    b.apply({ type: "Transcribed", effectId: b.effect("CallModel").id, row: of });
  test("[R4] the transcripts of a message of this conversation are kept, and count as progress", () => {
    const b = asked();
    const { contextFrom, nextSeq } = b.state;
    b.now = 1_000;
    for (const seq of [contextFrom, nextSeq - 1]) {
      const step = transcribed(b, row(b, seq));
      assert.deepEqual([step.amend.map((each) => each.seq), step.transitions], [[seq], ["recordingTranscribed"]]);
    }
    assert.equal(b.thinking().progressAt, 1_000);
  });
  test("[W19] others, and rows that are too large, are not", () => {
    const b = asked();
    const { contextFrom, nextSeq } = b.state;
    const room = LIMITS.rowBytes - jsonBytes(row(b, contextFrom, 0));
    assert.equal(transcribed(b, row(b, contextFrom, room)).amend.length, 1);
    for (const other of [row(b, contextFrom - 1), row(b, nextSeq), row(b, contextFrom, room + 1)]) {
      const { state } = b;
      const step = transcribed(b, other);
      assert.deepEqual([step.amend, step.transitions], [[], []]);
      assert.deepEqual(b.state, state);
    }
  });
});

describe("calls of an answer", () => {
  const acted = (arguments_: unknown, content: AssistantMessage["content"] = []) => {
    const b = new Bench();
    b.say("a");
    const message: AssistantMessage = {
      role: "assistant",
      content,
      api: "a",
      provider: "p",
      model: "m",
      usage: USAGE,
      stopReason: "toolUse",
      timestamp: 0,
    };
    const calls = [0, 1].map(() => ({ ...call(), arguments: arguments_ as Record<string, unknown> }));
    const step = b.apply({ type: "ModelReplied", effectId: "r1/t1/m0", message, calls, usage: USAGE, budget: BUDGET });
    const row = b.log.find((candidate) => candidate.kind === "assistant");
    return { b, step, blocks: row?.kind === "assistant" ? row.message.content : [] };
  };
  test("[G4] are kept with an object of arguments, whatever came, and only an object is run", () => {
    for (const wrong of [null, [], "x", 5]) {
      const { b, blocks } = acted(wrong);
      assert.equal(b.resultOf(CALL).reason, "tool.bad_args", JSON.stringify(wrong));
      assert.deepEqual(
        blocks.map((block) => block.type === "toolCall" && block.arguments),
        [{}, {}],
      );
    }
    const { step, blocks } = acted({ a: 1 });
    assert.deepEqual(step.transitions, ["callsMade"]);
    assert.deepEqual(blocks[0]?.type === "toolCall" && blocks[0].arguments, { a: 1 });
  });
  test("[G1] have blocks of their own in the answer, behind its text, also those for which none came", () => {
    const said = { type: "text", text: "let me look" } as const;
    const { blocks } = acted({}, [said, { type: "toolCall", id: "x", name: "n", arguments: {} }]);
    assert.deepEqual(
      blocks.map((block) => (block.type === "toolCall" ? block.id : block.type)),
      ["text", "call_1_1_0", "call_1_1_1"],
    );
  });
  test("[SP9] the end of a loop names the tool", () => {
    const b = new Bench();
    b.say("a");
    for (let step = 1; step <= 5; step++) {
      b.reply("", [call({}, "lap__Loop")]);
      if (step < 5) b.result(`ref0000000/r1/${step}/0`, "same");
    }
    const end = b.log.find((candidate) => candidate.kind === "notice" && candidate.reason === "budget.loop");
    assert.match(end?.kind === "notice" ? end.text : "", /made the same call of lap__Loop with the same arguments 5 times/);
  });
  test("[AP1] a question is a transition of its own", () => {
    const b = new Bench();
    b.say("a");
    const asked = { ...call({ ask: { rule: "r", why: "w" } }), binding: { hash: "h", argsHash: "a", policy: "p" } };
    assert.deepEqual(b.reply("", [asked]).transitions, ["callsMade", "approvalAsked"]);
  });
});
test("a provider that counts no input does not tell how full the context is", () => {
  const b = new Bench();
  b.say("a");
  b.reply("one", [], { usage: { ...USAGE, input: 1 } });
  assert.equal(b.state.context?.tokens, 6);
  b.say("b");
  b.reply("two", [], { usage: { ...USAGE, input: 0 } });
  assert.equal(b.state.context, undefined);
});
test("[R7] a call with a shortened context is an attempt of its own", () => {
  const b = new Bench();
  b.say("a");
  b.full({ contextFrom: 1, count: 0, kept: 1, firstAt: 0, lastAt: 0 });
  assert.equal(b.effect("CallModel").id, "r1/t1/m1");
});
test("[R4] people are told that a step is made again", () => {
  const b = new Bench();
  b.say("a");
  assert.deepEqual(
    b.apply({ type: "Woke" }).status.map(({ text }) => text),
    ["Resuming after an interruption."],
  );
});
