/** The owner allows or denies events, in the same way as tool calls. */
import { createExecutionContext, createMessageBatch, reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ApprovalEntry, ChannelInboundOutcome, DomainEvent, EventEnvelope } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { composeNativeTools } from "../../../src/app/native-tools.ts";
import worker from "../../../src/app/worker.ts";
import type { SessionNote } from "../../../src/ports/session.ts";
import { channelEntrypoint, client, eventually, fakeSessions, gateway, type Peer, port, seed, silent } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

const KEY = "agent:mail:main";
const DAY = 86_400_000;
let owner: Peer;
let sessions: ReturnType<typeof fakeSessions>;
let sent: EventEnvelope[] = [];
beforeEach(async () => {
  await reset();
  sent = [];
  sessions = fakeSessions();
  await seed();
  vi.spyOn(parts, "channel").mockImplementation(() => undefined);
  vi.spyOn(parts, "channelNames").mockImplementation(() => ["test"]);
  vi.spyOn(parts, "eventQueue").mockImplementation(() => ({ send: async (envelope) => void sent.push(envelope) }));
  owner = await client();
  await owner.ok("config.set", { path: "channels.test.owners", value: ["anna"] });
  await owner.ok("config.set", { path: "channels.test.allowFrom", value: ["guest"] });
  await owner.ok("agents.define", {
    text: "metadata: { id: mail, name: mail }\ncore_context: { system_prompt: Hi }\nevents: { emit: [human_review] }\n",
  });
  await owner.ok("chat.send", { sessionKey: KEY, message: "Refund Anna.", runId: "r1" });
});
afterEach(() => {
  vi.restoreAllMocks();
});
const tools = composeNativeTools(env.STORAGE, { log: silent });
async function deliver(): Promise<void> {
  const batch = createMessageBatch("domain-events", [{ id: "m", timestamp: Date.now(), attempts: 1, body: sent.at(-1) }]);
  await worker.queue(batch, env, createExecutionContext());
}
/** The question about an event that waits. */
async function asked(question = "Refund 49 SEK?\u202e", details: object = {}): Promise<ApprovalEntry> {
  const outcome = await tools.run(
    "emit_event",
    { topic: "human_review", payload: { question, details } },
    {
      identity: { key: KEY, ref: "ref", agentId: "mail", isOwnersSession: true },
      ...{ callId: `c${sent.length}`, runId: "r1", now: Date.now(), userTimezone: "UTC", gateway: port() },
    },
  );
  expect(outcome.ok).toBe(true);
  await deliver();
  const { approvals } = await owner.ok<{ approvals: ApprovalEntry[] }>("approval.list", {});
  const found = approvals.find(({ event }) => event === sent.at(-1)?.id);
  if (found === undefined) throw new Error("there is no question");
  return found;
}
const sql = (statement: string): Promise<unknown[]> =>
  runInDurableObject(gateway(), (_object, state) => state.storage.sql.exec(statement).toArray());
const show = async (id: string | undefined): Promise<DomainEvent> => (await owner.ok<{ event: DomainEvent }>("events.show", { id })).event;
/** The notes about decisions. */
const notes = (): readonly SessionNote[] =>
  sessions
    .of("note")
    .map(({ args }) => args[0] as SessionNote)
    .filter(({ key }) => key.endsWith(":decision"));
let serial = 0;
const write = (sender: string, text: string): Promise<ChannelInboundOutcome> =>
  channelEntrypoint().inbound({
    account: { channel: "test", accountId: "default" },
    inbound: {
      peer: { kind: "dm", id: sender },
      sender: { id: sender },
      message: { id: `m${++serial}`, text, timestamp: Date.now() },
      receivedAt: Date.now(),
    },
  });

describe("[EV7] [EV12] a question about an event", () => {
  test("has a code, is shown whole and with hidden characters as escapes, and is answered with approval.resolve", async () => {
    const entry = await asked();
    expect(entry).toMatchObject({ sessionKey: KEY, agentId: "mail", runId: "r1", tool: "emit_event", rule: "topic human_review" });
    expect(entry.text).toContain("Refund 49 SEK?\\u{202e}");
    expect((await show(entry.event)).code).toBe(entry.code);
    const { notifications } = await owner.ok<{ notifications: { kind: string; text: string }[] }>("notifications.list", {});
    expect(notifications.filter(({ kind, text }) => kind === "approval" && text.includes(`allow ${entry.code}`))).toHaveLength(1);
    expect((await owner.refused("approval.resolve", { code: entry.code, decision: "allow_always" })).reason).toBe("approval.once_only");
    expect((await owner.refused("approval.resolve", { code: entry.code, decision: "allow", hash: "x" })).reason).toBe("approval.not_found");
    const answer = { code: entry.code, decision: "deny", word: "Too much.", hash: entry.hash };
    expect(await owner.ok("approval.resolve", answer)).toMatchObject({ outcome: "denied", event: true });
    expect(await owner.ok("approval.resolve", answer)).toMatchObject({ outcome: "denied", event: true, endedAt: expect.any(Number) });
    expect(await show(entry.event)).toMatchObject({ status: "rejected", decision: "reject", word: "Too much." });
    expect(await show(entry.event)).not.toHaveProperty("code");
    expect(notes()).toMatchObject([{ key: `event:${entry.event}:decision`, forModel: true }]);
    expect(notes()[0]?.text).toMatch(/was rejected by client:\S+ \(token \S+\)\. They said: Too much\.$/);
  });
  test("[A11] shows no stored secret", async () => {
    await owner.ok("config.set", { path: "apiKeys.openai", value: "sk-canary-1234567890abcdef" });
    const question = await asked("Send sk-canary-1234567890abcdef?", { key: "sk-canary-1234567890abcdef" });
    expect(JSON.stringify(question)).not.toContain("sk-canary-1234567890abcdef");
    expect(question.text).toContain("[redact");
  });
  test("is answered in the owner's direct chat alone, also after an eviction", async () => {
    const { code, event } = await asked();
    await write("guest", `allow ${code}`);
    expect((await show(event)).status).toBe("waiting_approval");
    await evict(gateway());
    owner = await client();
    const outcome = await write("anna", `allow ${code}`);
    expect(JSON.stringify(outcome)).toContain(`${code} is approved: the event goes to its handler.`);
    expect(await show(event)).toMatchObject({ status: "queued", decision: "approve", decidedBy: "channel:test/default owner:anna" });
    await deliver();
    expect((await show(event)).status).toBe("done");
    expect(notes()).toHaveLength(1);
    expect(JSON.stringify(await write("anna", `deny ${code}`))).toContain(`${code} was allowed before`);
    await eventually(async () => {
      const { entries } = await owner.ok<{ entries: { action: string; target?: string }[] }>("audit.list", {});
      expect(entries.filter(({ action }) => action === "events.resolve").map(({ target }) => target)).toEqual([event]);
      expect(entries.some(({ action, target }) => action === "approval.resolve" && target === code)).toBe(true);
    });
  });
  test("is answered with the session that it names, also a second time; not with another one", async () => {
    const { code, sessionKey, hash } = await asked();
    const answer = { code, decision: "deny", hash };
    expect((await owner.refused("approval.resolve", { ...answer, sessionKey: "agent:main:main" })).reason).toBe("approval.not_found");
    expect(await owner.ok("approval.resolve", { ...answer, sessionKey })).toMatchObject({ outcome: "denied", event: true });
    expect(await owner.ok("approval.resolve", { ...answer, sessionKey })).toMatchObject({ outcome: "denied", endedAt: expect.any(Number) });
  });
  test("is in the list of the conversation that emitted it, and of no other", async () => {
    const entry = await asked();
    const listed = async (sessionKey: string) =>
      (await owner.ok<{ approvals: { code: string }[] }>("approval.list", { sessionKey })).approvals.map(({ code }) => code);
    expect(await listed(KEY)).toEqual([entry.code]);
    expect(await listed("agent:main:main")).toEqual([]);
    await owner.ok("approval.resolve", { code: entry.code, decision: "deny" });
    expect(await listed(KEY)).toEqual([]);
  });
  test("says what approving and rejecting mean, and ends when its agent is deleted", async () => {
    const entry = await asked();
    expect(entry.why).toMatch(/Approve means yes and reject means no/);
    await owner.ok("agents.delete", { agentId: "mail", sessions: true });
    await eventually(async () => {
      await runDurableObjectAlarm(gateway());
      expect(await show(entry.event)).toMatchObject({ status: "rejected", decidedBy: "the deletion of its agent" });
    });
    expect((await owner.ok<{ approvals: unknown[] }>("approval.list", {})).approvals).toEqual([]);
  });
  test("has the size and the sha256 of a text that is shown in part", async () => {
    const entry = await asked("x".repeat(1000), { text: "y".repeat(9000) });
    expect(entry.textBytes).toBeGreaterThan(9_000);
    expect(entry.text.length).toBeLessThan(entry.textBytes);
    expect(entry.textSha256).toMatch(/^[0-9a-f]{64}$/);
  });
  test("takes no place from a question about a tool call, and any number of them fits the list", async () => {
    await asked("x".repeat(1000), { text: "y".repeat(50_000) });
    const call = {
      ...{ code: "K7Q2A", callId: "ref/r1/1/0", runId: "r1", name: "lap__Bash", target: { kind: "node", nodeId: "lap" } as const },
      ...{ hash: "a".repeat(64), rule: "rule:no-rm", why: "It runs a program.", text: "rm -rf build", bytes: 12 },
      ...{ createdAt: 1, expiresAt: Date.now() + 90 * DAY },
    };
    await port().approvals({ sessionKey: KEY, agentId: "mail", revision: 1, waiting: [call], ended: [] });
    await sql(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
       INSERT INTO approvals(session_key, code, expires_at, entry) SELECT 'event:' || i, code, expires_at, entry FROM approvals, n
       WHERE session_key LIKE 'event:%'`,
    );
    const { approvals } = await owner.ok<{ approvals: ApprovalEntry[] }>("approval.list", {});
    expect(approvals[0]?.code).toBe("K7Q2A");
    expect(approvals).toHaveLength(101);
    await sql("UPDATE approvals SET entry = json_set(entry, '$.text', hex(zeroblob(16000))) WHERE session_key LIKE 'event:%'");
    const fewer = (await owner.ok<{ approvals: ApprovalEntry[] }>("approval.list", {})).approvals;
    expect(fewer[0]?.code).toBe("K7Q2A");
    expect(fewer.length).toBeGreaterThan(20);
    expect(fewer.length).toBeLessThan(40);
  });
  test("that has ended is one of at most 2,000 that are remembered", async () => {
    const { code } = await asked();
    // The alarm, which may fire meanwhile, removes what ended long ago.
    const before = Date.now() - 10_000;
    await sql(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
       INSERT INTO approvals(session_key, code, expires_at, ended_at, outcome) SELECT 'event:' || i, 'ACDEF', 1, ${before} + i, 'denied' FROM n`,
    );
    await owner.ok("approval.resolve", { code, decision: "deny" });
    expect(await sql("SELECT count(*) AS rows, min(ended_at) AS first FROM approvals WHERE ended_at IS NOT NULL")).toEqual([
      { rows: 2000, first: before + 2 },
    ]);
  });
  test("that was answered by the event's id is over", async () => {
    const { code, event } = await asked();
    await owner.ok("events.resolve", { id: event, decision: "approve" });
    expect((await owner.ok<{ approvals: unknown[] }>("approval.list", {})).approvals).toEqual([]);
    expect(await owner.ok("approval.resolve", { code, decision: "deny" })).toMatchObject({ outcome: "allowed", event: true });
    expect((await show(event)).decision).toBe("approve");
  });
  test("that no one answers in 30 days is over, and the event is rejected", async () => {
    const { event } = await asked();
    const later = Date.now() + 30 * DAY + 1;
    vi.spyOn(Date, "now").mockReturnValue(later);
    // An alarm of the time before may be running.
    await eventually(async () => {
      await runDurableObjectAlarm(gateway());
      expect(await show(event)).toMatchObject({ status: "rejected", decidedBy: "no one, in 30 days" });
    });
    expect((await owner.ok<{ approvals: unknown[] }>("approval.list", {})).approvals).toEqual([]);
    await eventually(async () => {
      const { entries } = await owner.ok<{ entries: object[] }>("audit.list", { action: "events.resolve" });
      expect(entries).toMatchObject([{ actor: "no one, in 30 days", target: event, decision: "allowed", detail: "reject" }]);
    });
  });
});
