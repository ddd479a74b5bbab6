/** Messages that come while a run is under way, and are about that run. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bench, BUDGET, CALL, call } from "../../../../test/session/machine-bench.ts";
import type { Origin } from "../../../ports/origin.ts";
import type { ReplyRoute } from "../../../ports/session.ts";
import { rowEvents } from "../../events.ts";
import { activeRun } from "../state.ts";

const said = (b: Bench): readonly string[] =>
  b.log.flatMap((row) => (row.kind === "user" ? [`${row.messageId} in ${row.runId}`] : row.kind === "assistant" ? ["answer"] : []));
const runId = (b: Bench): string | undefined => activeRun(b.state.run)?.runId;
/** A run whose first step has a call. */
function working(origin?: Origin): Bench {
  const b = new Bench();
  b.say("a", origin ? { origin } : {});
  b.reply("", [call()]);
  return b;
}
const anna = (id: string): ReplyRoute => ({ channel: "sim", accountId: "default", peer: { kind: "dm", id } });
const ownerAt = (id: string, kind: "dm" | "group" = "dm"): Origin => ({
  kind: "channel",
  channel: "sim",
  accountId: "default",
  peer: { kind, id },
  senderId: "me",
  role: "owner",
});
const guestAt = (id: string, kind: "dm" | "group" = "dm"): Origin => ({ ...ownerAt(id, kind), senderId: "bob", role: "guest" }) as Origin;

describe("[WB1] [WB2] a message that steers", () => {
  test("is shown after the last result of the step, before the next model call, and once", () => {
    const b = working();
    assert.deepEqual(b.say("s", {}, "steer"), { type: "accepted", runId: "run-s", queued: true, steers: "run-a" });
    assert.deepEqual(b.state.queue.steered, 1);
    assert.deepEqual(said(b), ["a in run-a", "answer"]);
    b.result(CALL, "done");
    assert.deepEqual(said(b), ["a in run-a", "answer", "s in run-a"]);
    assert.deepEqual([b.thinking().step, b.queue.length, b.state.queue], [2, 0, { count: 0, bytes: 0 }]);
    const row = b.log.at(-1);
    assert.ok(row?.kind === "user");
    assert.deepEqual(row.steered, { runId: "run-s", step: 2 });
    b.reply("done");
    assert.deepEqual([said(b), b.state.run.phase], [["a in run-a", "answer", "s in run-a", "answer"], "idle"]);
  });
  test("waits for all calls of the step, and several keep their order", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call()]);
    b.say("s", {}, "steer");
    b.result(CALL, "one");
    assert.deepEqual(said(b), ["a in run-a", "answer"]);
    b.say("t", {}, "steer");
    b.result("ref0000000/r1/1/1", "two");
    assert.deepEqual(said(b), ["a in run-a", "answer", "s in run-a", "t in run-a"]);
  });
  test("clients are told once, as part of the log", () => {
    const b = working();
    b.say("s", {}, "steer");
    b.result(CALL, "done");
    const row = b.log.at(-1);
    const events = row ? rowEvents("agent:main:main", row) : [];
    assert.equal(events.length, 1);
    assert.deepEqual(events[0]?.payload, {
      sessionKey: "agent:main:main",
      runId: "run-a",
      state: "status",
      text: "The model now has your message: say s",
      step: 2,
      steered: { messageId: "s", runId: "run-s" },
      sessionSeq: row?.seq,
    });
    assert.equal(b.effect("Deliver").upto, row?.seq);
  });
  test("begins a run where none is under way", () => {
    const b = new Bench();
    assert.deepEqual(b.say("s", {}, "steer"), { type: "accepted", runId: "run-s", queued: false, seq: 1 });
    b.reply("one");
    assert.deepEqual(b.say("i", {}, "interrupt"), { type: "accepted", runId: "run-i", queued: false, seq: 3 });
  });
  test("does not let what waits for its turn overtake, nor wait behind it", () => {
    const b = working();
    b.say("q");
    b.say("s", {}, "steer");
    b.result(CALL, "done");
    b.reply("done");
    assert.deepEqual(said(b), ["a in run-a", "answer", "s in run-a", "answer", "q in run-q"]);
  });
  test("brings its settings for the rest of the run, and its platform gets the answer too", () => {
    const b = new Bench();
    b.say("a", { reply: anna("anna"), origin: ownerAt("anna") });
    b.reply("", [call()]);
    b.say("s", { directives: { thinkLevel: "high" }, reply: anna("me"), origin: ownerAt("me") }, "steer");
    b.say("t", { reply: anna("anna"), origin: ownerAt("anna") }, "steer");
    b.result(CALL, "done");
    assert.deepEqual([b.thinking().directives, b.thinking().alsoTo], [{ thinkLevel: "high" }, [anna("me")]]);
    b.reply("done");
    const replies = b.state.outbox.flatMap((effect) =>
      effect.type === "Reply" ? [[effect.id, effect.deliveryId, effect.route.peer.id]] : [],
    );
    assert.deepEqual(replies, [
      ["reply/r1", "ref0000000/r1", "anna"],
      ["reply/r1.1", "ref0000000/r1.1", "me"],
    ]);
  });
  test("a run of a client answers the platform that has steered it", () => {
    const b = working();
    b.say("s", { reply: anna("me"), origin: ownerAt("me") }, "steer");
    b.result(CALL, "done");
    assert.deepEqual([b.thinking().reply, b.thinking().alsoTo], [anna("me"), undefined]);
  });
  test("[TA1] raises the label of the conversation like any other message", () => {
    const b = working();
    b.say("s", { taint: { label: "world", source: "a quote" } }, "steer");
    assert.equal(b.state.taint?.source === "a quote", false);
    b.result(CALL, "done");
    assert.equal(b.state.taint?.label, "world");
    const row = b.log.at(-1);
    assert.equal(row?.kind === "user" && row.taint, "world");
  });
});

describe("[WB3] a run that ends before its next step", () => {
  test("leaves the message as the next turn, before others, under its own run id", () => {
    const b = new Bench();
    b.say("a");
    b.say("q");
    b.say("s", {}, "steer");
    b.reply("done");
    assert.deepEqual(said(b), ["a in run-a", "answer", "s in run-s"]);
    b.reply("done");
    assert.deepEqual([runId(b), b.state.queue], ["run-q", { count: 0, bytes: 0 }]);
  });
  test("also when it is stopped, fails or has used up a limit", () => {
    const ends: readonly ((b: Bench) => unknown)[] = [
      (b) => b.apply({ type: "Abort" }),
      (b) => b.result(CALL, "done"),
      (b) => b.apply({ type: "Reset" }),
    ];
    for (const end of ends) {
      const b = new Bench();
      b.say("a");
      b.reply("", [call()], { budget: { ...BUDGET, steps: 1 } });
      b.say("s", {}, "steer");
      end(b);
      if (b.state.run.phase === "archiving") {
        b.archive();
        b.summarize();
      }
      assert.equal(runId(b), "run-s");
      assert.equal(b.log.filter((row) => row.kind === "user" && row.messageId === "s").length, 1);
    }
  });
  test("one message is one turn: a second one for the old run is the turn after it", () => {
    const b = new Bench();
    b.say("a");
    b.say("s", {}, "steer");
    b.say("t", {}, "steer");
    b.reply("done");
    b.reply("", [call()]);
    b.result("ref0000000/r2/1/0", "done");
    assert.deepEqual(said(b), ["a in run-a", "answer", "s in run-s", "answer"]);
    b.reply("done");
    assert.equal(runId(b), "run-t");
  });
  test("quiet messages that waited are known to it", () => {
    const b = new Bench();
    b.say("a");
    b.say("quiet", { quiet: true });
    b.say("s", {}, "steer");
    b.reply("done");
    assert.deepEqual(said(b), ["a in run-a", "answer", "quiet in run-quiet", "s in run-s"]);
  });
  test("[ST2] while everything is stopped it waits, and goes on first", () => {
    const b = new Bench();
    b.say("a");
    b.say("q");
    b.say("s", {}, "steer");
    const { answer } = b.apply({ type: "Held", held: true });
    // The resume counts the conversation for these.
    assert.deepEqual(answer, { type: "aborted", wasRunning: true, runId: "run-a", cancelled: 0, waiting: 2 });
    assert.deepEqual(b.say("t", {}, "steer"), { type: "accepted", runId: "run-t", queued: true });
    assert.deepEqual(b.say("i", {}, "interrupt"), { type: "accepted", runId: "run-i", queued: true });
    b.apply({ type: "Held", held: false });
    assert.equal(runId(b), "run-s");
    for (const next of ["run-q", "run-t", "run-i"]) {
      b.reply("done");
      assert.equal(runId(b), next);
    }
  });
});

describe("[WB4] a message that interrupts", () => {
  test("ends the run as a stop does, and is answered before others that wait", () => {
    const b = working();
    b.say("q");
    b.say("s", {}, "steer");
    const answer = b.say("i", {}, "interrupt");
    assert.deepEqual(answer, { type: "accepted", runId: "run-i", queued: false, seq: b.log.at(-1)?.seq, interrupted: "run-a" });
    assert.deepEqual([b.resultOf(CALL).outcome, b.effect("CancelTool").callIds], ["cancelled", [CALL]]);
    assert.deepEqual([runId(b), b.notices().at(-1)], ["run-i", "aborted:run.aborted"]);
    for (const next of ["run-s", "run-q"]) {
      b.reply("done");
      assert.equal(runId(b), next);
    }
  });
  test("also while the model is called, and behind a compaction", () => {
    const b = new Bench();
    b.say("a");
    b.say("i", {}, "interrupt");
    assert.deepEqual(
      b.state.outbox.filter(({ type }) => type === "CallModel").map(({ id }) => id),
      ["r2/t1/m0"],
    );
    b.reply("one");
    b.say("b");
    b.full(b.plan(3));
    assert.equal(b.state.run.phase, "archiving");
    const answer = b.say("j", {}, "interrupt");
    assert.deepEqual([answer?.type === "accepted" && answer.interrupted, runId(b)], ["run-b", "run-j"]);
  });
  test("[WB7] a reset goes on, and so does a compaction that was asked for", () => {
    for (const type of ["Reset", "Compact"] as const) {
      const b = new Bench();
      b.say("a");
      b.reply("one");
      b.apply({ type });
      for (const wish of ["interrupt", "steer"] as const)
        assert.deepEqual(b.say(wish, {}, wish), { type: "accepted", runId: `run-${wish}`, queued: true });
      assert.equal(b.state.run.phase, "archiving");
    }
  });
  test("[WB7] a run behind a compaction is steered", () => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.say("b");
    b.full(b.plan(3));
    assert.deepEqual(b.say("s", {}, "steer"), { type: "accepted", runId: "run-s", queued: true, steers: "run-b" });
  });
});

describe("[WB5] who may steer", () => {
  const client: Origin = { kind: "client", clientId: "t" };
  /** The origin of the run, that of the message, whether it steers, and whether it interrupts where that differs. */
  const cases: readonly (readonly [Origin, Origin, boolean, boolean?])[] = [
    [client, client, true],
    [client, ownerAt("me"), true],
    [ownerAt("me"), client, true],
    [ownerAt("g", "group"), ownerAt("g", "group"), true],
    [guestAt("bob"), guestAt("bob"), true],
    [client, guestAt("g", "group"), false],
    [ownerAt("g", "group"), guestAt("g", "group"), false],
    [guestAt("g", "group"), ownerAt("g", "group"), false],
    [guestAt("g", "group"), client, false, true],
    [ownerAt("g", "group"), client, false, true],
    [client, ownerAt("g", "group"), false],
    [guestAt("g", "group"), { ...guestAt("g", "group"), senderId: "eve" } as Origin, false],
    [guestAt("g", "group"), guestAt("h", "group"), false],
    [client, { kind: "session", sessionKey: "agent:x:main", hops: 1 }, false],
    [client, { kind: "node_event", nodeId: "lap" }, false],
    [{ kind: "schedule", jobId: "j", budget: { steps: 5, ms: 1000, costUsd: 1 } }, client, false, true],
    [{ kind: "schedule", jobId: "j", budget: { steps: 5, ms: 1000, costUsd: 1 } }, ownerAt("me"), false, true],
    [{ kind: "node_event", nodeId: "lap" }, client, false, true],
    [{ kind: "gateway" }, { kind: "gateway" }, false],
  ];
  const named = (origin: Origin): string =>
    origin.kind === "channel" ? `${origin.role} ${origin.senderId} in ${origin.peer?.kind} ${origin.peer?.id}` : origin.kind;
  for (const [of, by, may, mayInterrupt = may] of cases)
    test(`a message of ${named(by)} ${may ? "steers" : "does not steer"} a run of ${named(of)}, and ${mayInterrupt ? "interrupts" : "waits behind"} it`, () => {
      const b = working(of);
      assert.deepEqual(b.say("s", { origin: by }, "steer"), {
        type: "accepted",
        runId: "run-s",
        queued: true,
        ...(may ? { steers: "run-a" } : {}),
      });
      const answer = b.say("i", { origin: by }, "interrupt");
      assert.equal(answer?.type === "accepted" && answer.interrupted !== undefined, mayInterrupt);
      assert.equal(runId(b), mayInterrupt ? "run-i" : "run-a");
    });
  test("what is only to be known steers nothing", () => {
    const b = working();
    assert.deepEqual(b.say("s", { quiet: true }, "steer"), { type: "accepted", runId: "run-s", queued: true });
    b.say("i", { quiet: true }, "interrupt");
    assert.equal(runId(b), "run-a");
  });
});

describe("[WB6] a run that waits for the owner", () => {
  const asks = { ...call(), target: { ...call().target, ask: { why: "it changes files", rule: "mode auto" } } } as ReturnType<typeof call>;
  const asking = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("", [{ ...asks, binding: { hash: "h", argsHash: "x", policy: "p" } }]);
    assert.equal(b.state.run.phase === "acting" && b.state.run.calls[0]?.status, "awaiting_approval");
    return b;
  };
  test("a message that steers is no answer: it waits for the end of the step", () => {
    const b = asking();
    assert.deepEqual(b.say("s", {}, "steer"), { type: "accepted", runId: "run-s", queued: true, steers: "run-a" });
    const { run } = b.state;
    assert.ok(run.phase === "acting" && run.calls[0]?.status === "awaiting_approval");
    b.apply({ type: "ApprovalAnswered", code: run.calls[0].approval.code, answer: "deny", by: "client:me" });
    assert.deepEqual(said(b), ["a in run-a", "answer", "s in run-a"]);
    assert.equal(b.thinking().step, 2);
  });
  test("a message that interrupts withdraws the question", () => {
    const b = asking();
    b.say("i", {}, "interrupt");
    assert.deepEqual([b.state.questions?.at(-1)?.ended, runId(b)], ["withdrawn", "run-i"]);
  });
  test("[SP10] a paused run makes no step without an answer: any message is the next turn at once", () => {
    for (const wish of ["steer", "interrupt"] as const) {
      const b = new Bench();
      b.say("a");
      b.reply("", [call()], { budget: { ...BUDGET, steps: 1 } });
      b.result(CALL, "done");
      assert.equal(b.state.run.phase, "paused");
      const answer = b.say("s", {}, wish);
      assert.deepEqual([answer?.type === "accepted" && answer.queued, runId(b)], [false, "run-s"]);
    }
  });
});

test("[WB9] a message that steers can be taken back while it waits", () => {
  const b = working();
  b.say("s", {}, "steer");
  assert.equal(b.apply({ type: "Abort", runId: "run-s" }).answer?.type, "aborted");
  assert.deepEqual([b.state.queue, runId(b)], [{ count: 0, bytes: 0 }, "run-a"]);
  b.result(CALL, "done");
  assert.deepEqual(said(b), ["a in run-a", "answer"]);
});
