/** Bounds on what strangers and guests can store, and held messages that do not block others. The platform is a fake service. */
import { reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { ChannelInbound, ChannelInboundOutcome, ChannelSendResult } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import type { SessionSend } from "../../../src/ports/session.ts";
import { channelEntrypoint, client, fakeSessions, gateway, type Peer, seed, eventually } from "../../support/gateway.ts";

const ACCOUNT = { channel: "test", accountId: "default" };
let owner: Peer;
/** What the channel says to a delivery. */
let answer: ChannelSendResult;
let offered: string[];

beforeEach(async () => {
  await reset();
  answer = { status: "queued" };
  offered = [];
  const service: Pick<ChannelService, "send"> = {
    send: async ({ message }) => {
      offered.push(message.text);
      return answer;
    },
  };
  vi.spyOn(parts, "channel").mockImplementation((_env, name) => (name === "test" ? (service as ChannelService) : undefined));
  vi.spyOn(parts, "channelNames").mockImplementation(() => ["test"]);
  fakeSessions();
  await seed();
  owner = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const entrypoint = channelEntrypoint;
const take = (inbound: ChannelInbound): Promise<ChannelInboundOutcome> => entrypoint().inbound({ account: ACCOUNT, inbound });
let serial = 0;
const dm = (sender: string, text: string): ChannelInbound => ({
  peer: { kind: "dm", id: sender },
  sender: { id: sender },
  message: { id: `m${++serial}`, text, timestamp: Date.now() },
  receivedAt: Date.now(),
});
const count = (table: string): Promise<number> =>
  runInDurableObject(gateway(), (_gateway, { storage }) => storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`).one().n);
const approve = (senderId: string) => owner.ok("pair.approve", { channel: "test", senderId });
/** Time goes on by itself, and by hand. */
function clock(): (ms: number) => void {
  let at = Date.UTC(2026, 0, 2, 3);
  vi.spyOn(Date, "now").mockImplementation(() => (at += 1));
  return (ms) => {
    at += ms;
  };
}

test("[CH7][S6][P19] the stored messages of a stranger are bounded", async () => {
  for (let n = 0; n < 100; n++) expect((await take(dm("stranger", `message ${n}`))).outcome).toBe("held");
  expect([await count("held"), await count("pairs")]).toEqual([5, 1]);
  expect(await count("channel_inbox")).toBeLessThanOrEqual(6);
});

test("[F16] [CH7] strangers cannot close a channel: the oldest request makes way, and other channels keep theirs", async () => {
  const pass = clock();
  const other = (sender: string) =>
    channelEntrypoint("other").inbound({ account: { channel: "other", accountId: "default" }, inbound: dm(sender, "hello") });
  await other("friend-there");
  pass(10);
  for (let n = 0; n < LIMITS.pairsWaiting; n++) {
    pass(10);
    await take(dm(`flood-${n}`, "let me in"));
  }
  pass(10);
  const late = await take(dm("friend", "it is me"));
  expect([late.outcome, late.replies?.length]).toEqual(["held", 1]);
  const { pairs } = await owner.ok<{ pairs: Record<string, unknown> }>("pair.list");
  const names = Object.keys(pairs);
  expect(names).toHaveLength(LIMITS.pairsWaiting + 1);
  expect(names).toEqual(expect.arrayContaining(["test:friend", "other:friend-there", "test:flood-1"]));
  expect(names).not.toContain("test:flood-0");
  expect(await count("held")).toBe(LIMITS.pairsWaiting + 1);
});

test("[P19] a guest over the daily limit stores no files", async () => {
  await owner.ok("config.set", { path: "channels.test.allowFrom", value: ["guest"] });
  const pass = clock();
  const file = (inbound: ChannelInbound) => entrypoint().media({ account: ACCOUNT, inbound, mimeType: "image/png", index: 0 });
  let last = dm("guest", "first");
  expect((await file(last)).r2Key).toBeDefined();
  for (let n = 0; n < 200; n++) {
    pass(4_000);
    last = dm("guest", `message ${n}`);
    expect((await take(last)).outcome).toBe("accepted");
  }
  expect(await file(dm("guest", "look"))).toEqual({});
  // A message that was accepted earlier keeps its session.
  expect((await file(last)).r2Key).toBeDefined();
  pass(86_400_000);
  expect((await file(dm("guest", "look"))).r2Key).toBeDefined();
});

test("[P12] held messages that cannot be handed over block no others and are retried with backoff", async () => {
  const pass = clock();
  let broken: readonly string[] = ["anna", "ben"];
  let tries = 0;
  fakeSessions((key) => ({
    send: async ({ runId }) => {
      if (!broken.some((name) => key.includes(name))) return { ok: true, value: { status: "started", runId: runId as never } };
      tries++;
      throw new Error("the object is broken");
    },
  }));
  for (const name of ["anna", "ben"]) {
    await take(dm(name, "hello"));
    await approve(name);
  }
  await eventually(() => expect(tries).toBeGreaterThan(1));
  expect(await count("held")).toBe(2);
  broken = ["anna"];
  pass(31_000);
  await runDurableObjectAlarm(gateway());
  await eventually(async () => expect(await count("held")).toBe(1));
  const soFar = tries;
  for (let minute = 0; minute < 180; minute++) {
    pass(60_000);
    await runDurableObjectAlarm(gateway());
  }
  expect(tries - soFar).toBeGreaterThan(2);
  expect(tries - soFar).toBeLessThan(40);
});

test("[P10] the answer to a held message is not lost when the channel's queue is full", async () => {
  const pass = clock();
  const asked: SessionSend[] = [];
  fakeSessions(() => ({
    send: async (input) => {
      asked.push(input);
      return { ok: true, value: { status: "command", command: "help", response: "All that I can do." } };
    },
  }));
  await take(dm("anna", "/help"));
  answer = { status: "refused", error: "too many messages wait for the platform", retryable: true };
  await approve("anna");
  await eventually(() => expect(offered).toHaveLength(1));
  expect(await count("held")).toBe(1);
  answer = { status: "queued" };
  pass(31_000);
  await runDurableObjectAlarm(gateway());
  await eventually(() => expect(offered).toEqual(["All that I can do.", "All that I can do."]));
  await eventually(async () => expect(await count("held")).toBe(0));
  expect(asked).toHaveLength(1);
});
