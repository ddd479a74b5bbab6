/** nodes.list, node.forget and tools.list, and which machine a full name belongs to. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ADMIN, client, fakeSessions, node, type Peer, seed, until } from "../../support/gateway.ts";

let admin: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("nodes.list and node.forget", () => {
  test("nodes.list names every known machine; node.forget removes one that is offline, or any by force", async () => {
    const lap = await node("lap", ADMIN, {
      nodeRuntime: { hostCapabilities: ["filesystem.read", "shell.exec"], toolCapabilities: { Bash: ["shell.exec"] } },
    });
    expect(await admin.ok("nodes.list")).toMatchObject({
      count: 1,
      nodes: [
        {
          nodeId: "lap",
          online: true,
          hostCapabilities: ["filesystem.read", "shell.exec"],
          toolCapabilities: { Bash: ["shell.exec"] },
          tools: ["Read", "Bash"],
          clientPlatform: "test",
          clientVersion: "1",
          ledger: false,
        },
      ],
    });
    expect((await admin.refused("node.forget", { nodeId: "lap" })).reason).toBe("node.online");
    expect(await admin.ok("node.forget", { nodeId: "lap", force: true })).toEqual({
      ok: true,
      nodeId: "lap",
      removed: true,
      disconnected: true,
    });
    expect((await lap.ended()).code).toBe(1000);
    expect(await admin.ok("nodes.list")).toEqual({ nodes: [], count: 0 });
    expect((await admin.refused("node.forget", { nodeId: "lap" })).reason).toBe("node.unknown");
  });
});

test("[SB12] [S12] nodes.list shows the sandbox that a machine reported, and forgets it with the next report", async () => {
  const runtime = { hostCapabilities: [], toolCapabilities: {} };
  const sandbox = { profile: "workspace", tier: "landlock", gaps: ["read it"] };
  const shown = async (): Promise<unknown> => (await admin.ok<{ nodes: { sandbox?: unknown }[] }>("nodes.list")).nodes[0]?.sandbox;
  const first = await node("lap", ADMIN, { nodeRuntime: { ...runtime, sandbox } });
  expect(await shown()).toEqual(sandbox);
  first.socket.close(1000);
  await admin.event("presence", ({ online }) => online === false);
  expect(await shown()).toEqual(sandbox);
  await node("lap", ADMIN, { nodeRuntime: runtime });
  expect(await shown()).toBeUndefined();
});

describe("tools.list", () => {
  test("[G4] native tools and tools of connected machines, each under its full name, sorted", async () => {
    const lap = await node("lap");
    const names = async (): Promise<string[]> =>
      (await admin.ok<{ tools: { name: string }[] }>("tools.list")).tools.map(({ name }) => name);
    const with_ = await names();
    expect(with_).toEqual([...with_].sort());
    expect(with_).toEqual(expect.arrayContaining(["lap__Bash", "lap__Read", "gsv__ReadFile"]));
    lap.socket.close(1000);
    await admin.event("presence", ({ online }) => online === false);
    expect((await names()).filter((name) => name.startsWith("lap"))).toEqual([]);
  });
});

test("[W7] a tool with the separator in its name belongs to its machine, and no other machine can have that name", async () => {
  const a = await node("a", ADMIN, { tools: [{ name: "b__Bash", description: "", inputSchema: {} }] });
  const id = admin.ask("tool.invoke", { tool: "a__b__Bash" });
  const { callId, tool } = (await until("the call", () => a.events("tool.invoke")[0])).payload as Record<string, string>;
  expect(tool).toBe("b__Bash");
  await a.ok("tool.result", { callId, result: "true" });
  expect((await admin.answer(id)).payload).toMatchObject({ result: "true" });
  await expect(node("a__b", ADMIN, { tools: [{ name: "Bash", description: "", inputSchema: {} }] })).rejects.toThrow("__");
});
