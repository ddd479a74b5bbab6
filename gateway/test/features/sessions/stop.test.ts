/** Stopping everything (rules ST1-ST5): real sessions, and fake ones for what they are told. */
import { reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { GatewayStopResult } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { client, eventually, fakeSessions, gateway, type Peer, seed, token } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

let admin: Peer;
beforeEach(async () => {
  await reset();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});
const key = "agent:main:cli:dm:main";
const say = (peer: Peer, message: string): Promise<Record<string, unknown>> => peer.ok("chat.send", { sessionKey: key, message });

test("[ST1] [P14] a stop tells every session, lists the stopped runs, and is an entry of the audit", async () => {
  const held: boolean[] = [];
  fakeSessions(() => ({
    hold: async (on) => {
      held.push(on);
      return { wasRunning: true, runId: "r1", cancelled: 2 };
    },
  }));
  admin = await client();
  await say(admin, "hello");
  const stopped = await admin.ok<GatewayStopResult>("gateway.stop");
  expect(stopped).toMatchObject({ ok: true, pending: 0, runs: [{ sessionKey: key, runId: "r1", cancelledCalls: 2 }] });
  expect(await admin.ok("gateway.status")).toEqual({ stopped: stopped.state });
  expect(await admin.ok("gateway.resume")).toMatchObject({ wasStopped: true, sessions: 0 });
  expect(await admin.ok("gateway.status")).toEqual({});
  await eventually(() => expect(held).toEqual([true, false]));
  const { entries } = await admin.ok<{ entries: { action: string; actor: string }[] }>("audit.list", {});
  expect(entries.map(({ action }) => action)).toEqual(expect.arrayContaining(["gateway.stop", "gateway.resume"]));
});

test("[ST5] a resume counts the conversations in which something waits, not those whose run was stopped", async () => {
  const waiting = new Set([key]);
  fakeSessions((name) => ({ hold: async () => ({ wasRunning: true, cancelled: 0, ...(waiting.has(name) ? { hasWaiting: true } : {}) }) }));
  admin = await client();
  for (const peer of ["main", "a", "b", "c"]) await admin.ok("chat.send", { sessionKey: `agent:main:cli:dm:${peer}`, message: "hello" });
  await admin.ok("gateway.stop");
  expect(await admin.ok("gateway.resume")).toMatchObject({ wasStopped: true, sessions: 1 });
  waiting.clear();
  await eventually(async () => {
    await admin.ok("gateway.stop");
    expect(await admin.ok("gateway.resume")).toMatchObject({ sessions: 0 });
  });
  // A message that comes meanwhile waits.
  await admin.ok("gateway.stop");
  await admin.ok("chat.send", { sessionKey: "agent:main:cli:dm:a", message: "later" });
  expect(await admin.ok("gateway.resume")).toMatchObject({ sessions: 1 });
});

test("[ST1] while it is stopped no key of a provider is given out and no tool call is handed over", async () => {
  fakeSessions();
  admin = await client();
  await admin.ok("config.set", { path: "apiKeys.anthropic", value: "sk-ant-0123456789" });
  const { version } = (await gateway().runContext("agent:main:main", undefined)) as unknown as { version: string };
  await admin.ok("gateway.stop");
  expect(await gateway().modelAccess(["anthropic"])).toBeNull();
  // A session that has the key already asks for it again.
  expect(await gateway().runContext("agent:main:main", version)).not.toBeNull();
  const call = { callId: "ref/r1/1/0", sessionKey: "agent:main:main", nodeId: "lap", tool: "Bash", args: {}, timeoutMs: 60_000 };
  expect(await gateway().dispatchTool(call)).toBe("offline");
  const target = { channel: "discord", peer: { kind: "dm" as const, id: "1" } };
  const from = { key: "agent:main:main", agentId: "main", ref: "ref", isOwnersSession: true } as never;
  const sent = await gateway().message({ from, callId: "ref/r1/1/1", target, text: "hi", media: [] });
  expect(sent).toMatchObject({ ok: false, error: { reason: "gateway.stopped" } });
  const packCall = { tool: "refund", args: {}, session: from, callId: "ref/r1/1/2" } as never;
  expect(await gateway().packTool(packCall)).toMatchObject({ ok: false, error: { reason: "gateway.stopped" } });
  await admin.ok("gateway.resume");
  expect((await gateway().modelAccess(["anthropic"]))?.apiKeys).toEqual({ anthropic: "sk-ant-0123456789" });
});

test("[ST10] the stop of a conversation that does not exist is refused, and names the one that may be meant", async () => {
  fakeSessions();
  admin = await client();
  for (const name of ["work", "a-draft", "b-draft"])
    await admin.ok("chat.send", { sessionKey: `agent:main:cli:dm:${name}`, message: "hello" });
  const refused = async (sessionKey: string): Promise<string | undefined> => {
    const { reason, hint } = await admin.refused("chat.abort", { sessionKey });
    expect(reason).toBe("session.not_found");
    return hint;
  };
  expect(await refused("ork")).toBe("Did you mean agent:main:cli:dm:work?");
  for (const name of ["draft", "w_rk", "agent:main:cli:dm:works"])
    expect(await refused(name)).toBe("List the conversations: `gsv session list`.");
});

test("[BK23] a restored copy is stopped before it does anything, and only the command that removes its mark lets it act", async () => {
  const held: [string, boolean][] = [];
  const resumed: string[] = [];
  fakeSessions((name) => ({
    hold: async (on) => {
      held.push([name, on]);
      return { wasRunning: true, cancelled: 0 };
    },
    resume: async () => {
      resumed.push(`${name} after ${held.length}`);
      return { busy: false };
    },
  }));
  admin = await client();
  await say(admin, "hello");
  const resume = "GSV_HOME=/copy gsv resume";
  const restart = async (id: string | undefined): Promise<void> => {
    vi.spyOn(parts, "restoredCopy").mockReturnValue(id === undefined ? undefined : { id, resume });
    await evict(gateway());
  };
  await restart("copy-1");
  await gateway().restarted();
  expect(await gateway().modelAccess(["anthropic"])).toBeNull();
  expect([held, resumed]).toEqual([[[key, true]], [`${key} after 1`]]);
  admin = await client();
  expect(await admin.ok("gateway.status")).toMatchObject({ stopped: { by: "gsv restore" } });
  const refused = await admin.refused("gateway.resume");
  expect([refused.reason, refused.hint]).toEqual(["gateway.restored_copy", expect.stringContaining(resume)]);
  expect(await gateway().resumeAll(`session:${key}`, { kind: "client", clientId: "c" })).toContain(resume);
  expect(await admin.ok("gateway.status")).toMatchObject({ stopped: { by: "gsv restore" } });
  await restart(undefined);
  admin = await client();
  expect(await admin.ok("gateway.status"), "until it is resumed").toMatchObject({ stopped: { by: "gsv restore" } });
  expect(await admin.ok("gateway.resume")).toMatchObject({ wasStopped: true });
  await restart(undefined);
  expect(await (await client()).ok("gateway.status")).toEqual({});
  // An earlier version let it act although it had its mark.
  await restart("copy-1");
  expect(await (await client()).ok("gateway.status")).toMatchObject({ stopped: { by: "gsv restore" } });
});

test("[MV14] [BK23] a restored copy of a home that was exported says both, and needs both answers", async () => {
  fakeSessions();
  admin = await client();
  await admin.ok("gateway.stop");
  await runInDurableObject(gateway(), (_gateway, { storage }) => {
    storage.kv.put("stop-state", { ...storage.kv.get<object>("stop-state"), exportedAt: 5 });
  });
  const copy = vi.spyOn(parts, "restoredCopy").mockReturnValue({ id: "copy-2", resume: "GSV_HOME=/copy gsv resume" });
  await evict(gateway());
  admin = await client();
  expect(await admin.ok("gateway.status")).toMatchObject({ stopped: { by: "gsv restore", exportedAt: 5 } });
  copy.mockReturnValue(undefined);
  await evict(gateway());
  admin = await client();
  expect((await admin.refused("gateway.resume")).reason).toBe("gateway.exported");
  expect(await admin.ok("gateway.resume", { exported: true })).toMatchObject({ wasStopped: true });
});

test("[ST3] a session that does not answer is told again, and the stop itself does not wait for it", async () => {
  let broken = true;
  const held: boolean[] = [];
  fakeSessions(() => ({
    hold: async (on) => {
      if (broken) throw new Error("the session is away");
      held.push(on);
      return { wasRunning: false, cancelled: 0 };
    },
  }));
  admin = await client();
  await say(admin, "hello");
  expect(await admin.ok("gateway.stop")).toMatchObject({ pending: 1 });
  broken = false;
  const later = Date.now() + 60_000;
  vi.spyOn(Date, "now").mockReturnValue(later);
  await eventually(async () => {
    await runDurableObjectAlarm(gateway());
    expect(held).toEqual([true]);
  });
});

test("[ST4] only tokens that may operate can stop and resume; every client sees that it is stopped", async () => {
  fakeSessions();
  admin = await client();
  const { token: readOnly } = await token("client-ro");
  const reader = await client(readOnly);
  for (const method of ["gateway.stop", "gateway.resume"]) expect((await reader.refused(method)).reason).toBe("auth.forbidden");
  await admin.ok("gateway.stop");
  expect(await reader.ok("gateway.status")).toMatchObject({ stopped: { by: expect.stringMatching(/^client:/) } });
});

test("[ST2] what comes while it is stopped is sent on with the word that it waits", async () => {
  const sent: unknown[] = [];
  fakeSessions(() => ({
    send: async (input) => {
      sent.push(input.held);
      return { ok: true, value: { status: "started", runId: "r" as never, queued: true, ...(input.held ? { stopped: true } : {}) } };
    },
  }));
  admin = await client();
  await say(admin, "one");
  await admin.ok("gateway.stop");
  expect(await say(admin, "two")).toMatchObject({ stopped: true });
  await admin.ok("gateway.resume");
  await say(admin, "three");
  expect(sent).toEqual([undefined, true, undefined]);
});
