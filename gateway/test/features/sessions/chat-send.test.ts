/** `chat.send` at the gateway: names of sessions, ids and order of messages, refusals, and whose session it is. The sessions are fakes. */
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { client, fakeSessions, gateway, last, seed } from "../../support/gateway.ts";
import { log, MAIN, seqs, settle } from "./support.ts";

beforeEach(async () => {
  await reset();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
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
