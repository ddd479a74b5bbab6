/** Stopping everything and the calls of clients (rule ST8). */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { GatewayStopResult } from "../../../../protocol/gen/types.ts";
import { client, fakeSessions, gateway, node, type Peer, seed, until } from "../../support/gateway.ts";
import { openCalls } from "./support.ts";
import { evict } from "../../support/evict.ts";

let admin: Peer;
let lap: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  admin = await client();
  lap = await node("lap");
});
afterEach(() => {
  vi.restoreAllMocks();
});
const cancelled = (peer: Peer): string[] => peer.events("tool.cancel").map(({ payload }) => (payload as { callId: string }).callId);
async function begun(): Promise<{ request: string; callId: string }> {
  const count = lap.events("tool.invoke").length;
  const request = admin.ask("tool.invoke", { tool: "lap__Bash", args: { command: "sleep 60" } });
  const event = await until("the call", () => lap.events("tool.invoke")[count]);
  return { request, callId: (event.payload as { callId: string }).callId };
}
async function inBackground(processId: string): Promise<string> {
  const { request, callId } = await begun();
  await lap.ok("tool.result", { callId, outcome: "ok", result: { status: "running", sessionId: processId, pid: 7 } });
  await admin.answer(request);
  return callId;
}

test("[ST8] while it is stopped no call of a client is handed to a machine, and the gateway's tools only read", async () => {
  await admin.ok("gateway.stop");
  const refused = async (method: "tool.invoke" | "tool.request", params: object) => (await admin.refused(method, params as never)).reason;
  expect(await refused("tool.invoke", { tool: "lap__Bash", args: { command: "date" } })).toBe("gateway.stopped");
  expect(await refused("tool.request", { tool: "lap__Bash", args: {}, callId: "c1", sessionKey: "agent:main:main" })).toBe(
    "gateway.stopped",
  );
  const file = { path: "notes.md", content: "hi" };
  expect(await refused("tool.invoke", { tool: "gsv__WriteFile", args: file })).toBe("gateway.stopped");
  expect(await refused("tool.invoke", { tool: "gsv__ReadFile", args: { path: "notes.md" } })).not.toBe("gateway.stopped");
  expect([lap.events("tool.invoke"), await openCalls()]).toEqual([[], []]);
  await admin.ok("gateway.resume");
  await admin.ok("tool.invoke", { tool: "gsv__WriteFile", args: file });
});

test("[ST8] a stop cancels what clients have begun, in the background too, and counts it", async () => {
  const done = await inBackground("p0");
  await lap.ok("node.exec.event", { eventId: "e", sessionId: "p0", event: "finished", exitCode: 0, callId: done });
  const background = await inBackground("p1");
  const { request, callId } = await begun();
  expect(await admin.ok<GatewayStopResult>("gateway.stop")).toMatchObject({ clientCalls: 2 });
  expect((await admin.answer(request)).error?.reason).toBe("tool.cancelled");
  await until("both cancels", () => cancelled(lap).length === 2);
  expect(cancelled(lap).sort()).toEqual([background, callId].sort());
  // It went into the background before the cancel came.
  await lap.ok("tool.result", { callId, outcome: "ok", result: { status: "running", sessionId: "p2", pid: 8 } });
  await until("the cancel of the process", () => cancelled(lap).length === 3);
  expect(cancelled(lap)[2]).toBe(callId);
  expect(await admin.ok<GatewayStopResult>("gateway.stop")).toMatchObject({ clientCalls: 0 });
});

test("[ST8] a command that a client has polled often is ended by the call that began it, and counts once", async () => {
  const background = await inBackground("p1");
  for (let i = 0; i < 300; i++) await inBackground("p1");
  expect(await admin.ok<GatewayStopResult>("gateway.stop")).toMatchObject({ clientCalls: 1 });
  await until("the cancel", () => cancelled(lap).length > 0);
  expect(cancelled(lap)).toEqual([background]);
});

test("[ST8] a machine that is away is told when it is back, also after the resume and a restart", async () => {
  const background = await inBackground("p1");
  const { callId } = await begun();
  const ended = await begun();
  lap.socket.close(1000, "gone");
  await until("the machine is away", () =>
    admin.events("presence").some(({ payload }) => (payload as { online: boolean }).online === false),
  );
  await admin.ok("gateway.stop");
  await evict(gateway());
  admin = await client();
  await admin.ok("gateway.resume");
  const calls = [
    { callId, state: "started" },
    { callId: ended.callId, state: "finished" },
  ];
  lap = await node("lap", undefined, { ledger: { calls } });
  await until("the cancels", () => cancelled(lap).length === 2);
  expect(cancelled(lap).sort()).toEqual([background, callId].sort());
});
