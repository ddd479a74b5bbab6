/** Inbound messages at the gateway: one fake channel, fake sessions, and the owner's connection. */
import { reset } from "cloudflare:test";
import { vi } from "vitest";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { ChannelAccount, ChannelInbound, ChannelInboundOutcome, OutboundMessage } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import type { SessionSend } from "../../../src/ports/session.ts";
import { channelEntrypoint, client, fakeSessions, type Peer, seed } from "../../support/gateway.ts";

export const ACCOUNT = { channel: "test", accountId: "default" };
const state = (accountId: string): ChannelAccount => ({ accountId, connected: true, authenticated: true });
export type FakeSessions = ReturnType<typeof fakeSessions>;
export interface InboundStage {
  /** The channel. Its methods can be replaced. */
  readonly service: ChannelService;
  /** What the channel was asked to send. */
  readonly sent: OutboundMessage[];
  readonly sessions: FakeSessions;
  readonly owner: Peer;
}

/** Call before each test: it has a fresh gateway with the channel `test`. */
export async function inboundStage(): Promise<InboundStage> {
  await reset();
  const sent: OutboundMessage[] = [];
  const service: ChannelService = {
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
  const sessions = fakeSessions();
  await seed();
  return { service, sent, sessions, owner: await client() };
}

export const take = (inbound: ChannelInbound, account = ACCOUNT): Promise<ChannelInboundOutcome> =>
  channelEntrypoint().inbound({ account, inbound });
let serial = 0;
export const dm = (sender: string, text: string, more: Partial<ChannelInbound> = {}): ChannelInbound => ({
  peer: { kind: "dm", id: sender },
  sender: { id: sender },
  message: { id: `m${++serial}`, text, timestamp: Date.now() },
  receivedAt: Date.now(),
  ...more,
});
export const group = (sender: string, text: string, more: Partial<ChannelInbound> = {}): ChannelInbound => ({
  ...dm(sender, text),
  peer: { kind: "group", id: "g1", name: "Friends" },
  ...more,
});
/** Messages that reached sessions. */
export const handedTo = (sessions: FakeSessions): SessionSend[] => sessions.of("send").map(({ args }) => args[0] as SessionSend);
