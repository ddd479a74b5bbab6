/** Messages: taken in, queued, and started in order. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { EventOf } from "../event.ts";
import { LIMITS, WAKES_PER_HOUR } from "../limits.ts";
import type { IncomingMessage } from "../state.ts";
import { Bench, IDENTITY } from "../../../../test/session/machine-bench.ts";

describe("messages", () => {
  test("[P1] an idle session starts a run with the message, and says where it is in the log", () => {
    const b = new Bench();
    assert.deepEqual(b.say("a"), { type: "accepted", runId: "run-a", queued: false, seq: 1 });
    assert.equal(b.state.run.phase, "thinking");
    assert.equal(b.effect("CallModel").id, "r1/t1/m0");
  });
  test("[P3] [C6] messages that come during a run wait in order and each gets a run of its own", () => {
    const b = new Bench();
    b.say("a");
    assert.deepEqual(b.say("b"), { type: "accepted", runId: "run-b", queued: true });
    b.say("c");
    b.reply("one");
    b.reply("two");
    b.reply("three");
    assert.deepEqual(
      b.log.map((row) => (row.kind === "user" ? row.messageId : row.kind)),
      ["a", "assistant", "b", "assistant", "c", "assistant"],
    );
    assert.equal(b.state.run.phase, "idle");
  });
  test("[P2] a quiet message enters the log in its place, and no run answers it", () => {
    const b = new Bench();
    assert.deepEqual(b.say("late", { quiet: true }), { type: "accepted", runId: "run-late", queued: false, seq: 1 });
    assert.deepEqual([b.state.run, b.state.runCount], [{ phase: "idle" }, 0]);
    b.say("a");
    assert.deepEqual(b.say("q1", { quiet: true }), { type: "accepted", runId: "run-q1", queued: true });
    b.say("q2", { quiet: true });
    b.say("b");
    b.say("q3", { quiet: true });
    assert.deepEqual(b.apply({ type: "Abort", runId: "run-q1" }).answer, { type: "aborted", wasRunning: false, cancelled: 0 });
    b.reply("one");
    b.reply("two");
    assert.deepEqual(b.state.run, { phase: "idle" });
    assert.deepEqual(
      b.log.map((row) => (row.kind === "user" ? row.messageId : row.kind)),
      ["late", "a", "assistant", "q1", "q2", "b", "assistant", "q3"],
    );
    assert.deepEqual([b.queue.length, b.state.queue, b.state.runCount], [0, { count: 0, bytes: 0 }, 2]);
  });
  test("[P4] [P19] a message over the limit is refused, one at exactly the limit is accepted", () => {
    const b = new Bench();
    b.say("first");
    for (let n = 0; n < LIMITS.queueMessages; n++) assert.equal(b.say(`m${n}`)?.type, "accepted");
    const refused = b.say("over");
    assert.equal(refused?.type === "refused" && refused.error.reason, "session.queue_full");
    assert.equal(b.queue.length, LIMITS.queueMessages);
  });
  test("[P4] [P19] [W19] bytes count too", () => {
    const b = new Bench();
    b.say("first");
    const big = { message: { role: "user" as const, content: "x".repeat(261_900), timestamp: 0 } };
    let taken = 0;
    while (b.say(`m${taken}`, big)?.type === "accepted") taken += 1;
    assert.equal(taken, 16);
    assert.ok(b.state.queue.bytes <= LIMITS.queueBytes);
  });
  test("[W9] [P4] what arrives while an archive is made waits", () => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.apply({ type: "Reset" });
    assert.equal(b.say("b")?.type, "accepted");
    b.archive();
    b.summarize();
    assert.equal(b.state.run.phase, "thinking");
    assert.equal(b.log.at(-1)?.kind, "user");
  });
  test("[D2] one message makes two rows, and only the state grows", () => {
    const b = new Bench();
    const accepted = b.apply({
      type: "UserMessage",
      identity: IDENTITY,
      incoming: {
        messageId: "a",
        runId: "r",
        origin: { kind: "client", clientId: "o" },
        message: { role: "user", content: "hi", timestamp: 0 },
        directives: {},
      },
      bytes: 100,
    });
    assert.deepEqual([accepted.append.length, accepted.queue.length, accepted.results.length], [1, 0, 0]);
    const answered = b.reply("hello");
    assert.equal(answered.append.length, 1);
    b.published = b.state.nextSeq - 1;
    const delivered = b.apply({ type: "Delivered", upto: b.published });
    assert.equal(delivered.append.length, 0);
    assert.deepEqual(b.state.outbox, []);
  });
  test("the end of a background process wakes the agent, and becomes a note when the queue is full", () => {
    const b = new Bench();
    const incoming: IncomingMessage = {
      messageId: "exec:lap:1",
      runId: "x1",
      origin: { kind: "node_event", nodeId: "lap" },
      message: { role: "user", content: "process p ended", timestamp: 0 },
      directives: {},
    };
    const p1 = { type: "ExecEnded", nodeId: "lap", processId: "p1", incoming, bytes: 100 } as const;
    assert.equal(b.apply(p1).answer?.type, "unknown", "no result has named the process");
    started(b, "p1", "p2");
    assert.equal(b.apply({ ...p1, nodeId: "evil" }).answer?.type, "unknown");
    b.apply(p1);
    assert.equal(b.state.run.phase, "thinking");
    assert.equal(b.apply(p1).answer?.type, "unknown", "a process ends once");
    for (let n = 0; n < LIMITS.queueMessages; n++) b.say(`m${n}`);
    assert.equal(b.apply({ ...p1, processId: "p2", incoming: { ...incoming, messageId: "exec:lap:2" } }).answer?.type, "taken");
    assert.deepEqual(b.notices(), ["note:"]);
  });
  test("[F11] [G8] more processes than an hour may wake the agent for end as notes", () => {
    const b = new Bench();
    const names = Array.from({ length: WAKES_PER_HOUR + 2 }, (_, n) => `p${n}`);
    const end = (processId: string): void => {
      started(b, processId);
      const incoming: IncomingMessage = {
        messageId: `exec:lap:${processId}`,
        runId: `run-${processId}`,
        origin: { kind: "node_event", nodeId: "lap" },
        message: { role: "user", content: `process ${processId} ended`, timestamp: 0 },
        directives: {},
      };
      assert.equal(b.apply({ type: "ExecEnded", nodeId: "lap", processId, incoming, bytes: 100 }).answer?.type, "taken");
    };
    for (const name of names.slice(0, WAKES_PER_HOUR)) {
      end(name);
      b.reply("fine");
    }
    end(names.at(-2) ?? "");
    assert.deepEqual([b.state.run.phase, b.notices()], ["idle", ["note:"]]);
    b.now += 3_600_000;
    end(names.at(-1) ?? "");
    assert.equal(b.state.run.phase, "thinking");
  });
});

describe("a message", () => {
  const incoming = (id: string, more: Partial<IncomingMessage> = {}): IncomingMessage => ({
    messageId: id,
    runId: `run-${id}`,
    origin: { kind: "client", clientId: "t" },
    message: { role: "user", content: "x", timestamp: 0 },
    directives: {},
    ...more,
  });
  const says = (b: Bench, id: string, more: Partial<EventOf<"UserMessage">> = {}) =>
    b.apply({ type: "UserMessage", identity: IDENTITY, incoming: incoming(id), bytes: 10, ...more });
  const talked = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    return b;
  };
  test("brings the identity as it is now, each part of it", () => {
    for (const more of [{ key: "agent:main:other" }, { ref: "ref1111111" }, { agentId: "b" }, { isOwnersSession: false }]) {
      const b = new Bench();
      says(b, "a", { identity: { ...IDENTITY, ...more } });
      assert.deepEqual(b.state.identity, { ...IDENTITY, ...more });
    }
  });
  test("[P4] that is refused changes nothing, the identity's copy neither", () => {
    const b = talked();
    says(b, "b");
    says(b, "c", { bytes: LIMITS.queueBytes });
    const { state } = b;
    const step = says(b, "d", { identity: { ...IDENTITY } });
    assert.deepEqual([step.answer?.type, step.append, step.queue], ["refused", [], []]);
    assert.equal(b.last?.state.queue.count, 1);
    assert.deepEqual(b.state, state);
  });
  test("[P4] [P19] waits up to exactly the bytes of a queue", () => {
    for (const [bytes, answer] of [
      [LIMITS.queueBytes, "accepted"],
      [LIMITS.queueBytes + 1, "refused"],
    ] as const) {
      const b = new Bench();
      b.say("a");
      assert.equal(says(b, "b", { bytes }).answer?.type, answer);
    }
  });
  test("[R5] brings a reset that is due, from the time on at which one may be made again, and only where there is something to archive", () => {
    const phaseOf = (b: Bench): string => {
      says(b, "b", { resetDue: "daily" });
      return b.state.run.phase;
    };
    const after = (ms: number): Bench => {
      const b = talked();
      b.state = { ...b.state, autoResetAfter: 1_000_000 + ms };
      return b;
    };
    assert.deepEqual([phaseOf(new Bench()), phaseOf(after(0)), phaseOf(after(1))], ["thinking", "archiving", "thinking"]);
  });
  test("is written with its directives where it has some", () => {
    const rowOf = (directives: IncomingMessage["directives"]) => {
      const b = new Bench();
      return says(b, "a", { incoming: incoming("a", { directives }) }).append[0];
    };
    assert.ok(!("directives" in (rowOf({}) ?? {})));
    const row = rowOf({ thinkLevel: "high" } as IncomingMessage["directives"]);
    assert.deepEqual(row?.kind === "user" && row.directives, { thinkLevel: "high" });
  });
  test("[P9] from no platform ends the route of the one before: the end of a process goes nowhere", () => {
    const b = new Bench();
    const reply = { channel: "test", accountId: "default", peer: { kind: "dm", id: "anna" } } as const;
    b.say("a", { reply });
    b.reply("one");
    assert.deepEqual(b.state.lastRoute, reply);
    b.say("b");
    b.reply("two");
    assert.equal(b.state.lastRoute, undefined);
  });
  test("[P2] quiet ones that waited enter before the next, as a transition of their own", () => {
    const b = new Bench();
    b.say("a");
    b.say("b");
    assert.deepEqual(b.reply("one").transitions, ["answered", "waitingMessageStartsRun"]);
    b.say("q", { quiet: true });
    assert.deepEqual(b.reply("two").transitions, ["answered", "waitingQuietMessagesEnter", "nothingWaits"]);
    b.say("c");
    assert.deepEqual(b.reply("three").transitions, ["answered", "nothingWaits"]);
  });
  test("[G8] of a process that ended during a run waits like any other", () => {
    const b = new Bench();
    b.say("a");
    started(b, "p1");
    const end = {
      nodeId: "lap",
      processId: "p1",
      incoming: incoming("exec", { origin: { kind: "node_event", nodeId: "lap" } }),
      bytes: 10,
    };
    assert.deepEqual(b.apply({ type: "ExecEnded", ...end }).transitions, ["processEndWaits"]);
    assert.deepEqual([b.state.queue.count, b.notices()], [1, []]);
  });
});

/** Results have named these processes on `lap`. */
function started(b: Bench, ...names: readonly string[]): void {
  const processes = names.map((processId, index) => ({ nodeId: "lap", processId, callId: `ref0000000/r1/1/${index}` }));
  b.state = { ...b.state, processes: [...(b.state.processes ?? []), ...processes] };
}
