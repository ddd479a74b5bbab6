/** Domain events through the real gateway: the tool, the queue's handler in the Worker, the log in D1, and the owner's methods. */
import { env } from "cloudflare:workers";
import {
  createExecutionContext,
  createMessageBatch,
  getQueueResult,
  reset,
  runDurableObjectAlarm,
  runInDurableObject,
} from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { DomainEvent, EventEnvelope, EventsListResult } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { composeNativeTools } from "../../../src/app/native-tools.ts";
import worker from "../../../src/app/worker.ts";
import type { NativeOutcome } from "../../../src/ports/native-tools.ts";
import { client, eventually, fakeSessions, gateway, node, type Peer, port, seed, silent } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

let owner: Peer;
let sent: EventEnvelope[] = [];
let isDown = false;
let calls = 0;
beforeEach(async () => {
  await reset();
  sent = [];
  isDown = false;
  fakeSessions();
  await seed();
  vi.spyOn(parts, "eventQueue").mockImplementation(() => ({
    send: async (envelope) => {
      if (isDown) throw new Error("the queue is down");
      sent.push(envelope);
    },
  }));
  owner = await client();
  await owner.ok("agents.define", {
    text: "metadata: { id: mail, name: mail }\ncore_context: { system_prompt: Hi }\nevents: { emit: [human_review] }\n",
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});
const tools = composeNativeTools(env.STORAGE, { log: silent });
const emit = (payload: unknown, more: { agentId?: string; isOwnersSession?: boolean; callId?: string } = {}): Promise<NativeOutcome> => {
  const { agentId = "mail", isOwnersSession = true, callId = `c${++calls}` } = more;
  return tools.run(
    "emit_event",
    { topic: "human_review", payload },
    {
      identity: { key: `agent:${agentId}:main`, ref: "ref", agentId, isOwnersSession },
      callId,
      runId: "r1",
      taint: { label: "world", source: "a mail of Anna" },
      now: Date.now(),
      userTimezone: "UTC",
      gateway: port(),
    },
  );
};
const emitted = async (question = "Refund 49 SEK?", callId?: string): Promise<string> => {
  const outcome = await emit({ question }, callId === undefined ? {} : { callId });
  expect(outcome).toMatchObject({ ok: true, result: { status: "It waits for your human's word." } });
  return (outcome as { result: { id: string } }).result.id;
};
/** As the queue delivers it. */
async function deliver(body: unknown, queue = "domain-events") {
  const batch = createMessageBatch(queue, [{ id: "m", timestamp: Date.now(), attempts: 1, body }]);
  const ctx = createExecutionContext();
  await worker.queue(batch, env, ctx);
  const { explicitAcks, retryMessages } = await getQueueResult(batch, ctx);
  return { acked: explicitAcks.length === 1, retried: retryMessages.length };
}
const ACKED = { acked: true, retried: 0 };
const show = async (id: string): Promise<DomainEvent> => (await owner.ok<{ event: DomainEvent }>("events.show", { id })).event;
const list = (params: Record<string, unknown> = {}): Promise<EventsListResult> => owner.ok<EventsListResult>("events.list", params);
const told = async (): Promise<{ kind: string; text: string }[]> =>
  (await owner.ok<{ notifications: { kind: string; text: string }[] }>("notifications.list", {})).notifications;

describe("emit_event", () => {
  test("[EV2] [EV7] waits for the owner, who decides once; the decision is in the audit", async () => {
    const id = await emitted();
    expect(await show(id)).toMatchObject({
      ...{ id, topic: "human_review", version: 1, agentId: "mail", taskId: "r1", sessionKey: "agent:mail:main" },
      ...{ status: "queued", attempts: 0, label: "world", labelSource: "a mail of Anna", payload: '{"question":"Refund 49 SEK?"}' },
    });
    expect(await deliver(sent[0])).toEqual(ACKED);
    expect(await deliver(sent[0])).toEqual(ACKED);
    const [question, ...others] = await told();
    expect([question?.kind, others]).toEqual(["approval", []]);
    expect(question?.text).toMatch(/^Refund 49 SEK\?.*mail \(human_review; world, from a mail of Anna\).*gsv events resolve/s);
    expect((await list({ status: "waiting_approval" })).events.map((event) => event.id)).toEqual([id]);
    const resolve = (decision: string) => owner.ok<{ event: DomainEvent }>("events.resolve", { id, decision });
    expect((await resolve("approve")).event).toMatchObject({ status: "queued", decision: "approve" });
    await evict(gateway());
    owner = await client();
    expect(await deliver(sent[1])).toEqual(ACKED);
    expect(await show(id)).toMatchObject({ status: "done", decision: "approve" });
    expect((await owner.refused("events.resolve", { id, decision: "reject" })).reason).toBe("event.wrong_state");
    const { entries } = await owner.ok<{ entries: { action: string; decision: string }[] }>("audit.list", {});
    expect(entries.filter(({ action }) => action === "events.resolve")).toMatchObject([
      { target: id, decision: "failed", detail: "reject" },
      { target: id, decision: "allowed", detail: "approve" },
    ]);
  });
  test("[EV1] [EV2] is for agents with topics alone, and says what does not fit", async () => {
    const refusal = async (payload: unknown, more = {}) => {
      const outcome = await emit(payload, more);
      return outcome.ok ? "ok" : [outcome.error.reason, outcome.error.message];
    };
    expect((await refusal({ question: "x" }, { agentId: "main" }))[0]).toBe("event.not_allowed");
    expect((await refusal({ question: "x" }, { isOwnersSession: false }))[0]).toBe("auth.forbidden");
    const [reason, message] = await refusal({ reason: "x" });
    expect([reason, message]).toEqual(["event.invalid", expect.stringContaining("question")]);
    expect((await list()).events).toEqual([]);
  });
  test("[EV3] an event that the queue did not take is sent by the alarm, also after an eviction", async () => {
    isDown = true;
    const id = await emitted();
    isDown = false;
    await evict(gateway());
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 3_600_000);
    await runDurableObjectAlarm(gateway());
    expect(sent.map((envelope) => envelope.id)).toEqual([id]);
    const unsent = await runInDurableObject(gateway(), (_instance, { storage }) =>
      storage.sql.exec("SELECT count(*) AS n FROM event_outbox").one(),
    );
    expect(unsent).toEqual({ n: 0 });
  });
});

test("[ST7] an event that was approved waits while everything is stopped, goes on by itself after the resume, and is handled once", async () => {
  const id = await emitted();
  expect(await deliver(sent[0])).toEqual(ACKED);
  await owner.ok("events.resolve", { id, decision: "approve" });
  await owner.ok("gateway.stop");
  // The queue is done with it, so that it gives up no event, however long the stop takes. Copies wait too.
  expect(await deliver(sent[1])).toEqual(ACKED);
  expect(await deliver(sent[1])).toEqual(ACKED);
  expect(await show(id)).toMatchObject({ status: "queued", decision: "approve", attempts: 0 });
  expect(await emit({ question: "Another?" })).toMatchObject({ ok: false, error: { reason: "gateway.stopped" } });
  await evict(gateway());
  owner = await client();
  vi.spyOn(Date, "now").mockReturnValue(Date.now() + 30 * 86_400_000);
  await runDurableObjectAlarm(gateway());
  expect([sent.length, (await show(id)).status]).toEqual([2, "queued"]);
  await owner.ok("gateway.resume");
  // Its alarm is due already, so the runtime fires it.
  await eventually(() => expect(sent.map((envelope) => envelope.id)).toEqual([id, id, id]));
  expect(await deliver(sent[2])).toEqual(ACKED);
  expect(await deliver(sent[1])).toEqual(ACKED);
  expect(await show(id)).toMatchObject({ status: "done" });
});

describe("the queue", () => {
  test("[EV4] [EV8] a broken message is a dead letter at once, of which the owner is told; it is replayed from the log", async () => {
    const id = await emitted();
    expect(await deliver({ ...sent[0], topic: "no_topic" })).toEqual(ACKED);
    expect(await deliver(undefined)).toEqual(ACKED);
    expect(await show(id)).toMatchObject({ status: "dead", reason: "There is no topic no_topic." });
    expect((await told()).map(({ kind }) => kind)).toEqual(["job", "job"]);
    expect((await list({ status: "dead" })).events.map(({ topic }) => topic).sort()).toEqual(["", "human_review"]);
    await owner.ok("events.replay", { id });
    expect(await deliver(sent.at(-1))).toEqual(ACKED);
    expect(await show(id)).toMatchObject({ status: "waiting_approval", attempts: 0 });
    expect((await owner.refused("events.replay", { id })).reason).toBe("event.wrong_state");
  });
  test("[EV5] a gateway that does not answer settles nothing; what the queue gives up is a dead letter", async () => {
    const id = await emitted();
    vi.spyOn(env.GATEWAY, "getByName").mockImplementation(() => {
      throw new Error("not there");
    });
    expect(await deliver(sent[0])).toEqual({ acked: false, retried: 1 });
    vi.mocked(env.GATEWAY.getByName).mockRestore();
    expect(await deliver(sent[0], "domain-events-dead-letter")).toEqual(ACKED);
    expect(await show(id)).toMatchObject({ status: "dead" });
  });
});

describe("the owner", () => {
  test("[EV9] lists by pages, status and topic", async () => {
    const ids: string[] = [];
    for (let number = 0; number < 5; number++) ids.unshift(await emitted(`question ${number}`));
    const first = await list({ limit: 3 });
    const rest = await list({ limit: 3, before: first.events.at(-1)?.id });
    expect([first.more, rest.more]).toEqual([true, false]);
    expect([...first.events, ...rest.events].map(({ id }) => id).sort()).toEqual([...ids].sort());
    expect((await list({ topic: "other" })).events).toEqual([]);
    expect((await list({ status: "done" })).events).toEqual([]);
    expect((await owner.refused("events.show", { id: "nonsense" })).reason).toBe("event.not_found");
  });
  test("[EV9] needs the scope operate; a deployment without a queue says so", async () => {
    const machine = await node("lap");
    for (const [method, params] of [
      ["events.list", {}],
      ["events.show", { id: "x" }],
      ["events.resolve", { id: "x", decision: "approve" }],
      ["events.replay", { id: "x" }],
    ] as const)
      expect((await machine.refused(method, params)).reason, method).toBe("auth.forbidden");
    vi.mocked(parts.eventQueue).mockReturnValue(undefined);
    expect((await owner.refused("events.list", {})).message).toMatch(/no queue or no database/);
  });
});
