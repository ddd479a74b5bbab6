/** The life of domain events, with a log in SQLite and a queue that the test delivers. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { EventEnvelope } from "../../../../protocol/gen/types.ts";
import { EventStage, PARCEL, STORED_SECRET } from "../../../test/support/event-stage.ts";
import { TopicList } from "../../events/topics.ts";
import { fail } from "../../kernel/outcome.ts";
import type { Emission } from "../../ports/events.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { CORE_TOPICS } from "./topics.ts";

const deep = (levels: number): string => `${'{"to":'.repeat(levels)}1${"}".repeat(levels)}`;
const ACK = { kind: "ack" };
const broken = (): Promise<Result<void>> => Promise.resolve(fail("storage.failed", "The depot is closed.", "Wait."));

test("[EV7] an event whose topic is gone can't be approved; what to do depends on whether a pack that is off has it", async () => {
  for (const off of [undefined, "The pack parcels has it, and it is off."]) {
    const stage = new EventStage();
    const id = await stage.emit({ topic: "human_review", payload: { question: "Send it?" } });
    await stage.deliver(stage.sent[0] ?? "");
    stage.offPack = off;
    stage.withoutReview = true;
    stage.kill();
    const refused = await stage.keeper.resolve(id, { decision: "approve", by: "client:me" });
    assert.ok(!refused.ok);
    const next =
      off === undefined
        ? `Reject it: \`gsv events resolve ${id} reject\`.`
        : "Turn the pack on, then approve the event again. It waits until then.";
    assert.deepEqual([refused.error.reason, refused.error.hint], ["event.wrong_state", next]);
    assert.ok((await stage.keeper.resolve(id, { decision: "reject", by: "client:me" })).ok);
  }
});

test("[ST7] a handler that runs at the moment of a stop may end, and its next attempt begins after the resume", async () => {
  const stage = new EventStage();
  const id = await stage.emit();
  const text = stage.sent[0] ?? "";
  stage.handler = () => {
    stage.isStopped = true;
    return broken();
  };
  assert.deepEqual(await stage.deliver(text), { kind: "retry", delaySeconds: 10 });
  assert.deepEqual(await stage.deliver(text), ACK);
  assert.deepEqual([stage.handled.length, stage.unsent.size], [1, 1]);
  assert.deepEqual(await stage.status(id), ["queued", 1, "The depot is closed. Wait."], "no attempt was counted");
  stage.isStopped = false;
  stage.handler = () => Promise.resolve(succeed(undefined));
  await stage.keeper.sweep();
  assert.deepEqual([stage.sent.length, stage.unsent.size], [2, 0]);
  assert.deepEqual(await stage.deliver(stage.sent[1] ?? ""), ACK);
  assert.deepEqual([stage.handled.length, (await stage.status(id))[0]], [2, "done"]);
});

describe("emit_event", () => {
  test("[EV2] a call that is made again emits the same event, which is handled once", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    stage.kill();
    assert.equal(await stage.emit(), id);
    assert.notEqual(await stage.emit({ callId: "c2" }), id);
    assert.notEqual(await stage.emit({ runId: "r2" }), id);
    assert.equal(stage.sent.length, 4);
    const envelope = JSON.parse(stage.sent[0] ?? "") as EventEnvelope;
    assert.deepEqual(envelope, {
      ...{ id, topic: "parcel", version: 1, tenant_id: "default", agent_id: "mail", task_id: "r1" },
      ...{ emitted_at: 1_000_000, idempotency_key: id, payload: { to: "Anna" } },
    });
    for (const text of stage.sent.slice(0, 2)) assert.deepEqual(await stage.deliver(text), ACK);
    assert.deepEqual(stage.handled, [id]);
    assert.deepEqual(await stage.status(id), ["done", 0, undefined]);
  });
  test("[EV2] what is not allowed or does not fit is an error that says what is wrong, and leaves nothing", async () => {
    const stage = new EventStage();
    const refused = async (more: Partial<Emission>) => {
      const emitted = await stage.tryEmit(more);
      assert.ok(!emitted.ok);
      return [emitted.error.reason, emitted.error.message, emitted.error.hint];
    };
    const topics = "Topics of this agent: human_review, parcel.";
    assert.deepEqual(await refused({ topic: "parcels" }), ["event.topic_unknown", 'There is no topic "parcels".', topics]);
    assert.deepEqual(await refused({ agentId: "main" }), [
      "event.not_allowed",
      "The agent may not emit events of the topic parcel.",
      "The agent may emit no events.",
    ]);
    assert.deepEqual(await refused({ payload: {} }), ["event.invalid", "The payload does not fit: to is missing.", "parcel: {to}."]);
    const [reason, message] = await refused({ topic: "human_review", payload: { reason: "x" } });
    assert.equal(reason, "event.invalid");
    assert.match(message ?? "", /question/);
    assert.match((await refused({ payload: { to: "x".repeat(65_536) } }))[1] ?? "", /more than 65,536 bytes/);
    assert.deepEqual([stage.sent, stage.unsent.size], [[], 0]);
  });
  test("[EV2] an event beyond the 10,000 that may be open is refused and leaves nothing, until one of them has ended", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    await stage.fill(9_999);
    await stage.emit({ callId: "the last" });
    const refused = await stage.tryEmit({ callId: "one more" });
    assert.ok(!refused.ok);
    assert.deepEqual([refused.error.reason, refused.error.message], ["limit.events", "10,000 events wait, which is the limit."]);
    assert.deepEqual([stage.sent.length, stage.unsent.size], [2, 0]);
    assert.equal(await stage.emit(), id, "a call that is made again finds its event");
    assert.deepEqual(await stage.deliver(stage.sent[0] ?? ""), ACK);
    await stage.emit({ callId: "one more" });
  });
  test("[EV3] what a kill or a queue that does not answer leaves unsent is sent later", async () => {
    const stage = new EventStage();
    stage.sending = () => Promise.reject(new Error("down"));
    const id = await stage.emit();
    assert.deepEqual([stage.sent.length, stage.unsent.size], [0, 1], "it is taken all the same: it is durable");
    await stage.keeper.sweep();
    assert.equal(stage.sent.length, 0, "not before its time");
    await stage.recover();
    assert.deepEqual([stage.sent.length, stage.unsent.size], [1, 0]);
    await stage.deliver();
    assert.deepEqual(stage.handled, [id]);
  });
  test("[EV2] a log that fails is the call's error, and nothing of it is sent later", async () => {
    const stage = new EventStage();
    await stage.emit();
    stage.before = () => {
      throw new Error("down");
    };
    assert.equal((await stage.tryEmit({ callId: "c2" })).ok, false);
    stage.before = () => undefined;
    stage.now += 700_000;
    await stage.keeper.sweep();
    assert.deepEqual([stage.unsent.size, stage.sent.length], [0, 1]);
  });
  test("[EV3] an event that the log has is sent also when the call is made again and the log does not answer then", async () => {
    const stage = new EventStage();
    stage.sending = () => Promise.reject(new Error("down"));
    const id = await stage.emit();
    stage.kill();
    stage.before = () => {
      throw new Error("down");
    };
    assert.equal((await stage.tryEmit()).ok, false);
    stage.before = () => undefined;
    stage.sending = () => Promise.resolve();
    stage.now += 700_000;
    await stage.keeper.sweep();
    await stage.deliver();
    assert.deepEqual([stage.handled, stage.unsent.size], [[id], 0]);
  });
  test("[EV2] a payload that is nested more than 64 levels deep is refused, however deep it is", async () => {
    const nested = (levels: number): unknown => {
      let value: unknown = {};
      for (let level = 1; level < levels; level++) value = { to: value };
      return value;
    };
    const stage = new EventStage();
    assert.ok((await stage.tryEmit({ payload: nested(64) })).ok);
    for (const levels of [65, 100_000]) {
      const emitted = await stage.tryEmit({ callId: "c2", payload: nested(levels) });
      assert.deepEqual(emitted.ok ? "" : [emitted.error.reason, emitted.error.message], [
        "event.invalid",
        "The payload is nested more than 64 levels deep.",
      ]);
    }
    assert.equal(stage.sent.length, 1);
  });
  test("[EV2] a call without a payload is refused, whatever the topic takes", async () => {
    const emitted = await new EventStage().tryEmit({ payload: undefined });
    assert.equal(emitted.ok ? "" : emitted.error.message, "The payload is missing.");
  });
});

describe("the consumer", () => {
  test("[EV9] no stored secret of a failure is in the log of events, whole or in part", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    // The end of the text that is kept is inside the secret.
    for (const before of ["The shop refused ", "x".repeat(990)]) {
      stage.handler = () => Promise.resolve(fail("storage.failed", `${before}${STORED_SECRET}`, "Wait."));
      await stage.deliver();
      assert.doesNotMatch(JSON.stringify(await stage.rows()), /shpat_/);
      assert.match(JSON.stringify(await stage.rows()), /\[redac/);
    }
    for (const _ of [3, 4]) await stage.deliver();
    assert.equal((await stage.status(id))[0], "dead");
    await stage.deliver(`{"not": "an event ${STORED_SECRET}"}`);
    assert.equal((await stage.rows()).length, 2);
    assert.doesNotMatch(JSON.stringify(await stage.rows()), /shpat_/);
  });
  test("[EV4] a message that says something else than the event in the log is a dead letter, and its words reach no handler", async () => {
    for (const forged of [
      { payload: { to: "Mallory" } },
      { agent_id: "other" },
      { idempotency_key: "another" },
      { task_id: "r9" },
      { topic: "human_review", payload: { question: "Refund?" } },
    ]) {
      const stage = new EventStage();
      const id = await stage.emit();
      const real = JSON.parse(stage.sent[0] ?? "") as EventEnvelope;
      assert.deepEqual(await stage.deliver(JSON.stringify({ ...real, ...forged })), ACK);
      assert.deepEqual(stage.handled, [], JSON.stringify(forged));
      assert.deepEqual(await stage.status(id), ["dead", 0, "The message of the queue differs from the event in the log."]);
      assert.equal(stage.told.size, 1);
    }
    // The owner's word is not got round by the name of another topic.
    const stage = new EventStage();
    const id = await stage.review();
    await stage.deliver();
    const real = JSON.parse(stage.sent[0] ?? "") as EventEnvelope;
    assert.deepEqual(await stage.deliver(JSON.stringify({ ...real, topic: "parcel", payload: { to: "Anna" } })), ACK);
    assert.deepEqual([stage.handled, (await stage.status(id))[0]], [[], "waiting_approval"]);
  });
  test("[EV6] copies that come at the same time are handled once, and one that comes later is not handled again", async () => {
    const stage = new EventStage();
    await stage.emit();
    assert.deepEqual(await Promise.all([stage.deliver(), stage.deliver(), stage.deliver()]), [ACK, ACK, ACK]);
    stage.kill();
    assert.deepEqual(await stage.deliver(), ACK);
    assert.equal(stage.handled.length, 1);
  });
  test("[EV6] a kill between the handler and the log calls the handler again, with the same key", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    stage.before = (sql) => {
      if (sql.includes("'done'")) throw new Error("killed");
    };
    assert.equal((await stage.deliver()).kind, "retry");
    stage.before = () => undefined;
    stage.kill();
    assert.deepEqual(await stage.deliver(), ACK);
    assert.deepEqual(stage.handled, [id, id]);
    assert.deepEqual(await stage.status(id), ["done", 0, undefined]);
  });
  test("[EV5] a handler that fails is called after 10, 60 and 300 seconds; then the owner is told, once", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    stage.handler = broken;
    const pauses = [await stage.deliver(), await stage.deliver(), await stage.deliver()];
    assert.deepEqual(
      pauses.map((settled) => settled.kind === "retry" && settled.delaySeconds),
      [10, 60, 300],
    );
    assert.deepEqual(await stage.status(id), ["queued", 3, "The depot is closed. Wait."]);
    assert.equal(stage.told.size, 0);
    stage.handler = () => Promise.reject(new Error("a bug"));
    assert.deepEqual(await stage.deliver(), ACK);
    assert.deepEqual(await stage.status(id), ["dead", 4, "The handler failed inside GSV."]);
    assert.deepEqual(await stage.deliver(), ACK);
    const [tell, ...others] = [...stage.told.values()];
    assert.deepEqual([tell?.kind, tell?.agentId, others.length], ["job", "mail", 0]);
    assert.match(tell?.text ?? "", new RegExp(`The handler failed inside GSV\\..*gsv events replay ${id}`, "s"));
    assert.equal(stage.handled.length, 4);
  });
  test("[EV5] a handler that does not answer in five minutes has failed, and holds up no later delivery", async (t) => {
    const stage = new EventStage();
    const id = await stage.emit();
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const called = Promise.withResolvers<void>();
    stage.handler = () => {
      called.resolve();
      return new Promise(() => undefined);
    };
    const first = stage.deliver();
    await called.promise;
    t.mock.timers.tick(300_000);
    assert.deepEqual(await first, { kind: "retry", delaySeconds: 10 });
    assert.deepEqual(await stage.status(id), ["queued", 1, "The handler did not answer in 5 minutes."]);
    stage.handler = () => Promise.resolve(succeed(undefined));
    assert.deepEqual(await stage.deliver(), ACK);
    assert.deepEqual((await stage.status(id))[0], "done");
  });
  test("[EV5] a log that does not answer is no attempt; what the queue gives up is a dead letter with the last reason", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    stage.before = () => {
      throw new Error("down");
    };
    assert.deepEqual(await stage.deliver(), { kind: "retry", delaySeconds: 30 });
    assert.deepEqual(await stage.deliver(undefined, true), { kind: "retry", delaySeconds: 30 });
    stage.before = () => undefined;
    assert.deepEqual(await stage.status(id), ["queued", 0, undefined]);
    assert.deepEqual(await stage.deliver(undefined, true), ACK);
    const [status, attempts, reason] = await stage.status(id);
    assert.deepEqual([status, attempts], ["dead", 0]);
    assert.match(String(reason), /as often as the queue allows/);
    assert.deepEqual([stage.handled.length, stage.told.size], [0, 1]);
  });
  test("[EV4] a broken message is a dead letter at once, with the reason, also when nothing of it can be read", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    const sent = JSON.parse(stage.sent[0] ?? "") as EventEnvelope;
    const bad = async (message: unknown): Promise<void> => assert.deepEqual(await stage.deliver(JSON.stringify(message)), ACK);
    await bad({ ...sent, topic: "nothing" });
    assert.deepEqual(await stage.status(id), ["dead", 0, "There is no topic nothing."]);
    await bad("nonsense");
    await bad("nonsense");
    assert.deepEqual(await stage.deliver("{not json"), ACK);
    await bad({ ...sent, tenant_id: "other" });
    await bad({ ...sent, id: "0".repeat(32) });
    const second = await stage.emit({ callId: "c2" });
    await bad({ ...(JSON.parse(stage.sent[1] ?? "") as EventEnvelope), version: 2 });
    assert.match(String((await stage.status(second))[2]), /version 2 of the topic parcel; this gateway knows version 1/);
    const third = await stage.emit({ callId: "c3" });
    await bad({ ...(JSON.parse(stage.sent[2] ?? "") as EventEnvelope), payload: {} });
    assert.match(String((await stage.status(third))[2]), /does not fit/);
    assert.deepEqual([stage.handled, stage.told.size], [[], 7]);
    const replayed = await stage.keeper.replay("0".repeat(32));
    assert.equal(replayed.ok ? "" : replayed.error.reason, "event.wrong_state");
  });
  test("[EV4] a message that is nested too deep is a dead letter at once; one as deep as an emission may be is handled", async () => {
    const nested = (levels: number): unknown => JSON.parse(deep(levels));
    const stage = new EventStage();
    const id = await stage.emit({ payload: nested(LIMITS.valueDepth) });
    assert.deepEqual(await stage.deliver(), ACK);
    assert.deepEqual([stage.handled, (await stage.status(id))[0]], [[id], "done"]);
    for (const [index, levels] of [LIMITS.valueDepth + 1, 10_000].entries()) {
      const second = await stage.emit({ callId: `deep${index}` });
      const text = (stage.sent.at(-1) ?? "").replace('{"to":"Anna"}', deep(levels));
      assert.deepEqual(await stage.deliver(text), ACK);
      assert.deepEqual((await stage.status(second)).slice(0, 2), ["dead", 0]);
      assert.match(String((await stage.status(second))[2]), /nested more than \d+ levels deep/);
    }
    assert.deepEqual(await stage.deliver("[".repeat(50_000)), ACK);
    assert.deepEqual([stage.handled.length, stage.told.size], [1, 3]);
  });
  test("[EV11] a handler whose words are those of a limit has failed all the same, also after a kill", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    stage.handler = () => Promise.resolve(fail("storage.failed", "Stopped by a limit: the shop takes no more.", "Wait."));
    for (const _ of [1, 2, 3, 4]) await stage.deliver();
    stage.kill();
    stage.told.clear();
    assert.deepEqual(await stage.deliver(), ACK);
    assert.deepEqual(await stage.status(id).then(([status]) => status), "dead");
    assert.match([...stage.told.values()][0]?.text ?? "", /could not be handled: Stopped by a limit: the shop.*gsv events replay/s);
  });
});

describe("the owner", () => {
  test("[EV7] is asked once, and the first decision counts", async () => {
    const stage = new EventStage();
    const id = await stage.review();
    assert.deepEqual(await stage.deliver(), ACK);
    stage.kill();
    assert.deepEqual(await stage.deliver(), ACK);
    assert.deepEqual((await stage.status(id))[0], "waiting_approval");
    const [asked, ...others] = [...stage.told.values()];
    assert.deepEqual([asked?.kind, others.length, stage.handled], ["approval", 0, []]);
    assert.match(asked?.text ?? "", new RegExp(`^Refund 49 SEK\\? Why: Above my limit\\..*gsv events resolve ${id} approve`, "s"));
    const decide = async (decision: "approve" | "reject") => {
      const decided = await stage.keeper.resolve(id, { decision, by: "owner" });
      return decided.ok ? decided.value.status : decided.error.reason;
    };
    assert.equal(await decide("approve"), "queued");
    assert.equal(await decide("approve"), "queued", "a repeated decision changes nothing");
    assert.equal(await decide("reject"), "event.wrong_state");
    for (const text of stage.sent) await stage.deliver(text);
    assert.deepEqual([stage.handled, (await stage.status(id))[0]], [[id], "done"]);
    const found = await stage.keeper.find(` ${id.toUpperCase()}`);
    assert.deepEqual(found.ok && [found.value.decision, found.value.decidedBy, found.value.decidedAt], ["approve", "owner", 1_000_000]);
  });
  test("[EV7] a rejected event is never handled, also when it is delivered or replayed", async () => {
    const stage = new EventStage();
    const id = await stage.review();
    await stage.deliver();
    const sent = stage.sent.length;
    assert.ok((await stage.keeper.resolve(id, { decision: "reject", by: "owner" })).ok);
    await stage.deliver();
    assert.equal((await stage.keeper.replay(id)).ok, false);
    assert.deepEqual([stage.sent.length, stage.handled, (await stage.status(id))[0]], [sent, [], "rejected"]);
    assert.equal((await stage.keeper.resolve("0".repeat(32), { decision: "approve", by: "owner" })).ok, false);
  });
  test("[EV7] a decision that a kill cuts before the queue has the event is sent by the alarm", async () => {
    const stage = new EventStage();
    const id = await stage.review();
    await stage.deliver();
    stage.sending = () => Promise.reject(new Error("killed"));
    assert.ok((await stage.keeper.resolve(id, { decision: "approve", by: "owner" })).ok);
    await stage.recover();
    await stage.deliver();
    assert.deepEqual(stage.handled, [id]);
  });
  test("[EV3] [EV7] a sweep that began before a decision leaves the decision to be sent", async () => {
    const stage = new EventStage();
    const id = await stage.review();
    await stage.deliver();
    stage.unsent.set(id, { dueAt: 0, tries: 0 });
    stage.sending = () => new Promise(() => undefined);
    const reading = Promise.withResolvers<void>();
    // The sweep has read the row of the outbox, and reads the event.
    stage.before = (sql) => {
      if (sql.startsWith("SELECT * FROM event_log")) reading.resolve();
    };
    const swept = stage.keeper.sweep();
    await reading.promise;
    void stage.keeper.resolve(id, { decision: "approve", by: "owner" });
    await swept;
    let status: unknown;
    do [status] = await stage.status(id);
    while (status !== "queued");
    assert.ok(stage.unsent.has(id));
    await stage.recover();
    await stage.deliver();
    assert.deepEqual(stage.handled, [id]);
  });
  test("[EV8] a dead letter is replayed with new attempts, and told again when it dies again; a handled one is not", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    stage.handler = broken;
    for (const _ of [1, 2, 3, 4]) await stage.deliver();
    assert.ok((await stage.keeper.replay(id)).ok);
    assert.deepEqual(await stage.status(id), ["queued", 0, undefined]);
    for (const _ of [1, 2, 3, 4]) await stage.deliver();
    assert.deepEqual([(await stage.status(id))[0], stage.told.size], ["dead", 2]);
    stage.handler = () => Promise.resolve(succeed(undefined));
    assert.ok((await stage.keeper.replay(id)).ok);
    await stage.deliver();
    assert.deepEqual((await stage.status(id))[0], "done");
    const again = await stage.keeper.replay(id);
    assert.equal(again.ok ? "" : again.error.reason, "event.wrong_state");
    assert.equal(stage.handled.length, 9);
  });
  test("[EV8] a replay ends the retries from before it, also an attempt that is under way", async () => {
    const stage = new EventStage();
    const id = await stage.emit();
    const [old = ""] = stage.sent;
    stage.handler = broken;
    for (const _ of [1, 2]) await stage.deliver(old);
    assert.ok((await stage.keeper.replay(id)).ok);
    assert.equal(stage.sent.length, 2);
    const again = stage.sent[1] ?? "";
    for (const isDead of [false, true]) assert.deepEqual(await stage.deliver(old, isDead), ACK);
    assert.deepEqual([stage.handled.length, await stage.status(id)], [2, ["queued", 0, undefined]]);
    for (const delaySeconds of [10, 60, 300]) {
      assert.deepEqual(await stage.deliver(again), { kind: "retry", delaySeconds });
      assert.deepEqual(await stage.deliver(old), ACK);
    }
    // The last attempt, during which the owner replays the event once more.
    stage.handler = async () => {
      assert.ok((await stage.keeper.replay(id)).ok);
      return broken();
    };
    assert.deepEqual(await stage.deliver(again), ACK);
    assert.deepEqual([await stage.status(id), stage.told.size], [["queued", 0, undefined], 0]);
    stage.handler = () => Promise.resolve(succeed(undefined));
    assert.deepEqual(await stage.deliver(again), ACK);
    assert.deepEqual(await stage.deliver(stage.sent[2]), ACK);
    assert.deepEqual([stage.handled.length, (await stage.status(id))[0]], [7, "done"]);
  });
  test("[EV9] an ended event is removed 30 days after its end; an open one stays", async () => {
    const stage = new EventStage();
    const old = await stage.emit();
    await stage.deliver();
    const open = await stage.emit({ callId: "c2" });
    stage.now += 30 * 86_400_000 + 1;
    await stage.emit({ callId: "c3" });
    assert.equal((await stage.keeper.find(old)).ok, false);
    assert.equal((await stage.keeper.find(open)).ok, true);
  });
});

test("[EV1] a topic has one owner and a plain name, and a closed list takes no more", () => {
  const list = new TopicList().add("events", CORE_TOPICS);
  assert.throws(() => list.add("pack", CORE_TOPICS), /human_review is registered twice, the second time by pack/);
  assert.throws(() => list.add("pack", [{ ...PARCEL, name: "A-b" }]), /only a-z/);
  list.close();
  assert.throws(() => list.add("pack", [PARCEL]), /closed/);
});
