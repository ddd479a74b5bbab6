/** Limits of money and tokens with real sessions, the real gateway and its ledger. Only the model is made up. */
import { abortAllDurableObjects, reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import { LimitQuestions } from "../../../src/features/approvals/limit-questions.ts";
import { LedgerStore } from "../../../src/features/spend/ledger-store.ts";
import { wiring } from "../../../src/app/session-wiring.ts";
import type { ModelOutcome, ModelRequest } from "../../../src/ports/model.ts";
import type { Origin } from "../../../src/ports/origin.ts";
import { RunContexts } from "../../../src/session/run-context.ts";
import { client, gateway, type Peer, seed } from "../../support/gateway.ts";
import { says, until } from "../../session/support.ts";
import { evict } from "../../support/evict.ts";

/** Model calls since the test began, and how each is answered. */
const calls: ModelRequest[] = [];
let answer: (request: ModelRequest) => ModelOutcome | Promise<ModelOutcome>;
/** $0.10 of output at most, and $0.10 in fact. */
const PRICE = { input: 0, output: 100 };
const COST = 0.1;
const used = (outcome: ModelOutcome, costUsd?: number): ModelOutcome =>
  outcome.kind === "replied"
    ? { ...outcome, usage: { input: 900, output: 1_000, total: 1_900, ...(costUsd === undefined ? {} : { costUsd }) } }
    : outcome;

let peer: Peer;
beforeEach(async () => {
  calls.length = 0;
  answer = () => used(says("fine"), COST);
  const real = wiring.createSessionParts;
  vi.spyOn(wiring, "createSessionParts").mockImplementation((...given) => ({
    ...real(...given),
    model: {
      takesImages: () => false,
      refusal: () => undefined,
      call: async (request) => {
        calls.push(request);
        return answer(request);
      },
    },
  }));
  await seed();
  peer = await client();
  await server(PRICE);
  await set("model.provider", "own");
  await set("model.id", "m");
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await reset();
});

const set = (path: string, value: unknown) => peer.ok("config.set", { path, value });
const server = (price?: object) =>
  set("providers.own", { baseUrl: "http://127.0.0.1:1/v1", wire: "openai-completions", maxTokens: 1_000, ...(price ? { price } : {}) });
const usage = (params: object = {}) => peer.ok<ResultOf<"usage.get">>("usage.get", params);
const OWN = "agent:main:cli:dm:spend";
let serial = 0;
interface End {
  readonly state: string;
  readonly reason?: string;
  readonly error?: string;
  readonly text?: string;
  readonly approvalId?: string;
}
/** Sends a message and gives the last event of its run. The question about a limit is denied. */
async function say(sessionKey = OWN, message = "go on"): Promise<End> {
  const { runId, end } = await asks(sessionKey, message);
  if (end.state !== "paused") return end;
  await resolve(end, "deny");
  return event(runId, ["error"]);
}
/** Sends a message and waits for the end of its run, or for its question. */
async function asks(sessionKey = OWN, message = "go on"): Promise<{ readonly runId: string; readonly end: End }> {
  const runId = `run-${++serial}`;
  await peer.ok("chat.send", { sessionKey, message, messageId: runId, runId });
  return { runId, end: await event(runId, ["final", "error", "paused"]) };
}
const event = async (runId: string, states: readonly string[]): Promise<End> =>
  (await peer.event("chat", (payload) => payload["runId"] === runId && states.includes(String(payload["state"]))))
    .payload as unknown as End;
const openQuestions = async () =>
  (await peer.ok<ResultOf<"approval.list">>("approval.list", {})).approvals.map(({ code }) => code as string);
const resolve = ({ approvalId }: End, decision: "allow" | "deny") =>
  until("the answer to be taken", () => peer.ok("approval.resolve", { code: approvalId, decision }).catch(() => undefined));
const session = (key = OWN) => env.SESSION.getByName(key);
/** A message of a guest, as a channel's hub hands it over. */
const guestSays = (senderId: string, key = `agent:main:test:dm:${senderId}`) => {
  const runId = `guest-${++serial}`;
  const origin: Origin = { kind: "channel", channel: "test", accountId: "a", senderId, role: "guest" };
  const identity = { key, ref: `ref${senderId}`, agentId: "main", isOwnersSession: false };
  return session(key)
    .send({ identity, messageId: runId, runId, text: "hello", origin })
    .then(() => until("the run of the guest to end", async () => ended(await session(key).runEnd(runId))));
};
const ended = (end: Awaited<ReturnType<ReturnType<typeof session>["runEnd"]>>) =>
  end.state === "running" || end.state === "queued" ? undefined : end;
const notes = async (key: string): Promise<readonly string[]> => {
  const { events } = await peer.ok<{ events: { payload: { kind?: string; text?: string; state?: string } }[] }>("session.subscribe", {
    sessionKey: key,
    afterSeq: 0,
  });
  return events.flatMap(({ payload }) => (payload.text === undefined ? [] : [payload.text]));
};

describe("[SP3] [SP5] [F17] [T6] the limit of a day", () => {
  it("stops the next call, says what to do, and nothing more is spent", async () => {
    await set("limits.dayCostUsd", 0.25);
    expect((await say()).state).toBe("final");
    expect((await say("agent:main:cli:dm:other")).state).toBe("final");
    const end = await say();
    expect(end).toMatchObject({ state: "error", reason: "budget.day" });
    expect(end.error).toMatch(/\$0\.20 of \$0\.25 are used.*`gsv config set limits\.dayCostUsd 1`, or wait until 00:00 \(UTC\)/);
    expect(await say("agent:main:cli:dm:third")).toMatchObject({ reason: "budget.day" });
    expect(calls).toHaveLength(2);
    const { total, caps, attention } = await usage();
    expect(total).toMatchObject({ calls: 2, costUsd: 0.2 });
    expect(caps).toContainEqual({ setting: "limits.dayCostUsd", used: 0.2, reserved: 0, limit: 0.25 });
    expect(attention).toEqual([expect.stringMatching(/^Today's limit is nearly used up: \$0\.20 of \$0\.25, 80 %/)]);
  });
  it("goes on at once when it is raised", async () => {
    await set("limits.dayCostUsd", 0.1);
    await say();
    expect((await say()).state).toBe("error");
    await set("limits.dayCostUsd", 1);
    expect((await say()).state).toBe("final");
  });
  it("counts from zero on the next day of the owner's zone; the month goes on counting", async () => {
    await set("userTimezone", "Europe/Berlin");
    vi.useFakeTimers({ now: Date.parse("2099-11-29T22:50:00Z"), toFake: ["Date"] });
    await set("limits.dayCostUsd", 0.1);
    await set("limits.monthCostUsd", 0.3);
    await set("session.defaultResetPolicy", { mode: "manual" });
    await say();
    expect(await say()).toMatchObject({ reason: "budget.day" });
    vi.setSystemTime(Date.parse("2099-11-29T23:00:00Z"));
    expect(await say()).toMatchObject({ state: "final" });
    expect((await usage()).rows.map(({ key, calls: count }) => [key, count])).toEqual([
      ["2099-11-29", 1],
      ["2099-11-30", 1],
    ]);
    vi.setSystemTime(Date.parse("2099-11-30T22:00:00Z"));
    await set("limits.dayCostUsd", 10);
    expect((await say()).state).toBe("final");
    expect(await say()).toMatchObject({ reason: "budget.month" });
    vi.setSystemTime(Date.parse("2099-11-30T23:00:00Z"));
    expect((await say()).state, "December has begun in Berlin").toBe("final");
  });
  it("counts tokens of a model without a price", async () => {
    await server();
    answer = () => used(says("fine"));
    await set("limits.dayTokens", 60_000);
    let made = 0;
    while ((await say()).state === "final") made++;
    const { total, caps } = await usage();
    expect(made).toBeGreaterThan(0);
    expect(calls).toHaveLength(made);
    expect(total).toMatchObject({ calls: made, costUsd: 0, unpricedTokens: made * 1_900 });
    const cap = caps.find(({ setting }) => setting === "limits.dayTokens");
    expect(cap?.used).toBeLessThanOrEqual(60_000);
  });
  it("holds for summaries too", async () => {
    await set("limits.dayCostUsd", 0.25);
    await say();
    await say();
    const { summarized } = await peer.ok<{ summarized: boolean }>("session.compact", { sessionKey: OWN });
    expect(summarized).toBe(false);
    expect(calls).toHaveLength(2);
  });
  it("holds for sessions that ask at the same time", async () => {
    await set("limits.dayCostUsd", 0.35);
    const ends = await Promise.all(Array.from({ length: 8 }, (_, index) => say(`agent:main:cli:dm:at-once-${index}`)));
    expect(ends.filter(({ state }) => state === "final").length).toBe(calls.length);
    expect(calls.length).toBeGreaterThan(0);
    expect(calls.length).toBeLessThanOrEqual(3);
  });
});

describe("[SP7] [F17] guests", () => {
  it("one message can't make fifty calls past the guest's limit; the guest is told politely, the owner once", async () => {
    await set("limits.guestDayCostUsd", 0.35);
    await set("limits.runCostUsd", 100);
    answer = (request) => used(says("", [{ name: "gsv__Nope", arguments: { n: request.messages.length } }]), COST);
    const end = await guestSays("7");
    expect(calls).toHaveLength(3);
    expect(end).toMatchObject({ state: "error", error: "I can't answer any more today. Please write again tomorrow." });
    expect(await guestSays("7")).toMatchObject({ state: "error" });
    expect(calls).toHaveLength(3);
    answer = () => used(says("fine"), COST);
    expect(await guestSays("8"), "another guest").toMatchObject({ state: "final" });
    expect((await say()).state, "the owner").toBe("final");
    await runDurableObjectAlarm(gateway());
    const main = await notes("agent:main:main");
    expect(main.filter((text) => text.includes('The limit of the guest "test:a:7"'))).toHaveLength(1);
    expect((await usage()).attention).toContainEqual(expect.stringContaining('guest "test:a:7" for today'));
    const { rows } = await usage({ by: "guest" });
    expect(rows.map(({ key, calls: count }) => [key, count])).toEqual([
      ["test:a:7", 3],
      ["", 1],
      ["test:a:8", 1],
    ]);
  });
  it("all of them together have a limit, which leaves the owner's rest alone", async () => {
    await set("limits.guestsDayCostUsd", 0.15);
    expect(await guestSays("1")).toMatchObject({ state: "final" });
    expect(await guestSays("2")).toMatchObject({ state: "error" });
    expect((await say()).state).toBe("final");
  });
});

describe("[SP2] a crash between setting aside, calling and settling", () => {
  const counts = async () => (await usage()).total.calls;
  it("of the session after the answer: the call is counted once", async () => {
    await say();
    await evict(session());
    expect(await counts()).toBe(1);
    await evict(session());
    await say();
    expect(await counts()).toBe(2);
    expect(await counts()).toBe(2);
  });
  it("of the gateway: a report that comes again, late or with more in it is counted once", async () => {
    const sum = { day: "2026-11-22", model: "p/m", input: 1, output: 1, cacheRead: 0, cacheWrite: 0, tokens: 0 };
    const of = (count: number) => [{ ...sum, calls: count, costUsd: count * COST }];
    const spender = { session: "s", agent: "main" };
    // Each line is another incarnation of the gateway: it knows what is in the rows, and nothing else.
    const record = (base: number, count: number, sums = of(count - base)) =>
      runInDurableObject(gateway(), (_gateway, { storage }) => new LedgerStore(storage).record(spender, { base, count, sums }));
    const total = () => runInDurableObject(gateway(), (_gateway, { storage }) => new LedgerStore(storage).total("2026-01-01"));
    expect(await record(0, 2)).toBe(true);
    // The answer was lost, so the session says it again, then with a call more.
    expect(await record(0, 2)).toBe(false);
    expect(await record(0, 3)).toBe(true);
    expect((await total()).calls).toBe(3);
    // The session has learnt that three are settled; an older report comes late.
    expect(await record(3, 4)).toBe(true);
    expect(await record(0, 3)).toBe(false);
    expect(await record(3, 5)).toBe(true);
    expect(await total()).toMatchObject({ calls: 5 });
    expect((await total()).costUsd).toBeCloseTo(5 * COST);
  });
  it("of everything during the call: what was set aside ends, and the repeated call counts once", async () => {
    await set("limits.dayCostUsd", 0.15);
    let hang = true;
    answer = () => (hang ? new Promise<never>(() => {}) : used(says("fine"), COST));
    await peer.ok("chat.send", { sessionKey: OWN, message: "hello", messageId: "hanging", runId: "hanging" });
    await until("the call to begin", () => calls.length === 1);
    const cap = async () => (await usage()).caps.find(({ setting }) => setting === "limits.dayCostUsd");
    expect((await cap())?.reserved).toBeCloseTo(COST);
    for (const object of [session(), gateway()]) await runInDurableObject(object, (_object, { storage }) => storage.sync());
    hang = false;
    await abortAllDurableObjects();
    peer = await client();
    expect(await until("the run to end", async () => ended(await session().runEnd("hanging")))).toMatchObject({ state: "final" });
    expect(calls).toHaveLength(2);
    expect((await usage()).total).toMatchObject({ calls: 1, costUsd: COST });
    expect(await cap()).toMatchObject({ used: COST, reserved: 0 });
  });
  it("a call that is stopped counts as estimated", async () => {
    answer = (request) => {
      request.onText("x".repeat(400));
      return new Promise<never>(() => {});
    };
    await peer.ok("chat.send", { sessionKey: OWN, message: "hello", messageId: "stopped", runId: "stopped" });
    await until("the call to begin", () => calls.length === 1);
    await peer.ok("chat.abort", { sessionKey: OWN });
    await until("the stopped call to be counted", async () => (await usage()).total.calls === 1);
    expect((await usage()).total.output).toBe(120);
  });
  it("[SP1] the lease of a grant ends it: the alarm asks the session, and nothing stays set aside", async () => {
    await say();
    const grants = () =>
      runInDurableObject(gateway(), (_gateway, state) => state.storage.sql.exec("SELECT session, until FROM spend_grants").toArray());
    expect(await grants()).toHaveLength(1);
    vi.useFakeTimers({ now: Date.now() + 130_000, toFake: ["Date"] });
    await runDurableObjectAlarm(gateway());
    expect(await grants()).toEqual([]);
    const rows = await runInDurableObject(gateway(), (_gateway, state) =>
      state.storage.sql.exec("SELECT calls FROM spend_usage").toArray(),
    );
    expect(rows).toEqual([{ calls: 1 }]);
  });
});

describe("[SP6] a word to the owner", () => {
  it("comes once at 80 % of a limit, in the conversation that spent it", async () => {
    await set("limits.dayCostUsd", 0.5);
    for (let message = 0; message < 4; message++) await say();
    expect((await say("agent:main:cli:dm:other")).state).toBe("final");
    await usage();
    await say("agent:main:cli:dm:other");
    await runDurableObjectAlarm(gateway());
    await runDurableObjectAlarm(gateway());
    const all = [...(await notes(OWN)), ...(await notes("agent:main:cli:dm:other"))].filter((text) =>
      /nearly used up|is reached: .*%/.test(text),
    );
    expect(all).toHaveLength(1);
    expect(all[0]).toMatch(/^Today's limit is (nearly used up|reached): \$0\.[45]0 of \$0\.50/);
  });
});

describe("[SP8] usage.get", () => {
  it("shows the calls that ended a moment ago, by day, agent, session, model and guest", async () => {
    await say();
    await say("agent:main:cli:dm:other");
    const today = new Date().toISOString().slice(0, 10);
    for (const [by, keys] of [
      ["day", [today]],
      ["agent", ["main"]],
      ["session", ["agent:main:cli:dm:other", OWN]],
      ["model", ["own/m"]],
      ["guest", [""]],
    ] as const) {
      const { rows } = await usage({ by });
      expect(rows.map(({ key }) => key)).toEqual(keys);
      expect(rows.reduce((sum, { costUsd }) => sum + costUsd, 0)).toBeCloseTo(2 * COST);
    }
    expect(await usage({ days: 1 })).toMatchObject({ from: today, today, timeZone: "UTC", more: false });
  });
  it("counts nothing for the demo", async () => {
    await set("model.provider", "demo");
    await set("model.id", "demo");
    await say();
    expect((await usage()).total.calls).toBe(0);
  });
});

describe("[SP10] [K12] the owner allows more than a limit", () => {
  it("of the day: the run goes on, and the raise counts once, also after the objects died", async () => {
    await set("limits.dayCostUsd", 0.25);
    await say();
    await say();
    const { runId, end } = await asks();
    expect(end.text).toMatch(
      /^The run is paused\. Today's limit leaves too little for the next model call: it may cost up to \$0\.\d+, and \$0\.20 of \$0\.25 are used.*\(limits\.dayCostUsd\)\n\| Continue with another \$0\.25 today\?/,
    );
    expect((await peer.ok<ResultOf<"approval.list">>("approval.list", {})).approvals).toMatchObject([
      { code: end.approvalId, limit: true, tool: "limit", rule: "limits.dayCostUsd", text: "Continue with another $0.25 today?" },
    ]);
    await abortAllDurableObjects();
    peer = await client();
    await peer.ok("session.subscribe", { sessionKey: OWN });
    await resolve(end, "allow");
    await event(runId, ["final"]);
    expect(calls).toHaveLength(3);
    const raised = { setting: "limits.dayCostUsd", used: 0.3, reserved: 0, limit: 0.5, allowed: 0.25 };
    expect((await usage()).caps).toContainEqual(expect.objectContaining({ ...raised, used: expect.closeTo(0.3) }));
    // Another conversation has the same day, and the raise is no one's own.
    expect((await say("agent:main:cli:dm:other")).state).toBe("final");
    expect((await usage()).caps).toContainEqual(expect.objectContaining({ ...raised, used: expect.closeTo(0.4) }));
    // A lowered limit does not take back what was allowed, and is not shown as another one.
    await set("limits.dayCostUsd", 0);
    expect((await say()).error).toMatch(
      /^Today's limit is reached: \$0\.40 were used; the limit is \$0\.25 \(\$0\.00 set \+ \$0\.25 that you allowed today\),/,
    );
  });
  it("once for each answer, and until the period ends", async () => {
    const spender = { session: "s", agent: "main", guest: "" };
    const raise = { id: "limit/1", scope: "agent", unit: "costUsd", period: "2026-11-22", amount: 1 } as const;
    const raised = (today: string, of = spender) =>
      runInDurableObject(gateway(), (_gateway, { storage }) => {
        const store = new LedgerStore(storage);
        store.raise(raise, spender);
        return store.raised("agent", of, today).costUsd;
      });
    expect(await raised("2026-11-22")).toBe(1);
    expect(await raised("2026-11-22")).toBe(1);
    expect(await raised("2026-11-23")).toBe(0);
    expect(await raised("2026-11-22", { ...spender, agent: "other" })).toBe(0);
  });
  it("of the run: its own limit once more", async () => {
    await set("limits.runCostUsd", 0.1);
    answer = () => used(says("", [{ name: "gsv__Nope", arguments: {} }]), COST);
    const { runId, end } = await asks();
    expect(end).toMatchObject({ state: "paused", limit: true });
    answer = () => used(says("done"), COST);
    await resolve(end, "allow");
    expect(await event(runId, ["final"])).toMatchObject({ state: "final" });
    expect(calls).toHaveLength(2);
  });
  it("by the setting: when the limit is raised, the paused run goes on by itself and its question is over", async () => {
    await set("limits.dayCostUsd", 0.05);
    const { runId, end } = await asks();
    expect(end).toMatchObject({ state: "paused", limit: true });
    await set("limits.dayCostUsd", 0.06);
    await runDurableObjectAlarm(gateway());
    expect(await openQuestions(), "it is still too little").toEqual([end.approvalId]);
    await set("limits.dayCostUsd", 10);
    await runDurableObjectAlarm(gateway());
    expect(await event(runId, ["final", "error"])).toMatchObject({ state: "final" });
    expect(calls).toHaveLength(1);
    // A run that had gone on at 0.06 would have paused again.
    expect((await notes(OWN)).filter((text) => text.startsWith("The run is paused."))).toHaveLength(1);
    await until("the question to be over", async () => (await openQuestions()).length === 0 || undefined);
  });
  it("by the end of the day: the paused run goes on by itself when the day's limit counts from zero again", async () => {
    await set("userTimezone", "Europe/Berlin");
    vi.useFakeTimers({ now: Date.parse("2099-11-29T22:50:00Z"), toFake: ["Date"] });
    await set("limits.dayCostUsd", 0.15);
    await set("session.defaultResetPolicy", { mode: "manual" });
    await say();
    const { runId, end } = await asks();
    expect(end).toMatchObject({ state: "paused", limit: true });
    await runDurableObjectAlarm(gateway());
    vi.setSystemTime(Date.parse("2099-11-29T22:59:59Z"));
    await runDurableObjectAlarm(gateway());
    expect(await openQuestions()).toEqual([end.approvalId]);
    vi.setSystemTime(Date.parse("2099-11-29T23:00:00Z"));
    await runDurableObjectAlarm(gateway());
    expect(await event(runId, ["final", "error"])).toMatchObject({ state: "final" });
    expect(calls).toHaveLength(2);
  });
  it("by the setting of a run: a message ends no run whose limit was raised, and is answered after it", async () => {
    await set("limits.runCostUsd", 0.05);
    const { runId, end } = await asks();
    expect(end).toMatchObject({ state: "paused", limit: true });
    // As if the gateway had not told the session yet.
    vi.spyOn(LimitQuestions.prototype, "run").mockResolvedValue();
    await set("limits.runCostUsd", 5);
    const next = await asks(OWN, "and this");
    expect(next.end).toMatchObject({ state: "final" });
    expect(await event(runId, ["final", "error"])).toMatchObject({ state: "final" });
    expect(calls).toHaveLength(2);
  });
  it("by the setting, while the run goes on: the next step is decided by the current limits", async () => {
    await set("limits.stepsPerRun", 1);
    let isRaised = false;
    answer = async () => {
      while (!isRaised) await scheduler.wait(2);
      answer = () => used(says("done"), COST);
      return used(says("", [{ name: "gsv__Nope", arguments: {} }]), COST);
    };
    const run = asks();
    await until("the model to be called", () => calls.length > 0);
    await set("limits.stepsPerRun", 50);
    isRaised = true;
    expect((await run).end).toMatchObject({ state: "final" });
    expect(calls).toHaveLength(2);
    expect((await notes(OWN)).filter((text) => text.startsWith("The run is paused."))).toEqual([]);
  });
  it("by the price: when the model costs less, the paused run goes on by itself", async () => {
    await set("limits.dayCostUsd", 0.05);
    const { runId, end } = await asks();
    expect(end).toMatchObject({ state: "paused", limit: true });
    await server({ input: 0, output: 90 });
    await runDurableObjectAlarm(gateway());
    expect(await openQuestions(), "it is still too much").toEqual([end.approvalId]);
    await server({ input: 0, output: 1 });
    await runDurableObjectAlarm(gateway());
    expect(await event(runId, ["final", "error"])).toMatchObject({ state: "final" });
    expect(calls).toHaveLength(1);
  });
  it("by another model: when the conversation's own costs nothing, the paused run goes on by itself", async () => {
    await set("limits.dayCostUsd", 0.05);
    const { runId, end } = await asks();
    expect(end).toMatchObject({ state: "paused", limit: true });
    await peer.ok("session.patch", { sessionKey: OWN, settings: { thinkingLevel: "low" } });
    expect(await openQuestions(), "no other model").toEqual([end.approvalId]);
    await peer.ok("session.patch", { sessionKey: OWN, settings: { model: { provider: "demo", id: "demo" } } });
    expect(await event(runId, ["final", "error"])).toMatchObject({ state: "final" });
    expect(calls.map(({ model }) => model.provider)).toEqual(["demo"]);
  });
  it("by another model, also when the session's first look at the limits fails, and its instance ends", async () => {
    await set("limits.dayCostUsd", 0.05);
    const { runId, end } = await asks();
    expect(end).toMatchObject({ state: "paused", limit: true });
    await runDurableObjectAlarm(gateway());
    const look = vi.spyOn(RunContexts.prototype, "current").mockRejectedValueOnce(new Error("the gateway does not answer"));
    await peer.ok("session.patch", { sessionKey: OWN, settings: { model: { provider: "demo", id: "demo" } } });
    await until("a look that fails", () => look.mock.results.length > 0);
    await evict(session());
    await until("another look", async () => {
      await runDurableObjectAlarm(gateway());
      return look.mock.results.length > 1;
    });
    expect(await event(runId, ["final", "error"])).toMatchObject({ state: "final" });
  });
  it("by the agent's definition: when its limit is raised, the paused run goes on by itself", async () => {
    const define = (steps: number) =>
      peer.ok("agents.define", {
        text: `metadata: {id: sorter, name: sorter}\ncore_context: {system_prompt: You sort.}\nautonomy: {max_iterations: ${steps}}\n`,
      });
    await define(1);
    answer = () => used(says("", [{ name: "gsv__Nope", arguments: {} }]), COST);
    const { runId, end } = await asks("agent:sorter:cli:dm:spend");
    expect(end).toMatchObject({ state: "paused", limit: true });
    answer = () => used(says("done"), COST);
    await runDurableObjectAlarm(gateway());
    await define(9);
    // No alarm by hand: the definition has set it.
    expect(await event(runId, ["final", "error"])).toMatchObject({ state: "final" });
    expect(calls).toHaveLength(2);
  });
  it("never for a guest, whose run ends", async () => {
    await set("limits.guestDayCostUsd", 0);
    expect(await guestSays("77")).toMatchObject({ state: "error" });
    expect((await peer.ok<ResultOf<"approval.list">>("approval.list", {})).approvals).toEqual([]);
  });
});
