/**
 * A file of the workspace or of another machine becomes one of a machine, which confirms it. The machines are fakes on real sockets;
 * the gateway and its bucket are real.
 */
import { env } from "cloudflare:workers";
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { client, eventually, fakeSessions, gateway, type Peer, seed, sha256, until } from "../../support/gateway.ts";
import { bytesOf, type Machine, machine, newId, sum } from "./fake-machine.ts";
import { evict } from "../../support/evict.ts";
import { create, ended, look } from "./support.ts";

beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("a file of the workspace becomes one of a machine", () => {
  const bytes = bytesOf(LIMITS.transferWindowBytes + 3 * LIMITS.transferChunkBytes + 5);
  async function begin(): Promise<{ owner: Peer; laptop: Machine; id: string; attemptId: number }> {
    await env.STORAGE.put("agents/main/a.bin", bytes);
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await create(owner, id, "gsv:a.bin", "laptop:b.bin");
    const asked = await laptop.asked("transfer.receive");
    expect(asked).toMatchObject({ path: "b.bin", size: bytes.length, id, sha256: await sum(bytes) });
    return { owner, laptop, id, attemptId: asked.transferId };
  }
  async function takeAll(laptop: Machine, transferId: number): Promise<void> {
    await laptop.peer.ok("transfer.accept", { transferId, offset: 0 });
    const own = (): number =>
      laptop.chunks.filter(({ attemptId }) => attemptId === transferId).reduce((all, { bytes: part }) => all + part.length, 0);
    await until("a window", () => own() === LIMITS.transferWindowBytes);
    await laptop.peer.ok("transfer.ack", { transferId, offset: LIMITS.transferWindowBytes });
    await until("the file", () => own() === bytes.length);
    await laptop.peer.ok("transfer.ack", { transferId, offset: bytes.length });
  }
  const taken = ({ chunks }: Machine): number => chunks.reduce((all, { bytes: part }) => all + part.length, 0);

  test("[TF2] [P18] at most a window is on the way, and success waits for the machine's word", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.accept", { transferId: attemptId, offset: 0 });
    await until("a window", () => taken(laptop) === LIMITS.transferWindowBytes);
    await laptop.peer.ok("transfer.ack", { transferId: attemptId, offset: 1 });
    expect(taken(laptop)).toBe(LIMITS.transferWindowBytes);
    await laptop.peer.ok("transfer.ack", { transferId: attemptId, offset: LIMITS.transferWindowBytes });
    expect(await laptop.asked("transfer.end")).toMatchObject({ transferId: attemptId, sha256: await sum(bytes) });
    const all = new Uint8Array(bytes.length);
    let at = 0;
    for (const { attemptId: of, bytes: part } of laptop.chunks) {
      expect(of).toBe(attemptId);
      all.set(part, at);
      at += part.length;
    }
    expect(await sum(all)).toBe(await sum(bytes));
    expect(await look(owner, id)).toMatchObject({ state: "storing" });
    await laptop.peer.ok("transfer.done", { transferId: attemptId, bytesWritten: bytes.length, sha256: await sum(bytes) });
    expect(await look(owner, id)).toMatchObject({ state: "done", doneBytes: bytes.length });
  });

  test("[TF18] a built-in file is copied as it is read, and so are those of shared skills", async () => {
    const [owner, laptop] = [await client(), await machine("laptop")];
    const path = "skills/coding/SKILL.md";
    const { content } = await owner.ok<{ content: string }>("workspace.read", { path });
    await env.STORAGE.put("skills/shared/SKILL.md", "shared");
    const copies = [
      [path, content],
      ["skills/shared/SKILL.md", "shared"],
    ] as const;
    for (const [index, [source, text]] of copies.entries()) {
      const id = newId();
      await create(owner, id, `gsv:${source}`, `laptop:${index}.md`);
      const asked = await laptop.asked("transfer.receive", index);
      const size = new TextEncoder().encode(text).length;
      expect(asked).toMatchObject({ size, sha256: await sha256(text) });
      await laptop.peer.ok("transfer.accept", { transferId: asked.transferId, offset: 0 });
      await laptop.peer.ok("transfer.ack", { transferId: asked.transferId, offset: size });
      await laptop.asked("transfer.end", index);
      const sent = laptop.chunks.filter(({ attemptId }) => attemptId === asked.transferId);
      expect(new TextDecoder().decode(sent[0]?.bytes)).toBe(text);
      await laptop.peer.ok("transfer.done", { transferId: asked.transferId, bytesWritten: size, sha256: await sha256(text) });
      expect(await ended(owner, id)).toMatchObject({ state: "done", doneBytes: size });
    }
    await env.STORAGE.put("agents/main/skills/coding/SKILL.md", "my own");
    await create(owner, newId(), `gsv:${path}`, "laptop:own.md");
    expect(await laptop.asked("transfer.receive", 2)).toMatchObject({ size: 6, sha256: await sha256("my own") });
    const folder = { id: newId(), source: "gsv:skills/meeting-notes", destination: "laptop:x" };
    expect(await owner.refused("transfer.create", folder)).toMatchObject({ reason: "transfer.bad_endpoint" });
  });

  test("[TF3] a machine that reports another checksum has not succeeded", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await takeAll(laptop, attemptId);
    await laptop.asked("transfer.end");
    await laptop.peer.ok("transfer.done", { transferId: attemptId, bytesWritten: bytes.length, sha256: await sha256("other") });
    expect(await look(owner, id)).toMatchObject({ state: "failed", reason: "transfer.checksum" });
  });

  test("[TF3] [TF4] [P18] what the machine had was no beginning of the file: the copy begins again by itself, once, and from the start", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.accept", { transferId: attemptId, offset: bytes.length });
    await laptop.asked("transfer.end");
    const wrong = { bytesWritten: 0, error: "the copy differs from its source", reason: "transfer.checksum" };
    await laptop.peer.ok("transfer.done", { transferId: attemptId, ...wrong });
    const again = await laptop.asked("transfer.receive", 1);
    expect(again).toMatchObject({ id, sha256: await sum(bytes) });
    expect(await look(owner, id)).toMatchObject({ state: "running", doneBytes: 0 });
    const before = laptop.peer.events("transfer.end").length;
    await takeAll(laptop, again.transferId);
    await laptop.asked("transfer.end", before);
    await laptop.peer.ok("transfer.done", { transferId: again.transferId, bytesWritten: bytes.length, sha256: await sum(bytes) });
    expect(await look(owner, id)).toMatchObject({ state: "done", doneBytes: bytes.length });
  });

  test("[TF3] a machine that says again that it has a part, and of which the copy differs again, has failed, also after a restart", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.accept", { transferId: attemptId, offset: bytes.length });
    await laptop.asked("transfer.end");
    await laptop.peer.ok("transfer.done", { transferId: attemptId, bytesWritten: bytes.length, sha256: await sha256("other") });
    const again = await laptop.asked("transfer.receive", 1);
    await evict(gateway(), { webSockets: "hibernate" });
    await laptop.peer.refused("transfer.accept", { transferId: again.transferId, offset: 0 });
    const { transferId } = await laptop.asked("transfer.receive", 2);
    const before = laptop.peer.events("transfer.end").length;
    await laptop.peer.ok("transfer.accept", { transferId, offset: bytes.length });
    await laptop.asked("transfer.end", before);
    await laptop.peer.ok("transfer.done", { transferId, bytesWritten: bytes.length, sha256: await sha256("other") });
    expect(await look(owner, id)).toMatchObject({ state: "failed", reason: "transfer.checksum" });
  });

  test("[TF4] [TF5] [K30] a machine that was cut off goes on where it is, also right before the end", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.accept", { transferId: attemptId, offset: 0 });
    await until("a chunk", () => laptop.chunks.length > 0);
    laptop.peer.socket.close(1000);
    const back = await machine("laptop");
    const again = await back.asked("transfer.receive");
    expect(again.id).toBe(id);
    await back.peer.ok("transfer.accept", { transferId: again.transferId, offset: bytes.length - 2 });
    expect(await back.asked("transfer.end")).toMatchObject({ sha256: await sum(bytes) });
    expect(back.chunks.map(({ bytes: part }) => [...part])).toEqual([[...bytes.subarray(-2)]]);
    // It has stored the file, and its answer is lost.
    await evict(gateway(), { webSockets: "hibernate" });
    await back.peer.refused("transfer.done", { transferId: again.transferId, bytesWritten: bytes.length, sha256: await sum(bytes) });
    const third = await back.asked("transfer.receive", 1);
    await back.peer.ok("transfer.accept", { transferId: third.transferId, offset: bytes.length });
    await until("the end", () => back.peer.events("transfer.end")[1]);
    await back.peer.ok("transfer.done", { transferId: third.transferId, bytesWritten: bytes.length, sha256: await sum(bytes) });
    expect(await look(owner, id)).toMatchObject({ state: "done" });
  });

  test("[TF6] a file that changes meanwhile fails with its own code, and the machine drops what it has", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await env.STORAGE.put("agents/main/a.bin", "other");
    await laptop.peer.ok("transfer.accept", { transferId: attemptId, offset: 0 });
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "transfer.source_changed" });
    expect((await laptop.asked("transfer.end")).error).toMatch(/changed/);
  });

  test("[TF8] a machine that was away when the transfer ended is told to remove its temporary file", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.accept", { transferId: attemptId, offset: 0 });
    laptop.peer.socket.close(1000);
    await eventually(async () => expect(await look(owner, id)).toMatchObject({ state: "waiting" }));
    await owner.ok("transfer.cancel", { id });
    expect(await look(owner, id)).toMatchObject({ state: "failed", reason: "transfer.cancelled" });
    const back = await machine("laptop");
    expect(await back.asked("transfer.end")).toMatchObject({ id, path: "b.bin", error: expect.any(String) });
    expect(back.peer.events("transfer.receive")).toEqual([]);
  });
});

test("[TF1] one machine's file becomes another's, through the gateway", async () => {
  const [owner, desk, laptop, id] = [await client(), await machine("desk"), await machine("laptop"), newId()];
  const bytes = bytesOf(LIMITS.transferChunkBytes * 2 + 9);
  await create(owner, id, "desk:a", "laptop:b");
  const { transferId: from } = await desk.asked("transfer.send");
  await desk.peer.ok("transfer.meta", { transferId: from, size: bytes.length, version: "v1" });
  const { transferId: to } = await laptop.asked("transfer.receive");
  await laptop.peer.ok("transfer.accept", { transferId: to, offset: 0 });
  await desk.asked("transfer.start");
  desk.push(from, bytes);
  await desk.peer.ok("transfer.complete", { transferId: from, sha256: await sum(bytes) });
  expect(await laptop.asked("transfer.end")).toMatchObject({ sha256: await sum(bytes) });
  expect(laptop.chunks.flatMap(({ bytes: part }) => [...part]).length).toBe(bytes.length);
  await laptop.peer.ok("transfer.ack", { transferId: to, offset: bytes.length });
  await laptop.peer.ok("transfer.done", { transferId: to, bytesWritten: bytes.length, sha256: await sum(bytes) });
  expect(await look(owner, id)).toMatchObject({ state: "done" });
});
