/** Inbound messages at the gateway: access, choice of the session, duplicates, and what people are told. The channel is a fake service. */
import { reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import {
  asRunId,
  type ChannelAccount,
  type ChannelInbound,
  type ChannelInboundOutcome,
  type OutboundMessage,
  type PairListResult,
  type RunId,
} from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import type { SessionSend } from "../../../src/ports/session.ts";
import { channelEntrypoint, client, eventually, FAR, fakeSessions, gateway, type Peer, seed } from "../../support/gateway.ts";

const ACCOUNT = { channel: "test", accountId: "default" };
const state = (accountId: string): ChannelAccount => ({ accountId, connected: true, authenticated: true });
let sent: OutboundMessage[];
let service: ChannelService;
let sessions: ReturnType<typeof fakeSessions>;
let owner: Peer;

beforeEach(async () => {
  await reset();
  sent = [];
  service = {
    describe: async () => ({
      peerKinds: ["dm"],
      media: true,
      reactions: false,
      typing: true,
      replies: true,
      edits: false,
      buttons: false,
      login: true,
      maxTextChars: 2000,
    }),
    start: async ({ accountId }) => state(accountId),
    stop: async ({ accountId }) => ({ ...state(accountId), connected: false }),
    status: async ({ accountId }) => [state(accountId ?? "default")],
    send: async ({ message }) => {
      sent.push(message);
      return { status: "queued" };
    },
    live: async () => ({ ok: true }),
    typing: async () => ({ ok: true }),
    login: async () => ({ state: "qr", qr: "QR-TEXT", message: "Scan this." }),
    recheck: async () => ({ ok: true }),
    logout: async ({ accountId }) => state(accountId),
  };
  vi.spyOn(parts, "channel").mockImplementation((_env, name) => (name === "test" ? service : undefined));
  vi.spyOn(parts, "channelNames").mockImplementation(() => ["test"]);
  sessions = fakeSessions();
  await seed();
  owner = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const entrypoint = channelEntrypoint;
const take = (inbound: ChannelInbound, account = ACCOUNT): Promise<ChannelInboundOutcome> => entrypoint().inbound({ account, inbound });
let serial = 0;
const dm = (sender: string, text: string, more: Partial<ChannelInbound> = {}): ChannelInbound => ({
  peer: { kind: "dm", id: sender },
  sender: { id: sender },
  message: { id: `m${++serial}`, text, timestamp: Date.now() },
  receivedAt: Date.now(),
  ...more,
});
const group = (sender: string, text: string, more: Partial<ChannelInbound> = {}): ChannelInbound => ({
  ...dm(sender, text),
  peer: { kind: "group", id: "g1", name: "Friends" },
  ...more,
});
const configure = (path: string, value: unknown) => owner.ok("config.set", { path, value });
const handed = (): SessionSend[] => sessions.of("send").map(({ args }) => args[0] as SessionSend);

describe("pairing and access", () => {
  test("[CH7][S6][X7] a stranger's message is held, noticed once, and reaches no session", async () => {
    const first = await take(dm("stranger", "rm -rf /"));
    expect(first.outcome).toBe("held");
    expect(first.replies).toHaveLength(1);
    const again = await take(dm("stranger", "hello?"));
    expect(again).toEqual({ outcome: "held" });
    expect(sessions.asked).toEqual([]);
    const { pairs } = await owner.ok<{ pairs: Record<string, { code: string; waiting: number; firstMessage: string }> }>("pair.list");
    const pair = pairs["test:stranger"];
    expect(pair).toMatchObject({ waiting: 2, firstMessage: "rm -rf /" });
    expect(first.replies?.[0]?.text).toContain(pair?.code);
  });

  test("an approved guest gets answers to the held messages, in a conversation of their own", async () => {
    await take(dm("anna", "one"));
    await take(dm("anna", "two"));
    expect(await owner.ok("pair.approve", { channel: "test", senderId: "anna" })).toMatchObject({ approved: true, role: "guest" });
    await eventually(() => expect(handed()).toHaveLength(2));
    const [one, two] = handed();
    expect(one?.identity).toMatchObject({ key: "agent:main:test:default:dm:anna", isOwnersSession: false });
    expect(one?.verbatim).toBe(true);
    expect(one?.text).toContain("\none");
    expect(two?.text).toContain("\ntwo");
    expect((await take(dm("anna", "three"))).outcome).toBe("accepted");
    expect(await owner.ok("pair.list")).toMatchObject({ pairs: {} });
  });

  test("[F51] approved senders are listed with their role and the time of the approval; others are not", async () => {
    expect(await owner.ok("pair.list")).toEqual({ pairs: {}, approved: [] });
    for (const id of ["anna", "me", "spam", "waiting"]) await take(dm(id, "hello"));
    const before = Date.now();
    await owner.ok("pair.approve", { channel: "test", senderId: "anna" });
    await owner.ok("pair.approve", { channel: "test", senderId: "me", role: "owner" });
    await owner.ok("pair.reject", { channel: "test", senderId: "spam" });
    const { pairs, approved } = await owner.ok<PairListResult>("pair.list");
    expect(Object.keys(pairs)).toEqual(["test:waiting"]);
    expect(approved?.toSorted((a, b) => (a.senderId < b.senderId ? -1 : 1))).toMatchObject([
      { channel: "test", senderId: "anna", role: "guest" },
      { channel: "test", senderId: "me", role: "owner" },
    ]);
    for (const { since } of approved ?? []) expect(since >= before && since <= Date.now()).toBe(true);
    // A sender whose approval was taken back is not listed any more.
    await owner.ok("pair.reject", { channel: "test", senderId: "anna" });
    expect((await owner.ok<PairListResult>("pair.list")).approved?.map(({ senderId }) => senderId)).toEqual(["me"]);
  });

  test("a request can be approved by its code", async () => {
    const held = await take(dm("anna", "hello"));
    const code = /code ([A-Z2-9]{6})/.exec(held.replies?.[0]?.text ?? "")?.[1] ?? "";
    expect(await owner.ok("pair.approve", { channel: "test", senderId: code.toLowerCase(), role: "owner" })).toMatchObject({
      senderId: "anna",
      role: "owner",
    });
    await eventually(() => expect(handed()).toHaveLength(1));
    expect(handed()[0]?.identity).toMatchObject({ key: "agent:main:main", isOwnersSession: true });
    expect(handed()[0]?.text).toBe("hello");
  });

  test("[CH7] [F37] by their phone number, where the platform says whose it is", async () => {
    const number = (phone: string) => ({ senderIds: { phone } });
    await take(dm("111@lid", "one", number("31611111111")));
    await take(dm("222@lid", "two", number("+31622222222")));
    await take(dm("333@lid", "three", number("+31633333333")));
    await take(dm("444@lid", "four", number("+31633333333")));
    await take(dm("31655555555", "five"));
    expect(await owner.ok("pair.approve", { channel: "test", senderId: "+31 6 1111 1111" })).toMatchObject({ senderId: "111@lid" });
    expect(await owner.ok("pair.reject", { channel: "test", senderId: "+31622222222" })).toMatchObject({ senderId: "222@lid" });
    // Two people with one number, digits that only look like one, and a number without its plus.
    for (const senderId of ["+31633333333", "+31655555555", "31611111111"])
      expect((await owner.refused("pair.approve", { channel: "test", senderId })).reason, senderId).toBe("pair.not_found");
    await eventually(() => expect(handed().map(({ identity }) => identity.key)).toEqual(["agent:main:test:default:dm:111@lid"]));
  });

  test("[F77] [S6] the code of a rejected request approves no one", async () => {
    const held = await take(dm("spam", "buy"));
    const code = /code ([A-Z2-9]{6})/.exec(held.replies?.[0]?.text ?? "")?.[1] ?? "";
    expect(code).not.toBe("");
    await owner.ok("pair.reject", { channel: "test", senderId: code });
    for (const role of ["guest", "owner"] as const)
      expect((await owner.refused("pair.approve", { channel: "test", senderId: code, role })).reason).toBe("pair.not_found");
    expect(await take(dm("spam", "buy!"))).toEqual({ outcome: "ignored" });
    expect(sessions.asked).toEqual([]);
  });

  test("a rejected sender gets no more answers", async () => {
    await take(dm("spam", "buy"));
    await owner.ok("pair.reject", { channel: "test", senderId: "spam" });
    expect(await take(dm("spam", "buy!"))).toEqual({ outcome: "ignored" });
    expect(sessions.asked).toEqual([]);
    expect((await owner.refused("pair.approve", { channel: "test", senderId: "unknown" })).reason).toBe("pair.not_found");
  });

  test("[CH3][S6] a group without a mention, and a stranger in a group: no run", async () => {
    await configure("channels.test.owners", ["me"]);
    expect((await take(group("me", "hello all"))).outcome).toBe("ignored");
    expect((await take(group("stranger", "ok", { wasMentioned: true }))).outcome).toBe("ignored");
    expect(sessions.asked).toEqual([]);
  });

  test("[R6] the owner's command counts also in a message with a header; quoted or forwarded text is no command", async () => {
    await configure("channels.test.owners", ["me"]);
    const said = async (message: Partial<ChannelInbound["message"]>): Promise<Partial<SessionSend> | undefined> => {
      const inbound = dm("me", "/stop");
      await take({ ...inbound, message: { ...inbound.message, ...message } });
      const sent = handed().at(-1);
      return (
        sent && {
          text: sent.text,
          ...(sent.verbatim ? { verbatim: true } : {}),
          ...(sent.command === undefined ? {} : { command: sent.command }),
        }
      );
    };
    const sent = Date.now() - 3_600_000;
    expect(await said({})).toEqual({ text: "/stop" });
    expect(await said({ timestamp: sent })).toEqual({
      text: `[message] {"sentAt":"${new Date(sent).toISOString()}"}\n/stop`,
      verbatim: true,
      command: "/stop",
    });
    expect(await said({ text: "why?", replyToText: "/m:dear/model /reset" })).toEqual({
      text: '[message] {"quotes":{"text":"/m:dear/model /reset"}}\nwhy?',
      verbatim: true,
      command: "why?",
    });
    expect(await said({ forwarded: true })).toEqual({ text: '[message] {"forwarded":true}\n/stop', verbatim: true });
  });

  test("[TA1] what a message has of others is told to its conversation: forwarded text, quotes, strangers", async () => {
    await configure("channels.test.owners", ["me"]);
    await configure("channels.test.allowFrom", ["anna", "*"]);
    await configure("channels.test.dmPolicy", "open");
    const label = async (sender: string, message: Partial<ChannelInbound["message"]> = {}, more: Partial<ChannelInbound> = {}) => {
      const inbound = dm(sender, "well?", more);
      await take({ ...inbound, message: { ...inbound.message, ...message } });
      return handed().at(-1)?.taint;
    };
    expect(await label("me")).toBeUndefined();
    expect(await label("anna")).toBeUndefined();
    expect(await label("eve")).toEqual({ label: "world", source: "a message of the stranger eve on test" });
    expect(await label("me", { forwarded: true })).toEqual({ label: "world", source: "a forwarded message on test" });
    const quote = { replyToText: "obey", replyToSenderId: "eve" };
    expect(await label("me", quote)).toEqual({ label: "world", source: "a quoted message on test" });
    expect(await label("me", { ...quote, replyToSenderId: "me" })).toBeUndefined();
    expect(await label("me", { ...quote, replyToSenderId: "agent" }, { repliedToAgent: true })).toBeUndefined();
  });

  test("[S7][S8][X10] a group is never the owner's own conversation, and only the owner can use commands in it", async () => {
    await configure("channels.test.owners", ["me"]);
    await configure("channels.test.allowFrom", ["anna"]);
    const outcome = await take(group("me", "@ada /reset", { wasMentioned: true }));
    expect(outcome).toMatchObject({ outcome: "accepted", sessionKey: "agent:main:test:group:g1", reaction: "👀" });
    await take(group("anna", "/reset", { wasMentioned: true }));
    const [mine, hers] = handed();
    expect(mine).toMatchObject({ identity: { isOwnersSession: false }, verbatim: true, command: "/reset" });
    expect(mine?.text).toMatch(/^\[message\] \{.*"from":\{"id":"me"\}.*\}\n@ada \/reset$/);
    expect(mine?.reply).toMatchObject({ channel: "test", peer: { kind: "group", id: "g1" } });
    expect(hers).toMatchObject({ identity: { isOwnersSession: false }, verbatim: true });
    expect(hers).toMatchObject({ command: "/reset", byGuest: true });
    expect(mine).not.toHaveProperty("byGuest");
  });

  test("[CH2][X7] the policy `open` makes guests, never the owner", async () => {
    await configure("channels.test.dmPolicy", "open");
    await take(dm("anyone", "hi"));
    expect(handed()[0]?.identity).toMatchObject({ key: "agent:main:test:default:dm:anyone", isOwnersSession: false });
  });

  test("no channel may be called cli or have an invalid name", async () => {
    const over = (channel: string) =>
      channelEntrypoint(channel).inbound({ account: { channel, accountId: "default" }, inbound: dm("me", "hi") });
    await expect(over("cli")).rejects.toThrow(/no such channel/);
    await expect(over("../x")).rejects.toThrow(/no such channel/);
    await expect(entrypoint().inbound({ account: ACCOUNT } as never)).rejects.toThrow(/GatewayServiceInboundParams/);
  });
});

describe("one run, in the right session", () => {
  beforeEach(() => configure("channels.test.owners", ["me"]));

  test("[CH6][P2][W3] a redelivered message gets the same answer and no second run", async () => {
    const inbound = dm("me", "do it");
    const first = await take(inbound);
    expect(first).toMatchObject({ outcome: "accepted", sessionKey: "agent:main:main" });
    expect(await take(inbound)).toMatchObject({ ...first, outcome: "duplicate" });
    expect(handed()).toHaveLength(1);
  });

  test("[P2] a message that is a day late is kept for the agent and starts no run, and the channel learns why", async () => {
    await configure("channels.test.owners", ["me"]);
    const sent = Date.now() - 86_400_001;
    const late = dm("me", "/new", { message: { id: "old", text: "/new", timestamp: sent }, backlog: true });
    const outcome = { sessionKey: "agent:main:main", unanswered: "late" };
    expect(await take(late)).toEqual({ outcome: "accepted", ...outcome });
    expect(await take(late)).toEqual({ outcome: "duplicate", ...outcome });
    expect(handed()).toHaveLength(1);
    expect(handed()[0]).toMatchObject({ quiet: true, text: `[message] {"sentAt":"${new Date(sent).toISOString()}"}\n/new` });
    expect(handed()[0]?.reply).toBeUndefined();
  });

  test("[W22] reactions and corrections of accepted messages start no run; the correction of any other does", async () => {
    await configure("channels.test.owners", ["me"]);
    const { message } = dm("me", "");
    await take(dm("me", "10 euros", { message: { ...message, id: "e1", text: "10 euros" } }));
    expect(
      await take(dm("me", "", { message: { ...message, id: "e2", text: "[Reacted with 👍]", reaction: "👍", replyToId: "x" } })),
    ).toMatchObject({ outcome: "accepted", unanswered: "event" });
    expect(await take(dm("me", "", { message: { ...message, id: "e3", text: "12 euros", editOf: "e1" } }))).toMatchObject({
      unanswered: "event",
    });
    expect((await take(dm("me", "", { message: { ...message, id: "e4", text: "13 euros", editOf: "never" } }))).unanswered).toBeUndefined();
    expect(handed().map(({ quiet }) => quiet === true)).toEqual([false, true, true, false]);
  });

  test("[P2] a retry after a lost answer goes to the same session, whatever is configured meanwhile", async () => {
    let lost = true;
    sessions = fakeSessions(() => ({
      send: async ({ runId }) => {
        if (lost) throw new Error("the link broke");
        return { ok: true, value: { status: "started", runId: runId as never } };
      },
    }));
    const inbound = dm("me", "do it");
    await expect(take(inbound)).rejects.toThrow();
    lost = false;
    await configure("session.dmScope", "per-peer");
    await take(inbound);
    const keys = sessions.of("send").map(({ key }) => key);
    expect(new Set(keys)).toEqual(new Set(["agent:main:main"]));
    const ids = sessions.of("send").map(({ args }) => (args[0] as SessionSend).messageId);
    expect(new Set(ids).size).toBe(1);
  });

  test("a failing bucket or object is not a refusal: the channel keeps the message", async () => {
    let away = true;
    sessions = fakeSessions(() => ({
      send: async ({ runId }) =>
        away
          ? { ok: false, error: { reason: "storage.failed", message: "The bucket is away." } }
          : { ok: true, value: { status: "started", runId: runId as never } },
    }));
    const inbound = dm("me", "hello");
    expect(await take(inbound)).toEqual({ outcome: "later" });
    away = false;
    expect((await take(inbound)).outcome).toBe("accepted");
  });

  test("[P10] a refusal is reported to the sender once", async () => {
    sessions = fakeSessions(() => ({
      send: async () => ({ ok: false, error: { reason: "session.queue_full", message: "200 messages wait already." } }),
    }));
    const inbound = dm("me", "hello");
    const first = await take(inbound);
    expect(first).toMatchObject({ outcome: "refused", replies: [{ text: "200 messages wait already." }] });
    expect(await take(inbound)).toEqual(first);
  });

  test("a command is answered in its own conversation", async () => {
    sessions = fakeSessions(() => ({
      send: async () => ({ ok: true, value: { status: "command", command: "status", response: "All is well." } }),
    }));
    const outcome = await take(dm("me", "/status"));
    expect(outcome).toMatchObject({ outcome: "answered", replies: [{ text: "All is well.", peer: { id: "me" } }] });
    expect(handed()[0]?.verbatim).toBeUndefined();
  });

  test("[WB8] who steers a run is told that it gets the message; where it waits for its turn nothing is said", async () => {
    const started = { status: "started", runId: asRunId("run-1"), queued: true } as const;
    let steers: { readonly steers?: RunId } = { steers: asRunId("run-0") };
    sessions = fakeSessions(() => ({ send: async () => ({ ok: true, value: { ...started, ...steers } }) }));
    expect(await take(dm("me", "/steer use tabs"))).toMatchObject({
      outcome: "accepted",
      runId: "run-1",
      replies: [{ text: "The run under way gets this at its next step.", peer: { id: "me" } }],
    });
    expect(handed()[0]?.text).toBe("/steer use tabs");
    steers = {};
    expect((await take(dm("me", "/steer use tabs"))).replies).toBeUndefined();
  });

  test("[TH16] [F94] [CH6] a flood waits in the channel, and its sender is told once", async () => {
    await configure("channels.test.allowFrom", ["anna"]);
    let at = FAR;
    vi.spyOn(Date, "now").mockImplementation(() => at);
    for (let n = 0; n < 20; n++) await take(dm("anna", `message ${n}`));
    at += 13_000;
    const next = dm("anna", "one too many");
    expect(await take(next)).toEqual({ outcome: "later", retryAfterMs: 47_000 });
    expect(await take(dm("anna", "and another"))).toMatchObject({ outcome: "later" });
    await eventually(() => expect(sent).toHaveLength(1));
    expect(sent[0]).toMatchObject({
      kind: "notice",
      peer: { id: "anna" },
      text: expect.stringContaining("more than 20 messages in a minute"),
    });
    at += 47_000;
    expect((await take(next)).outcome).toBe("accepted");
    expect((await take(dm("stranger-2", "else"))).outcome).toBe("held");
    expect(sent).toHaveLength(1);
  });

  test("[F94] [CH6] the owner may write six times as much, and one conversation holds back no other", async () => {
    let at = FAR;
    vi.spyOn(Date, "now").mockImplementation(() => at);
    for (let n = 0; n < 120; n++) expect((await take(dm("me", `message ${n}`))).outcome).toBe("accepted");
    expect(await take(dm("me", "one too many"))).toMatchObject({ outcome: "later" });
    await eventually(() => expect(sent.map(({ text }) => text)).toEqual([expect.stringContaining("more than 120 messages")]));
    expect((await take(group("me", "and here?", { wasMentioned: true }))).outcome).toBe("accepted");
    at += 60_000;
    expect((await take(dm("me", "later"))).outcome).toBe("accepted");
  });

  test("a guest over the daily limit is refused with a notice", async () => {
    await configure("channels.test.allowFrom", ["guest"]);
    const now = vi.spyOn(Date, "now");
    let at = FAR;
    now.mockImplementation(() => (at += 4000));
    for (let n = 0; n < 200; n++) await take(dm("guest", `message ${n}`));
    const over = await take(dm("guest", "and another"));
    expect(over.outcome).toBe("refused");
    at += 86_400_000;
    expect((await take(dm("guest", "good morning"))).outcome).toBe("accepted");
  });

  test("bindings and links decide the agent and the conversation", async () => {
    await owner.ok("agents.create", { agentId: "work", bootstrap: false });
    await configure("agents.bindings", [{ agentId: "work", match: { channel: "test", peer: { kind: "group" } } }]);
    await configure("session.identityLinks", { friend: ["test:anna"] });
    await configure("session.dmScope", "per-channel-peer");
    await configure("channels.test.allowFrom", ["anna"]);
    expect((await take(group("anna", "hi", { wasMentioned: true }))).sessionKey).toBe("agent:work:test:group:g1");
    expect((await take(dm("anna", "hi"))).sessionKey).toBe("agent:main:test:dm:friend");
  });

  test("[F49] an answer quotes its question, in direct conversations too", async () => {
    const inbound = dm("me", "a question");
    await take(inbound);
    expect(handed()[0]?.reply).toMatchObject({ peer: { kind: "dm", id: "me" }, replyToId: inbound.message.id });
  });

  test("[CH8] only people with access get a storage key for their files", async () => {
    const mine = dm("me", "look");
    const slot = await entrypoint().media({ account: ACCOUNT, inbound: mine, mimeType: "image/png", index: 0 });
    expect(slot.r2Key).toMatch(/^media\/agent:main:main\/[0-9a-f-]{36}\.png$/);
    expect(await entrypoint().media({ account: ACCOUNT, inbound: mine, mimeType: "image/png", index: 0 })).toEqual(slot);
    expect(await entrypoint().media({ account: ACCOUNT, inbound: dm("stranger", "look"), mimeType: "image/png", index: 0 })).toEqual({});
    await take({
      ...mine,
      message: {
        ...mine.message,
        media: [{ type: "image", mimeType: "image/png", ...(slot.r2Key === undefined ? {} : { r2Key: slot.r2Key }) }],
      },
    });
    expect(handed()[0]?.attachments).toEqual([{ mimeType: "image/png", r2Key: slot.r2Key }]);
  });
});

describe("the owner manages channels", () => {
  test("start, status, login and stop work", async () => {
    expect(await owner.ok("channel.start", { channel: "test" })).toEqual({ ok: true, channel: "test", accountId: "default" });
    expect(await owner.ok("channel.status", { channel: "test" })).toMatchObject({ accounts: [{ accountId: "default", connected: true }] });
    expect(await owner.ok("channel.login", { channel: "Test" })).toMatchObject({ login: { state: "qr", qr: "QR-TEXT" } });
    expect(await owner.ok("channel.stop", { channel: "test" })).toMatchObject({ ok: true });
    expect(await owner.ok("channels.list")).toMatchObject({
      channels: [{ channel: "test", accountId: "default" }],
      count: 1,
      bound: ["test"],
    });
    const { entries } = await owner.ok<{ entries: { action: string; target?: string }[] }>("audit.list");
    expect(entries.filter(({ action }) => action.startsWith("channel.")).map(({ action, target }) => [action, target])).toEqual([
      ["channel.stop", "test"],
      ["channel.login", "Test"],
      ["channel.start", "test"],
    ]);
  });
  test("[F35] a login has its code where the reference's client looks for it: as the text that it draws", async () => {
    expect(await owner.ok("channel.login", { channel: "test", accountId: "default" })).toMatchObject({
      ok: true,
      qrDataUrl: "QR-TEXT",
      message: "Scan this.",
    });
    service.login = async () => ({ state: "code", code: "ABCD-EFGH", message: "Type this." });
    expect(await owner.ok("channel.login", { channel: "test" })).not.toHaveProperty("qrDataUrl");
  });
  test("an account that does not answer does not hide the others", async () => {
    for (const accountId of ["work", "home"]) {
      const entry = entrypoint();
      await entry.inbound({ account: { ...ACCOUNT, accountId }, inbound: dm("me", "hi") });
    }
    const { status } = service;
    service = {
      ...service,
      status: async (params) => (params.accountId === "work" ? Promise.reject(new Error("SECRET-DETAIL")) : status(params)),
    };
    const all = await owner.ok("channel.status", { channel: "test" });
    expect(all).toMatchObject({
      accounts: [
        { accountId: "home", connected: true },
        { accountId: "work", connected: false, error: expect.stringContaining("did not answer") },
      ],
    });
    expect(JSON.stringify(all)).not.toContain("SECRET-DETAIL");
    expect(await owner.refused("channel.status", { channel: "test", accountId: "work" })).toMatchObject({ reason: "channel.failed" });
  });
  test("an unknown channel and a failing channel are errors", async () => {
    expect(await owner.refused("channel.start", { channel: "fax" })).toMatchObject({
      reason: "channel.unknown",
      hint: expect.stringContaining("test"),
    });
    service = { ...service, start: async () => Promise.reject(new Error("SECRET-DETAIL")) };
    const error = await owner.refused("channel.start", { channel: "test" });
    expect(error.reason).toBe("channel.failed");
    expect(JSON.stringify(error)).not.toContain("SECRET-DETAIL");
  });
});

describe("nothing is lost, old rows are pruned", () => {
  const count = (table: string): Promise<number> =>
    runInDurableObject(gateway(), (_gateway, { storage }) => storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`).one().n);

  test("[P10][P19] a text over the limit is cut with a note", async () => {
    await configure("channels.test.owners", ["me"]);
    expect((await take(dm("me", "€".repeat(200_000)))).outcome).toBe("accepted");
    const { text = "" } = handed()[0] ?? {};
    expect(new TextEncoder().encode(text).length).toBeLessThanOrEqual(262_144 - 32_768 + 1_000);
    expect(text).toMatch(/^\[message\] \{"cut":"the text was too long: its last \d+ characters are left out"\}\n€/);
  });

  test("[P10] a long text of a stranger is held, cut", async () => {
    await take(dm("anna", '"'.repeat(100_000)));
    await owner.ok("pair.approve", { channel: "test", senderId: "anna" });
    await eventually(() => expect(handed()).toHaveLength(1));
    expect(handed()[0]?.text).toMatch(/"{1000}\n\[The rest was too long to be kept\.\]$/);
  });

  test("[CH18][P2] the alarm prunes accepted messages after 30 days and pairing requests after 7, in steps", async () => {
    await configure("channels.test", { owners: ["me"], allowFrom: ["guest"] });
    const now = vi.spyOn(Date, "now");
    let at = FAR;
    now.mockImplementation(() => (at += 4000));
    for (let n = 0; n < 250; n++) await take(dm("me", `message ${n}`));
    await take(dm("guest", "hi"));
    await take(dm("stranger", "let me in"));
    expect([await count("channel_inbox"), await count("pairs"), await count("held"), await count("channel_counts")]).toEqual([
      252, 1, 1, 1,
    ]);
    at += 8 * 86_400_000;
    await runDurableObjectAlarm(gateway());
    expect([await count("pairs"), await count("held"), await count("channel_counts")]).toEqual([0, 0, 0]);
    expect(await count("channel_inbox")).toBe(252);
    expect((await take(dm("stranger", "me again"))).replies).toHaveLength(1);
    at += 23 * 86_400_000;
    await runDurableObjectAlarm(gateway());
    expect(await count("channel_inbox")).toBe(53);
    await runDurableObjectAlarm(gateway());
    expect(await count("channel_inbox")).toBe(1);
  });
});
