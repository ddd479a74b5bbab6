/**
 * A transfer that does not move is begun again and ends in time, and its parts are removed. The machines are fakes on real sockets; the
 * gateway and its bucket are real.
 */
import { env } from "cloudflare:workers";
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { transferPartKey } from "../../../src/storage/keys.ts";
import { client, eventually, fakeSessions, seed, until } from "../../support/gateway.ts";
import { machine, newId, sum } from "./fake-machine.ts";
import { alarmAt, create, ended, look, parts } from "./support.ts";

beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

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
