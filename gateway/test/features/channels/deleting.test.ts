/** A channel redelivers messages before, during and after the deletion of their session: real sessions, demo model, a fake channel. */
import { abortAllDurableObjects, reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { ChannelInbound, ChannelInboundOutcome, OutboundMessage } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import type { SessionPort } from "../../../src/ports/session.ts";
import { channelEntrypoint, client, eventually, gateway, type Peer, seed } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

const ACCOUNT = { channel: "test", accountId: "default" };
const KEY = "agent:main:test:default:dm:anna";
const STATE = { accountId: "default", connected: true, authenticated: true };
let sent: OutboundMessage[];
let owner: Peer;

beforeEach(async () => {
  await reset();
  sent = [];
  const service: ChannelService = {
    describe: async () => ({
      peerKinds: ["dm"],
      media: false,
      reactions: false,
      typing: false,
      replies: false,
      edits: false,
      buttons: false,
      login: false,
      maxTextChars: 2000,
    }),
    start: async () => STATE,
    stop: async () => ({ ...STATE, connected: false }),
    status: async () => [STATE],
    send: async ({ message }) => {
      sent.push(message);
      return { status: "queued" };
    },
    live: async () => ({ ok: true }),
    typing: async () => ({ ok: true }),
    login: async () => ({ state: "connected", message: "" }),
    recheck: async () => ({ ok: true }),
    logout: async () => STATE,
  };
  vi.spyOn(parts, "channel").mockImplementation((_env, name) => (name === "test" ? service : undefined));
  vi.spyOn(parts, "channelNames").mockImplementation(() => ["test"]);
  await seed();
  owner = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const take = (inbound: ChannelInbound): Promise<ChannelInboundOutcome> => channelEntrypoint().inbound({ account: ACCOUNT, inbound });
const dm = (id: string, text: string): ChannelInbound => ({
  peer: { kind: "dm", id: "anna" },
  sender: { id: "anna" },
  message: { id, text, timestamp: Date.now() },
  receivedAt: Date.now(),
});
/** The outcome of an accepted message that is delivered again. */
const again = (taken: ChannelInboundOutcome): ChannelInboundOutcome => ({ ...taken, outcome: "duplicate" });
/** The first word of each answer: the demo model adds a note to its first one. */
const answers = (): string[] => sent.flatMap(({ text }) => text?.split(/\s/)[0] ?? []);
/** From now on this step of a deletion fails. The gateway is evicted, so that it creates its stubs of sessions again, with the fault. */
async function failing(name: keyof SessionPort): Promise<{ readonly mockRestore: () => void }> {
  const real = parts.session;
  const spy = vi.spyOn(parts, "session").mockImplementation(
    (of, sessionKey) =>
      new Proxy(real(of, sessionKey), {
        get(target, member) {
          if (member === name) return () => Promise.reject(new Error("it does not answer"));
          const method: unknown = Reflect.get(target, member, target);
          return typeof method === "function" ? (...args: unknown[]): unknown => Reflect.apply(method, target, args) : member;
        },
      }),
  );
  await evict(gateway(), { webSockets: "hibernate" });
  return spy;
}
/** Everything in memory is lost, at once and everywhere; then the gateway's alarm fires. */
async function crashAndAlarm(): Promise<void> {
  await abortAllDurableObjects();
  const now = Date.now();
  vi.spyOn(Date, "now").mockImplementation(() => now + 60_000);
  await runInDurableObject(gateway(), (object) => object.alarm());
  owner = await client();
}
test.each(["end", "erase"] as const)(
  "[SD3] a message that a channel delivers again and again around a deletion that stops before `%s` is answered once",
  async (step) => {
    await owner.ok("config.set", { path: "channels.test.dmPolicy", value: "open" });
    await owner.ok("config.set", { path: "channels.test.allowFrom", value: ["*"] });
    const [first, second] = [dm("m1", "say first"), dm("m2", "say second")];
    const taken = await take(first);
    expect(taken).toMatchObject({ outcome: "accepted", sessionKey: KEY });
    await eventually(() => expect(answers()).toEqual(["first"]));

    const broken = await failing(step);
    expect(await owner.ok("session.delete", { sessionKey: KEY, stop: true })).toMatchObject({ done: false });
    expect(await take(second)).toEqual({ outcome: "later" });
    expect(await take(second)).toEqual({ outcome: "later" });
    expect(await take(first)).toEqual(again(taken));
    await abortAllDurableObjects();
    expect(await take(second)).toEqual({ outcome: "later" });

    broken.mockRestore();
    await crashAndAlarm();
    expect(await take(first)).toEqual(again(taken));
    expect((await owner.refused("session.get", { sessionKey: KEY })).reason, "it begins no new session").toBe("session.not_found");
    const accepted = await take(second);
    expect(accepted).toMatchObject({ outcome: "accepted", sessionKey: KEY });
    expect(await take(second)).toEqual(again(accepted));
    await eventually(() => expect(answers()).toEqual(["first", "second"]));
    expect(await take(second)).toEqual(again(accepted));
    expect(await take(first)).toEqual(again(taken));
    expect(await owner.ok("session.get", { sessionKey: KEY })).toMatchObject({ messageCount: 2 });
    expect(answers()).toEqual(["first", "second"]);
  },
);
