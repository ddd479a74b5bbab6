/** Compaction in stages: where to cut, summaries, headroom for a run. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Step } from "../draft.ts";
import { ARCHIVE_ATTEMPTS, LIMITS, SUMMARY_ATTEMPTS } from "../limits.ts";
import { type CutPlan, shownState } from "../state.ts";
import { Bench, BUDGET, call, USAGE } from "../../../../test/session/machine-bench.ts";

describe("compaction", () => {
  /** Two exchanges, and a run that has made one step; its calls are answered, and the model is to be asked again. */
  const busy = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.say("b");
    b.reply("two");
    b.say("c");
    b.reply("", [call()]);
    b.result("ref0000000/r3/1/0", "found it");
    return b;
  };
  test("[R7] [P17] a run without headroom waits, and goes on as a new attempt once the archive is safe", () => {
    const b = busy();
    b.full(b.plan(3));
    assert.equal(b.state.run.phase, "archiving");
    assert.equal(shownState(b.state.run), "thinking");
    assert.match(b.last?.status[0]?.text ?? "", /Shortening the conversation: summarising 2 older messages/);
    b.summarize();
    assert.equal(b.state.contextFrom, 1);
    b.archive("agents/main/sessions/s1-part1.jsonl.gz");
    assert.deepEqual([b.state.contextFrom, b.state.messageCount, b.state.compactions], [3, 5, 1]);
    assert.deepEqual(b.state.summary, { text: "what was said", count: 2, at: 1_000_000 });
    assert.deepEqual([b.thinking().step, b.thinking().attempt], [2, 1]);
    assert.equal(b.state.work, undefined);
    assert.deepEqual(b.log.at(-1)?.kind === "notice" && b.log.at(-1), {
      ...b.log.at(-1),
      archive: { key: "agents/main/sessions/s1-part1.jsonl.gz", count: 2 },
    });
    b.reply("done");
    assert.equal(b.log.filter((row) => row.kind === "assistant" && row.runId === "run-c" && row.calls.length === 0).length, 1);
  });
  test("[R7] a plan that does not fit the conversation makes no compaction: the model gets the context as it is", () => {
    const b = busy();
    b.full({ ...b.plan(3), kept: 1 });
    assert.equal(b.thinking().compactionTried, true);
  });
  test("[R7] the completion of a model call that a compaction replaced is dropped", () => {
    const b = busy();
    const { id } = b.effect("CallModel");
    b.full(b.plan(3));
    const step = b.apply({ type: "ContextFull", effectId: id, plan: b.plan(3), budget: BUDGET });
    assert.deepEqual([step.append.length, step.effects.length], [0, 0]);
  });
  test("[R8] a chunk begins where the last one ended, and failures are counted for each chunk", () => {
    const b = busy();
    b.full(b.plan(5));
    b.summarize({ cursor: 2, summary: "first", memories: "- a" });
    assert.deepEqual(b.state.work, { summary: "first", memories: "- a", day: { date: "2026-03-01", time: "14:30" } });
    for (let n = 1; n < SUMMARY_ATTEMPTS; n++) b.summaryFails();
    b.summarize({ cursor: 3, summary: "second", memories: "- a\n- b" });
    for (let n = 1; n < SUMMARY_ATTEMPTS; n++) b.summaryFails();
    b.summarize({ summary: "third", memories: "- a\n- b" });
    b.archive();
    assert.equal(b.state.summary?.text, "third");
    assert.equal(b.effect("AppendMemory").date, "2026-03-01");
    assert.equal(b.results.get(b.effect("AppendMemory").id), "### Extracted from context compaction (14:30)\n- a\n- b\n");
  });
  test("[R8] a kill repeats the chunk that was under way, not those before it", () => {
    const b = busy();
    b.full(b.plan(5));
    b.summarize({ cursor: 3, summary: "first" });
    const { id } = b.effect("Summarize");
    b.apply({ type: "Woke" });
    assert.ok(b.state.run.phase === "archiving" && b.state.run.cursor === 3);
    assert.equal(b.state.work?.summary, "first");
    const late = b.apply({ type: "Summarized", effectId: id, cursor: 5, summary: "from the grave", memories: "" });
    assert.equal(late.effects.length, 0);
  });
  test("[R8] [W16] a model that fails stops no compaction: a note says what is missing, and the summary so far stays", () => {
    const b = busy();
    b.full(b.plan(5));
    b.summarize({ cursor: 3, summary: "the first half" });
    for (let n = 0; n < SUMMARY_ATTEMPTS; n++) b.summaryFails();
    b.archive("agents/main/sessions/part.jsonl.gz");
    assert.equal(b.state.contextFrom, 5);
    assert.match(
      b.state.summary?.text ?? "",
      /^the first half\n\n\[The later part of 4 earlier messages .*agents\/main\/sessions\/part\.jsonl\.gz/,
    );
    assert.equal(b.state.run.phase, "thinking");
  });
  test("[R8] a failure that is not retryable is not retried", () => {
    const b = busy();
    b.full(b.plan(5));
    b.summaryFails(false);
    assert.ok(b.effect("Archive"));
    b.archive();
    assert.match(b.state.summary?.text ?? "", /^\[4 earlier messages/);
  });
  test("[R8] chunks over the limit are archived without a summary", () => {
    const b = new Bench();
    for (let n = 0; n < 40; n++) {
      b.say(`m${n}`);
      b.reply("yes");
    }
    b.apply({ type: "Compact" });
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(79) });
    for (let n = 0; n < LIMITS.compactionChunks; n++) b.summarize({ cursor: 2 + n, summary: "so far" });
    assert.ok(b.effect("Archive"));
    const { ended } = b.archive();
    assert.match(b.state.summary?.text ?? "", /^so far\n\n\[The later part/);
    assert.ok(ended[0]?.ok && ended[0].kind === "compact" && ended[0].summarized && ended[0].trimmed === 78 && ended[0].kept === 2);
  });
  test("[R8] a summary's usage counts for the session and the run", () => {
    const b = busy();
    const before = b.state.usage;
    b.full(b.plan(3));
    b.summarize({ usage: { input: 100, output: 10, total: 110, costUsd: 2 } });
    assert.equal(b.state.usage.total, before.total + 110);
    b.archive();
    // The run's budget is used up, so the owner is asked for more, and the headroom that was made stays.
    assert.deepEqual(b.notices().slice(-1), ["paused:"]);
    assert.ok(b.state.run.phase === "paused");
    b.apply({ type: "ApprovalAnswered", code: b.state.run.question.code, answer: "deny", by: "client:me" });
    assert.deepEqual(b.notices().slice(-1), ["error:budget.cost"]);
    assert.equal(b.state.run.phase, "idle");
    assert.equal(b.state.contextFrom, 3);
  });
  test("[P17] [W16] an archive that fails removes nothing, and the run goes on without", () => {
    const b = busy();
    b.full(b.plan(3));
    b.summarize({ memories: "- a" });
    for (let n = 0; n < ARCHIVE_ATTEMPTS; n++)
      b.apply({ type: "ArchiveFailed", effectId: b.effect("Archive").id, error: { reason: "storage.failed", message: "away" } });
    assert.deepEqual([b.state.contextFrom, b.state.messageCount, b.state.summary, b.results.size], [1, 7, undefined, 0]);
    assert.equal(b.thinking().compactionTried, true);
    assert.ok(b.state.autoResetAfter > b.now);
  });
  test("[P17] a wrong count removes nothing", () => {
    const b = busy();
    b.full(b.plan(3));
    b.summarize();
    b.apply({ type: "Archived", effectId: b.effect("Archive").id, key: "k", count: 1 });
    assert.equal(b.state.contextFrom, 1);
    assert.equal(b.state.run.phase, "archiving");
  });
  test("[R3] /stop during a compaction for headroom ends the run and removes nothing", () => {
    const b = busy();
    b.full(b.plan(3));
    b.say("d");
    const { answer } = b.apply({ type: "Abort" });
    assert.deepEqual(answer, { type: "aborted", wasRunning: true, runId: "run-c", cancelled: 0, waiting: 1 });
    assert.deepEqual([b.state.contextFrom, b.state.work], [1, undefined]);
    assert.equal(b.thinking().runId, "run-d");
    assert.equal(b.log.filter((row) => row.runId === "run-c" && row.kind === "notice" && row.notice === "aborted").length, 1);
  });
  test("[R3] /stop ends a requested compaction, and the requester is told", () => {
    const b = busy();
    b.reply("three");
    b.apply({ type: "Compact" });
    const { ended, answer } = b.apply({ type: "Abort" });
    assert.equal(answer?.type === "aborted" && answer.wasRunning, true);
    assert.equal(ended[0]?.ok, false);
    assert.deepEqual(
      [b.state.run.phase, b.state.contextFrom, b.state.outbox.some((effect) => effect.type === "Summarize")],
      ["idle", 1, false],
    );
  });
  test("[R5] a reset during a compaction for headroom ends the run visibly and archives everything", () => {
    const b = busy();
    b.full(b.plan(3));
    assert.equal(b.apply({ type: "Reset" }).answer?.type, "archiving");
    assert.deepEqual(b.notices(), ["aborted:run.aborted"]);
    assert.ok(b.state.run.phase === "archiving" && b.state.run.kind === "reset" && b.state.run.count === 7);
    assert.equal(b.apply({ type: "Reset" }).answer?.type, "refused");
  });
  test("[P4.4] an overflow compacts once; a second one in the step ends the run and says what to do", () => {
    const b = busy();
    const overflow = (plan?: CutPlan): Step =>
      b.apply({
        type: "ModelFailed",
        effectId: b.effect("CallModel").id,
        error: { reason: "model.context_overflow", message: "Too long." },
        retryable: false,
        models: 2,
        streamed: false,
        budget: BUDGET,
        ...(plan ? { plan } : {}),
      });
    overflow(b.plan(3));
    assert.ok(b.state.run.phase === "archiving" && b.state.run.cause === "overflow");
    b.summarize();
    b.archive();
    assert.equal(b.thinking().overflows, 1);
    overflow(b.plan(5));
    assert.deepEqual(b.notices().slice(-1), ["error:model.context_overflow"]);
    assert.match(b.log.at(-1)?.kind === "notice" ? (b.log.at(-1) as { text: string }).text : "", /\/new/);
    // The next step, and the next message, may overflow again.
    b.say("d");
    assert.equal(b.thinking().overflows, undefined);
  });
  test("[P4.4] when nothing can be compacted, the model is called once more with a shortened context", () => {
    const b = new Bench();
    b.say("a");
    b.apply({
      type: "ModelFailed",
      effectId: b.effect("CallModel").id,
      error: { reason: "model.context_overflow", message: "Too long." },
      retryable: false,
      models: 1,
      streamed: false,
    });
    assert.deepEqual([b.thinking().overflows, b.thinking().compactionTried], [1, true]);
  });
  test("[R6] /compact N archives without a model call, and an existing summary stays", () => {
    const b = busy();
    b.full(b.plan(3));
    b.summarize({ summary: "the beginning" });
    b.archive();
    b.reply("three");
    b.apply({ type: "Compact", keep: 2 });
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(5) });
    const { ended } = b.archive();
    assert.ok(ended[0]?.ok && ended[0].kind === "compact" && !ended[0].summarized && ended[0].trimmed === 2);
    assert.deepEqual([b.state.summary?.text, b.state.summary?.count], ["the beginning", 4]);
  });
  test("[R9] the user's newest message is quoted when the cut is inside its run, until a newer one is there", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    b.result("ref0000000/r1/1/0", "one");
    b.reply("", [call()]);
    b.result("ref0000000/r1/2/0", "two");
    const second = b.log.findLast((row) => row.kind === "assistant")?.seq ?? 0;
    b.full(b.plan(second, { task: "say a" }));
    b.summarize();
    b.archive();
    assert.equal(b.state.summary?.task, "say a");
    b.reply("", [call()]);
    b.result("ref0000000/r1/3/0", "three");
    b.full(b.plan(b.log.findLast((row) => row.kind === "assistant")?.seq ?? 0));
    b.summarize();
    b.archive();
    assert.equal(b.state.summary?.task, "say a");
    b.reply("done");
    b.say("b");
    b.reply("two");
    b.apply({ type: "Compact" });
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(b.log.findLast((row) => row.kind === "user")?.seq ?? 0) });
    b.summarize();
    b.archive();
    assert.equal(b.state.summary?.task, undefined);
  });
  test("what a provider counted is known until the conversation or the model changes", () => {
    const b = busy();
    assert.deepEqual(b.state.context, { tokens: 15, seq: 6, model: "p/m" });
    b.full(b.plan(3));
    b.summarize();
    b.archive();
    assert.deepEqual([b.state.context], [undefined]);
    b.reply("three");
    assert.equal(b.state.context?.model, "p/m");
    b.say("d");
    const message = b.log.findLast((row) => row.kind === "assistant")?.message;
    assert.ok(message?.role === "assistant");
    b.apply({
      type: "ModelReplied",
      effectId: b.effect("CallModel").id,
      message,
      calls: [],
      usage: USAGE,
      budget: BUDGET,
      asked: "p/default",
    });
    assert.equal(b.state.context?.model, "p/default");
    b.apply({ type: "SettingsPatched", settings: { model: { provider: "x", id: "y" } }, text: "x" });
    assert.equal(b.state.context, undefined);
  });
});

test("[R9] an earlier task stays quoted while messages of its run stay, and not when all of them leave", () => {
  const quoted = (contextFrom: number): string | undefined => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.say("b");
    b.state = { ...b.state, summary: { text: "s", task: "the task", count: 1, at: 0 } };
    b.full(b.plan(contextFrom));
    return b.state.work?.task;
  };
  assert.deepEqual([quoted(3), quoted(4)], ["the task", undefined]);
});
