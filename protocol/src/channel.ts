/** Messaging platforms, as the gateway and clients see them. */
import { enumOf, method, struct, t } from "./dsl.ts";

export const PeerKind = enumOf("PeerKind", "What kind of conversation it is on the platform.", ["dm", "group", "channel", "thread"]);
export const Peer = struct("Peer", "A conversation on a platform.", {
  kind: PeerKind,
  id: t.string(256, { minLength: 1 }),
  name: t.optional(t.string(256)),
  handle: t.optional(t.string(256)),
});
export const Sender = struct("Sender", "A person on a platform.", {
  id: t.string(256, { minLength: 1 }),
  name: t.optional(t.string(256)),
  handle: t.optional(t.string(256)),
});
export const MediaKind = enumOf("MediaKind", "Kind of media.", ["image", "audio", "video", "document"]);
export const Media = struct("Media", "A file that came with a message.", {
  type: MediaKind,
  mimeType: t.string(128),
  data: t.optional(t.text()),
  r2Key: t.optional(t.string(1024)),
  url: t.optional(t.string(2048)),
  filename: t.optional(t.string(256)),
  size: t.optional(t.int()),
  duration: t.optional(t.number(0)),
  transcription: t.optional(t.text()),
});
export const Location = struct("Location", "A place.", {
  lat: t.number(-90, 90),
  lon: t.number(-180, 180),
  name: t.optional(t.string(256)),
});
export const InboundMessage = struct("InboundMessage", "A message from a platform.", {
  id: t.string(256, { minLength: 1 }),
  text: t.text(),
  timestamp: t.optional(t.time()),
  replyToId: t.optional(t.string(256)),
  replyToText: t.optional(t.text()),
  media: t.optional(t.array(Media, 16)),
  location: t.optional(Location),
});
export const ChannelEntry = struct("ChannelEntry", "A connected channel account.", {
  channel: t.string(64),
  accountId: t.string(128),
  connectedAt: t.time(),
  lastMessageAt: t.optional(t.time()),
});
export const ChannelAccount = struct("ChannelAccount", "State of one account of a channel.", {
  accountId: t.string(128),
  connected: t.bool(),
  authenticated: t.bool(),
  mode: t.optional(t.string(64)),
  lastActivity: t.optional(t.time()),
  error: t.optional(t.text()),
  extra: t.optional(t.object()),
});
const account = { channel: t.string(64, { minLength: 1 }), accountId: t.optional(t.string(128)) };
const done = { ok: t.literal(true), channel: t.string(64), accountId: t.string(128) };
const act = { callers: ["client"], scope: "admin", errors: ["channel.unknown"] } as const;

method("channels.list", {
  doc: "Connected channel accounts.",
  result: { channels: t.array(ChannelEntry, 1000), count: t.int() },
  callers: ["client"],
  scope: "read",
  idempotent: true,
});
method("channel.inbound", {
  doc: "A channel hands over a message. The answer means that it is durable here.",
  params: {
    channel: t.string(64),
    accountId: t.string(128),
    peer: Peer,
    sender: t.optional(Sender),
    message: InboundMessage,
    wasMentioned: t.optional(t.bool()),
    mentionedIds: t.optional(t.array(t.string(256), 256)),
  },
  result: { status: t.string(64), sessionKey: t.optional(t.string(512)), duplicate: t.optional(t.bool()) },
  callers: ["channel"],
  scope: "channel",
  errors: ["channel.unknown", "session.queue_full"],
  idempotent: true,
});
method("channel.start", { doc: "Starts a channel account.", params: { ...account, config: t.optional(t.object()) }, result: done, ...act });
method("channel.stop", { doc: "Stops a channel account.", params: account, result: done, ...act });
method("channel.status", {
  doc: "State of a channel's accounts.",
  params: account,
  result: { channel: t.string(64), accounts: t.array(ChannelAccount, 256) },
  callers: ["client"],
  scope: "read",
  errors: ["channel.unknown"],
  idempotent: true,
});
method("channel.login", {
  doc: "Logs an account in; may answer with a QR code to scan.",
  params: { ...account, force: t.optional(t.bool()) },
  result: { ...done, qrDataUrl: t.optional(t.text()), message: t.text() },
  ...act,
});
method("channel.logout", { doc: "Logs an account out and forgets its credentials.", params: account, result: done, ...act });
