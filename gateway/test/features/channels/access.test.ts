/**
 * Access of senders at the gateway: strangers and pairing, policies and groups, what counts as the owner's command. The channel is a
 * fake service.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ChannelInbound, PairListResult } from "../../../../protocol/gen/types.ts";
import type { SessionSend } from "../../../src/ports/session.ts";
import { channelEntrypoint, eventually, type Peer } from "../../support/gateway.ts";
import { ACCOUNT, dm, type FakeSessions, group, handedTo, inboundStage, take } from "./support.ts";

let sessions: FakeSessions;
let owner: Peer;

beforeEach(async () => {
  ({ sessions, owner } = await inboundStage());
});
afterEach(() => {
  vi.restoreAllMocks();
});

const entrypoint = channelEntrypoint;
const configure = (path: string, value: unknown) => owner.ok("config.set", { path, value });
const handed = (): SessionSend[] => handedTo(sessions);

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
