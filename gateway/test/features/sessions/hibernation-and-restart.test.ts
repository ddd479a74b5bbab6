/**
 * After a hibernation a connection keeps its identity and its sessions; after a restart the active sessions go on. The sessions are
 * fakes.
 */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ADMIN, client, fakeSessions, gateway, seed } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";
import { log, MAIN, seqs, settle } from "./support.ts";

beforeEach(async () => {
  await reset();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
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
