/**
 * A machine's file becomes one of the workspace: checked, resumed after an interruption, and only from the right connection. The
 * machines are fakes on real sockets; the gateway and its bucket are real.
 */
import { env } from "cloudflare:workers";
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { transferPartKey } from "../../../src/storage/keys.ts";
import { client, eventually, fakeSessions, gateway, type Peer, seed, sha256, until } from "../../support/gateway.ts";
import { bytesOf, type Machine, machine, newId, sum } from "./fake-machine.ts";
import { evict } from "../../support/evict.ts";
import { alarmAt, create, ended, KEY, look, parts } from "./support.ts";

beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("a machine's file becomes one of the workspace", () => {
  const PART = LIMITS.transferStoredBytes;
  const bucket = Object.getPrototypeOf(env.STORAGE) as R2Bucket;
  const bytes = bytesOf(PART + LIMITS.transferPartBytes + 1000);
  async function begin(): Promise<{ owner: Peer; laptop: Machine; id: string; attemptId: number }> {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await create(owner, id, "laptop:a.bin", "gsv:in/b.bin");
    const { transferId: attemptId, path } = await laptop.asked("transfer.send");
    expect(path).toBe("a.bin");
    return { owner, laptop, id, attemptId };
  }

  test("[TF1] [TF3] [P18] its checksum is verified by the bucket before it counts, and nothing else stays", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: bytes.length, version: "v1" });
    expect((await laptop.asked("transfer.start")).offset).toBe(0);
    laptop.push(attemptId, bytes.subarray(0, LIMITS.transferWindowBytes));
    await until("the window", () => laptop.peer.events("transfer.ack").length === 2);
    await laptop.fill(attemptId, bytes, LIMITS.transferWindowBytes);
    await laptop.peer.ok("transfer.complete", { transferId: attemptId, sha256: await sum(bytes) });
    expect(await ended(owner, id)).toMatchObject({ state: "done", doneBytes: bytes.length, sha256: await sum(bytes) });
    const stored = await env.STORAGE.get(KEY);
    expect(await sum(new Uint8Array((await stored?.arrayBuffer()) ?? new ArrayBuffer(0)))).toBe(await sum(bytes));
    expect(stored?.customMetadata).toMatchObject({ by: expect.stringMatching(/^client:/) });
    await eventually(async () => expect(await parts(id)).toBe(0));
  });

  test("[TF3] [W11] a copy with another checksum fails, and there is no file", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: 1000, version: "v1" });
    await laptop.asked("transfer.start");
    laptop.push(attemptId, bytes.subarray(0, 1000));
    await laptop.peer.ok("transfer.complete", { transferId: attemptId, sha256: await sha256("other") });
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "transfer.checksum" });
    expect(await env.STORAGE.head(KEY)).toBeNull();
    await eventually(async () => expect(await parts(id)).toBe(0));
  });

  test("[TF4] [K29] [W11] [W12] after an eviction it goes on at the stored part, and late chunks of the attempt before change nothing", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: bytes.length, version: "v1" });
    await laptop.asked("transfer.start");
    await laptop.fill(attemptId, bytes, 0, PART + LIMITS.transferChunkLeastBytes);
    await eventually(async () => expect(await look(owner, id)).toMatchObject({ doneBytes: PART }));
    await evict(gateway(), { webSockets: "hibernate" });
    laptop.push(attemptId, bytesOf(700).fill(7));
    const again = await laptop.asked("transfer.send", 1);
    expect(again.transferId).not.toBe(attemptId);
    laptop.push(attemptId, bytesOf(700).fill(7));
    expect(await laptop.peer.refused("transfer.complete", { transferId: attemptId, sha256: await sum(bytes) })).toMatchObject({
      reason: "transfer.unknown",
    });
    await laptop.peer.ok("transfer.meta", { transferId: again.transferId, size: bytes.length, version: "v1" });
    const { offset } = await laptop.asked("transfer.start", 1);
    expect(offset).toBe(PART);
    await laptop.fill(again.transferId, bytes, PART);
    await laptop.peer.ok("transfer.complete", { transferId: again.transferId, sha256: await sum(bytes) });
    expect(await ended(owner, id)).toMatchObject({ state: "done", sha256: await sum(bytes) });
  });

  test("[TF3] [TF4] parts that are no beginning of the file are written again, once, by the same copy", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: bytes.length, version: "v1" });
    await laptop.asked("transfer.start");
    await laptop.fill(attemptId, bytes, 0, PART + LIMITS.transferChunkLeastBytes);
    await eventually(async () => expect(await look(owner, id)).toMatchObject({ doneBytes: PART }));
    await env.STORAGE.put(transferPartKey(id, 0), new Uint8Array(PART));
    laptop.peer.socket.close(1000);
    const back = await machine("laptop");
    const second = await back.asked("transfer.send");
    await back.peer.ok("transfer.meta", { transferId: second.transferId, size: bytes.length, version: "v1" });
    expect((await back.asked("transfer.start")).offset).toBe(PART);
    await back.fill(second.transferId, bytes, PART);
    await back.peer.ok("transfer.complete", { transferId: second.transferId, sha256: await sum(bytes) });
    const third = await back.asked("transfer.send", 1);
    await back.peer.ok("transfer.meta", { transferId: third.transferId, size: bytes.length, version: "v1" });
    expect((await back.asked("transfer.start", 1)).offset).toBe(0);
    // The acknowledgements of the attempt before went beyond the first of this one.
    for (let at = 0; at < bytes.length; at += LIMITS.transferPartBytes) {
      const acked = back.peer.events("transfer.ack").length;
      const end = Math.min(at + LIMITS.transferPartBytes, bytes.length);
      back.push(third.transferId, bytes.subarray(at, end));
      if (end < bytes.length) await until("the part is taken", () => back.peer.events("transfer.ack").length > acked);
    }
    await back.peer.ok("transfer.complete", { transferId: third.transferId, sha256: await sum(bytes) });
    expect(await ended(owner, id)).toMatchObject({ state: "done", sha256: await sum(bytes) });
  });

  test("[TF6] a file that is another one after an interruption fails with its own code", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: 10, version: "v1" });
    await laptop.asked("transfer.start");
    laptop.peer.socket.close(1000);
    const back = await machine("laptop");
    const { transferId } = await back.asked("transfer.send");
    await back.peer.ok("transfer.meta", { transferId, size: 10, version: "v2" });
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "transfer.source_changed" });
  });

  test("[X1] chunks and messages of another connection are refused and change nothing", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    const thief = await machine("thief");
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: 3, version: "v1" });
    await laptop.asked("transfer.start");
    thief.push(attemptId, new Uint8Array([9, 9, 9]));
    owner.socket.send(new Uint8Array([0, 0, 0, 0, 9]));
    for (const [method, more] of [
      ["transfer.meta", { size: 3, version: "v1" }],
      ["transfer.complete", { sha256: await sha256("x") }],
      ["transfer.complete", { error: "no" }],
      ["transfer.accept", {}],
      ["transfer.ack", { offset: 1 }],
      ["transfer.done", { bytesWritten: 3, sha256: await sha256("x") }],
    ] as const) {
      expect(await thief.peer.refused(method, { transferId: attemptId, ...more })).toMatchObject({ reason: "transfer.unknown" });
      expect(await owner.refused(method, { transferId: attemptId, ...more })).toMatchObject({ reason: "transfer.unknown" });
    }
    // The right connection in the wrong part.
    expect(await laptop.peer.refused("transfer.done", { transferId: attemptId, bytesWritten: 3, sha256: await sha256("x") })).toMatchObject(
      {
        reason: "transfer.unknown",
      },
    );
    const mine = new Uint8Array([1, 2, 3]);
    laptop.push(attemptId, mine);
    await laptop.peer.ok("transfer.complete", { transferId: attemptId, sha256: await sum(mine) });
    expect(await ended(owner, id)).toMatchObject({ state: "done" });
    expect(new Uint8Array((await (await env.STORAGE.get(KEY))?.arrayBuffer()) ?? new ArrayBuffer(0))).toEqual(mine);
  });

  test("[TF2] while the bucket takes nothing, nothing is acknowledged, and a machine that sends more than a window is stopped", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    const put = vi.spyOn(bucket, "put").mockImplementation(() => new Promise<never>(() => undefined));
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: 100_000_000, version: "v1" });
    await laptop.asked("transfer.start");
    laptop.push(attemptId, bytes.subarray(0, LIMITS.transferWindowBytes));
    await until("a part is begun", () => put.mock.calls.length === 1);
    expect(await look(owner, id)).toMatchObject({ state: "running", doneBytes: 0 });
    expect(laptop.peer.events("transfer.ack")).toEqual([]);
    laptop.push(attemptId, new Uint8Array([1]));
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "transfer.failed" });
    expect((await laptop.asked("transfer.end")).error).toMatch(/rules/);
    put.mockRestore();
  });

  test("[TF4] [TF8] a bucket that fails in the middle of a part has nothing of it, and the next attempt sends it again", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    const put = vi.spyOn(bucket, "put").mockImplementationOnce(async (_key: string, body: unknown) => {
      const reader = (body as ReadableStream<Uint8Array>).getReader();
      for (let read = 0; read < LIMITS.transferPartBytes; ) read += (await reader.read()).value?.length ?? 0;
      throw new Error("the disk is full");
    });
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: bytes.length, version: "v1" });
    await laptop.asked("transfer.start");
    laptop.push(attemptId, bytes.subarray(0, LIMITS.transferWindowBytes));
    await eventually(async () => expect(await look(owner, id)).toMatchObject({ state: "waiting", doneBytes: 0 }));
    put.mockRestore();
    await alarmAt(Date.now() + 6_000);
    const { transferId: again } = await laptop.asked("transfer.send", 1);
    await laptop.peer.ok("transfer.meta", { transferId: again, size: bytes.length, version: "v1" });
    expect(await laptop.asked("transfer.start", 1)).toMatchObject({ transferId: again, offset: 0 });
    await laptop.fill(again, bytes, 0);
    await laptop.peer.ok("transfer.complete", { transferId: again, sha256: await sum(bytes) });
    expect(await ended(owner, id)).toMatchObject({ state: "done", sha256: await sum(bytes) });
  });

  test.each([
    ["goes away", (laptop: Machine) => laptop.peer.socket.close(1000)],
    ["sends a chunk more", (laptop: Machine, attemptId: number) => laptop.push(attemptId, new Uint8Array([1]))],
    [
      "reports an error",
      (laptop: Machine, attemptId: number) =>
        laptop.peer.send({ type: "req", id: "e", method: "transfer.complete", params: { transferId: attemptId, error: "no" } }),
    ],
  ] as const)("[TF5] [TF8] the copy ends as whole when its source has sent all and then %s", async (_what, disturb) => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: bytes.length, version: "v1" });
    await laptop.asked("transfer.start");
    await laptop.fill(attemptId, bytes, 0);
    const sha = await sum(bytes);
    await laptop.peer.ok("transfer.complete", { transferId: attemptId, sha256: sha });
    disturb(laptop, attemptId);
    expect(await ended(owner, id)).toMatchObject({ state: "done", sha256: sha });
    await eventually(async () => expect(await parts(id)).toBe(0));
  });

  test("[TF3] [W11] an id that is used again after its transfer was forgotten stores the new bytes", async () => {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    for (const [nth, content] of [bytesOf(3000), bytesOf(3000).fill(7)].entries()) {
      await create(owner, id, "laptop:a.bin", "gsv:in/b.bin", { force: true });
      const { transferId } = await laptop.asked("transfer.send", nth);
      await laptop.peer.ok("transfer.meta", { transferId, size: content.length, version: `v${nth}` });
      await laptop.asked("transfer.start", nth);
      laptop.push(transferId, content);
      await laptop.peer.ok("transfer.complete", { transferId, sha256: await sum(content) });
      expect(await ended(owner, id)).toMatchObject({ state: "done" });
      const stored = await env.STORAGE.get(KEY);
      expect(await sum(new Uint8Array((await stored?.arrayBuffer()) ?? new ArrayBuffer(0)))).toBe(await sum(content));
      await runInDurableObject(gateway(), (_object, { storage }) => void storage.sql.exec("DELETE FROM transfers"));
    }
  });

  test("[TF3] an empty file with another checksum fails at once", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: 0, version: "v1" });
    await laptop.asked("transfer.start");
    await laptop.peer.ok("transfer.complete", { transferId: attemptId, sha256: await sha256("other") });
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "transfer.checksum" });
  });

  test("[TF1] a connection that sends many chunks of no transfer is closed", async () => {
    const { owner, laptop, attemptId } = await begin();
    const stranger = await machine("stranger");
    for (let nth = 0; nth <= LIMITS.strayChunksPerMinute; nth++) stranger.push(attemptId + 1, new Uint8Array([nth & 0xff]));
    await until("the connection is closed", () => stranger.peer.closed !== undefined || undefined);
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: 1, version: "v1" });
    owner.socket.close(1000);
  });

  test("[TF8] the write of an unfinished part ends with its copy", async () => {
    const { owner, laptop, id, attemptId } = await begin();
    const written = vi.spyOn(bucket, "put");
    await laptop.peer.ok("transfer.meta", { transferId: attemptId, size: bytes.length, version: "v1" });
    await laptop.asked("transfer.start");
    laptop.push(attemptId, bytes.subarray(0, LIMITS.transferPartBytes));
    await laptop.asked("transfer.ack");
    await owner.ok("transfer.cancel", { id });
    await expect(written.mock.results[0]?.value).rejects.toThrow();
    expect(await parts(id)).toBe(0);
  });
});
