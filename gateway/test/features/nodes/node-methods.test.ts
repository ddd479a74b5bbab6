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

describe("[W7] two machines whose tools have one full name", () => {
  test("one of them has the name, whatever the order in which they connect; the other can't take its calls", async () => {
    const offer = (name: string) => ({ tools: [{ name, description: "", inputSchema: {} }] });
    for (const order of [
      ["a", "a__b"],
      ["a__b", "a"],
    ]) {
      const peers = new Map<string, Peer>();
      for (const id of order) peers.set(id, await node(id, ADMIN, offer(id === "a" ? "b__Bash" : "Bash")));
      const listed = (await admin.ok<{ tools: { name: string }[] }>("tools.list")).tools.filter(({ name }) => name === "a__b__Bash");
      expect(listed).toHaveLength(1);
      const id = admin.ask("tool.invoke", { tool: "a__b__Bash" });
      const { callId, tool } = (await until("the call", () => peers.get("a")?.events("tool.invoke")[0])).payload as Record<string, string>;
      expect(tool).toBe("b__Bash");
      expect(await peers.get("a__b")?.ok("tool.result", { callId, result: "forged" })).toEqual({ ok: true, dropped: true });
      await peers.get("a")?.ok("tool.result", { callId, result: "true" });
      expect((await admin.answer(id)).payload).toMatchObject({ result: "true" });
      expect(peers.get("a__b")?.events("tool.invoke")).toEqual([]);
    }
  });
});
