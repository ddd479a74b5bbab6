/** Reset and compaction: how they begin, end and fail. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Step } from "../draft.ts";
import { ARCHIVE_ATTEMPTS, LIMITS, SUMMARY_ATTEMPTS, WAITING_MEMORIES } from "../limits.ts";
import type { CutPlan, IncomingMessage } from "../state.ts";
import { Bench, call, IDENTITY } from "../../../../test/session/machine-bench.ts";

/** The first message of a day. */
const incoming: IncomingMessage = {
  messageId: "b",
  runId: "run-b",
  origin: { kind: "client", clientId: "o" },
  message: { role: "user", content: "morning", timestamp: 0 },
  directives: {},
};

describe("reset and compaction", () => {
  const talked = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    return b;
  };
  test("[R5] [P17] no message is removed before the archive is verified", () => {
    const b = talked();
    b.apply({ type: "Reset" });
    assert.equal(b.state.contextFrom, 1);
    assert.equal(b.archive().ended.length, 0);
    assert.equal(b.state.contextFrom, 1);
    const { ended } = b.summarize();
    assert.equal(ended[0]?.ok, true);
    assert.equal(b.state.contextFrom, 3);
    assert.deepEqual(b.state.previousSessionIds, ["s1"]);
    assert.deepEqual(b.state.usage, { input: 0, output: 0, total: 0, costUsd: 0 });
    assert.equal(b.state.messageCount, 0);
    assert.deepEqual(b.notices(), ["reset:"]);
  });
  test("[R5] [P17] [W16] a wrong count or a failure removes nothing, and is reported after three tries", () => {
    const b = talked();
    b.apply({ type: "Reset" });
    b.apply({ type: "Archived", effectId: b.effect("Archive").id, key: "k", count: 1 });
    assert.equal(b.state.run.phase, "archiving");
    let ended: Step["ended"] = [];
    for (let n = 1; n < ARCHIVE_ATTEMPTS; n++) {
      ended = b.apply({
        type: "ArchiveFailed",
        effectId: b.effect("Archive").id,
        error: { reason: "storage.failed", message: "The bucket is away." },
      }).ended;
    }
    assert.equal(ended[0]?.ok === false && ended[0].error.reason, "session.archive_failed");
    assert.equal(b.state.contextFrom, 1);
    assert.equal(b.state.messageCount, 2);
    assert.equal(b.state.sessionId, "s1");
    assert.equal(b.state.run.phase, "idle");
  });
  test("[R5] [K25] the outcome of an earlier attempt is dropped", () => {
    const b = talked();
    b.apply({ type: "Reset" });
    const earlier = b.effect("Archive").id;
    b.apply({ type: "ArchiveFailed", effectId: earlier, error: { reason: "storage.failed", message: "The bucket is away." } });
    const before = b.state;
    b.apply({ type: "Archived", effectId: earlier, key: "k", count: 2 });
    assert.deepEqual(b.state, before);
    b.archive();
    const summary = b.effect("Summarize").id;
    b.summaryFails();
    const summarizing = b.state;
    b.apply({
      type: "Summarized",
      effectId: summary,
      cursor: 3,
      summary: "",
      memories: "old",
      day: { date: "2026-03-01", time: "14:30" },
    });
    assert.deepEqual(b.state, summarizing);
    assert.equal(b.summarize().ended[0]?.ok, true);
  });
  test("[K25] [K26] an archive that was interrupted is made again from the same intent", () => {
    const b = talked();
    b.apply({ type: "Reset" });
    const first = b.state.run;
    b.now = 5_000;
    b.apply({ type: "Woke" });
    const second = b.state.run;
    assert.ok(first.phase === "archiving" && second.phase === "archiving");
    assert.deepEqual([second.archivedAt, second.newSessionId, second.upto], [first.archivedAt, first.newSessionId, first.upto]);
    assert.equal(b.effect("Archive").id, "a1/1");
    assert.equal(b.apply({ type: "Archived", effectId: "a1/0", key: "k", count: 2 }).append.length, 0);
  });
  test("[R5] a reset during a run stops it visibly first", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    b.apply({ type: "Reset" });
    assert.deepEqual(b.notices(), ["aborted:run.aborted"]);
    assert.equal(b.state.run.phase, "archiving");
  });
  test("[R6] a compaction during a run waits for its end; a second archive is refused meanwhile", () => {
    const b = talked();
    b.say("b");
    assert.deepEqual(b.apply({ type: "Compact", keep: 1 }).answer, { type: "archiving", requestId: "id4", waits: true });
    assert.equal(b.apply({ type: "Compact", keep: 1 }).answer?.type, "refused");
    b.say("c");
    b.reply("two");
    assert.equal(b.state.run.phase, "archiving");
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(3) });
    b.archive();
    assert.equal(b.state.messageCount, 3);
    assert.equal(b.log.at(-1)?.runId, "run-c");
  });
  test("an empty archive ends at once", () => {
    const b = talked();
    const { ended, answer } = b.apply({ type: "Compact", keep: 20 });
    assert.deepEqual(ended, [
      {
        ok: true,
        kind: "compact",
        requestId: answer?.type === "archiving" ? answer.requestId : "",
        trimmed: 0,
        kept: 2,
        summarized: false,
      },
    ]);
    assert.equal(b.state.run.phase, "idle");
  });
  test("[W18] [R5] the message that triggers a daily reset is durable before it, and starts the new conversation", () => {
    const b = talked();
    b.apply({ type: "UserMessage", identity: IDENTITY, incoming, bytes: 50, resetDue: "daily" });
    assert.equal(b.queue.length, 1);
    assert.equal(b.state.run.phase, "archiving");
    b.archive();
    b.summarize();
    assert.equal(b.state.messageCount, 1);
    assert.equal(b.log.at(-1)?.runId, "run-b");
  });
  test("[R5] when the bucket fails, the message is answered in the old conversation", () => {
    const b = talked();
    b.apply({ type: "UserMessage", identity: IDENTITY, incoming, bytes: 50, resetDue: "daily" });
    for (let n = 0; n < ARCHIVE_ATTEMPTS; n++)
      b.apply({ type: "ArchiveFailed", effectId: b.effect("Archive").id, error: { reason: "storage.failed", message: "away" } });
    assert.equal(b.log.at(-1)?.runId, "run-b");
    assert.equal(b.state.messageCount, 3);
    b.reply("hello");
    // Not with every message again while it is away.
    assert.equal(
      b.apply({
        type: "UserMessage",
        identity: IDENTITY,
        incoming: { ...incoming, messageId: "c", runId: "run-c" },
        bytes: 50,
        resetDue: "daily",
      }).answer?.type,
      "accepted",
    );
    assert.equal(b.state.run.phase, "thinking");
  });
});

describe("reset, step by step", () => {
  const over = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.apply({ type: "Reset" });
    return b;
  };
  test("[K26] [R5] archive, memories, then one commit: fresh id, zero tokens, media to be deleted; what came meanwhile opens it", () => {
    const b = over();
    b.say("b");
    b.archive("agents/main/sessions/s1.jsonl.gz");
    assert.deepEqual([b.state.sessionId, b.state.contextFrom], ["s1", 1]);
    const { ended } = b.summarize({ memories: "- likes tea" });
    assert.ok(ended[0]?.ok && ended[0].kind === "reset");
    assert.deepEqual(
      [ended[0].archived, ended[0].key, ended[0].memoriesTo, ended[0].tokens.total],
      [2, "agents/main/sessions/s1.jsonl.gz", "memory/2026-03-01.md", 15],
    );
    assert.deepEqual([b.state.previousSessionIds, b.state.usage.total, b.state.messageCount], [["s1"], 0, 1]);
    assert.deepEqual([b.effect("DeleteMedia").before, b.effect("DeleteMedia").from], [1_000_000, 3]);
    assert.match(b.results.get(b.effect("AppendMemory").id) ?? "", /- likes tea/);
    assert.equal(b.log.at(-1)?.runId, "run-b");
  });
  test("[K26] killed between archive and memories, the archive is not made again", () => {
    const b = over();
    b.archive("k1");
    b.apply({ type: "Woke" });
    assert.ok(b.effect("Summarize"));
    const { ended } = b.summarize();
    assert.ok(ended[0]?.ok && ended[0].key === "k1");
    assert.equal(b.state.previousSessionIds.length, 1);
  });
  test("[R5] memories that can't be extracted are skipped, and the notice says so", () => {
    const b = over();
    b.archive();
    for (let n = 0; n < SUMMARY_ATTEMPTS; n++) b.summaryFails();
    assert.equal(b.state.sessionId === "s1", false);
    assert.match(b.log.at(-1)?.kind === "notice" ? (b.log.at(-1) as { text: string }).text : "", /because the model failed/);
  });
  test("[S8] memories are extracted only from the owner's session", () => {
    const b = new Bench();
    b.state = { ...b.state, identity: { ...IDENTITY, isOwnersSession: false } };
    const incoming: IncomingMessage = {
      messageId: "a",
      runId: "r",
      origin: { kind: "client", clientId: "o" },
      message: { role: "user", content: "hi", timestamp: 0 },
      directives: {},
    };
    b.apply({ type: "UserMessage", identity: { ...IDENTITY, isOwnersSession: false }, incoming, bytes: 9 });
    b.reply("one");
    b.apply({ type: "Reset" });
    assert.equal(b.archive().ended[0]?.ok, true);
  });
  test("[K27] [W17] extracted memories stay in their row until the daily file has them, and delay nothing", () => {
    const b = over();
    b.archive();
    b.summarize({ memories: "- likes tea" });
    const { id } = b.effect("AppendMemory");
    b.say("b");
    b.reply("two");
    b.apply({ type: "Parked", effectId: id, text: "The bucket is away." });
    assert.equal(b.results.size, 1);
    b.apply({ type: "EffectDone", effectId: id });
    assert.equal(b.results.size, 0);
    assert.equal(
      b.state.outbox.some((effect) => effect.id === id),
      false,
    );
  });
  test("[P12] an archive that is no longer written is begun again at its deadline, and one that is under way is not", () => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.apply({ type: "Reset" });
    const { id } = b.effect("Archive");
    const { run } = b.state;
    assert.equal(run.phase, "archiving");
    b.now = run.phase === "archiving" ? run.deadline : 0;
    b.apply({ type: "Tick", inFlight: [id] });
    assert.equal(b.effect("Archive").id, id);
    b.apply({ type: "Tick", inFlight: [] });
    assert.notEqual(b.effect("Archive").id, id);
  });
  test("[R5] a reset drops the summary, and the archive of a conversation that had one counts without it", () => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.say("b");
    b.reply("two");
    b.apply({ type: "Compact" });
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(3) });
    b.summarize();
    b.archive();
    assert.ok(b.state.summary);
    b.apply({ type: "Reset" });
    b.archive();
    b.summarize();
    assert.deepEqual([b.state.summary, b.state.compactions], [undefined, 0]);
  });
});

describe("how an archive begins and ends", () => {
  const talked = (times = 1): Bench => {
    const b = new Bench();
    for (let n = 0; n < times; n++) {
      b.say(`a${n}`);
      b.reply("one");
    }
    return b;
  };
  const planned = (b: Bench, plan?: CutPlan): Step =>
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, ...(plan ? { plan } : {}) });

  test("[R6] a compaction that keeps all messages ends at once, one that keeps fewer does not", () => {
    for (const [keep, phase] of [
      [3, "idle"],
      [2, "idle"],
      [1, "archiving"],
    ] as const) {
      const b = talked();
      const { ended } = b.apply({ type: "Compact", keep });
      assert.deepEqual([b.state.run.phase, ended.length], [phase, phase === "idle" ? 1 : 0], String(keep));
    }
  });
  test("[R6] a compaction that waited is dropped when nothing is left to archive", () => {
    const after = (keep: number): Step => {
      const b = new Bench();
      b.say("a");
      b.apply({ type: "Compact", keep });
      return b.reply("one");
    };
    assert.deepEqual(after(2).transitions, ["answered", "waitingCompactionDropped", "nothingWaits"]);
    assert.deepEqual(after(1).transitions, ["answered", "waitingCompactionBegins"]);
    const b = talked();
    assert.deepEqual(b.apply({ type: "Compact", keep: 2 }).transitions, []);
  });
  test("[R5] a reset of nothing is over at once; a summary alone is archived", () => {
    const b = new Bench();
    const { ended, transitions } = b.apply({ type: "Reset" });
    assert.deepEqual([ended[0]?.ok, transitions, b.state.sessionId === "s1"], [true, ["nothingToArchive", "nothingWaits"], false]);
    const c = talked();
    c.apply({ type: "Compact" });
    planned(c, c.plan(3));
    c.summarize();
    c.archive();
    assert.equal(c.state.messageCount, 0);
    c.apply({ type: "Reset" });
    assert.equal(c.state.run.phase, "archiving");
    // Nothing was said since, so there is nothing to remember of it.
    assert.equal(c.archive().ended[0]?.ok, true);
  });
  test("[R6] a cut that is not in the conversation, or counts its messages wrongly, makes no compaction and says so", () => {
    const good = { contextFrom: 3, count: 2, kept: 2, firstAt: 1, lastAt: 2 };
    const after = (more: Partial<CutPlan> | undefined) => {
      const b = talked(2);
      b.apply({ type: "Compact" });
      const { ended, transitions } = planned(b, more === undefined ? undefined : { ...good, ...more });
      return {
        phase: b.state.run.phase,
        kept: ended[0]?.ok === true && ended[0].kind === "compact" ? ended[0].kept : undefined,
        transitions,
      };
    };
    const none = { phase: "idle", kept: 4, transitions: ["nothingToCut", "nothingWaits"] };
    for (const bad of [undefined, { contextFrom: 1 }, { contextFrom: 6 }, { count: 0, kept: 4 }, { count: 5, kept: -1 }, { count: 1 }])
      assert.deepEqual(after(bad), none, JSON.stringify(bad));
    const cut = { phase: "archiving", kept: undefined, transitions: ["cutPlanned"] };
    for (const fits of [{}, { contextFrom: 5, count: 4, kept: 0 }]) assert.deepEqual(after(fits), cut, JSON.stringify(fits));
  });
  test("[K25] each stage and chunk has an effect of its own", () => {
    const b = talked(2);
    b.apply({ type: "Compact" });
    const ids = [b.effect("Summarize").id];
    planned(b, b.plan(5));
    ids.push(b.effect("Summarize").id);
    b.summarize({ cursor: 3 });
    ids.push(b.effect("Summarize").id);
    b.summarize();
    ids.push(b.effect("Archive").id);
    assert.deepEqual(ids, ["s1/0", "s1/1", "s1/2", "a1/3"]);
  });
  test("[R8] the summary goes on until its cursor is behind the cut, and ends where it does not advance", () => {
    const after = (cursor: number) => {
      const b = talked(2);
      b.apply({ type: "Compact" });
      planned(b, b.plan(5));
      b.summarize({ cursor });
      const { run } = b.state;
      return run.phase === "archiving" ? [run.stage, run.cursor, run.plain] : [];
    };
    assert.deepEqual(after(4), ["summarize", 4, false]);
    assert.deepEqual(after(5), ["archive", 5, false]);
    assert.deepEqual(after(9), ["archive", 5, false]);
    assert.deepEqual(after(1), ["archive", 5, true]);
  });
  test("[R5] a reset drops a compaction that waits, and tells who asked for it", () => {
    const b = new Bench();
    b.say("a");
    const asked = b.apply({ type: "Compact" }).answer;
    const { ended } = b.apply({ type: "Reset" });
    assert.deepEqual(
      ended.map((end) => [end.ok, end.requestId]),
      [[false, asked?.type === "archiving" ? asked.requestId : ""]],
    );
    assert.equal(b.state.afterRun, undefined);
  });
  test("[R3] a compaction that is stopped leaves a note for all", () => {
    const b = talked();
    b.apply({ type: "Compact" });
    b.apply({ type: "Abort" });
    const last = b.log.at(-1);
    assert.match(last?.kind === "notice" ? last.text : "", /^The compaction was stopped, and nothing was removed: /);
  });
  test("[R6] the id of the command stops its compaction, under way or waiting, and no other id does", () => {
    const b = talked();
    b.apply({ type: "Compact", runId: "run-compact" });
    assert.deepEqual(b.apply({ type: "Abort", runId: "run-other" }).answer, { type: "aborted", wasRunning: false, cancelled: 0 });
    assert.equal(b.state.run.phase, "archiving");
    const stopped = b.apply({ type: "Abort", runId: "run-compact" });
    assert.deepEqual(stopped.answer, { type: "aborted", wasRunning: true, cancelled: 0 });
    assert.deepEqual([b.state.run.phase, b.state.messageCount, stopped.ended.map(({ ok }) => ok)], ["idle", 2, [false]]);
    b.say("b");
    b.apply({ type: "Compact", runId: "run-later" });
    const dropped = b.apply({ type: "Abort", runId: "run-later" });
    assert.deepEqual([dropped.answer?.type, dropped.ended.map(({ ok }) => ok)], ["aborted", [false]]);
    assert.deepEqual([b.state.afterRun, b.state.run.phase], [undefined, "thinking"]);
  });
  test("[K27] memories are picked while few wait, and the people are told", () => {
    const after = (waiting: number) => {
      const b = talked();
      const effects = Array.from(
        { length: waiting },
        (_, n) => ({ type: "AppendMemory", id: `memory/x${n}`, date: "2026-03-01" }) as const,
      );
      b.state = { ...b.state, outbox: [...b.state.outbox, ...effects] };
      b.apply({ type: "Reset" });
      const { status } = b.archive();
      return [b.state.run.phase, status.map(({ text }) => text)];
    };
    const told = ["The old conversation is archived. Picking what to remember of it ..."];
    assert.deepEqual(after(WAITING_MEMORIES - 1), ["archiving", told]);
    assert.deepEqual(after(WAITING_MEMORIES), ["idle", []]);
  });
  test("[K26] an archive that is lost too often is given up, and the memories of one are skipped", () => {
    const lost = (b: Bench, times: number): void => {
      for (let n = 0; n < times; n++) b.apply({ type: "Woke" });
    };
    const b = talked();
    b.apply({ type: "Reset" });
    lost(b, LIMITS.recoveryAttempts);
    assert.equal(b.state.run.phase, "archiving");
    lost(b, 1);
    const last = b.log.at(-1);
    assert.match(last?.kind === "notice" ? last.text : "", /^The conversation was not reset: Archiving was interrupted too often/);
    const c = talked();
    c.apply({ type: "Compact", keep: 1 });
    planned(c, { contextFrom: 2, count: 1, kept: 1, firstAt: 1, lastAt: 2 });
    lost(c, LIMITS.recoveryAttempts + 1);
    const end = c.log.at(-1);
    assert.match(end?.kind === "notice" ? end.text : "", /^The conversation was not compacted: /);
    const d = talked();
    d.apply({ type: "Reset" });
    d.archive();
    lost(d, LIMITS.recoveryAttempts);
    assert.equal(d.state.run.phase, "archiving");
    lost(d, 1);
    assert.deepEqual(
      [d.state.run.phase, d.state.messageCount, d.state.outbox.some(({ type }) => type === "Summarize")],
      ["idle", 0, false],
    );
    assert.match(JSON.stringify(d.log.at(-1)), /could not be picked out/);
  });
});
