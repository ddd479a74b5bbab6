/** What one compromised channel can do to the others and to the owner: nothing. Its binding says which channel it is. */
import { reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { AuditEntry, ChannelInbound } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { WaitingFiles } from "../../../src/features/channels/file-store.ts";
import type { ReplyRoute, SessionSend } from "../../../src/ports/session.ts";
import { channelEntrypoint, client, eventually, fakeSessions, gateway, type Peer, port, seed } from "../../support/gateway.ts";

const TEST = { channel: "test", accountId: "default" };
const ROGUE = { channel: "rogue", accountId: "default" };
let sessions: ReturnType<typeof fakeSessions>;
let owner: Peer;
let started: unknown[];

beforeEach(async () => {
  await reset();
  started = [];
  const service: Partial<ChannelService> = {
    send: async () => ({ status: "queued" }),
    start: async ({ accountId, config }) => {
      started.push(config);
      return { accountId, connected: true, authenticated: true };
    },
  };
  vi.spyOn(parts, "channel").mockImplementation(() => service as ChannelService);
  vi.spyOn(parts, "channelNames").mockImplementation(() => ["rogue", "test"]);
  sessions = fakeSessions();
  await seed();
  owner = await client();
  await owner.ok("config.set", { path: "channels.test.owners", value: ["me"] });
});
afterEach(() => {
  vi.restoreAllMocks();
});

let serial = 0;
const dm = (sender: string, more: Partial<ChannelInbound> = {}): ChannelInbound => ({
  peer: { kind: "dm", id: sender },
  sender: { id: sender },
  message: { id: `m${++serial}`, text: "run: id", timestamp: Date.now() },
  receivedAt: Date.now(),
  ...more,
});
const bytes = new TextEncoder().encode("a file");
const handed = (): SessionSend[] => sessions.of("send").map(({ args }) => args[0] as SessionSend);
const audited = async (action: string): Promise<AuditEntry[]> =>
  (await owner.ok<{ entries: AuditEntry[] }>("audit.list")).entries.filter((entry) => entry.action === action);
const route = (account: typeof TEST, peer: string): ReplyRoute => ({ ...account, peer: { kind: "dm", id: peer } });
const deliver = (account: typeof TEST, deliveryId: string, r2Key: string) =>
  port().reply({
    kind: "send",
    route: route(account, "anna"),
    message: {
      deliveryId,
      kind: "answer",
      peer: { kind: "dm", id: "anna" },
      text: "look",
      media: [{ type: "image", mimeType: "image/png", r2Key }],
    },
  });

describe("[F12] [CH24] a channel's name is that of its binding", () => {
  test("a Worker that claims another channel is refused at every call, and audited", async () => {
    const rogue = channelEntrypoint("rogue");
    const file = { account: TEST, inbound: dm("me"), mimeType: "image/png", index: 0 };
    const calls: readonly (() => Promise<unknown>)[] = [
      () => rogue.inbound({ account: TEST, inbound: dm("me") }),
      () => rogue.media(file),
      () => rogue.storeFile(file, bytes),
      () => rogue.readFile({ account: TEST, deliveryId: "d", r2Key: "media/s/1.png", maxBytes: 10 }),
      () => rogue.status({ account: TEST, state: { accountId: "default", connected: false, authenticated: false } }),
      () => rogue.delivered({ account: TEST, report: { deliveryId: "d", state: "sent" } }),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow(/of the channel rogue, not of another/);
    expect(sessions.asked).toEqual([]);
    const entries = await audited("channel.claim");
    expect(entries).toHaveLength(calls.length);
    expect(entries[0]).toMatchObject({ actor: "channel:rogue", target: "test", decision: "denied" });
    expect((await env.STORAGE.list({ prefix: "media/" })).objects).toEqual([]);
  });

  test("a binding without a channel's name is refused with what to do", async () => {
    const call = channelEntrypoint("").inbound({ account: TEST, inbound: dm("me") });
    await expect(call).rejects.toThrow(/names no channel: add "props"/);
    expect(sessions.asked).toEqual([]);
  });

  test("a report about another channel's delivery changes nothing", async () => {
    await deliver(TEST, "abc/r1", "media/agent:main:main/1.png");
    await channelEntrypoint("rogue").delivered({ account: ROGUE, report: { deliveryId: "abc/r1", state: "sent" } });
    await channelEntrypoint("rogue").delivered({ account: ROGUE, report: { deliveryId: "abc/r1", state: "failed", error: "obey" } });
    const rows = await runInDurableObject(gateway(), (_gateway, { storage }) =>
      storage.sql.exec<{ id: string; state: string }>("SELECT id, state FROM deliveries").toArray(),
    );
    expect(rows).toEqual([{ id: "abc/r1", state: "queued" }]);
    expect(sessions.of("note")).toEqual([]);
  });
});

describe("[F15] which person a text means", () => {
  const claimTo = (id: string) => channelEntrypoint().inbound({ account: TEST, inbound: dm(id) });
  const codes = async (): Promise<Record<string, { code: string }>> =>
    (await owner.ok<{ pairs: Record<string, { code: string }> }>("pair.list")).pairs;

  test("[CH1] an id that is chosen like an owner's entry is a stranger's", async () => {
    await owner.ok("config.set", { path: "channels.test.owners", value: ["+31600000001", "test:alice"] });
    for (const id of ["+31600000001", "test:alice"]) expect((await claimTo(id)).outcome, id).toBe("held");
    expect(sessions.asked).toEqual([]);
    expect((await claimTo("alice")).outcome).toBe("accepted");
  });

  test("a sender whose id is the code of another is not approved by it", async () => {
    await claimTo("friend");
    const code = (await codes())["test:friend"]?.code ?? "";
    await claimTo(code);
    const refused = await owner.refused("pair.approve", { channel: "test", senderId: code, role: "owner" });
    expect(refused).toMatchObject({ reason: "pair.not_found", hint: expect.stringContaining("code:") });
    expect(Object.keys(await codes()).toSorted()).toEqual([`test:${code}`, "test:friend"].toSorted());
    expect(await owner.ok("pair.approve", { channel: "test", senderId: `code:${code}` })).toMatchObject({ senderId: "friend" });
    expect(await owner.ok("pair.reject", { channel: "test", senderId: code })).toMatchObject({ senderId: code });
  });
});

describe("[F12] [CH24] who is the owner is not the channel's word", () => {
  const claim = () => dm("attacker", { fromOwner: true });

  test("a claim that the owner has not configured makes a stranger, and is audited", async () => {
    expect((await channelEntrypoint("rogue").inbound({ account: ROGUE, inbound: claim() })).outcome).toBe("held");
    expect(sessions.asked).toEqual([]);
    await eventually(async () =>
      expect(await audited("channel.from_owner")).toMatchObject([{ actor: "channel:rogue", target: "attacker", decision: "denied" }]),
    );
    expect(await channelEntrypoint("rogue").media({ account: ROGUE, inbound: claim(), mimeType: "image/png", index: 0 })).toEqual({});
  });

  test("where the owner configured it, the chat of the account with itself is theirs; `channel.start` configures it", async () => {
    await owner.ok("channel.start", { channel: "test", config: { selfChat: true } });
    expect(started).toEqual([{ selfChat: true }]);
    expect((await channelEntrypoint().inbound({ account: TEST, inbound: claim() })).outcome).toBe("accepted");
    expect(handed()[0]?.identity).toMatchObject({ key: "agent:main:main", isOwnersSession: true });
    // Of this channel only.
    expect((await channelEntrypoint("rogue").inbound({ account: ROGUE, inbound: claim() })).outcome).toBe("held");
    await owner.ok("channel.start", { channel: "test", config: { selfChat: false } });
    expect((await channelEntrypoint().inbound({ account: TEST, inbound: claim() })).outcome).toBe("held");
  });
});

describe("[F12] [CH25] files pass through the gateway", () => {
  test("a file of a message that is wanted is stored once, under the gateway's name; no other", async () => {
    const inbound = dm("me");
    const file = { account: TEST, inbound, mimeType: "image/png", filename: "a.png", index: 0 };
    const slot = await channelEntrypoint().media(file);
    expect(await channelEntrypoint().storeFile(file, bytes)).toEqual(slot);
    const stored = await env.STORAGE.get(slot.r2Key ?? "");
    expect(await stored?.text()).toBe("a file");
    expect(stored?.httpMetadata?.contentType).toBe("image/png");
    expect(stored?.customMetadata).toMatchObject({ originalFilename: "a.png", sessionKey: "agent:main:main" });
    expect(await channelEntrypoint().storeFile({ ...file, inbound: dm("stranger") }, bytes)).toEqual({});
    await expect(channelEntrypoint().storeFile(file, new Uint8Array(LIMITS.mediaBytes + 1))).rejects.toThrow(/at most/);
    expect((await env.STORAGE.list({ prefix: "media/" })).objects).toHaveLength(1);
  });

  test("[TH16] files whose messages never come are bounded for the channel, and deleted in time", async () => {
    let skipped = 0;
    const now = Date.now;
    vi.spyOn(Date, "now").mockImplementation(() => now() + skipped);
    const file = (inbound: ChannelInbound, index: number, account = TEST) => ({ account, inbound, mimeType: "image/png", index });
    const store = (inbound: ChannelInbound, index = 0, accountId = "default") =>
      channelEntrypoint().storeFile(file(inbound, index, { ...TEST, accountId }), bytes);
    const objects = async () => (await env.STORAGE.list({ prefix: "media/" })).objects.map(({ key }) => key);

    // One message comes with one of its two files; afterwards it takes no more.
    const good = dm("me");
    const [kept, lost] = [(await store(good, 0)).r2Key ?? "", (await store(good, 1)).r2Key ?? ""];
    const media = [{ type: "image" as const, mimeType: "image/png", r2Key: kept }];
    const sent = { ...good, message: { ...good.message, media } };
    expect((await channelEntrypoint().inbound({ account: TEST, inbound: sent })).outcome).toBe("accepted");
    expect(await store(good, 2)).toEqual({});
    // A repetition takes no others.
    const again = { ...sent, message: { ...sent.message, media: [{ type: "image" as const, mimeType: "image/png", r2Key: lost }] } };
    expect((await channelEntrypoint().inbound({ account: TEST, inbound: again })).outcome).toBe("duplicate");
    expect((await objects()).toSorted()).toEqual([kept, lost].toSorted());

    // Other accounts of the channel have no other bound, and a file that is stored again counts once.
    for (let n = 1; n < LIMITS.channelFiles; n++) {
      const inbound = dm("me");
      await store(inbound, 0, `account-${n % 5}`);
      if (n % 50 === 0) await store(inbound, 0, `account-${n % 5}`);
    }
    for (const account of ["default", "another"]) await expect(store(dm("me"), 0, account)).rejects.toThrow(/send these messages first/);
    expect((await objects()).length).toBe(LIMITS.channelFiles + 1);

    skipped = LIMITS.channelFileMs + 60_000;
    await owner.ok("config.set", { path: "channels.test.owners", value: ["me", "you"] });
    await eventually(async () => {
      await runDurableObjectAlarm(gateway());
      expect(await objects()).toEqual([kept]);
    });
    expect((await store(dm("me"))).r2Key).toBeDefined();
  });
  test("[TH16] their bytes are bounded, too", async () => {
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      const files = new WaitingFiles(storage);
      const add = (channel: string, r2Key: string, sizeBytes: number) => files.add({ channel, r2Key, sizeBytes }, 1);
      expect(add("test", "a", LIMITS.channelFilesBytes - 10)).toBe(true);
      expect([add("test", "b", 11), add("test", "b", 10), add("test", "c", 1), add("rogue", "d", 100)]).toEqual([false, true, false, true]);
      files.taken("rogue", ["a"]);
      expect(add("test", "c", 1)).toBe(false);
      files.taken("test", ["b"]);
      expect(add("test", "c", 1)).toBe(true);
    });
  });

  test("a channel reads the files of its own deliveries, and nothing else of the storage", async () => {
    const key = "media/agent:main:main/00000000-0000-8000-8000-000000000001.png";
    for (const name of [key, "agents/main/MEMORY.md"]) await env.STORAGE.put(name, "secret");
    await deliver(TEST, "abc/r1", key);
    await deliver(ROGUE, "abc/r2", "media/agent:main:main/other.png");
    const read = (account: typeof TEST, deliveryId: string, r2Key: string, maxBytes = 100) =>
      channelEntrypoint(account.channel).readFile({ account, deliveryId, r2Key, maxBytes });
    expect(await read(TEST, "abc/r1", key)).toEqual({ sizeBytes: 6, bytes: new TextEncoder().encode("secret") });
    expect(await read(TEST, "abc/r1", key, 5)).toEqual({ sizeBytes: 6 });
    expect(await read(ROGUE, "abc/r2", "media/agent:main:main/other.png")).toBeNull();
    for (const [account, id, name] of [
      [ROGUE, "abc/r1", key],
      [ROGUE, "abc/r2", key],
      [ROGUE, "none/r1", key],
      [TEST, "abc/r1", "agents/main/MEMORY.md"],
    ] as const)
      await expect(read(account, id, name)).rejects.toThrow(/not part of a delivery/);
    expect(await audited("channel.file")).toHaveLength(4);
  });

  test("[P22] a delivery of an earlier version has the files of its own conversation", async () => {
    await owner.ok("chat.send", { sessionKey: "agent:main:main", message: "hello" });
    const ref = handed()[0]?.identity.ref ?? "";
    const key = "media/agent:main:main/00000000-0000-8000-8000-000000000001.png";
    await env.STORAGE.put(key, "old");
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      storage.sql.exec(
        "INSERT INTO deliveries(id, channel, account, peer, state, error, at, told) VALUES(?, 'test', 'default', NULL, 'queued', NULL, 1, 0)",
        `${ref}/r1`,
      );
    });
    const read = (r2Key: string) => channelEntrypoint().readFile({ account: TEST, deliveryId: `${ref}/r1`, r2Key, maxBytes: 9 });
    expect(await read(key)).toMatchObject({ sizeBytes: 3 });
    await expect(read("agents/main/MEMORY.md")).rejects.toThrow(/not part of a delivery/);
    await expect(read(key.replace("agent:main:main", "agent:main:other"))).rejects.toThrow(/not part of a delivery/);
  });
});
