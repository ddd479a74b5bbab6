/** Transfers on the real wire: fake machines, the gateway object, and its bucket. */
import { env } from "cloudflare:workers";
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { transferPartKey } from "../../../src/storage/keys.ts";
import { client, eventually, fakeSessions, gateway, node, type Peer, seed, sha256, token, until } from "../../support/gateway.ts";
import { bytesOf, Machine, machine, newId, sum } from "./machine.ts";
import { evict } from "../../support/evict.ts";

beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Shown = { transfer: { state: string; reason?: string; doneBytes: number; sha256?: string; sizeBytes?: number } };
const look = async (peer: Peer, id: string): Promise<Shown["transfer"]> => (await peer.ok<Shown>("transfer.get", { id })).transfer;
async function ended(peer: Peer, id: string): Promise<Shown["transfer"]> {
  for (;;) {
    const seen = await look(peer, id);
    if (seen.state === "done" || seen.state === "failed") return seen;
    await scheduler.wait(5);
  }
}
const create = (peer: Peer, id: string, source: string, destination: string, more = {}) =>
  peer.ok<Shown>("transfer.create", { id, source, destination, ...more });
const KEY = "agents/main/in/b.bin";
const parts = async (id: string): Promise<number> => (await env.STORAGE.list({ prefix: `transfers/${id}/` })).objects.length;

describe("a machine's file becomes one of the workspace", () => {
  const PART = LIMITS.transferStoredBytes;
  const bytes = bytesOf(PART + LIMITS.transferPartBytes + 1000);
  async function begin(): Promise<{ owner: Peer; laptop: Machine; id: string; lane: number }> {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await create(owner, id, "laptop:a.bin", "gsv:in/b.bin");
    const { transferId: lane, path } = await laptop.asked("transfer.send");
    expect(path).toBe("a.bin");
    return { owner, laptop, id, lane };
  }

  test("[TF1] [TF3] [P18] its checksum is verified by the bucket before it counts, and nothing else stays", async () => {
    const { owner, laptop, id, lane } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: lane, size: bytes.length, version: "v1" });
    expect((await laptop.asked("transfer.start")).offset).toBe(0);
    laptop.push(lane, bytes.subarray(0, LIMITS.transferWindowBytes));
    await until("the window", () => laptop.peer.events("transfer.ack").length === 2);
    await laptop.fill(lane, bytes, LIMITS.transferWindowBytes);
    await laptop.peer.ok("transfer.complete", { transferId: lane, sha256: await sum(bytes) });
    expect(await ended(owner, id)).toMatchObject({ state: "done", doneBytes: bytes.length, sha256: await sum(bytes) });
    const stored = await env.STORAGE.get(KEY);
    expect(await sum(new Uint8Array((await stored?.arrayBuffer()) ?? new ArrayBuffer(0)))).toBe(await sum(bytes));
    expect(stored?.customMetadata).toMatchObject({ by: expect.stringMatching(/^client:/) });
    await eventually(async () => expect(await parts(id)).toBe(0));
  });

  test("[TF3] [W11] a copy with another checksum fails, and there is no file", async () => {
    const { owner, laptop, id, lane } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: lane, size: 1000, version: "v1" });
    await laptop.asked("transfer.start");
    laptop.push(lane, bytes.subarray(0, 1000));
    await laptop.peer.ok("transfer.complete", { transferId: lane, sha256: await sha256("other") });
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "transfer.checksum" });
    expect(await env.STORAGE.head(KEY)).toBeNull();
    await eventually(async () => expect(await parts(id)).toBe(0));
  });

  test("[TF4] [K29] [W11] [W12] after an eviction it goes on at the stored part, and late chunks of the attempt before change nothing", async () => {
    const { owner, laptop, id, lane } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: lane, size: bytes.length, version: "v1" });
    await laptop.asked("transfer.start");
    await laptop.fill(lane, bytes, 0, PART + 500);
    await eventually(async () => expect(await look(owner, id)).toMatchObject({ doneBytes: PART }));
    await evict(gateway(), { webSockets: "hibernate" });
    laptop.push(lane, bytesOf(700).fill(7));
    const again = await laptop.asked("transfer.send", 1);
    expect(again.transferId).not.toBe(lane);
    laptop.push(lane, bytesOf(700).fill(7));
    expect(await laptop.peer.refused("transfer.complete", { transferId: lane, sha256: await sum(bytes) })).toMatchObject({
      reason: "transfer.unknown",
    });
    await laptop.peer.ok("transfer.meta", { transferId: again.transferId, size: bytes.length, version: "v1" });
    const { offset } = await laptop.asked("transfer.start", 1);
    expect(offset).toBe(PART);
    await laptop.fill(again.transferId, bytes, PART);
    await laptop.peer.ok("transfer.complete", { transferId: again.transferId, sha256: await sum(bytes) });
    expect(await ended(owner, id)).toMatchObject({ state: "done", sha256: await sum(bytes) });
  });

  test("[TF6] a file that is another one after an interruption fails with its own code", async () => {
    const { owner, laptop, id, lane } = await begin();
    await laptop.peer.ok("transfer.meta", { transferId: lane, size: 10, version: "v1" });
    await laptop.asked("transfer.start");
    laptop.peer.socket.close(1000);
    const back = await machine("laptop");
    const { transferId } = await back.asked("transfer.send");
    await back.peer.ok("transfer.meta", { transferId, size: 10, version: "v2" });
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "transfer.source_changed" });
  });

  test("[X1] chunks and messages of another connection are refused and change nothing", async () => {
    const { owner, laptop, id, lane } = await begin();
    const thief = await machine("thief");
    await laptop.peer.ok("transfer.meta", { transferId: lane, size: 3, version: "v1" });
    await laptop.asked("transfer.start");
    thief.push(lane, new Uint8Array([9, 9, 9]));
    owner.socket.send(new Uint8Array([0, 0, 0, 0, 9]));
    for (const [method, more] of [
      ["transfer.meta", { size: 3, version: "v1" }],
      ["transfer.complete", { sha256: await sha256("x") }],
      ["transfer.complete", { error: "no" }],
      ["transfer.accept", {}],
      ["transfer.ack", { offset: 1 }],
      ["transfer.done", { bytesWritten: 3, sha256: await sha256("x") }],
    ] as const) {
      expect(await thief.peer.refused(method, { transferId: lane, ...more })).toMatchObject({ reason: "transfer.unknown" });
      expect(await owner.refused(method, { transferId: lane, ...more })).toMatchObject({ reason: "transfer.unknown" });
    }
    // The right connection in the wrong part.
    expect(await laptop.peer.refused("transfer.done", { transferId: lane, bytesWritten: 3, sha256: await sha256("x") })).toMatchObject({
      reason: "transfer.unknown",
    });
    const mine = new Uint8Array([1, 2, 3]);
    laptop.push(lane, mine);
    await laptop.peer.ok("transfer.complete", { transferId: lane, sha256: await sum(mine) });
    expect(await ended(owner, id)).toMatchObject({ state: "done" });
    expect(new Uint8Array((await (await env.STORAGE.get(KEY))?.arrayBuffer()) ?? new ArrayBuffer(0))).toEqual(mine);
  });

  test("[TF2] while the bucket stores nothing two parts are taken, and a machine that sends more than a window beyond is stopped", async () => {
    const { owner, laptop, id, lane } = await begin();
    const put = vi
      .spyOn(Object.getPrototypeOf(env.STORAGE) as R2Bucket, "put")
      .mockImplementation(() => new Promise<never>(() => undefined));
    await laptop.peer.ok("transfer.meta", { transferId: lane, size: 100_000_000, version: "v1" });
    await laptop.asked("transfer.start");
    const content = new Uint8Array(2 * PART);
    await laptop.fill(lane, content, 0);
    laptop.push(lane, bytes.subarray(0, LIMITS.transferWindowBytes));
    expect(await look(owner, id)).toMatchObject({ state: "running", doneBytes: 0 });
    expect(laptop.peer.events("transfer.ack").at(-1)?.payload).toMatchObject({ offset: content.length });
    laptop.push(lane, new Uint8Array([1]));
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "transfer.failed" });
    expect((await laptop.asked("transfer.end")).error).toMatch(/rules/);
    put.mockRestore();
  });
});

describe("a file of the workspace becomes one of a machine", () => {
  const bytes = bytesOf(LIMITS.transferWindowBytes + 3 * LIMITS.transferChunkBytes + 5);
  async function begin(): Promise<{ owner: Peer; laptop: Machine; id: string; lane: number }> {
    await env.STORAGE.put("agents/main/a.bin", bytes);
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await create(owner, id, "gsv:a.bin", "laptop:b.bin");
    const asked = await laptop.asked("transfer.receive");
    expect(asked).toMatchObject({ path: "b.bin", size: bytes.length, id, sha256: await sum(bytes) });
    return { owner, laptop, id, lane: asked.transferId };
  }
  const taken = ({ chunks }: Machine): number => chunks.reduce((all, { bytes: part }) => all + part.length, 0);

  test("[TF2] [P18] at most a window is on the way, and success waits for the machine's word", async () => {
    const { owner, laptop, id, lane } = await begin();
    await laptop.peer.ok("transfer.accept", { transferId: lane, offset: 0 });
    await until("a window", () => taken(laptop) === LIMITS.transferWindowBytes);
    await laptop.peer.ok("transfer.ack", { transferId: lane, offset: 1 });
    expect(taken(laptop)).toBe(LIMITS.transferWindowBytes);
    await laptop.peer.ok("transfer.ack", { transferId: lane, offset: LIMITS.transferWindowBytes });
    expect(await laptop.asked("transfer.end")).toMatchObject({ transferId: lane, sha256: await sum(bytes) });
    const all = new Uint8Array(bytes.length);
    let at = 0;
    for (const { lane: of, bytes: part } of laptop.chunks) {
      expect(of).toBe(lane);
      all.set(part, at);
      at += part.length;
    }
    expect(await sum(all)).toBe(await sum(bytes));
    expect(await look(owner, id)).toMatchObject({ state: "storing" });
    await laptop.peer.ok("transfer.done", { transferId: lane, bytesWritten: bytes.length, sha256: await sum(bytes) });
    expect(await look(owner, id)).toMatchObject({ state: "done", doneBytes: bytes.length });
  });

  test("[TF3] a machine that reports another checksum has not succeeded", async () => {
    const { owner, laptop, id, lane } = await begin();
    await laptop.peer.ok("transfer.accept", { transferId: lane, offset: bytes.length });
    await laptop.asked("transfer.end");
    await laptop.peer.ok("transfer.done", { transferId: lane, bytesWritten: bytes.length, sha256: await sha256("other") });
    expect(await look(owner, id)).toMatchObject({ state: "failed", reason: "transfer.checksum" });
  });

  test("[TF4] [TF5] [K30] a machine that was cut off goes on where it is, also right before the end", async () => {
    const { owner, laptop, id, lane } = await begin();
    await laptop.peer.ok("transfer.accept", { transferId: lane, offset: 0 });
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
    const { owner, laptop, id, lane } = await begin();
    await env.STORAGE.put("agents/main/a.bin", "other");
    await laptop.peer.ok("transfer.accept", { transferId: lane, offset: 0 });
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "transfer.source_changed" });
    expect((await laptop.asked("transfer.end")).error).toMatch(/changed/);
  });

  test("[TF8] a machine that was away when the transfer ended is told to remove its temporary file", async () => {
    const { owner, laptop, id, lane } = await begin();
    await laptop.peer.ok("transfer.accept", { transferId: lane, offset: 0 });
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

const alarmAt = async (at: number): Promise<void> => {
  const now = vi.spyOn(Date, "now").mockReturnValue(at);
  await runInDurableObject(gateway(), (object) => object.alarm());
  now.mockRestore();
};

describe("a transfer that does not move", () => {
  test("[TF10] is begun again while its machine is silent, and fails after five minutes in all", async () => {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await create(owner, id, "laptop:a", "gsv:b");
    const begun = Date.now();
    for (const nth of [1, 2]) {
      await alarmAt(begun + nth * 125_000);
      await laptop.asked("transfer.send", nth);
    }
    expect(await look(owner, id)).toMatchObject({ state: "running" });
    await alarmAt(begun + 380_000);
    expect(await look(owner, id)).toMatchObject({ state: "failed", reason: "transfer.interrupted" });
    expect(laptop.peer.events("transfer.send")).toHaveLength(3);
  });

  test("[TF10] a file that is checked and stored for longer than that is no end, while the bucket takes it", async () => {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await create(owner, id, "laptop:a", "gsv:b");
    const begun = Date.now();
    const { transferId } = await laptop.asked("transfer.send");
    await laptop.peer.ok("transfer.meta", { transferId, size: 3, version: "v1" });
    await laptop.asked("transfer.start");
    laptop.push(transferId, new Uint8Array([1, 2, 3]));
    await laptop.asked("transfer.ack");
    let taken = 0;
    const put = vi.spyOn(Object.getPrototypeOf(env.STORAGE) as R2Bucket, "put").mockImplementation(async (_key: string, body: unknown) => {
      taken = (await new Response(body as ReadableStream).arrayBuffer()).byteLength;
      return new Promise<never>(() => undefined);
    });
    const now = vi.spyOn(Date, "now").mockReturnValue(begun + 290_000);
    await laptop.peer.ok("transfer.complete", { transferId, sha256: await sum(new Uint8Array([1, 2, 3])) });
    await until("the bucket has taken the file", () => taken === 3);
    now.mockRestore();
    await alarmAt(begun + 310_000);
    expect(await look(owner, id)).toMatchObject({ state: "storing" });
    await alarmAt(begun + 415_000);
    expect(await look(owner, id)).toMatchObject({ state: "failed", reason: "transfer.interrupted" });
    put.mockRestore();
  });

  test("[TF8] a bucket that can't be written is asked again for a minute, and then its error is told", async () => {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await create(owner, id, "laptop:a", "gsv:b");
    const put = vi.spyOn(Object.getPrototypeOf(env.STORAGE) as R2Bucket, "put").mockRejectedValue(new Error("the disk is full"));
    const send = async (nth: number): Promise<void> => {
      const { transferId } = await laptop.asked("transfer.send", nth);
      await laptop.peer.ok("transfer.meta", { transferId, size: 1, version: "v1" });
      await laptop.asked("transfer.start", nth);
      laptop.push(transferId, new Uint8Array([1]));
    };
    await send(0);
    await eventually(async () => expect(await look(owner, id)).toMatchObject({ state: "waiting" }));
    const later = Date.now() + 61_000;
    await alarmAt(later);
    const now = vi.spyOn(Date, "now").mockReturnValue(later);
    await send(1);
    expect(await ended(owner, id)).toMatchObject({ state: "failed", reason: "storage.failed" });
    now.mockRestore();
    put.mockRestore();
  });
});

test("[TF8] parts that could not be removed at the end, or were stored after it, are removed later, before the transfer is forgotten", async () => {
  const [owner, id] = [await client(), newId()];
  await machine("laptop");
  await create(owner, id, "laptop:a", "gsv:in/b.bin");
  const part = (number: number) => env.STORAGE.put(transferPartKey(id, number), "part");
  await part(0);
  const remove = vi.spyOn(Object.getPrototypeOf(env.STORAGE) as R2Bucket, "delete").mockRejectedValue(new Error("the bucket is away"));
  await owner.ok("transfer.cancel", { id });
  await eventually(() => expect(remove).toHaveBeenCalled());
  const end = Date.now();
  await alarmAt(end + 61_000);
  await eventually(() => expect(remove).toHaveBeenCalledTimes(2));
  // A day later it is not listed any more, unless there is something left of it.
  await alarmAt(end + LIMITS.transferKeptMs + 120_000);
  await eventually(() => expect(remove).toHaveBeenCalledTimes(3));
  expect(await look(owner, id)).toMatchObject({ state: "failed" });
  remove.mockRestore();
  await part(1);
  await alarmAt(end + LIMITS.transferKeptMs + 240_000);
  await eventually(async () => expect(await parts(id)).toBe(0));
  await eventually(async () => {
    await alarmAt(end + LIMITS.transferKeptMs + 360_000);
    expect((await owner.refused("transfer.get", { id })).reason).toBe("transfer.unknown");
  });
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
    });
  });

  test("[TF10] the same request again is the same transfer, and another one with its id is refused", async () => {
    const [owner, laptop, id] = [await client(), await machine("laptop"), newId()];
    await create(owner, id, "laptop:a", "gsv:b");
    await create(owner, id, "laptop:a", "gsv:b");
    expect(await owner.refused("transfer.create", { id, source: "laptop:a", destination: "gsv:c" })).toMatchObject({
      reason: "protocol.invalid_params",
    });
    expect(laptop.peer.events("transfer.send")).toHaveLength(1);
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

describe("a program is an end of its own transfer", () => {
  const PART = LIMITS.transferStoredBytes;
  const bytes = bytesOf(PART + 5);
  const asked = { source: "@:/home/me/a.bin", destination: "gsv:in/b.bin" };

  test("[TF13] it sends its file, and goes on over its next connection with the same id", async () => {
    const id = newId();
    const first = new Machine(await client());
    await create(first.peer, id, asked.source, asked.destination);
    const { transferId: lane, path } = await first.asked("transfer.send");
    expect(path).toBe("/home/me/a.bin");
    await first.peer.ok("transfer.meta", { transferId: lane, size: bytes.length, version: "v1" });
    await first.asked("transfer.start");
    await first.fill(lane, bytes, 0, PART);
    await eventually(async () => expect(await look(first.peer, id)).toMatchObject({ doneBytes: PART }));
    first.peer.socket.close(1000);
    const second = new Machine(await client());
    await eventually(async () => expect(await look(second.peer, id)).toMatchObject({ state: "waiting" }));
    expect(second.peer.events("transfer.send")).toEqual([]);
    await create(second.peer, id, asked.source, asked.destination);
    const { transferId } = await second.asked("transfer.send");
    await second.peer.ok("transfer.meta", { transferId, size: bytes.length, version: "v1" });
    expect((await second.asked("transfer.start")).offset).toBe(PART);
    second.push(transferId, bytes.subarray(PART));
    await second.peer.ok("transfer.complete", { transferId, sha256: await sum(bytes) });
    expect(await ended(second.peer, id)).toMatchObject({ state: "done", sha256: await sum(bytes) });
  });

  test("[TF13] [X1] another program learns nothing of it, and gets no part in it", async () => {
    const [own, other, id] = [new Machine(await client()), new Machine(await client()), newId()];
    await create(own.peer, id, asked.source, asked.destination);
    const { transferId: lane } = await own.asked("transfer.send");
    for (const [method, more] of [
      ["transfer.meta", { size: 3, version: "v1" }],
      ["transfer.complete", { sha256: await sha256("x") }],
    ] as const)
      expect(await other.peer.refused(method, { transferId: lane, ...more })).toMatchObject({ reason: "transfer.unknown" });
    expect(other.peer.events("transfer.send")).toEqual([]);
    expect(await own.peer.refused("transfer.create", { id: newId(), source: "@:/a", destination: "@:/b" })).toMatchObject({
      reason: "transfer.bad_endpoint",
    });
  });

  test("[TF13] [X1] a program with another token that knows the request does not take it over", async () => {
    const tokens = [await token("client"), await token("client"), await token("admin")];
    await env.STORAGE.put("agents/main/a.bin", bytes);
    for (const [source, destination, event] of [
      [asked.source, asked.destination, "transfer.send"],
      ["gsv:a.bin", "@:/home/me/b.bin", "transfer.receive"],
    ] as const) {
      const id = newId();
      const own = new Machine(await client(tokens[0]?.token));
      await create(own.peer, id, source, destination);
      const { transferId: lane } = await own.asked(event);
      for (const { token: foreign } of tokens.slice(1)) {
        // Also when the gateway has nothing of it in its memory.
        const other = new Machine(await client(foreign));
        expect(await other.peer.refused("transfer.create", { id, source, destination })).toMatchObject({ reason: "auth.forbidden" });
        await evict(gateway());
        expect(await other.peer.refused("transfer.create", { id, source, destination })).toMatchObject({ reason: "auth.forbidden" });
        expect(other.peer.events(event)).toEqual([]);
        other.peer.socket.close(1000);
      }
      // Its own token may go on, on another connection.
      const again = new Machine(await client(tokens[0]?.token));
      await create(again.peer, id, source, destination);
      expect((await again.asked(event)).transferId).not.toBe(lane);
    }
  });

  test("[TF13] it receives a file", async () => {
    const small = bytesOf(LIMITS.transferPartBytes + 5);
    await env.STORAGE.put("agents/main/a.bin", small);
    const [own, id] = [new Machine(await client()), newId()];
    await create(own.peer, id, "gsv:a.bin", "@:/home/me/b.bin");
    const { transferId } = await own.asked("transfer.receive");
    await own.peer.ok("transfer.accept", { transferId, offset: 0 });
    await until("the file", () => own.chunks.reduce((all, { bytes: part }) => all + part.length, 0) === small.length);
    await own.peer.ok("transfer.ack", { transferId, offset: small.length });
    await own.asked("transfer.end");
    await own.peer.ok("transfer.done", { transferId, bytesWritten: small.length, sha256: await sum(small) });
    expect(await look(own.peer, id)).toMatchObject({ state: "done" });
  });
});
