/** Transfers that agents ask for, and what a stop does to all of them. */
import { env } from "cloudflare:workers";
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Origin } from "../../../src/ports/origin.ts";
import type { SessionNote, SessionPort, SessionSend } from "../../../src/ports/session.ts";
import type { TransferAsk } from "../../../src/ports/transfers.ts";
import { client, fakeSessions, gateway, type Peer, port, seed, eventually } from "../../support/gateway.ts";
import { bytesOf, type Machine, machine, newId, sum } from "./fake-machine.ts";
import { evict } from "../../support/evict.ts";

const KEY = "agent:main:main";
const from = { key: KEY, ref: "ref", agentId: "main", isOwnersSession: true };
const OWNER: Origin = { kind: "client", clientId: "a-person" };
let calls = 0;
const ask = (more: Partial<TransferAsk> = {}): TransferAsk => ({
  from,
  callId: `ref/r1/1/${calls++}`,
  origin: OWNER,
  source: "laptop:a.bin",
  destination: "gsv:in/b.bin",
  force: false,
  waitMs: 5_000,
  ...more,
});
/** The conversation exists, and what it is sent is kept. */
async function conversation(more: Partial<SessionPort> = {}) {
  const { of } = fakeSessions(() => more);
  await seed();
  const owner = await client();
  await owner.ok("chat.send", { sessionKey: KEY, message: "hello" });
  const sends = (): readonly SessionSend[] =>
    of("send").flatMap(({ args: [sent] }) => ((sent as SessionSend).messageId.startsWith("transfer:") ? [sent as SessionSend] : []));
  return { owner, sends, notes: () => of("note").map(({ args: [note] }) => note as SessionNote) };
}
beforeEach(reset);
afterEach(() => vi.restoreAllMocks());

const alarm = (): Promise<void> => runInDurableObject(gateway(), (object) => object.alarm());
async function send(laptop: Machine, bytes: Uint8Array<ArrayBuffer>, nth = 0): Promise<void> {
  const { transferId } = await laptop.asked("transfer.send", nth);
  await laptop.peer.ok("transfer.meta", { transferId, size: bytes.length, version: "v1" });
  const { offset } = await laptop.asked("transfer.start");
  laptop.push(transferId, bytes.subarray(offset));
  await laptop.peer.ok("transfer.complete", { transferId, sha256: await sum(bytes) });
}
const state = async (owner: Peer, id: string) =>
  (await owner.ok<{ transfer: { state: string; reason?: string } }>("transfer.get", { id })).transfer;
const bytes = bytesOf(5000);

describe("gsv__Transfer", () => {
  test("[TF11] a copy that ends in time is the call's result, and the same call again is the same copy", async () => {
    const { sends, notes } = await conversation();
    const laptop = await machine("laptop");
    const asked = ask();
    const told = port().transfer(asked);
    await send(laptop, bytes);
    const done = { ok: true, value: { status: "done", sizeBytes: bytes.length, sha256: await sum(bytes) } };
    expect(await told).toEqual(done);
    expect(await port().transfer(asked)).toEqual(done);
    expect(laptop.peer.events("transfer.send")).toHaveLength(1);
    await alarm();
    expect([sends(), notes()]).toEqual([[], []]);
    expect((await env.STORAGE.head("agents/main/in/b.bin"))?.customMetadata).toMatchObject({ by: `session:${KEY}` });
  });

  test("[TF11] a copy that takes longer goes on over an eviction, and its end wakes the conversation once", async () => {
    const { owner, sends } = await conversation();
    const laptop = await machine("laptop");
    const asked = ask({ waitMs: 0, taint: { label: "world", source: "a page" } });
    expect(await port().transfer(asked)).toMatchObject({ ok: true, value: { status: "running" } });
    await laptop.asked("transfer.send");
    await evict(gateway(), { webSockets: "hibernate" });
    await owner.ok("gateway.status");
    await send(laptop, bytes, 1);
    await eventually(async () => {
      await alarm();
      expect(sends()).toHaveLength(1);
    });
    await alarm();
    expect(sends()).toHaveLength(1);
    expect(sends()[0]).toMatchObject({
      identity: { key: KEY },
      verbatim: true,
      origin: { kind: "node_event", nodeId: "laptop" },
      taint: { label: "world" },
      text: expect.stringMatching(/The copy of "laptop:a\.bin" to "gsv:in\/b\.bin" is done: 5000 bytes.*\nGo on with/),
    });
  });

  test("[TF11] a conversation that does not answer, or whose queue is full, is told all the same", async () => {
    let isDown = true;
    const { sends, notes } = await conversation({
      send: async ({ messageId }) => {
        if (!messageId.startsWith("transfer:")) return { ok: true, value: { status: "started", runId: "r" as never, queued: false } };
        if (isDown) throw new Error("the session does not answer");
        return { ok: false, error: { reason: "session.queue_full", message: "Full." } };
      },
    });
    const laptop = await machine("laptop");
    await port().transfer(ask({ waitMs: 0 }));
    await send(laptop, bytes);
    await eventually(async () => {
      await alarm();
      expect(sends().length).toBeGreaterThan(0);
    });
    expect(notes()).toEqual([]);
    isDown = false;
    const later = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 60_000);
    await alarm();
    later.mockRestore();
    expect(notes()).toMatchObject([{ forModel: true, text: expect.stringContaining("is done") }]);
  });

  test("[TF11] a task gets a note: its report has gone, and no run follows", async () => {
    const { sends, notes } = await conversation();
    const laptop = await machine("laptop");
    await port().transfer(ask({ waitMs: 0, origin: { kind: "task", taskId: "t1" } }));
    await send(laptop, bytes);
    await eventually(async () => {
      await alarm();
      expect(notes()).toHaveLength(1);
    });
    expect(sends()).toEqual([]);
  });

  test("[TF11] [TF9] [TA14] the copy has the higher label of the conversation that named it and of its source", async () => {
    await conversation();
    const laptop = await machine("laptop");
    const told = port().transfer(ask({ taint: { label: "peer", source: "Ann" } }));
    await send(laptop, bytes);
    expect(await told).toMatchObject({ ok: true });
    expect((await env.STORAGE.head("agents/main/in/b.bin"))?.customMetadata?.["taint"]).toBe("peer Ann");
  });

  test("[TF11] [TF7] protected files and invalid ends are refused, also to an agent", async () => {
    await conversation();
    await machine("laptop");
    for (const [source, destination, reason] of [
      ["laptop:a", "gsv:SOUL.md", "workspace.protected"],
      ["laptop:a", "gsv:memory/x.md", "workspace.protected"],
      ["laptop:a", "gsv:../other/x", "path.invalid"],
      ["laptop:a", "b", "transfer.bad_endpoint"],
      ["@:/etc/passwd", "gsv:b", "transfer.bad_endpoint"],
      ["nowhere:a", "gsv:b", "node.unknown"],
      ["gsv:none", "laptop:b", "path.not_found"],
    ] as const)
      expect(await port().transfer(ask({ source, destination })), destination).toMatchObject({ ok: false, error: { reason } });
  });
});

describe("a stop", () => {
  test("[TF12] [ST8] ends the copies of agents and clients, and no copy begins until the resume", async () => {
    const { owner, sends, notes } = await conversation();
    const laptop = await machine("laptop");
    const [id, waiting] = [newId(), ask({ destination: "gsv:in/c.bin" })];
    await owner.ok("transfer.create", { id, source: "laptop:a", destination: "gsv:in/a.bin" });
    const told = port().transfer(waiting);
    await port().transfer(ask({ waitMs: 0, destination: "gsv:in/d.bin" }));
    await laptop.asked("transfer.send", 2);
    expect(await owner.ok("gateway.stop")).toMatchObject({ clientCalls: 1 });
    expect(await told).toMatchObject({ ok: false, error: { reason: "transfer.cancelled" } });
    expect(await state(owner, id)).toMatchObject({ state: "failed", reason: "transfer.cancelled" });
    expect(await owner.refused("transfer.create", { id: newId(), source: "laptop:a", destination: "gsv:e" })).toMatchObject({
      reason: "gateway.stopped",
    });
    expect(await port().transfer(ask())).toMatchObject({ ok: false, error: { reason: "gateway.stopped" } });
    await eventually(async () => {
      await alarm();
      expect(notes()).toMatchObject([{ text: expect.stringContaining("GSV was stopped") }]);
    });
    expect(sends()).toEqual([]);
    expect(laptop.peer.events("transfer.end")).toHaveLength(3);
    await owner.ok("gateway.resume");
    await owner.ok("transfer.create", { id: newId(), source: "laptop:a", destination: "gsv:e" });
  });

  test("[TF12] a copy that a stop finds in the rows alone does not begin again", async () => {
    const { owner } = await conversation();
    const laptop = await machine("laptop");
    const id = newId();
    await owner.ok("transfer.create", { id, source: "laptop:a", destination: "gsv:in/a.bin" });
    laptop.peer.socket.close(1000);
    await eventually(async () => expect(await state(owner, id)).toMatchObject({ state: "waiting" }));
    await evict(gateway(), { webSockets: "hibernate" });
    await owner.ok("gateway.stop");
    const back = await machine("laptop");
    await eventually(async () => expect(await state(owner, id)).toMatchObject({ state: "failed", reason: "transfer.cancelled" }));
    expect(back.peer.events("transfer.send")).toEqual([]);
    expect((await env.STORAGE.list({ prefix: `transfers/${id}/` })).objects).toEqual([]);
  });
});
