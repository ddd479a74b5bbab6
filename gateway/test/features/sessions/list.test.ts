/** `sessions.list`: the order, the labels, the modes and the agents of its entries. The sessions are fakes. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { PolicyMode } from "../../../../protocol/gen/types.ts";
import { client, fakeSessions, gateway, port, seed } from "../../support/gateway.ts";
import { MAIN } from "./support.ts";

beforeEach(async () => {
  await reset();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
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
