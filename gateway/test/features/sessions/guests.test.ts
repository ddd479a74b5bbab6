/** Session ownership, which never changes, and what sessions that are not the owner's may use. The platform is a fake service. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ChannelInbound, ChannelInboundOutcome } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import type { SearchRequest } from "../../../src/ports/search.ts";
import type { SessionIdentity, SessionSend } from "../../../src/ports/session.ts";
import { channelEntrypoint, client, fakeSessions, gateway, node, type Peer, port, seed } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

let sessions: ReturnType<typeof fakeSessions>;
let owner: Peer;
beforeEach(async () => {
  await reset();
  sessions = fakeSessions();
  await seed();
  owner = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

let serial = 0;
const dm = (sender: string, more: Partial<ChannelInbound> = {}): ChannelInbound => ({
  peer: { kind: "dm", id: sender },
  sender: { id: sender },
  message: { id: `m${++serial}`, text: "hello" },
  receivedAt: 1,
  ...more,
});
const take = (inbound: ChannelInbound, channel = "test"): Promise<ChannelInboundOutcome> =>
  channelEntrypoint(channel).inbound({ account: { channel, accountId: "default" }, inbound });
const configure = (path: string, value: unknown) => owner.ok("config.set", { path, value });
const identities = (): SessionIdentity[] => sessions.of("send").map(({ args }) => (args[0] as SessionSend).identity);
const last = (): SessionIdentity | undefined => identities().at(-1);

describe("session ownership", () => {
  test.each(["per-peer", "per-channel-peer", "per-account-channel-peer"])(
    "[S8][X8] under %s, the owner's direct chat is an owner's session, from any client and after a restart",
    async (scope) => {
      await configure("session.dmScope", scope);
      await configure("channels.test.owners", ["me"]);
      const { sessionKey = "" } = await take(dm("me"));
      expect(sessionKey).not.toBe("agent:main:main");
      expect(last()).toMatchObject({ key: sessionKey, isOwnersSession: true });
      // A message from the owner's terminal does not change the ownership.
      await owner.ok("chat.send", { sessionKey, message: "and from here" });
      expect(last()).toMatchObject({ key: sessionKey, isOwnersSession: true });
      await evict(gateway());
      await take(dm("me"));
      expect(last()).toMatchObject({ key: sessionKey, isOwnersSession: true });
    },
  );

  test("[CH9][CH10][S8] a guest's session stays a guest's when the guest becomes the owner, who goes on in the main session", async () => {
    await configure("session.dmScope", "per-peer");
    await configure("channels.test.allowFrom", ["anna"]);
    const { sessionKey = "" } = await take(dm("anna"));
    expect(last()).toMatchObject({ key: "agent:main:dm:test%3Aanna", isOwnersSession: false });
    await configure("channels.test.owners", ["anna"]);
    await take(dm("anna"));
    expect(last()).toMatchObject({ key: "agent:main:main", isOwnersSession: true });
    await owner.ok("chat.send", { sessionKey, message: "what did I say as a guest?" });
    expect(last()).toMatchObject({ key: "agent:main:dm:test%3Aanna", isOwnersSession: false });
  });

  test("[S8] the owner's session stays closed to a sender who is no longer the owner", async () => {
    await configure("session.dmScope", "per-peer");
    await configure("channels.test.owners", ["anna"]);
    await take(dm("anna"));
    expect(last()).toMatchObject({ key: "agent:main:dm:test%3Aanna", isOwnersSession: true });
    await configure("channels.test", { allowFrom: ["anna"] });
    await take(dm("anna"));
    expect(last()).toMatchObject({ key: "agent:main:test:default:dm:anna", isOwnersSession: false });
  });

  test("[CH11][S8] when no other session name is left, the sender is told, and nothing reaches the owner's session", async () => {
    await configure("session.dmScope", "per-account-channel-peer");
    await configure("channels.test.owners", ["anna"]);
    await take(dm("anna"));
    await configure("channels.test", { allowFrom: ["anna"] });
    const before = identities().length;
    const refused = await take(dm("anna"));
    expect(refused).toMatchObject({ outcome: "refused", replies: [{ text: expect.stringContaining("of another person") }] });
    expect(identities()).toHaveLength(before);
  });

  test("[S7][S8] a guest who is linked to the owner's name gets nothing of the owner's session", async () => {
    await configure("session.dmScope", "per-peer");
    await configure("session.identityLinks", { us: ["test:me", "test:anna"] });
    await configure("channels.test", { owners: ["me"], allowFrom: ["anna"] });
    await take(dm("me"));
    expect(last()).toMatchObject({ key: "agent:main:dm:us", isOwnersSession: true });
    await take(dm("anna"));
    expect(last()).toMatchObject({ key: "agent:main:test:default:dm:anna", isOwnersSession: false });
  });

  test("[P2][S8] a retried message does not reach the owner's session after its sender became a guest", async () => {
    await configure("channels.test.owners", ["anna"]);
    sessions = fakeSessions(() => ({ send: () => Promise.reject(new Error("the link broke")) }));
    const inbound = dm("anna");
    await expect(take(inbound)).rejects.toThrow();
    await configure("channels.test", { allowFrom: ["anna"] });
    sessions = fakeSessions();
    expect(await take(inbound)).toMatchObject({ outcome: "refused", replies: [{ text: expect.stringContaining("access changed") }] });
    expect(identities()).toEqual([]);
  });

  test("[P2][S8] a retried message does not turn a guest's session into the owner's", async () => {
    await configure("channels.test.allowFrom", ["anna"]);
    sessions = fakeSessions(() => ({ send: () => Promise.reject(new Error("the link broke")) }));
    const inbound = dm("anna");
    await expect(take(inbound)).rejects.toThrow();
    await configure("channels.test.owners", ["anna"]);
    sessions = fakeSessions();
    expect((await take(inbound)).outcome).toBe("refused");
    expect(identities()).toEqual([]);
  });

  test("[CH12][S8] memory is searched in the owner's sessions, never in a guest's or a group's", async () => {
    await configure("session.dmScope", "per-peer");
    await configure("channels.test", { owners: ["me"], allowFrom: ["anna"], groups: "all" });
    await take(dm("me"));
    await take(dm("anna"));
    await take(dm("me", { peer: { kind: "group", id: "g1" } }));
    const asked: SearchRequest[] = [];
    vi.spyOn(parts, "search").mockImplementation(() => ({
      query: async (request) => {
        asked.push(request);
        return { hits: [], more: false, notes: [] };
      },
      forget: async () => undefined,
      memoriesWillChange: async () => undefined,
      memoriesChanged: async () => undefined,
    }));
    await port().recall({ agentId: "main", query: "tea", snippetChars: 100 });
    expect(asked[0]?.memoryOf).toEqual({ keys: ["agent:main:main", "agent:main:dm:test%3Ame"], prefix: "agent:main:cli:dm:" });
  });
});

describe("what guests may use", () => {
  const GUEST = "agent:main:test:default:dm:anna";
  const names = async (key: string): Promise<readonly string[]> =>
    ((await port().runContext(key, undefined))?.tools ?? []).map(({ definition }) => definition.name);
  const call = (sessionKey: string, tool = "Bash") =>
    port().dispatchTool({ callId: "ref/r1/1/0", sessionKey, nodeId: "lap", tool, args: {}, timeoutMs: 1000 });

  test("[CH13][CH15][X7][S6] a guest's run sees no machine; a call that it makes anyway is refused and audited", async () => {
    await configure("channels.test.allowFrom", ["anna"]);
    await take(dm("anna"));
    const lap = await node("lap");
    for (const key of [GUEST, "agent:main:test:group:g1", "agent:main:test:thread:t1", "agent:main:dm:ben", "not a key"]) {
      const context = await port().runContext(key, undefined);
      expect({ key, tools: context?.tools, nodes: context?.nodes }).toEqual({ key, tools: [], nodes: [] });
      expect(await call(key)).toBe("refused");
    }
    expect(lap.events("tool.invoke")).toEqual([]);
    const { entries } = await owner.ok<{ entries: { action: string; actor: string; target: string }[] }>("audit.list", {});
    expect(entries).toContainEqual(expect.objectContaining({ action: "tool.call", target: "lap__Bash", actor: `session:${GUEST}` }));
  });

  test("the owner's session has all machines, also over a platform", async () => {
    await configure("session.dmScope", "per-peer");
    await configure("channels.test.owners", ["me"]);
    await take(dm("me"));
    await node("lap");
    for (const key of ["agent:main:main", "agent:main:cli:dm:main", "agent:main:dm:test%3Ame"]) {
      expect(await names(key)).toEqual(["lap__Bash", "lap__Read"]);
      expect(await call(key)).toBe("sent");
    }
  });

  test("[CH14][X7] a tool that the owner opens to a channel's guests can be used until the owner closes it, also during a run", async () => {
    await configure("channels.test", { allowFrom: ["anna"], guestTools: ["lap__R*"] });
    await take(dm("anna"));
    await node("lap");
    expect(await names(GUEST)).toEqual(["lap__Read"]);
    expect(await call(GUEST, "Read")).toBe("sent");
    expect(await call(GUEST, "Bash")).toBe("refused");
    const { version } = (await port().runContext(GUEST, undefined)) ?? {};
    await owner.ok("config.unset", { path: "channels.test.guestTools" });
    expect(await call(GUEST, "Read")).toBe("refused");
    expect((await port().runContext(GUEST, version))?.tools).toEqual([]);
  });

  test("[S10] an entry that can't be opened is refused with an explanation", async () => {
    expect(await owner.refused("config.set", { path: "channels.test.guestTools", value: ["gsv__WriteFile"] })).toMatchObject({
      reason: "config.invalid",
      message: expect.stringContaining("can't be opened"),
    });
  });
});

describe("[TH6] programs that answer each other", () => {
  const group = (sender: string, bot: boolean): ChannelInbound =>
    dm(sender, { peer: { kind: "group", id: "g1" }, sender: { id: sender, bot }, wasMentioned: true });
  test("[CH4] five messages in a row are answered, then none until a person writes, also after a restart", async () => {
    await configure("channels.test.allowFrom", ["bot", "anna"]);
    const outcomes = async (count: number, bot = true): Promise<string[]> => {
      const out: string[] = [];
      for (let n = 0; n < count; n++) out.push((await take(group(bot ? "bot" : "anna", bot))).outcome);
      return out;
    };
    expect(await outcomes(6)).toEqual([...Array.from({ length: 5 }, () => "accepted"), "ignored"]);
    await evict(gateway());
    expect(await outcomes(1)).toEqual(["ignored"]);
    expect(await outcomes(1, false)).toEqual(["accepted"]);
    expect(await outcomes(1)).toEqual(["accepted"]);
    const now = Date.now();
    expect(await outcomes(5)).toEqual([...Array.from({ length: 4 }, () => "accepted"), "ignored"]);
    vi.spyOn(Date, "now").mockReturnValue(now + 3_700_000);
    expect(await outcomes(1)).toEqual(["accepted"]);
  });
  test("a program without access gets nothing, not even a notice", async () => {
    await configure("channels.test", { dmPolicy: "open", allowFrom: ["*"] });
    expect(await take(dm("bot", { sender: { id: "bot", bot: true } }))).toEqual({ outcome: "ignored" });
    expect(await take(group("bot", true))).toEqual({ outcome: "ignored" });
    expect(identities()).toEqual([]);
  });
});
