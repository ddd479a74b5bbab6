/** Calls that wait for the owner's word, in a real object that is evicted at each border. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { asCallId, asNodeId } from "../../../protocol/gen/types.ts";
import type { WaitingQuestion } from "../../src/ports/approvals.ts";
import { newSession, onNode, says, Stage, type TestSession, until, value } from "./support.ts";
import { evict } from "../support/evict.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});
const ASK = {
  rule: "rule:all",
  why: "The owner's rule all asks about it. It may reach every host. It can be allowed once only: the conversation is another person's.",
};
const LAP = { nodeId: asNodeId("lap"), online: true, hostCapabilities: [], toolCapabilities: {}, tools: ["Bash"] };
function stage(): Stage {
  const made = new Stage().open();
  made.tools = [onNode("lap", "Bash")];
  made.toolApproval = { rules: [{ id: "all", tool: "*", decision: "ask" }] };
  return made;
}
const question = (s: Stage): Promise<WaitingQuestion> => until("the question", () => s.approvals.at(-1)?.waiting[0]);
async function paused(on: Stage): Promise<{ s: TestSession; asked: WaitingQuestion }> {
  const s = newSession();
  await s.send("a");
  (await on.call(0)).answer(says("", [{ name: "lap__Bash", arguments: { command: "rm -rf /tmp/x\u202e" } }]));
  const asked = await question(on);
  // The fake gateway has no output gate: an answer of the object proves that its commit is stored.
  expect(value(await s.port.stats()).state).toBe("acting");
  return { s, asked };
}
const allow = (s: TestSession, { code, hash }: WaitingQuestion) => s.port.answerApproval({ code, hash, answer: "allow", by: "client:me" });
async function finish(on: Stage, s: TestSession): Promise<void> {
  const [call] = on.dispatches;
  await s.port.toolResult("lap", { callId: asCallId(call?.callId ?? ""), outcome: "ok", result: "gone" });
  (await on.call(1)).answer(says("done"));
  await on.ended("run-a");
}

describe("a question", () => {
  it("[AP1] [AP9] [AP16] [S13] is reported with everything that the call will do, and the run waits", async () => {
    const on = stage();
    const { s, asked } = await paused(on);
    expect(asked).toMatchObject({ ...ASK, name: "lap__Bash", target: { kind: "node", nodeId: "lap" }, text: "rm -rf /tmp/x\\u{202e}" });
    expect(asked.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(on.dispatches).toEqual([]);
    expect(value(await s.port.stats())).toMatchObject({ state: "acting", questions: [asked.code] });
    expect(value(await s.port.get()).questions).toEqual([asked.code]);
    expect(value(await s.port.story({})).questions).toEqual([asked.code]);
    const shown = on.news.flatMap(({ payload }) => ("state" in payload && payload.state === "paused" ? [payload] : []));
    expect(shown).toMatchObject([{ approvalId: asked.code, callId: asked.callId }]);
  });
  it("[P-43] [K11] [P15] after an eviction it waits with the same code, and one answer runs the call once", async () => {
    const on = stage();
    const { s, asked } = await paused(on);
    await evict(s.stub);
    await s.port.resume();
    expect(on.approvals.at(-1)?.waiting.map(({ code }) => code)).toEqual([asked.code]);
    expect(value(await allow(s, asked))).toMatchObject({ outcome: "allowed", by: "client:me" });
    await until("the call", () => on.dispatches.length > 0);
    await finish(on, s);
    expect(on.dispatches).toHaveLength(1);
  });
  it("[P-43] [K12] [P15] an eviction right after the answer: the call is handed over, and a repeated answer gets the same result", async () => {
    const on = stage();
    const { s, asked } = await paused(on);
    const first = value(await allow(s, asked));
    await until("the first hand-over", () => on.dispatches.length > 0);
    await evict(s.stub);
    await s.port.resume();
    await until("the call again", () => on.dispatches.length === 2);
    expect(new Set(on.dispatches.map(({ callId }) => callId)).size).toBe(1);
    expect(value(await allow(s, asked))).toEqual({ ...first, endedAt: expect.any(Number) });
    await finish(on, s);
    expect(on.dispatches).toHaveLength(2);
  });
  it("[P-20] [AP5] [P15] no one answers: the alarm of the sleeping session denies the call", async () => {
    const on = stage();
    const { s, asked } = await paused(on);
    // The alarm of the work that asked the question comes first, and sets the one for the question's end.
    const began = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: began + LIMITS.leaseMs + 1_000 });
    await runDurableObjectAlarm(s.stub);
    vi.setSystemTime(began + LIMITS.approvalMs + LIMITS.leaseMs);
    const ringing = runDurableObjectAlarm(s.stub);
    const next = await on.call(1);
    const { request } = next;
    expect(JSON.stringify(request.messages.at(-1))).toContain("no one answered within 30 minutes");
    expect(value(await allow(s, asked))).toEqual({ outcome: "expired", endedAt: expect.any(Number) });
    next.answer(says("done"));
    await ringing;
    expect(on.dispatches).toEqual([]);
  });
  it("[P-13] [P-36] [AP6] [S13] the policy has changed: the allowance is void, and the call is asked about with a new code", async () => {
    const on = stage();
    const { s, asked } = await paused(on);
    on.toolApproval = { defaultDecision: "ask" };
    const taken = value(await allow(s, asked));
    expect(taken).toMatchObject({ outcome: "asked_again" });
    const second = await until("the new question", () => on.approvals.at(-1)?.waiting.find(({ code }) => code === taken.again));
    expect(second.hash).not.toBe(asked.hash);
    expect(on.dispatches).toEqual([]);
    // The old code has had its answer, and no other comes of it.
    expect(value(await allow(s, asked))).toEqual({ ...taken, endedAt: expect.any(Number) });
    expect(on.dispatches).toEqual([]);
    expect(value(await allow(s, second))).toMatchObject({ outcome: "allowed" });
    await until("the call", () => on.dispatches.length > 0);
  });
  it("[P-38] [AP6] [S13] the machine has another sandbox than when it was asked: the allowance is void", async () => {
    const on = stage();
    on.nodes = [{ ...LAP, sandbox: { profile: "workspace", tier: "bubblewrap" } }];
    const { s, asked } = await paused(on);
    on.nodes = [{ ...LAP, sandbox: { profile: "off" } }];
    expect(value(await allow(s, asked))).toMatchObject({ outcome: "asked_again" });
    expect(on.dispatches).toEqual([]);
  });
  it("[AP6] [GR2] the machine works in another folder than when it was asked: the allowance is void", async () => {
    const on = stage();
    on.nodes = [{ ...LAP, workspace: "/home/me/a" }];
    const { s, asked } = await paused(on);
    on.nodes = [{ ...LAP, workspace: "/home/me/b" }];
    expect(value(await allow(s, asked))).toMatchObject({ outcome: "asked_again" });
    expect(on.dispatches).toEqual([]);
  });
  it("[P-14] [P-16] [AP4] a code of another conversation, and another hash, change nothing", async () => {
    const on = stage();
    const { s, asked } = await paused(on);
    const other = newSession();
    await other.send("b");
    expect(await allow(other, asked)).toMatchObject({ ok: false, error: { reason: "approval.not_found" } });
    expect(await s.port.answerApproval({ code: asked.code, hash: "0".repeat(64), answer: "allow", by: "x" })).toMatchObject({ ok: false });
    expect(on.dispatches).toEqual([]);
  });
});
