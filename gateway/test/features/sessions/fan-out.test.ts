import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { asRunId, asSessionKey, type PolicyMode } from "../../../../protocol/gen/types.ts";
import type { SessionNews } from "../../../src/ports/gateway.ts";
import type { SessionPort } from "../../../src/ports/session.ts";
import { ADMIN, client, fakeSessions, gateway, last, open, type Peer, port, seed, until } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

const MAIN = "agent:main:main";
const log = (seq: number, sessionKey = MAIN): SessionNews => ({
  event: "chat",
  payload: { sessionKey: asSessionKey(sessionKey), state: "partial", message: { role: "assistant", content: [] }, sessionSeq: seq },
});
const delta = (text: string, offset: number, step = 1, attempt = 1): SessionNews => ({
  event: "chat",
  payload: { sessionKey: asSessionKey(MAIN), state: "delta", runId: asRunId("r"), text, offset, step, attempt },
});
/** The values of one field in the frames that a peer received. */
const fieldsOf = (peer: Peer, name: "sessionSeq" | "text"): unknown[] =>
  peer
    .events()
    .flatMap(({ payload }) => (payload !== null && typeof payload === "object" && name in payload ? [Reflect.get(payload, name)] : []));
const seqs = (peer: Peer): unknown[] => fieldsOf(peer, "sessionSeq");
/** When this arrives, every earlier event has arrived. */
const settle = async (peer: Peer): Promise<void> => void (await peer.ok("sessions.list"));

beforeEach(async () => {
  await reset();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("[C5] only subscribers of the session get its events", () => {
  test("chat.send subscribes by the canonical key, whatever was written", async () => {
    const { of } = fakeSessions();
    const [sender, other, bystander] = [await client(), await client(), await client()];
    await sender.ok("chat.send", { sessionKey: "main", message: "hi" });
    await other.ok("chat.send", { sessionKey: "agent:main:cli:dm:main", message: "hi" });
    expect(of("send").map(({ key }) => key)).toEqual([MAIN, "agent:main:cli:dm:main"]);
    await gateway().publish(MAIN, [log(1), log(2)]);
    for (const peer of [sender, other, bystander]) await settle(peer);
    expect(seqs(sender)).toEqual([1, 2]);
    expect(seqs(other)).toEqual([]);
    expect(seqs(bystander)).toEqual([]);
  });

  test("subscribe and unsubscribe", async () => {
    fakeSessions();
    const peer = await client();
    expect(await peer.ok("session.subscribe", { sessionKey: "main" })).toMatchObject({
      sessionKey: MAIN,
      seq: 0,
      events: [],
      state: "idle",
    });
    await gateway().publish(MAIN, [log(1)]);
    await peer.ok("session.unsubscribe", { sessionKey: MAIN });
    await gateway().publish(MAIN, [log(2)]);
    await settle(peer);
    expect(seqs(peer)).toEqual([1]);
  });

  test("[W20] following an empty session creates nothing", async () => {
    const { asked } = fakeSessions();
    const peer = await client();
    await peer.ok("session.subscribe", { sessionKey: "agent:main:cli:dm:new" });
    expect(asked).toEqual([]);
    expect(await peer.ok("sessions.list")).toEqual({ sessions: [], count: 0 });
    expect((await peer.refused("session.get", { sessionKey: "main" })).reason).toBe("session.not_found");
    expect((await peer.refused("chat.abort", { sessionKey: "main" })).reason).toBe("session.not_found");
    expect(asked).toEqual([]);
  });

  test("a refused message leaves no subscription", async () => {
    fakeSessions(() => ({ send: async () => ({ ok: false, error: { reason: "session.queue_full", message: "Too many." } }) }));
    const peer = await client();
    expect((await peer.refused("chat.send", { sessionKey: "main", message: "hi" })).reason).toBe("session.queue_full");
    await gateway().publish(MAIN, [log(1)]);
    await settle(peer);
    expect(peer.events()).toEqual([]);
  });

  test("[P19] a connection follows at most 64 sessions", async () => {
    fakeSessions();
    const peer = await client();
    for (let at = 0; at < 64; at++) await peer.ok("session.subscribe", { sessionKey: `agent:main:cli:dm:s${at}` });
    expect((await peer.refused("session.subscribe", { sessionKey: "main" })).reason).toBe("limit.rate");
    expect((await peer.refused("chat.send", { sessionKey: "main", message: "hi" })).reason).toBe("limit.rate");
    await peer.ok("session.unsubscribe", { sessionKey: "agent:main:cli:dm:s0" });
    await peer.ok("session.subscribe", { sessionKey: "main" });
  });
});

describe("[C8][CT13] thoughts", () => {
  const thought = (text: string): SessionNews => ({
    event: "chat",
    payload: { sessionKey: asSessionKey(MAIN), state: "thinking", runId: asRunId("r"), text, offset: 0, step: 1, attempt: 1 },
  });
  test("reach only the connections that asked, until they no longer ask", async () => {
    const { of } = fakeSessions();
    const [asks, follows, subscribes] = [await client(), await client(), await client()];
    await asks.ok("chat.send", { sessionKey: "main", message: "hi", thinking: true });
    await follows.ok("chat.send", { sessionKey: "main", message: "hi" });
    await subscribes.ok("session.subscribe", { sessionKey: "main", thinking: true });
    expect(of("send").map(({ args }) => Reflect.get(args[0] as object, "thinking"))).toEqual([true, undefined]);
    await gateway().publish(MAIN, [thought("one"), delta("text", 0)]);
    await gateway().publish(MAIN, [thought("two")]);
    for (const peer of [asks, follows, subscribes]) await settle(peer);
    expect(fieldsOf(asks, "text")).toEqual(["one", "text", "two"]);
    expect(fieldsOf(subscribes, "text")).toEqual(["one", "text", "two"]);
    expect(fieldsOf(follows, "text")).toEqual(["text"]);
    expect(
      follows.events().map(({ seq }) => seq),
      "nothing is missing in their numbers",
    ).toEqual([0]);

    await asks.ok("chat.send", { sessionKey: "main", message: "no more" });
    await gateway().publish(MAIN, [thought("three")]);
    for (const peer of [asks, subscribes]) await settle(peer);
    expect(fieldsOf(asks, "text")).toEqual(["one", "text", "two"]);
    expect(fieldsOf(subscribes, "text")).toEqual(["one", "text", "two", "three"]);
  });
  test("after a hibernation nothing is sent until a client asks again", async () => {
    fakeSessions();
    const peer = await client();
    await peer.ok("session.subscribe", { sessionKey: "main", thinking: true });
    await evict(gateway(), { webSockets: "hibernate" });
    await gateway().publish(MAIN, [thought("lost"), log(1)]);
    await settle(peer);
    expect([fieldsOf(peer, "text"), seqs(peer)]).toEqual([[], [1]]);
  });
});

test("[P2.1] seq rises by one per connection, over all sessions and through hibernation", async () => {
  fakeSessions();
  const [one, two] = [await client(), await client()];
  for (const peer of [one, two]) await peer.ok("session.subscribe", { sessionKey: "main" });
  await one.ok("session.subscribe", { sessionKey: "agent:main:cli:dm:b" });
  await gateway().publish(MAIN, [log(1), log(2)]);
  await gateway().publish("agent:main:cli:dm:b", [log(1, "agent:main:cli:dm:b")]);
  await evict(gateway(), { webSockets: "hibernate" });
  await gateway().publish(MAIN, [log(3)]);
  for (const peer of [one, two]) await settle(peer);
  expect(one.events().map(({ seq }) => seq)).toEqual([0, 1, 2, 3]);
  expect(two.events().map(({ seq }) => seq)).toEqual([0, 1, 2]);
  expect(seqs(two)).toEqual([1, 2, 3]);
});

describe("[C5][P11] following from a known point, without gap or duplicate", () => {
  /** A session whose answer waits until the test releases it. Uses flags, because promises can't cross between objects. */
  function slow(past: () => Awaited<ReturnType<SessionPort["events"]>>): { answer: () => void; asked: () => Promise<unknown> } {
    let [begun, open] = [false, false];
    fakeSessions(() => ({
      events: async () => {
        begun = true;
        await until("the test to let the answer go", () => open);
        return past();
      },
    }));
    const answer = (): void => {
      open = true;
    };
    return { answer, asked: () => until("the session to be asked", () => begun) };
  }
  const five = (key = MAIN): Awaited<ReturnType<SessionPort["events"]>> => ({
    ok: true,
    value: {
      sessionKey: asSessionKey(key),
      seq: 5,
      events: [log(4), log(5)],
      state: "thinking",
      runId: asRunId("r"),
      step: 1,
      attempt: 1,
      text: "abc",
    },
  });

  test("events during the fetch come after the answer, once", async () => {
    const session = slow(() => five());
    const peer = await client();
    await peer.ok("chat.send", { sessionKey: "main", message: "hi" });
    const id = peer.ask("session.subscribe", { sessionKey: "main", afterSeq: 3 });
    await session.asked();
    await gateway().publish(MAIN, [log(5), delta("ab", 0), delta("c", 2), delta("de", 3), log(6)]);
    await settle(peer);
    expect(peer.events()).toEqual([]);
    session.answer();
    const answer = await peer.answer(id);
    expect(answer.payload).toMatchObject({ seq: 5, text: "abc" });
    await gateway().publish(MAIN, [log(7)]);
    await settle(peer);
    expect(seqs(peer)).toEqual([6, 7]);
    expect(fieldsOf(peer, "text")).toEqual(["de"]);
    const at = peer.frames.indexOf(answer);
    expect(peer.frames.findIndex((frame) => frame.type === "evt")).toBeGreaterThan(at);
  });

  test("connect.resume sends the missed events first, then the live ones", async () => {
    const session = slow(() => five());
    const first = await client();
    await first.ok("chat.send", { sessionKey: "main", message: "hi" });
    const peer = await open();
    await peer.ok("connect", {
      minProtocol: 1,
      maxProtocol: 1,
      client: { id: "again", version: "1", platform: "t", mode: "client" },
      fingerprint: "tests",
      auth: { token: ADMIN },
      resume: { sessions: [{ sessionKey: "main", afterSeq: 3 }] },
    });
    await session.asked();
    await gateway().publish(MAIN, [log(5), log(6)]);
    session.answer();
    await until("six", () => seqs(peer).includes(6));
    expect(seqs(peer)).toEqual([4, 5, 6]);
    expect(peer.events().map(({ seq }) => seq)).toEqual([0, 1, 2]);
  });

  test("a point that is too old is reported, and the session is followed from now on", async () => {
    fakeSessions(() => ({ events: async () => ({ ok: false, error: { reason: "session.snapshot_required", message: "Too old." } }) }));
    const peer = await client();
    await peer.ok("chat.send", { sessionKey: "main", message: "hi" });
    expect((await peer.refused("session.subscribe", { sessionKey: "main", afterSeq: 1 })).reason).toBe("session.snapshot_required");
    await gateway().publish(MAIN, [log(9)]);
    await settle(peer);
    expect(seqs(peer)).toEqual([9]);
  });
});

describe("[C7] [F33] a client that sends no fingerprint reads events as the reference's published client does", () => {
  const aborted: SessionNews = {
    event: "chat",
    payload: { sessionKey: asSessionKey(MAIN), runId: asRunId("r"), state: "aborted", error: "Stopped by you.", sessionSeq: 4 },
  };
  const chats = (peer: Peer): unknown[] => peer.events("chat").map(({ payload }) => payload);

  test("an abort is an error with its text, and deltas have no text; a current client gets both as they are", async () => {
    fakeSessions();
    const [published, current] = [await client(ADMIN, { fingerprint: undefined }), await client()];
    for (const peer of [published, current]) await peer.ok("chat.send", { sessionKey: "main", message: "hi" });
    await gateway().publish(MAIN, [delta("hel", 0), delta("lo", 3), log(3), aborted]);
    for (const peer of [published, current]) await settle(peer);
    expect(chats(published)).toEqual([
      { ...delta("", 0).payload },
      { ...delta("", 3).payload },
      log(3).payload,
      { ...aborted.payload, state: "error" },
    ]);
    expect(chats(current)).toEqual([delta("hel", 0).payload, delta("lo", 3).payload, log(3).payload, aborted.payload]);
  });

  test("an abort without a text gets one, also after hibernation", async () => {
    fakeSessions();
    const published = await client(ADMIN, { fingerprint: undefined });
    await published.ok("chat.send", { sessionKey: "main", message: "hi" });
    await evict(gateway(), { webSockets: "hibernate" });
    await gateway().publish(MAIN, [
      { event: "chat", payload: { sessionKey: asSessionKey(MAIN), runId: asRunId("r"), state: "aborted", sessionSeq: 1 } },
    ]);
    await settle(published);
    expect(chats(published)).toEqual([{ sessionKey: MAIN, runId: "r", state: "error", error: "Stopped.", sessionSeq: 1 }]);
  });
});

test("[F37] a free name is a conversation of the command line with the default agent", async () => {
  const { of } = fakeSessions();
  const peer = await client();
  for (const name of ["foo", "Notes-2.b@x", "agent:main:cli:dm:foo"]) await peer.ok("chat.send", { sessionKey: name, message: "hi" });
  expect(of("send").map(({ key }) => key)).toEqual(["agent:main:cli:dm:foo", "agent:main:cli:dm:Notes-2.b@x", "agent:main:cli:dm:foo"]);
  await gateway().publish("agent:main:cli:dm:foo", [log(1, "agent:main:cli:dm:foo")]);
  await settle(peer);
  expect(seqs(peer)).toEqual([1]);
  expect(await peer.ok("session.get", { sessionKey: "foo" })).toMatchObject({ sessionKey: "agent:main:cli:dm:foo" });
});

describe("hibernation", () => {
  test("[P12] a socket keeps its identity, its sessions and its rights", async () => {
    const { of } = fakeSessions();
    const peer = await client();
    await peer.ok("chat.send", { sessionKey: "main", message: "one" });
    await evict(gateway(), { webSockets: "hibernate" });
    await gateway().publish(MAIN, [log(1)]);
    await peer.ok("chat.send", { sessionKey: "main", message: "two" });
    expect(seqs(peer)).toEqual([1]);
    const [first, second] = of("send").map(({ args }) => args[0] as { identity: unknown; origin: unknown });
    expect(second?.identity).toEqual(first?.identity);
    expect(second?.origin).toEqual(first?.origin);
    expect((await peer.refused("connect")).reason).toBe("protocol.already_connected");
  });

  test("a replaced, revoked or closed socket stays closed after a wake", async () => {
    fakeSessions();
    const first = await client(ADMIN, {}, "same");
    await first.ok("session.subscribe", { sessionKey: "main" });
    const second = await client(ADMIN, {}, "same");
    await evict(gateway(), { webSockets: "hibernate" });
    await gateway().publish(MAIN, [log(1)]);
    await settle(second);
    expect(first.events()).toEqual([]);
    expect(second.events()).toEqual([]);
  });
});

describe("[D1] chat.send", () => {
  test("costs the gateway no write once the session is known", async () => {
    fakeSessions();
    const peer = await client();
    await peer.ok("chat.send", { sessionKey: "main", message: "first" });
    const written = (): Promise<number> =>
      runInDurableObject(gateway(), (_gateway, state) => state.storage.sql.exec<{ n: number }>("SELECT total_changes() AS n").one().n);
    const before = await written();
    for (let at = 0; at < 10; at++) await peer.ok("chat.send", { sessionKey: "main", message: "more" });
    await gateway().publish(MAIN, [log(1)]);
    expect(await written()).toBe(before);
    expect(await runInDurableObject(gateway(), (_gateway, state) => state.storage.getAlarm())).toBeNull();
  });

  test("[C2] the client's own ids are used where it gives them", async () => {
    const { of } = fakeSessions();
    const peer = await client();
    const sent = async (more: Record<string, unknown>): Promise<{ messageId: string; runId: string }> => {
      await peer.ok("chat.send", { sessionKey: "main", message: "hi", ...more });
      return last<{ messageId: string; runId: string }>(of("send"));
    };
    expect(await sent({ messageId: "m1", runId: "r1" })).toMatchObject({ messageId: "m1", runId: "r1" });
    expect(await sent({ runId: "r2" })).toMatchObject({ messageId: "r2", runId: "r2" });
    const fresh = await sent({});
    expect(fresh.messageId).not.toBe((await sent({})).messageId);
    expect(fresh.runId).toMatch(/^run-/);
  });

  test("[P3] messages of one sender reach the session in the order in which they were sent", async () => {
    const { of } = fakeSessions();
    const peer = await client();
    const ids = Array.from({ length: 50 }, (_, at) => peer.ask("chat.send", { sessionKey: "main", message: `${at}` }));
    for (const id of ids) await peer.answer(id);
    expect(of("send").map(({ args }) => (args[0] as { text: string }).text)).toEqual(ids.map((_, at) => `${at}`));
  });

  test("empty, too long and badly addressed messages are refused before any session is asked", async () => {
    const { asked } = fakeSessions();
    const peer = await client();
    expect((await peer.refused("chat.send", { sessionKey: "main", message: "  \n" })).reason).toBe("chat.empty");
    expect((await peer.refused("chat.send", { sessionKey: "main", message: "ü".repeat(131_073) })).reason).toBe("chat.too_long");
    for (const key of [
      "not a name",
      "no/name",
      "foo:bar",
      "agent:",
      "agent:main",
      "agent:main:a:b:c:d:e",
      "agent:main:whatsapp:group:dm:a",
      "agent:main:whatsapp:dm:",
      "agent:main:x:dm:%",
    ])
      expect((await peer.refused("chat.send", { sessionKey: key, message: "hi" })).reason, key).toBe("session.bad_key");
    expect(asked).toEqual([]);
    await peer.ok("chat.send", { sessionKey: "main", message: "", attachments: [{ mimeType: "image/png", data: "AA==" }] });
  });

  test("the identity says whether the session is the owner's", async () => {
    const { of } = fakeSessions();
    const peer = await client();
    const identity = async (sessionKey: string): Promise<{ key: string; agentId: string; isOwnersSession: boolean }> => {
      await peer.ok("chat.send", { sessionKey, message: "hi" });
      return last<{ identity: { key: string; agentId: string; isOwnersSession: boolean } }>(of("send")).identity;
    };
    expect(await identity("main")).toMatchObject({ key: MAIN, agentId: "main", isOwnersSession: true });
    await peer.ok("agents.create", { agentId: "work", bootstrap: false });
    expect(await identity("agent:Work:cli:dm:main")).toMatchObject({
      key: "agent:work:cli:dm:main",
      agentId: "work",
      isOwnersSession: true,
    });
    expect(await identity("agent:main:whatsapp:dm:+31612345678")).toMatchObject({ isOwnersSession: false });
    expect(await identity("agent:main:discord:group:main")).toMatchObject({ isOwnersSession: false });
  });
});

test("sessions.list has the most recently active first, with labels", async () => {
  fakeSessions();
  const peer = await client();
  const now = vi.spyOn(Date, "now");
  const start = 1_800_000_000_000;
  for (const [at, key] of ["main", "agent:main:cli:dm:a", "agent:main:cli:dm:b"].entries()) {
    now.mockReturnValue(start + at * 1000);
    await peer.ok("chat.send", { sessionKey: key, message: "hi" });
  }
  now.mockReturnValue(start + 700_000);
  await peer.ok("chat.send", { sessionKey: "main", message: "again" });
  now.mockRestore();
  await peer.ok("session.patch", { sessionKey: "main", label: "Mine" });
  const { sessions, count } = await peer.ok<{ sessions: Record<string, unknown>[]; count: number }>("sessions.list", { limit: 2 });
  expect(count).toBe(3);
  expect(sessions).toEqual([
    { sessionKey: MAIN, createdAt: start, lastActiveAt: start + 700_000, label: "Mine" },
    { sessionKey: "agent:main:cli:dm:b", createdAt: start + 2000, lastActiveAt: start + 2000 },
  ]);
  expect((await peer.ok<{ sessions: unknown[] }>("sessions.list", { offset: 2 })).sessions).toHaveLength(1);
  expect(await gateway().sessionsList(1)).toMatchObject([{ sessionKey: MAIN }]);
});

test("[PO8] sessions.list has the mode of a conversation while it holds, as the session last reported it", async () => {
  fakeSessions();
  const peer = await client();
  await peer.ok("chat.send", { sessionKey: "main", message: "hi" });
  const listed = async () => {
    const { sessions } = await peer.ok<{ sessions: { mode?: string; modeUntil?: number }[] }>("sessions.list");
    return sessions.map(({ mode, modeUntil }) => [mode, modeUntil]);
  };
  const report = (revision: number, settings: { readonly mode?: PolicyMode; readonly modeUntil?: number } | undefined) =>
    port().approvals({
      sessionKey: MAIN,
      agentId: "main",
      revision,
      waiting: [],
      ended: [],
      ...(settings === undefined ? {} : { conversation: { sessionId: "s1", ...settings } }),
    });
  expect(await listed()).toEqual([[undefined, undefined]]);
  const end = Date.now() + 3_600_000;
  await report(2, { mode: "full", modeUntil: end });
  expect(await listed()).toEqual([["full", end]]);
  // Late, and of a program that does not tell.
  await report(1, {});
  await report(3, undefined);
  expect(await listed()).toEqual([["full", end]]);
  // The model is not told what other conversations may do.
  expect(JSON.stringify(await gateway().sessionsList(1))).not.toContain("full");
  const now = vi.spyOn(Date, "now").mockReturnValue(end);
  expect(await listed()).toEqual([[undefined, undefined]]);
  now.mockRestore();
  await report(4, { mode: "plan" });
  expect(await listed()).toEqual([["plan", undefined]]);
  await report(5, {});
  expect(await listed()).toEqual([[undefined, undefined]]);
});

test("sessions.list of one agent has its sessions only, and says which agents there are", async () => {
  fakeSessions();
  const peer = await client();
  await peer.ok("config.set", { path: "agents.list", value: [{ id: "main" }, { id: "mai" }, { id: "idle" }] });
  for (const sessionKey of ["main", "agent:main:cli:dm:a", "agent:mai:main"]) await peer.ok("chat.send", { sessionKey, message: "hi" });
  const listed = async (params: Record<string, unknown>) => {
    const { sessions, count } = await peer.ok<{ sessions: { sessionKey: string }[]; count: number }>("sessions.list", params);
    return [sessions.map(({ sessionKey }) => sessionKey).sort(), count];
  };
  expect(await listed({ agentId: "main" })).toEqual([["agent:main:cli:dm:a", MAIN], 2]);
  expect(await listed({ agentId: "main", limit: 1, offset: 2 })).toEqual([[], 2]);
  expect(await listed({ agentId: "mai" })).toEqual([["agent:mai:main"], 1]);
  expect(await listed({ agentId: "idle" })).toEqual([[], 0]);
  expect(await peer.refused("sessions.list", { agentId: "idl" })).toMatchObject({
    reason: "agent.unknown",
    hint: expect.stringContaining("idle"),
  });
  await peer.ok("config.set", { path: "agents.list", value: [{ id: "main" }] });
  expect(await listed({ agentId: "mai" })).toEqual([["agent:mai:main"], 1]);
});

test("[D6] after a restart active sessions are resumed, and one failure blocks no other", async () => {
  const { of } = fakeSessions((key) => ({
    resume: async () => {
      if (key.endsWith(":a")) throw new Error("broken");
      return { busy: key === MAIN };
    },
  }));
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const peer = await client();
  for (const key of ["main", "agent:main:cli:dm:a", "agent:main:cli:dm:b"]) await peer.ok("chat.send", { sessionKey: key, message: "hi" });
  await gateway().restarted();
  expect(new Set(of("resume").map(({ key }) => key))).toEqual(new Set([MAIN, "agent:main:cli:dm:a", "agent:main:cli:dm:b"]));
});
