/** `memory.*` on the wire: what waits is shown, kept once, or dropped; and only by the owner's clients. */
import { env } from "cloudflare:workers";
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { MemoryQuarantineResult } from "../../../../protocol/gen/types.ts";
import type { MemoryChange } from "../../../src/ports/agent-files.ts";
import { createQuarantine, type QuarantinedMemory } from "../../../src/storage/workspace/quarantine.ts";
import { createWorkspaceStore } from "../../../src/storage/workspace/store.ts";
import { parsePath } from "../../../src/storage/keys.ts";
import { client, fakeSessions, node, type Peer, seed, token } from "../../support/gateway.ts";
import { value } from "../../support/workspace.ts";

const store = createWorkspaceStore(env.STORAGE);
const quarantine = createQuarantine(env.STORAGE);
let admin: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  admin = await client(undefined, {}, "laptop");
});
afterEach(() => {
  vi.restoreAllMocks();
});
let calls = 0;
async function waits(change: MemoryChange, path = "MEMORY.md"): Promise<string> {
  const memory: QuarantinedMemory = {
    path: value(parsePath(path)),
    change,
    taint: { label: "world", source: "the output of lap__Bash \u001b[2J" },
    sessionKey: "agent:main:main",
    callId: `r1/${++calls}`,
    at: 1_000 + calls,
  };
  return value(await quarantine.add("main", memory)).id;
}
const review = () => admin.ok<MemoryQuarantineResult>("memory.quarantine", {});
const memory = async () => value(await store.read("main", "MEMORY.md")).content;

describe("[TA15] what waits", () => {
  test("is shown with its source, call and diff; kept, it is the owner's own and waits no more", async () => {
    value(await store.write("main", "MEMORY.md", "- tea\n"));
    const id = await waits({ kind: "append", text: "- run x\u202e\n" });
    const { memories } = await review();
    expect(memories).toMatchObject([
      {
        id,
        path: "MEMORY.md",
        label: "world",
        source: "the output of lap__Bash \\u{1b}[2J",
        sessionKey: "agent:main:main",
        diff: expect.stringContaining("+- run x\\u{202e}"),
      },
    ]);
    expect(await admin.ok("memory.promote", { id: id.toLowerCase(), ifMatch: memories[0]?.etag })).toEqual({ ok: true, path: "MEMORY.md" });
    expect(await memory()).toBe("- tea\n- run x\u202e\n");
    expect(value(await store.taintOf("main", "MEMORY.md"))).toBeUndefined();
    expect((await review()).memories).toEqual([]);
    expect((await admin.refused("memory.promote", { id })).reason).toBe("memory.not_found");
    const { entries } = await admin.ok<{ entries: { action: string; target?: string }[] }>("audit.list", {});
    expect(entries).toContainEqual(expect.objectContaining({ action: "memory.promote", target: id }));
  });
  test("is not kept when the file changed after it was shown; an interrupted promotion is made once", async () => {
    value(await store.write("main", "MEMORY.md", "- tea\n"));
    const id = await waits({ kind: "append", text: "- milk\n" });
    const [shown] = (await review()).memories;
    value(await store.write("main", "MEMORY.md", "- coffee\n"));
    expect((await admin.refused("memory.promote", { id, ifMatch: shown?.etag })).reason).toBe("workspace.conflict");
    expect(await memory()).toBe("- coffee\n");
    // The file was written, and the entry not removed.
    const entry = value(await quarantine.find("main", id));
    await admin.ok("memory.promote", { id });
    if (entry) value(await quarantine.add("main", entry));
    await admin.ok("memory.promote", { id });
    expect(await memory()).toBe("- coffee\n- milk\n");
    expect((await review()).memories).toEqual([]);
  });
  test("says why an edit that no longer fits cannot be kept, and stays until it is dropped", async () => {
    value(await store.write("main", "MEMORY.md", "- tea\n"));
    const id = await waits({ kind: "edit", oldString: "milk", newString: "x", replaceAll: false });
    expect((await review()).memories).toMatchObject([{ id, diff: "", problem: expect.stringContaining("not in the file") }]);
    const refused = await admin.refused("memory.promote", { id });
    expect([refused.reason, refused.hint]).toEqual(["workspace.conflict", expect.stringContaining("gsv workspace edit MEMORY.md")]);
    expect((await review()).memories).toHaveLength(1);
    expect(await admin.ok("memory.drop", { id })).toEqual({ ok: true, dropped: true });
    expect(await admin.ok("memory.drop", { id })).toEqual({ ok: true, dropped: false });
    expect((await review()).memories).toEqual([]);
  });
  test("is kept as a new file, and a damaged entry is named and can be dropped", async () => {
    const id = await waits({ kind: "write", content: "- plan\n" }, "memory/plan.md");
    await env.STORAGE.put("agents/main/memory/quarantine/AAAAAAAA.json", '{"version":1,"path":"SOUL.md"}');
    expect(await review()).toMatchObject({ memories: [{ id, etag: "absent" }], damaged: ["AAAAAAAA"] });
    expect((await admin.refused("memory.promote", { id: "AAAAAAAA" })).reason).toBe("memory.not_found");
    await admin.ok("memory.promote", { id, ifMatch: "absent" });
    expect(value(await store.read("main", "memory/plan.md")).content).toBe("- plan\n");
    await admin.ok("memory.drop", { id: "AAAAAAAA" });
    expect(await review()).toEqual({ memories: [], damaged: [] });
    for (const bad of ["../x", "", "0OIl1111"])
      expect((await admin.refused("memory.drop", { id: bad })).reason).toMatch(/memory.not_found|invalid/);
  });
  test("is not answered for a token that may only read, nor to a machine", async () => {
    const id = await waits({ kind: "append", text: "- x\n" });
    const reader = await client((await token("client-ro")).token);
    const machine = await node("lap", (await token("node", { nodeId: "lap" })).token);
    for (const peer of [reader, machine])
      for (const [method, params] of [
        ["memory.quarantine", {}],
        ["memory.promote", { id }],
        ["memory.drop", { id }],
      ] as const)
        expect((await peer.refused(method, params)).reason).toBe("auth.forbidden");
    expect((await review()).memories).toHaveLength(1);
  });
  test("[TA16] is bounded in bytes", async () => {
    await waits({ kind: "append", text: "x".repeat(1_000_000) });
    const full = await quarantine.add("main", {
      path: value(parsePath("MEMORY.md")),
      change: { kind: "append", text: "y".repeat(60_000) },
      taint: { label: "peer", source: "bo" },
      sessionKey: "s",
      callId: "c",
      at: 1,
    });
    expect(full).toMatchObject({ ok: false, error: { reason: "memory.quarantine_full" } });
    const [shown] = (await review()).memories;
    expect(shown?.diffSha256).toMatch(/^[0-9a-f]{64}$/);
    expect(shown?.diff.length).toBeLessThan(5_000);
  });
});
