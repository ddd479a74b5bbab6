/**
 * A program is an end of its own transfer, goes on over its next connection, and no other program gets a part in it. The gateway and
 * its bucket are real.
 */
import { env } from "cloudflare:workers";
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { client, eventually, fakeSessions, gateway, seed, sha256, token, until } from "../../support/gateway.ts";
import { bytesOf, Machine, machine, newId, sum } from "./fake-machine.ts";
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

describe("a program is an end of its own transfer", () => {
  const PART = LIMITS.transferStoredBytes;
  const bytes = bytesOf(PART + 5);
  const asked = { source: "@:/home/me/a.bin", destination: "gsv:in/b.bin" };

  test("[TF13] it sends its file, and goes on over its next connection with the same id", async () => {
    const id = newId();
    const first = new Machine(await client());
    await create(first.peer, id, asked.source, asked.destination);
    const { transferId: attemptId, path } = await first.asked("transfer.send");
    expect(path).toBe("/home/me/a.bin");
    await first.peer.ok("transfer.meta", { transferId: attemptId, size: bytes.length, version: "v1" });
    await first.asked("transfer.start");
    await first.fill(attemptId, bytes, 0, PART);
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

  test("[TF13] [W12] a program that loses its transfer to another connection is told at once, and keeps what it has", async () => {
    await env.STORAGE.put("agents/main/a.bin", bytesOf(1000));
    for (const [source, destination, event] of [
      [asked.source, asked.destination, "transfer.send"],
      ["gsv:a.bin", "@:/home/me/b.bin", "transfer.receive"],
    ] as const) {
      const [first, second, id] = [new Machine(await client()), new Machine(await client()), newId()];
      await create(first.peer, id, source, destination);
      const { transferId: lost } = await first.asked(event);
      await create(second.peer, id, source, destination);
      const { transferId } = await second.asked(event);
      const end = await first.asked("transfer.end");
      // With an error the file that the second one goes on with would be removed.
      expect(end).toEqual({ transferId: lost });
      expect(second.peer.events("transfer.end")).toEqual([]);
      const say = { transferId: lost, offset: 0 };
      expect((await first.peer.refused("transfer.ack", say)).reason).toBe("transfer.unknown");
      expect(await look(first.peer, id)).toMatchObject({ state: "running" });
      // And back, as after a reconnect of the first one.
      await create(first.peer, id, source, destination);
      await first.asked(event, 1);
      expect(await second.asked("transfer.end")).toEqual({ transferId });
      await first.peer.ok("transfer.cancel", { id });
    }
  });

  test("[TF13] a program whose attempt ended because the machine is away holds nothing when another connection takes over", async () => {
    const laptop = await machine("laptop");
    const [first, second, id] = [new Machine(await client()), new Machine(await client()), newId()];
    await create(first.peer, id, "laptop:a", "@:/home/me/b.bin");
    const { transferId: source } = await laptop.asked("transfer.send");
    await laptop.peer.ok("transfer.meta", { transferId: source, size: 3, version: "v1" });
    const { transferId } = await first.asked("transfer.receive");
    laptop.peer.socket.close(1000);
    expect(await first.asked("transfer.end")).toEqual({ transferId });
    await create(second.peer, id, "laptop:a", "@:/home/me/b.bin");
    const back = await machine("laptop");
    await back.peer.ok("transfer.meta", { transferId: (await back.asked("transfer.send")).transferId, size: 3, version: "v1" });
    await second.asked("transfer.receive");
    expect(first.peer.events("transfer.receive")).toHaveLength(1);
  });

  describe("[TF13] [P19] what it may send", () => {
    const minute = LIMITS.clientFramesPerMinute;
    /** How many of these requests are refused because there are too many. */
    async function refusals({ peer }: Machine, count: number, method: string, params: object): Promise<number> {
      const ids = Array.from({ length: count }, () => peer.ask(method, params));
      for (const one of ids.slice(-1)) await peer.answer(one);
      const asked = new Set(ids);
      return peer.frames.filter((frame) => frame.type === "res" && asked.has(frame.id) && frame.error?.reason === "limit.rate").length;
    }
    const unsubscribe = ["session.unsubscribe", { sessionKey: "main" }] as const;

    test("what it says of its transfer has the limit of a node, and all else that of a client", async () => {
      const [own, id] = [new Machine(await client()), newId()];
      await create(own.peer, id, asked.source, asked.destination);
      const { transferId } = await own.asked("transfer.send");
      expect(await refusals(own, LIMITS.nodeFramesPerSecond - 1, "transfer.alive", { transferId })).toBe(0);
      expect(await refusals(own, minute, ...unsubscribe)).toBe(1);
      await scheduler.wait(1000);
      expect(await refusals(own, LIMITS.nodeFramesPerSecond - 2, "transfer.alive", { transferId })).toBe(0);
      expect(await refusals(own, 1, "transfer.get", { id })).toBe(0);
      expect(await refusals(own, 1, ...unsubscribe)).toBe(1);
    });

    test("after its transfer, and after it has lost it, it has the limit of a client", async () => {
      const [own, other, id] = [new Machine(await client()), new Machine(await client()), newId()];
      await create(own.peer, id, asked.source, asked.destination);
      await create(other.peer, id, asked.source, asked.destination);
      await other.peer.ok("transfer.cancel", { id });
      for (const [machine, before] of [
        [own, 1],
        [other, 2],
      ] as const) {
        expect(await refusals(machine, minute - before, ...unsubscribe)).toBe(0);
        expect(await refusals(machine, 3, "transfer.ack", { transferId: 1, offset: 0 })).toBe(3);
      }
    });

    test("a frame that names two methods is counted as the one that is performed", async () => {
      const [own, id] = [new Machine(await client()), newId()];
      await create(own.peer, id, asked.source, asked.destination);
      await own.asked("transfer.send");
      expect(await refusals(own, minute - 1, ...unsubscribe)).toBe(0);
      own.peer.send('{"type":"req","id":"two","method":"transfer.ack","method":"session.unsubscribe","params":{"sessionKey":"main"}}');
      expect(await own.peer.answer("two")).toMatchObject({ ok: false, error: { reason: "limit.rate" } });
    });
  });

  test("[TF10] copies whose programs are gone do not keep others from theirs, and are bounded", async () => {
    const others = await client();
    const begun = async (nth: number): Promise<void> => {
      const gone = await client();
      await create(gone, newId(), asked.source, `gsv:left/${nth}`);
      gone.socket.close(1000);
    };
    for (let nth = 0; nth < LIMITS.transfers; nth++) await begun(nth);
    const id = newId();
    await eventually(async () => {
      const answer = await others.call("transfer.create", { id, ...asked });
      expect(answer.ok).toBe(true);
    });
    for (let nth = LIMITS.transfers + 1; nth < 4 * LIMITS.transfers; nth++)
      await eventually(async () => {
        const gone = await client();
        const answer = await gone.call("transfer.create", { id: newId(), source: asked.source, destination: `gsv:left/${nth}` });
        gone.socket.close(1000);
        expect(answer.ok).toBe(true);
      });
    expect(await others.refused("transfer.create", { id: newId(), source: asked.source, destination: "gsv:more" })).toMatchObject({
      reason: "transfer.busy",
      message: "16 transfers are open already; some wait for their programs.",
    });
  });

  /** Four copies whose programs went away, and four that were begun since and run. `back`: the programs of the first four come back. */
  async function crowd() {
    const left = Array.from({ length: LIMITS.transfers }, (_, nth) => ({ id: newId(), destination: `gsv:left/${nth}` }));
    for (const { id, destination } of left) {
      const gone = await client();
      await create(gone, id, asked.source, destination);
      gone.socket.close(1000);
      await eventually(async () => expect(await look(await client(), id)).toMatchObject({ state: "waiting" }));
    }
    const running = await Promise.all(
      left.map(async (_, nth) => {
        const [own, id] = [new Machine(await client()), newId()];
        await create(own.peer, id, asked.source, `gsv:new/${nth}`);
        return { own, id, attemptId: (await own.asked("transfer.send")).transferId };
      }),
    );
    const back: { own: Machine; id: string }[] = [];
    for (const { id, destination } of left) {
      const own = new Machine(await client());
      await create(own.peer, id, asked.source, destination);
      back.push({ own, id });
    }
    return { running, back };
  }
  const asks = ({ own }: { own: Machine }): number => own.peer.events("transfer.send").length;

  test("[TF10] [TF15] when programs come back, no more than four run, and each end lets the oldest go on", async () => {
    const { running, back } = await crowd();
    for (const { own, id } of back) expect(await look(own.peer, id)).toMatchObject({ state: "waiting" });
    expect(back.map(asks)).toEqual([0, 0, 0, 0]);
    const [first, second, third] = running;
    // A cancelled one, one whose program goes away, and one that ends.
    await first?.own.peer.ok("transfer.cancel", { id: first.id });
    await back[0]?.own.asked("transfer.send");
    expect(back.map(asks)).toEqual([1, 0, 0, 0]);
    second?.own.peer.socket.close(1000);
    await back[1]?.own.asked("transfer.send");
    await third?.own.peer.ok("transfer.meta", { transferId: third.attemptId, size: 0, version: "v1" });
    await third?.own.asked("transfer.start");
    await third?.own.peer.ok("transfer.complete", { transferId: third.attemptId, sha256: await sha256("") });
    await back[2]?.own.asked("transfer.send");
    expect(back.map(asks)).toEqual([1, 1, 1, 0]);
  });

  test("[TF10] a copy that waits for a slot does not end after five minutes, and has them when it runs", async () => {
    const { running, back } = await crowd();
    const [own] = back;
    if (own === undefined) throw new Error("no program came back");
    const begun = Date.now();
    let now = begun;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now);
    const fire = (): Promise<void> => runInDurableObject(gateway(), (object) => object.alarm());
    for (let ms = 20_000; ms <= 420_000; ms += 20_000) {
      now = begun + ms;
      for (const { own: one, attemptId } of running) await one.peer.ok("transfer.alive", { transferId: attemptId });
      await fire();
    }
    for (const { id } of back) expect(await look(own.own.peer, id)).toMatchObject({ state: "waiting" });
    expect(back.map(asks)).toEqual([0, 0, 0, 0]);
    await running[0]?.own.peer.ok("transfer.cancel", { id: running[0].id });
    await own.own.asked("transfer.send");
    now += LIMITS.transferIdleMs - 10_000;
    await fire();
    expect(await look(own.own.peer, own.id)).toMatchObject({ state: "running" });
    now += 20_000;
    await fire();
    expect(await look(own.own.peer, own.id)).toMatchObject({ state: "failed", reason: "transfer.interrupted" });
    clock.mockRestore();
  });

  test("[TF10] programs that go away in the middle of their requests keep no slots", async () => {
    const gone = await client();
    for (let nth = 0; nth < LIMITS.transfers; nth++) gone.ask("transfer.create", { id: newId(), ...asked });
    gone.socket.close(1000);
    const own = await client();
    for (let nth = 0; nth < LIMITS.transfers; nth++)
      await eventually(async () => expect((await own.call("transfer.create", { id: newId(), ...asked })).ok).toBe(true));
  });

  test("[TF10] a cancellation that overtakes its request ends the transfer before it begins", async () => {
    const [own, id] = [new Machine(await client()), newId()];
    const begins = own.peer.ask("transfer.create", { id, ...asked });
    const cancels = own.peer.ask("transfer.cancel", { id });
    await own.peer.answer(cancels);
    expect(await own.peer.answer(begins)).toMatchObject({
      ok: true,
      payload: { transfer: { state: "failed", reason: "transfer.cancelled" } },
    });
    expect(own.peer.events("transfer.send")).toEqual([]);
  });

  test("[TF10] a cancellation ends a transfer that is asked for twice at once, and none begins after its end", async () => {
    for (let round = 0; round < 4; round++) {
      const [own, id] = [new Machine(await client()), newId()];
      const both = [own.peer.ask("transfer.create", { id, ...asked }), own.peer.ask("transfer.create", { id, ...asked })];
      // Before the row is there, or once the first request has stored it.
      if (round % 2 === 1) await own.peer.answer(both[0] ?? "");
      await own.peer.answer(own.peer.ask("transfer.cancel", { id }));
      for (const request of both.slice(round % 2)) await own.peer.answer(request);
      expect(await look(own.peer, id)).toMatchObject({ state: "failed", reason: "transfer.cancelled" });
      expect((await own.peer.call("transfer.create", { id, ...asked })).ok).toBe(true);
      const begun = own.peer.events("transfer.send").length;
      const ends = own.peer.events("transfer.end").length;
      expect(begun - ends).toBe(0);
    }
  });

  test("[TF10] a copy that waits for its machine counts while its program is connected", async () => {
    const laptop = await machine("laptop");
    const [owner, ids] = [await client(), Array.from({ length: LIMITS.transfers }, newId)];
    for (const [nth, id] of ids.entries()) await create(owner, id, "laptop:a", `@:/home/me/${nth}`);
    laptop.peer.socket.close(1000);
    for (const id of ids) await eventually(async () => expect(await look(owner, id)).toMatchObject({ state: "waiting" }));
    const others = new Machine(await client());
    const more = { id: newId(), ...asked };
    expect((await others.peer.refused("transfer.create", more)).reason).toBe("transfer.busy");
    owner.socket.close(1000);
    await eventually(async () => expect((await others.peer.call("transfer.create", more)).ok).toBe(true));
  });

  test("[TF10] a program that goes away while it waits for a slot has five minutes from then on", async () => {
    const { running, back } = await crowd();
    const [own] = back;
    if (own === undefined) throw new Error("no program came back");
    const watcher = await client();
    const begun = Date.now();
    let now = begun;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now);
    const alive = async (ms: number): Promise<void> => {
      now = begun + ms;
      for (const { own: one, attemptId } of running) await one.peer.ok("transfer.alive", { transferId: attemptId });
      await runInDurableObject(gateway(), (object) => object.alarm());
    };
    for (let ms = 20_000; ms <= 200_000; ms += 20_000) await alive(ms);
    own.own.peer.socket.close(1000);
    for (let ms = 220_000; ms <= 480_000; ms += 20_000) await alive(ms);
    expect(await look(watcher, own.id)).toMatchObject({ state: "waiting" });
    await alive(520_000);
    expect(await look(watcher, own.id)).toMatchObject({ state: "failed", reason: "transfer.interrupted" });
    clock.mockRestore();
  });

  test("[TF13] [X1] another program learns nothing of it, and gets no part in it", async () => {
    const [own, other, id] = [new Machine(await client()), new Machine(await client()), newId()];
    await create(own.peer, id, asked.source, asked.destination);
    const { transferId: attemptId } = await own.asked("transfer.send");
    for (const [method, more] of [
      ["transfer.meta", { size: 3, version: "v1" }],
      ["transfer.complete", { sha256: await sha256("x") }],
    ] as const)
      expect(await other.peer.refused(method, { transferId: attemptId, ...more })).toMatchObject({ reason: "transfer.unknown" });
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
      const { transferId: attemptId } = await own.asked(event);
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
      expect((await again.asked(event)).transferId).not.toBe(attemptId);
    }
    // Each attempt to take it over is an entry of the audit (rule TF10).
    const owner = await client();
    await eventually(async () => {
      const { entries } = await owner.ok<{ entries: { detail?: string }[] }>("audit.list", { action: "transfer.create" });
      expect(entries.filter(({ detail }) => detail?.endsWith(": auth.forbidden"))).toHaveLength(8);
    });
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
