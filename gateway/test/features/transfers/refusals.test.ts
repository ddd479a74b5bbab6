/**
 * What a request for a transfer may not do, and what the same request does when it comes again. The machines are fakes on real sockets;
 * the gateway and its bucket are real.
 */
import { env } from "cloudflare:workers";
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { client, eventually, fakeSessions, node, seed, sha256 } from "../../support/gateway.ts";
import { machine, newId } from "./fake-machine.ts";
import { create, ended, KEY } from "./support.ts";

beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("what is refused before anything moves", () => {
  test("[TF7] [X14] protected files, records and other agents' folders", async () => {
    const owner = await client();
    await machine("laptop");
    await env.STORAGE.put(KEY, "old");
    for (const [destination, reason] of [
      ["gsv:SOUL.md", "workspace.protected"],
      ["gsv:soul.md", "workspace.protected"],
      ["gsv:skills/evil/SKILL.md", "workspace.protected"],
      ["gsv:memory/2026-01-01.md", "workspace.protected"],
      ["gsv:sessions/x.jsonl.gz", "workspace.protected"],
      ["gsv:agent.yaml", "workspace.protected"],
      ["gsv:workspace.json", "workspace.protected"],
      ["gsv:MEMORY.md/x", "workspace.protected"],
      ["gsv:agent.yaml/x", "workspace.protected"],
      ["gsv:../other/x", "path.invalid"],
      ["gsv:in/b.bin", "file.exists"],
      ["laptop:b", "transfer.bad_endpoint"],
      ["nowhere:b", "node.unknown"],
      ["file.txt", "transfer.bad_endpoint"],
    ] as const)
      expect(await owner.refused("transfer.create", { id: newId(), source: "laptop:a", destination }), destination).toMatchObject({
        reason,
      });
    expect(await owner.refused("transfer.create", { id: newId(), source: "gsv:none", destination: "laptop:b" })).toMatchObject({
      reason: "path.not_found",
    });
  });

  test("[TF7] a folder of the workspace, and a path below a file, are told at once", async () => {
    const owner = await client();
    await machine("laptop");
    await env.STORAGE.put("agents/main/notes/a.md", "a");
    for (const [destination, message] of [
      ["gsv:notes", "`notes` is a folder of the workspace."],
      ["gsv:notes/a.md/b.md", "`notes/a.md` is a file of the workspace, so nothing can be in it."],
    ] as const)
      expect(await owner.refused("transfer.create", { id: newId(), source: "laptop:a", destination })).toMatchObject({
        reason: "transfer.bad_endpoint",
        message,
      });
    expect(await owner.refused("transfer.create", { id: newId(), source: "gsv:notes", destination: "laptop:n" })).toMatchObject({
      reason: "transfer.bad_endpoint",
      hint: "Add `-r` to copy it with everything in it.",
    });
  });

  test("[TF7] a machine without transfers, and more transfers than the limit", async () => {
    const owner = await client();
    await node("old");
    expect(await owner.refused("transfer.create", { id: newId(), source: "old:a", destination: "gsv:b" })).toMatchObject({
      reason: "transfer.unsupported",
    });
    await machine("laptop");
    for (let nth = 0; nth < LIMITS.transfers; nth++) await create(owner, newId(), "laptop:a", `gsv:b${nth}`);
    expect(await owner.refused("transfer.create", { id: newId(), source: "laptop:a", destination: "gsv:c" })).toMatchObject({
      reason: "transfer.busy",
      message: "4 transfers are running already.",
    });
  });

  test("[TF10] a request that waits for a slot is no entry of the audit, however often it comes, and any other refusal is one", async () => {
    const owner = await client();
    await machine("laptop");
    for (let nth = 0; nth < LIMITS.transfers; nth++) await create(owner, newId(), "laptop:a", `gsv:b${nth}`);
    const id = newId();
    for (let nth = 0; nth < 3; nth++)
      expect((await owner.refused("transfer.create", { id, source: "laptop:a", destination: "gsv:c" })).reason).toBe("transfer.busy");
    await owner.refused("transfer.create", { id, source: "laptop:a", destination: "gsv:SOUL.md" });
    await eventually(async () => {
      const { entries } = await owner.ok<{ entries: { detail?: string }[] }>("audit.list", { action: "transfer.create" });
      const refused = "from laptop:a: workspace.protected";
      expect(entries.map(({ detail }) => detail).toSorted()).toEqual([...Array(LIMITS.transfers).fill("from laptop:a"), refused]);
    });
  });

  test("[TF10] the same request again is the same transfer, and another one with its id is refused", async () => {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await create(owner, id, "laptop:a", "gsv:b");
    await create(owner, id, "laptop:a", "gsv:b");
    expect(await owner.refused("transfer.create", { id, source: "laptop:a", destination: "gsv:c" })).toMatchObject({
      reason: "protocol.invalid_params",
      hint: "Send the request with a new id.",
    });
    await eventually(async () => {
      const { entries } = await owner.ok<{ entries: { detail?: string }[] }>("audit.list", { action: "transfer.create" });
      expect(entries.map(({ detail }) => detail).toSorted()).toEqual(["from laptop:a", "from laptop:a: protocol.invalid_params"]);
    });
    expect(laptop.peer.events("transfer.send")).toHaveLength(1);
  });

  test.each([
    ["transfer.busy", "transfer.failed"],
    ["limit.rate", "transfer.failed"],
    ["auth.required", "transfer.failed"],
    ["path.not_found", "path.not_found"],
  ])("[TF7] a machine that refuses the file with %s ends the copy with %s, and its text is told", async (reason, told) => {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await env.STORAGE.put("agents/main/a.txt", "text");
    await create(owner, id, "gsv:a.txt", "laptop:b");
    const { transferId } = await laptop.asked("transfer.receive");
    await laptop.peer.ok("transfer.accept", { transferId, error: "not here", reason });
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: told, problem: "not here" });
  });

  test("[TF7] --force keeps the file that is replaced as a version", async () => {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await env.STORAGE.put("agents/main/b.txt", "old text");
    await create(owner, id, "laptop:a", "gsv:b.txt", { force: true });
    const { transferId } = await laptop.asked("transfer.send");
    await laptop.peer.ok("transfer.meta", { transferId, size: 0, version: "v1" });
    await laptop.asked("transfer.start");
    await laptop.peer.ok("transfer.complete", { transferId, sha256: await sha256("") });
    expect(await ended(owner, id)).toMatchObject({ state: "done", sizeBytes: 0 });
    const log = await owner.ok<{ versions: { sizeBytes: number }[] }>("workspace.log", { path: "b.txt" });
    expect(log.versions.map(({ sizeBytes }) => sizeBytes)).toEqual([8]);
  });
});
