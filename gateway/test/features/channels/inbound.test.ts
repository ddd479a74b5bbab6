/**
 * An accepted message gets one run in the right session: duplicates and retries, refusals, floods, and what its sender is told. The
 * channel is a fake service.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { asRunId, type OutboundMessage, type RunId } from "../../../../protocol/gen/types.ts";
import type { SessionSend } from "../../../src/ports/session.ts";
import { channelEntrypoint, eventually, FAR, fakeSessions, type Peer } from "../../support/gateway.ts";
import { ACCOUNT, dm, type FakeSessions, group, handedTo, inboundStage, take } from "./support.ts";

let sent: OutboundMessage[];
let sessions: FakeSessions;
let owner: Peer;

beforeEach(async () => {
  ({ sent, sessions, owner } = await inboundStage());
});
afterEach(() => {
  vi.restoreAllMocks();
});

const entrypoint = channelEntrypoint;
const configure = (path: string, value: unknown) => owner.ok("config.set", { path, value });
const handed = (): SessionSend[] => handedTo(sessions);

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
