/**
 * A transfer that does not move is begun again and ends in time, and its parts are removed. The machines are fakes on real sockets; the
 * gateway and its bucket are real.
 */
import { env } from "cloudflare:workers";
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { transferPartKey } from "../../../src/storage/keys.ts";
import { client, eventually, fakeSessions, gateway, seed, until } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";
import { type Machine, machine, newId, sum } from "./fake-machine.ts";
import { alarmAt, create, ended, look, parts } from "./support.ts";

beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** A copy between two machines whose destination was asked. */
async function offered() {
  const [owner, desk, laptop, id] = [await client(), await machine("desk"), await machine("laptop"), newId()];
  await create(owner, id, "desk:a", "laptop:b");
  const { transferId: from } = await desk.asked("transfer.send");
  await desk.peer.ok("transfer.meta", { transferId: from, size: 3, version: "v1" });
  const { transferId: to } = await laptop.asked("transfer.receive");
  return { owner, desk, laptop, id, from, to };
}
/** What happens at this time. */
async function at<T>(time: number, work: () => Promise<T>): Promise<T> {
  const now = vi.spyOn(Date, "now").mockReturnValue(time);
  try {
    return await work();
  } finally {
    now.mockRestore();
  }
}
const nextDue = (id: string): Promise<number> =>
  runInDurableObject(gateway(), (_object, { storage }) =>
    Number(storage.sql.exec("SELECT due_at FROM transfers WHERE id = ?", id).one()["due_at"]),
  );

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
    await alarmAt(begun + 299_000);
    expect(await look(owner, id)).toMatchObject({ state: "running" });
    await alarmAt(begun + 301_000);
    expect(await look(owner, id)).toMatchObject({
      state: "failed",
      reason: "transfer.interrupted",
      problem: expect.stringContaining("five minutes"),
    });
    expect(laptop.peer.events("transfer.send")).toHaveLength(3);
  });

  test("[TF10] ends after five minutes by the gateway's own alarm, and not a minute later", async () => {
    const [owner, id] = [await client(), newId()];
    await machine("laptop");
    const begun = Date.now();
    await create(owner, id, "laptop:a", "gsv:b");
    for (;;) {
      const { state } = await look(owner, id);
      if (state === "failed") break;
      await alarmAt(await nextDue(id));
    }
    expect((await ended(owner, id)).endedAt).toBeLessThan(begun + LIMITS.transferIdleMs + 5_000);
  });

  test("[TF17] an end that reads for long and says that it is alive keeps its attempt, and goes on", async () => {
    const { owner, desk, laptop, id, from, to } = await offered();
    const begun = Date.now();
    const sayAlive = async (who: Machine, transferId: number, untilMs: number, fromMs = 0): Promise<void> => {
      for (let ms = fromMs + 20_000; ms <= untilMs; ms += 20_000) {
        await alarmAt(begun + ms);
        await at(begun + ms, () => who.peer.ok("transfer.alive", { transferId }));
      }
    };
    // The destination reads what it has, and then the source what comes before.
    await sayAlive(laptop, to, 400_000);
    await at(begun + 410_000, () => laptop.peer.ok("transfer.accept", { transferId: to, offset: 2 }));
    await desk.asked("transfer.start");
    await sayAlive(desk, from, 800_000, 410_000);
    expect(desk.peer.events("transfer.send")).toHaveLength(1);
    expect(laptop.peer.events("transfer.receive")).toHaveLength(1);
    const bytes = new Uint8Array([1, 2, 3]);
    await at(begun + 820_000, async () => {
      desk.push(from, bytes.subarray(2));
      await desk.peer.ok("transfer.complete", { transferId: from, sha256: await sum(bytes) });
      await laptop.asked("transfer.end");
      await laptop.peer.ok("transfer.done", { transferId: to, bytesWritten: 3, sha256: await sum(bytes) });
    });
    expect(await look(owner, id)).toMatchObject({ state: "done" });
  });

  test("[TF17] an end that is silent for as long loses its attempt, and has five minutes after its last sign of life", async () => {
    const { owner, desk, laptop, id, to } = await offered();
    const begun = Date.now();
    for (let ms = 20_000; ms <= 280_000; ms += 20_000) await at(begun + ms, () => laptop.peer.ok("transfer.alive", { transferId: to }));
    await alarmAt(begun + 401_000);
    expect(desk.peer.events("transfer.send")).toHaveLength(2);
    expect((await laptop.peer.refused("transfer.alive", { transferId: to })).reason).toBe("transfer.unknown");
    await alarmAt(begun + 579_000);
    expect(await look(owner, id)).toMatchObject({ state: "running" });
    await alarmAt(begun + 581_000);
    expect(await look(owner, id)).toMatchObject({ state: "failed", reason: "transfer.interrupted" });
  });

  test("[TF17] an end that says without end that it is alive ends an hour after the last byte, over all its attempts", async () => {
    const { owner, laptop, id, to } = await offered();
    const begun = Date.now();
    const say = (transferId: number, ms: number): Promise<unknown> =>
      at(begun + ms, () => laptop.peer.ok("transfer.alive", { transferId }));
    for (let ms = 60_000; ms < LIMITS.transferAliveMs / 2; ms += 60_000) await say(to, ms);
    await at(begun + LIMITS.transferAliveMs / 2, () => evict(gateway(), { webSockets: "hibernate" }));
    const desk = await machine("desk");
    const { transferId: source } = await desk.asked("transfer.send");
    await desk.peer.ok("transfer.meta", { transferId: source, size: 3, version: "v1" });
    const { transferId: again } = await laptop.asked("transfer.receive", 1);
    for (let ms = LIMITS.transferAliveMs / 2; ms < LIMITS.transferAliveMs - 10_000; ms += 60_000) await say(again, ms);
    expect(await look(owner, id)).toMatchObject({ state: "running" });
    await say(again, LIMITS.transferAliveMs + 5_000);
    expect(await look(owner, id)).toMatchObject({
      state: "failed",
      reason: "transfer.interrupted",
      problem: expect.stringContaining("an hour"),
    });
    expect((await laptop.asked("transfer.end", laptop.peer.events("transfer.end").length - 1)).error).toMatch(/an hour/);
  });

  test("[TF17] [X1] only an end of this attempt says that it is alive", async () => {
    const { owner, from, to } = await offered();
    const stranger = await machine("stranger");
    for (const transferId of [from, to])
      for (const { peer } of [stranger, { peer: owner }])
        expect((await peer.refused("transfer.alive", { transferId })).reason).toBe("transfer.unknown");
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
