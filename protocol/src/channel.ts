/** Messaging platforms, as the gateway and clients see them. */
import { enumOf, method, ref, service, struct, t, tagged } from "./dsl.ts";

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
  /** The platform says that it is a program. */
  bot: t.optional(t.bool()),
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
  replyToSenderId: t.optional(t.string(256)),
  /** The platform's own id of the message that this one replaces or takes back. */
  editOf: t.optional(t.string(256)),
  deleted: t.optional(t.bool()),
  /** A reaction to `replyToId`; empty: it was taken back. */
  reaction: t.optional(t.string(64)),
  forwarded: t.optional(t.bool()),
});

// ---------------------------------------------------------------- what gateway and channels say to each other

export const ChannelCapabilities = struct("ChannelCapabilities", "What a platform can do.", {
  peerKinds: t.array(PeerKind, 4),
  media: t.bool(),
  reactions: t.bool(),
  typing: t.bool(),
  replies: t.bool(),
  /** Messages that were sent can be changed: an answer is shown while it is made. */
  edits: t.bool(),
  buttons: t.bool(),
  /** Logging in is done by a person with a phone in hand. */
  login: t.bool(),
  maxTextChars: t.int(1, 1000000),
  /** The platform calls by HTTP: the gateway passes on what comes to `/channels/{name}/`. */
  webhooks: t.optional(t.bool()),
});
/** The channel says which of its senders are numbers; nobody else can know (promises X15). */
export const SenderIds = struct("SenderIds", "The same person's other ids on the platform, as the platform itself says.", {
  /** E.164, with the plus. */
  phone: t.optional(t.string(32)),
  lid: t.optional(t.string(256)),
  username: t.optional(t.string(256)),
});
export const ChannelInbound = struct(
  "ChannelInbound",
  "A message as a channel hands it over. `message.id` with the peer names it for ever.",
  {
    peer: Peer,
    sender: t.optional(Sender),
    senderIds: t.optional(SenderIds),
    message: InboundMessage,
    wasMentioned: t.optional(t.bool()),
    /** It answers something that the agent said. */
    repliedToAgent: t.optional(t.bool()),
    mentionedIds: t.optional(t.array(t.string(256), 256)),
    /** Written while nobody listened, and handed over late. */
    backlog: t.optional(t.bool()),
    receivedAt: t.time(),
    /** The account's own number wrote it, in the chat with itself. */
    fromOwner: t.optional(t.bool()),
  },
);
export const OutboundKind = enumOf("OutboundKind", "What a message of the agent is.", ["answer", "notice", "error", "approval"]);
export const OutboundAction = struct("OutboundAction", "A button. Where there are none, its label stands in the text.", {
  id: t.string(100, { minLength: 1 }),
  label: t.string(80, { minLength: 1 }),
});
export const OutboundMessage = struct(
  "OutboundMessage",
  "A message for a platform. The same `deliveryId` is sent once, however often it is handed over.",
  {
    deliveryId: t.string(160, { minLength: 1 }),
    kind: OutboundKind,
    peer: Peer,
    /** Markdown; the channel turns it into the platform's marks. */
    text: t.text(),
    replyToId: t.optional(t.string(256)),
    media: t.optional(t.array(Media, 16)),
    actions: t.optional(t.array(OutboundAction, 5)),
  },
);
export const InboundOutcome = enumOf(
  "InboundOutcome",
  "`accepted`: the agent answers it. `duplicate`: it was accepted before. `answered`: a command, its answer is in `replies`. `ignored`: not meant for the agent. `held`: the sender waits to be let in. `refused`: not taken, `replies` says why. `later`: not now; keep it and bring it again.",
  ["accepted", "duplicate", "answered", "ignored", "held", "refused", "later"],
);
export const Unanswered = enumOf(
  "Unanswered",
  "Why the agent knows of a message and does not answer it. `late`: it came more than a day late. `event`: a reaction, a correction, a deletion.",
  ["late", "event"],
);
export const ChannelInboundOutcome = struct(
  "ChannelInboundOutcome",
  "What became of a message from a platform. It is durable in the gateway.",
  {
    outcome: InboundOutcome,
    sessionKey: t.optional(t.string(512)),
    runId: t.optional(t.string(128)),
    /** To be sent by the channel, in order, before anything later. */
    replies: t.optional(t.array(OutboundMessage, 4)),
    /** What to put on the message as a sign that it was seen. */
    reaction: t.optional(t.string(64)),
    /** With `accepted`. */
    unanswered: t.optional(Unanswered),
  },
);
export const DeliveryState = enumOf("DeliveryState", "`unknown`: it may or may not have arrived; it is not sent again.", [
  "sent",
  "failed",
  "unknown",
]);
export const DeliveryReport = struct("DeliveryReport", "How a delivery ended.", {
  deliveryId: t.string(160),
  state: DeliveryState,
  messageIds: t.optional(t.array(t.string(256), 64)),
  error: t.optional(t.text()),
});
export const DeliveryProblem = struct(
  "DeliveryProblem",
  "A message that did not get to the platform, or of which nobody knows whether it did. Kept for 30 days, or until it is known to have arrived.",
  {
    deliveryId: t.string(160),
    accountId: t.string(128),
    peer: t.optional(Peer),
    state: DeliveryState,
    error: t.optional(t.text()),
    at: t.time(),
  },
);
export const ChannelSendResult = tagged("ChannelSendResult", "`queued`: it is durable in the channel.", "status", {
  queued: { duplicate: t.optional(t.bool()) },
  refused: { error: t.text(), retryable: t.bool() },
});
export const LiveText = struct("LiveText", "An answer while it is made. Only the newest counts; lost ones don't matter.", {
  deliveryId: t.string(160, { minLength: 1 }),
  peer: Peer,
  text: t.text(),
  replyToId: t.optional(t.string(256)),
});
export const LoginState = enumOf("LoginState", "Where a login stands.", ["connecting", "qr", "code", "connected", "failed"]);
export const ChannelLogin = struct("ChannelLogin", "A login under way.", {
  state: LoginState,
  /** What the QR code says; the command line draws it. */
  qr: t.optional(t.string(4096)),
  /** To be typed in on the phone. */
  code: t.optional(t.string(32)),
  expiresAt: t.optional(t.time()),
  message: t.text(),
});
export const ChannelEntry = struct("ChannelEntry", "A connected channel account.", {
  channel: t.string(64),
  accountId: t.string(128),
  connectedAt: t.time(),
  lastMessageAt: t.optional(t.time()),
  /** Messages of the last 30 days that failed, or of which nobody knows. */
  undelivered: t.optional(t.int()),
});
export const ChannelGap = struct("ChannelGap", "A time of which messages may be missing.", {
  from: t.time(),
  until: t.time(),
  /** In a few words. */
  why: t.optional(t.string(256)),
});
export const ChannelAccount = struct("ChannelAccount", "State of one account of a channel.", {
  accountId: t.string(128),
  connected: t.bool(),
  authenticated: t.bool(),
  mode: t.optional(t.string(64)),
  lastActivity: t.optional(t.time()),
  /** Since when there is a connection, without a break. */
  connectedSince: t.optional(t.time()),
  error: t.optional(t.text()),
  /** Since the platform last said anything, and how long it takes to answer, in ms. */
  silentMs: t.optional(t.int()),
  roundTripMs: t.optional(t.int()),
  /** Messages that wait: for the gateway, for the platform. */
  inboxWaiting: t.optional(t.int()),
  outboxWaiting: t.optional(t.int()),
  /** Deliveries that failed, or of which nobody knows. */
  undelivered: t.optional(t.int()),
  /** The last one, for some days. */
  gap: t.optional(ChannelGap),
  /** Messages of all time that came too late to be answered. */
  tooLate: t.optional(t.int()),
  capabilities: t.optional(ChannelCapabilities),
  extra: t.optional(t.object()),
});
const account = { channel: t.string(64, { minLength: 1 }), accountId: t.optional(t.string(128)) };
const done = { ok: t.literal(true), channel: t.string(64), accountId: t.string(128) };
const act = { callers: ["client"], scope: "admin", audit: { target: "channel" }, errors: ["channel.unknown", "channel.failed"] } as const;

method("channels.list", {
  doc: "Connected channel accounts.",
  result: {
    channels: t.array(ChannelEntry, 1000),
    count: t.int(),
    /** Every channel that is bound to this gateway, also those that have no account yet. */
    bound: t.optional(t.array(t.string(64), 256)),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
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
  audit: "none",
  errors: ["channel.unknown", "session.queue_full"],
  idempotent: true,
});
method("channel.start", { doc: "Starts a channel account.", params: { ...account, config: t.optional(t.object()) }, result: done, ...act });
method("channel.stop", { doc: "Stops a channel account.", params: account, result: done, ...act });
method("channel.status", {
  doc: "State of a channel's accounts.",
  params: account,
  result: {
    channel: t.string(64),
    accounts: t.array(ChannelAccount, 256),
    /** The newest first. */
    problems: t.optional(t.array(DeliveryProblem, 200)),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["channel.unknown", "channel.failed"],
  idempotent: true,
});
method("channel.login", {
  doc: "Logs an account in; may answer with a QR code to scan.",
  params: {
    ...account,
    force: t.optional(t.bool()),
    /** Log in by a code that is typed in on the phone with this number, instead of a QR code. */
    phone: t.optional(t.string(32)),
  },
  result: { ...done, qrDataUrl: t.optional(t.text()), message: t.text(), login: t.optional(ChannelLogin) },
  ...act,
});
method("channel.logout", { doc: "Logs an account out and forgets its credentials.", params: account, result: done, ...act });

// ---------------------------------------------------------------- service bindings

const ChannelRef = struct("ChannelRef", "An account of a channel.", { channel: t.string(64), accountId: t.string(128) });
service("ChannelService", "What every channel's Worker serves to the gateway.", {
  describe: { doc: "What the platform can do.", params: {}, result: ChannelCapabilities },
  start: {
    doc: "Connects an account, and keeps it connected. Safe to repeat.",
    params: { accountId: t.string(128), config: t.object() },
    result: ChannelAccount,
  },
  stop: { doc: "Disconnects an account; what waits is kept.", params: { accountId: t.string(128) }, result: ChannelAccount },
  status: {
    doc: "The truth about one account, or all.",
    params: { accountId: t.optional(t.string(128)) },
    result: t.array(ChannelAccount, 256),
  },
  send: {
    doc: "Takes a message for delivery. When it says `queued`, the message is durable.",
    params: { accountId: t.string(128), message: OutboundMessage },
    result: ChannelSendResult,
  },
  live: {
    doc: "Shows an answer while it is made, where the platform can.",
    params: { accountId: t.string(128), live: LiveText },
    result: struct("ChannelDone", "Done, as far as it could be.", { ok: t.bool() }),
  },
  typing: {
    doc: "Shows that the agent is at work, until it is told otherwise or two minutes have passed.",
    params: { accountId: t.string(128), peer: Peer, active: t.bool() },
    result: ref("ChannelDone"),
  },
  login: {
    doc: "Begins a login, or says where it stands.",
    params: { accountId: t.string(128), force: t.optional(t.bool()), phone: t.optional(t.string(32)) },
    result: ChannelLogin,
  },
  logout: { doc: "Logs the account out and forgets its keys.", params: { accountId: t.string(128) }, result: ChannelAccount },
});
service("GatewayService", "What the gateway serves to channels' Workers.", {
  inbound: {
    doc: "Hands over a message. An answer means that it is durable here; none means that it has to be handed over again.",
    params: { account: ChannelRef, inbound: ChannelInbound },
    result: ChannelInboundOutcome,
  },
  media: {
    doc: "Whether and where a file of a message may be stored: a stranger's is not.",
    params: {
      account: ChannelRef,
      inbound: ChannelInbound,
      mimeType: t.string(128),
      filename: t.optional(t.string(256)),
      index: t.int(0, 15),
    },
    result: struct("ChannelMediaSlot", "Where a file goes. Absent: it is not wanted.", { r2Key: t.optional(t.string(1024)) }),
  },
  status: { doc: "An account's state changed.", params: { account: ChannelRef, state: ChannelAccount }, result: ref("ChannelDone") },
  delivered: { doc: "How a delivery ended.", params: { account: ChannelRef, report: DeliveryReport }, result: ref("ChannelDone") },
});
