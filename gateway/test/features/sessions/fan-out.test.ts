/** Which connections get the events of a session, with which numbers, and in which form. The sessions are fakes. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { asRunId, asSessionKey } from "../../../../protocol/gen/types.ts";
import type { SessionNews } from "../../../src/ports/gateway.ts";
import { ADMIN, client, fakeSessions, gateway, type Peer, seed } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";
import { delta, fieldsOf, log, MAIN, seqs, settle } from "./support.ts";

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
