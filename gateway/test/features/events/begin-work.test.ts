/** Events begin work: a job of another agent, with real gateway, sessions and job objects and a scripted model. */
import { createExecutionContext, createMessageBatch, getQueueResult } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { DomainEvent, EventEnvelope, JobListResult, RunWhyResult } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { composeNativeTools } from "../../../src/app/native-tools.ts";
import worker from "../../../src/app/worker.ts";
import { says } from "../../session/support.ts";
import { client, eventually, gateway, port, silent } from "../../support/gateway.ts";
import { stands, submit } from "../jobs/support.ts";
import { alarm, HOUR, jobStage, pass } from "../schedule/support.ts";
import { evict } from "../../support/evict.ts";

const stage = jobStage();
const tools = composeNativeTools(env.STORAGE, { log: silent });
let sent: EventEnvelope[] = [];
beforeEach(async () => {
  sent = [];
  vi.spyOn(parts, "eventQueue").mockImplementation(() => ({ send: async (envelope) => void sent.push(envelope) }));
  const define = (id: string, events: string): Promise<unknown> =>
    stage.peer.ok("agents.define", {
      text: `metadata: { id: ${id}, name: ${id}_name }\ncore_context: { system_prompt: You are ${id}. }\nevents: ${events}\n`,
    });
  await define("mail", "{ emit: [human_review] }");
  await define("clerk", "{ emit: [human_review], on: [human_review] }");
});
async function deliver(body: EventEnvelope | undefined): Promise<void> {
  const batch = createMessageBatch("domain-events", [{ id: "m", timestamp: stage.now, attempts: 1, body }]);
  const ctx = createExecutionContext();
  await worker.queue(batch, env, ctx);
  expect((await getQueueResult(batch, ctx)).explicitAcks).toHaveLength(1);
}
const show = async (id: string): Promise<DomainEvent> => (await stage.peer.ok<{ event: DomainEvent }>("events.show", { id })).event;
const emits = (payload: unknown) => says("", [{ name: "emit_event", arguments: { topic: "human_review", payload } }]);
/** Approves the event that came last, and hands it to its agents. Returns the job. */
async function approved(): Promise<string> {
  const last = sent.at(-1);
  await deliver(last);
  const id = last?.id ?? "";
  await stage.peer.ok("events.resolve", { id, decision: "approve" });
  await deliver(sent.at(-1));
  const { status, reason, started = [] } = await show(id);
  expect([status, reason, started.length]).toEqual(["done", undefined, 1]);
  expect(started[0]?.agentId).toBe("clerk");
  return started[0]?.jobId ?? "";
}
/** The owner allows the call that the job waits with. */
async function allowed(job: string): Promise<void> {
  await stands(job, "awaiting_approval");
  const { approvals } = await stage.peer.ok<{ approvals: { code: string; event?: string }[] }>("approval.list", {});
  await stage.peer.ok("approval.resolve", { code: approvals.find(({ event }) => event === undefined)?.code, decision: "allow" });
  await stands(job, "succeeded");
}
async function emitted(): Promise<EventEnvelope> {
  stage.answer = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("Sent.") : emits({ question: "Refund 49 SEK?" }));
  await stage.peer.ok("chat.send", { sessionKey: "agent:mail:main", message: "Refund Anna.", runId: "r1" });
  await eventually(() => expect(sent).toHaveLength(1));
  return sent[0] as EventEnvelope;
}
/** An event of a conversation that has read what others wrote. */
async function emittedBy(source: string): Promise<EventEnvelope> {
  const outcome = await tools.run(
    "emit_event",
    { topic: "human_review", payload: { question: "Refund 49 SEK?" } },
    {
      identity: { key: "agent:mail:main", ref: "ref", agentId: "mail", isOwnersSession: true },
      ...{ callId: "c1", runId: "r1", taint: { label: "world", source }, now: stage.now, userTimezone: "UTC", gateway: port() },
    },
  );
  expect(outcome.ok).toBe(true);
  return sent[0] as EventEnvelope;
}

describe("[EV10] an event", () => {
  test("[RT5] that its agents could not take is refused when it is emitted, before the owner is asked", async () => {
    const outcome = await tools.run(
      "emit_event",
      { topic: "human_review", payload: { question: "Refund?", details: { core_context: 1 } } },
      {
        identity: { key: "agent:mail:main", ref: "ref", agentId: "mail", isOwnersSession: true },
        ...{ callId: "c1", runId: "r1", taint: { label: "world", source: "a page" }, now: stage.now, userTimezone: "UTC", gateway: port() },
      },
    );
    expect(outcome).toMatchObject({
      ok: false,
      error: { reason: "event.invalid", message: expect.stringContaining("details.core_context") },
    });
    expect(sent).toEqual([]);
  });
  test("that the owner approves gives the agent of its topic one job, with the event as data and its label", async () => {
    const { id } = await emittedBy("a mail of Anna");
    await evict(gateway());
    stage.peer = await client();
    const job = await approved();
    for (const copy of [...sent]) await deliver(copy);
    stage.answer = () => says("Refunded.");
    const done = await stands(job, "succeeded");
    expect(done).toMatchObject({ agent_id: "clerk", report: { summary: "Refunded.", status: "completed" } });
    expect((await stage.peer.ok<JobListResult>("job.list", {})).jobs.map(({ job_id }) => job_id)).toEqual([job]);
    const call = stage.calls.at(-1);
    expect(call?.systemPrompt).toContain("You are clerk.");
    expect(JSON.stringify(call?.systemPrompt)).not.toContain("Refund 49 SEK");
    expect(JSON.stringify(call?.messages.at(-1))).toMatch(
      /An event of the topic human_review has come from the agent mail\..*data of the task.*Refund 49 SEK/s,
    );
    const story = await stage.peer.ok<RunWhyResult>("run.why", { sessionKey: `agent:clerk:task:${job}` });
    expect(story.origin).toBe(`task ${job} of the event ${id}`);
    expect(await env.SESSION.getByName(`agent:clerk:task:${job}`).runEnd(`task-${job}`)).toMatchObject({
      taint: { label: "world", source: "an event of the agent mail, which has read a mail of Anna" },
    });
  });
  test("[EV11] that begins itself again ends after three steps, and the owner is told", async () => {
    const first = await emitted();
    stage.answer = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("Sent.") : emits({ question: "Again?" }));
    for (const step of [1, 2, 3]) {
      const job = await approved();
      await stands(job, "succeeded");
      expect(new Set(sent.map(({ id }) => id)).size, `after step ${step}`).toBe(step + 1);
    }
    const last = sent.at(-1);
    expect(last?.id).not.toBe(first.id);
    await deliver(last);
    await stage.peer.ok("events.resolve", { id: last?.id, decision: "approve" });
    await deliver(sent.at(-1));
    expect(await show(last?.id ?? "")).toMatchObject({
      status: "dead",
      reason: expect.stringMatching(/^Stopped by a limit: the agent clerk got no job, because it would be number 4 in a chain/),
    });
    const { notifications } = await stage.peer.ok<{ notifications: { kind: string; text: string }[] }>("notifications.list", {});
    expect(notifications.filter(({ kind, text }) => kind === "job" && text.includes("number 4 in a chain"))).toHaveLength(1);
  });
  test("[EV11] whose agent goes on by scheduled jobs ends after three steps, too; that is told as a limit", async () => {
    await emitted();
    const cron = (id: string) => says("", [{ name: "gsv__Cron", arguments: { action: "add", name: id, at: "in 1h", message: "Go on." } }]);
    for (const step of [1, 2, 3]) {
      // The run of the event makes a job, and the run of the job emits.
      stage.answer = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("Done.") : cron(`step-${step}`));
      await allowed(await approved());
      stage.answer = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("Sent.") : emits({ question: `Again ${step}?` }));
      pass(stage, 2 * HOUR);
      await eventually(async () => {
        await alarm();
        expect(new Set(sent.map(({ id }) => id)).size).toBe(step + 1);
      });
    }
    const last = sent.at(-1);
    await deliver(last);
    await stage.peer.ok("events.resolve", { id: last?.id, decision: "approve" });
    await deliver(sent.at(-1));
    expect(await show(last?.id ?? "")).toMatchObject({ status: "dead", reason: expect.stringMatching(/^Stopped by a limit: .*number 4/) });
    const { notifications } = await stage.peer.ok<{ notifications: { text: string }[] }>("notifications.list", {});
    const told = notifications.map(({ text }) => text).filter((text) => text.includes("number 4"));
    expect(told).toEqual([expect.stringMatching(/began no further work\. Stopped by a limit: .*gsv job submit AGENT TEXT/s)]);
    expect(told[0]).not.toMatch(/could not be handled|replay/);
  });
  test("[EV11] whose agent starts a job that the owner has made carries its number to that run, and not to later ones", async () => {
    await stage.peer.ok("cron.add", {
      ...{ name: "Own", id: "own", agentId: "clerk", schedule: { kind: "every", everyMs: HOUR } },
      spec: { mode: "task", message: "Report." },
    });
    await emitted();
    const run = says("", [{ name: "gsv__Cron", arguments: { action: "run", id: "own" } }]);
    stage.answer = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("Done.") : run);
    await allowed(await approved());
    stage.answer = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("Sent.") : emits({ question: "Again?" }));
    const known = new Set(sent.map(({ id }) => id));
    const hopsOfNext = async (): Promise<number | null | undefined> => {
      await eventually(async () => {
        await alarm();
        expect(sent.some(({ id }) => !known.has(id))).toBe(true);
      });
      const id = sent.find((event) => !known.has(event.id))?.id ?? "";
      known.add(id);
      return env.DB?.prepare("SELECT hops FROM event_log WHERE id = ?").bind(id).first<number>("hops");
    };
    expect(await hopsOfNext()).toBe(1);
    pass(stage, HOUR);
    expect(await hopsOfNext()).toBe(0);
  });
  test("[ST7] while GSV is stopped gives no job; after the resume it gives one", async () => {
    const { id } = await emitted();
    await deliver(sent.at(-1));
    await stage.peer.ok("events.resolve", { id, decision: "approve" });
    await stage.peer.ok("gateway.stop", {});
    await deliver(sent.at(-1));
    const { status, started = [] } = await show(id);
    expect([status, started]).toEqual(["queued", []]);
    const count = sent.length;
    await stage.peer.ok("gateway.resume", {});
    pass(stage, 60_000);
    await eventually(async () => {
      await alarm();
      expect(sent.slice(count).map((envelope) => envelope.id)).toEqual([id]);
    });
    stage.answer = () => says("Refunded.");
    await deliver(sent.at(-1));
    await stands((await show(id)).started?.[0]?.jobId ?? "", "succeeded");
  });
});

describe("[EV13] an escalation", () => {
  const define = (escalation: string): Promise<unknown> =>
    stage.peer.ok("agents.define", {
      text: `metadata: { id: mail, name: mail_name }\ncore_context: { system_prompt: You are mail. }\nescalation: ${escalation}\n`,
    });
  test("of a job that fails or uses up its budget asks the owner, once, also when the gateway was evicted", async () => {
    await define("[{ when: failed, to: human_review }, { when: budget_exceeded, to: human_review }]");
    stage.answer = () => ({ kind: "failed", error: { reason: "model.refused" as never, message: "The model says no." }, retryable: false });
    const job = await submit({ agent_name: "mail_name", instructions: "Sort." });
    await stands(job, "failed");
    // The end of the task is noticed at once, before the first look of the row.
    const before = Date.now();
    await eventually(async () => {
      await alarm();
      expect(sent).toHaveLength(1);
    });
    // Each try of `eventually` moves the clock a little.
    expect(Date.now() - before).toBeLessThan(15_000);
    for (const _ of [1, 2, 3]) {
      pass(stage, 20_000);
      await alarm();
    }
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatchObject({
      topic: "human_review",
      agent_id: "mail",
      task_id: `task-${job}`,
      payload: {
        question: expect.stringContaining("has failed"),
        reason: "The model says no.",
        details: { cause: "failed", task_id: job },
      },
    });
    await stage.peer.ok("config.set", { path: "limits.stepsPerRun", value: 1 });
    stage.answer = () => says("", [{ name: "gsv__ReadFile", arguments: { path: "none.md" } }]);
    await stands(await submit({ agent_name: "mail_name", instructions: "Sort." }), "budget_exceeded");
    pass(stage, 20_000);
    await alarm();
    expect(sent.at(-1)?.payload).toMatchObject({ details: { cause: "budget_exceeded" } });
  });
  test("of a job that succeeds, or of an agent without one, asks nothing", async () => {
    stage.answer = () => ({ kind: "failed", error: { reason: "model.refused" as never, message: "The model says no." }, retryable: false });
    await stands(await submit({ agent_name: "mail_name", instructions: "Sort." }), "failed");
    await define("[{ when: failed, to: human_review }]");
    stage.answer = () => says("Sorted.");
    await stands(await submit({ agent_name: "mail_name", instructions: "Sort." }), "succeeded");
    pass(stage, 20_000);
    await alarm();
    expect(sent).toEqual([]);
  });
  test("by the agent's own report of a low confidence has a tool, which no other agent has", async () => {
    await define("[{ when: low_confidence, to: human_review }]");
    const report = { question: "Is it a towel?", reason: "The picture is dark." };
    stage.answer = ({ messages }) =>
      messages.at(-1)?.role === "toolResult" ? says("A towel, I think.") : says("", [{ name: "report_low_confidence", arguments: report }]);
    await stands(await submit({ agent_name: "mail_name", instructions: "Sort." }), "succeeded");
    expect(sent.map(({ payload }) => payload)).toEqual([{ ...report, details: { cause: "low_confidence" } }]);
    const offered = stage.calls.at(-1)?.tools.map(({ name }) => name) ?? [];
    expect([offered.includes("report_low_confidence"), offered.includes("emit_event")]).toEqual([true, false]);
    await stands(await submit({ agent_name: "clerk_name", instructions: "Sort." }), "failed");
    expect(stage.calls.at(-1)?.tools.map(({ name }) => name)).not.toContain("report_low_confidence");
    expect(sent).toHaveLength(1);
  });
});
