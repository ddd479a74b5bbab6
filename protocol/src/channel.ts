/** Messaging platforms, as the gateway and clients see them. */
import { enumOf, method, ref, service, struct, t, tagged } from "./dsl.ts";

export const PeerKind = enumOf("PeerKind", "The kind of a conversation on the platform.", ["dm", "group", "channel", "thread"]);
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
  /** The platform marks the sender as a program. */
  bot: t.optional(t.bool()),
});
export const MediaKind = enumOf("MediaKind", "The kind of a file.", ["image", "audio", "video", "document"]);
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
export const Location = struct("Location", "A geographic position.", {
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
  /** The platform's own id of the message that this message edits or deletes. */
  editOf: t.optional(t.string(256)),
  deleted: t.optional(t.bool()),
  /** A reaction to `replyToId`. Empty: the reaction was removed. */
  reaction: t.optional(t.string(64)),
  forwarded: t.optional(t.bool()),
  /** A button of the agent's message `replyToId` was pressed; `text` is the button's id. */
  pressed: t.optional(t.bool()),
});

// ---------------------------------------------------------------- between the gateway and channels

export const ChannelCapabilities = struct("ChannelCapabilities", "Capabilities of a platform.", {
  peerKinds: t.array(PeerKind, 4),
  media: t.bool(),
  reactions: t.bool(),
  typing: t.bool(),
  replies: t.bool(),
  /** Sent messages can be edited, so an answer is shown while the model writes it. */
  edits: t.bool(),
  buttons: t.bool(),
  /** A person must log in with a phone. */
  login: t.bool(),
  maxTextChars: t.int(1, 1000000),
  /** The platform sends HTTP requests: the gateway forwards requests for `/channels/{name}/`. */
  webhooks: t.optional(t.bool()),
  /** The header of the platform's signature: requests without it are refused before their body is read. */
  signatureHeader: t.optional(t.string(64, { minLength: 1 })),
});
/** Only the channel knows which of its senders' ids are phone numbers (promises X15). */
export const SenderIds = struct("SenderIds", "Other ids of the same sender, as the platform reports them.", {
  /** E.164, with the plus. */
  phone: t.optional(t.string(32)),
  lid: t.optional(t.string(256)),
  username: t.optional(t.string(256)),
});
export const ChannelInbound = struct(
  "ChannelInbound",
  "A message that a channel delivers to the gateway. `peer` and `message.id` together identify it permanently.",
  {
    peer: Peer,
    sender: t.optional(Sender),
    senderIds: t.optional(SenderIds),
    message: InboundMessage,
    wasMentioned: t.optional(t.bool()),
    /** The message replies to a message of the agent. */
    repliedToAgent: t.optional(t.bool()),
    mentionedIds: t.optional(t.array(t.string(256), 256)),
    /** Written while the channel was not connected, and delivered late. */
    backlog: t.optional(t.bool()),
    receivedAt: t.time(),
    /** Sent by the account's own number in the chat with itself. */
    fromOwner: t.optional(t.bool()),
  },
);
export const OutboundKind = enumOf("OutboundKind", "The kind of a message from the agent.", ["answer", "notice", "error", "approval"]);
export const OutboundAction = struct(
  "OutboundAction",
  "A button. On platforms without buttons the text contains its label, unless the text names its id already.",
  {
    id: t.string(100, { minLength: 1 }),
    label: t.string(80, { minLength: 1 }),
  },
);
export const OutboundMessage = struct(
  "OutboundMessage",
  "A message for a platform. The channel sends each `deliveryId` at most once, however often it receives it.",
  {
    deliveryId: t.string(160, { minLength: 1 }),
    kind: OutboundKind,
    peer: Peer,
    /** Markdown. The channel converts it to the platform's format. */
    text: t.text(),
    replyToId: t.optional(t.string(256)),
    media: t.optional(t.array(Media, 16)),
    actions: t.optional(t.array(OutboundAction, 5)),
    /** An agent wrote it. From this time on, the channel asks `mayDeliver` before it begins to send it. */
    askFrom: t.optional(t.time()),
  },
);
export const InboundOutcome = enumOf(
  "InboundOutcome",
  "`accepted`: the agent answers the message. `duplicate`: it was accepted before. `answered`: it was a command; `replies` has the answer. `ignored`: it is not meant for the agent. `held`: the sender's pairing request is pending. `refused`: it was not accepted; `replies` has the reason. `later`: the channel must keep it and retry.",
  ["accepted", "duplicate", "answered", "ignored", "held", "refused", "later"],
);
export const Unanswered = enumOf(
  "Unanswered",
  "Why the agent sees a message without answering it. `late`: it arrived more than a day late. `event`: it is a reaction, an edit or a deletion.",
  ["late", "event"],
);
export const ChannelInboundOutcome = struct(
  "ChannelInboundOutcome",
  "How the gateway handled a message from a platform. The outcome is durable in the gateway.",
  {
    outcome: InboundOutcome,
    sessionKey: t.optional(t.string(512)),
    runId: t.optional(t.string(128)),
    /** The channel sends these in order, before any later message. */
    replies: t.optional(t.array(OutboundMessage, 4)),
    /** The reaction that marks the message as seen. */
    reaction: t.optional(t.string(64)),
    /** With `accepted`. */
    unanswered: t.optional(Unanswered),
    /** With `later`: ms until the message may be accepted. */
    retryAfterMs: t.optional(t.int(0, 300000)),
  },
);
export const DeliveryState = enumOf("DeliveryState", "`unknown`: the outcome is unknown; the message is not sent again.", [
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
  "A failed delivery, or one with an unknown outcome. Kept for 30 days, or until the platform confirms the delivery.",
  {
    deliveryId: t.string(160),
    accountId: t.string(128),
    peer: t.optional(Peer),
    state: DeliveryState,
    error: t.optional(t.text()),
    at: t.time(),
  },
);
export const ChannelSendResult = tagged("ChannelSendResult", "`queued`: the message is durable in the channel.", "status", {
  queued: { duplicate: t.optional(t.bool()) },
  refused: { error: t.text(), retryable: t.bool() },
});
export const LiveText = struct(
  "LiveText",
  "The text so far of an answer that the model is writing. Each one replaces the one before; losses do no harm.",
  {
    deliveryId: t.string(160, { minLength: 1 }),
    peer: Peer,
    text: t.text(),
    replyToId: t.optional(t.string(256)),
    /** As that of `OutboundMessage`. */
    askFrom: t.optional(t.time()),
  },
);
export const LoginState = enumOf("LoginState", "The state of a login.", ["connecting", "qr", "code", "connected", "failed"]);
export const ChannelLogin = struct("ChannelLogin", "A login in progress.", {
  state: LoginState,
  /** The content of the QR code. The command line draws it. */
  qr: t.optional(t.string(4096)),
  /** The code to type on the phone. */
  code: t.optional(t.string(32)),
  expiresAt: t.optional(t.time()),
  message: t.text(),
});
export const ChannelEntry = struct("ChannelEntry", "A connected channel account.", {
  channel: t.string(64),
  accountId: t.string(128),
  connectedAt: t.time(),
  lastMessageAt: t.optional(t.time()),
  /** Failed deliveries and deliveries with an unknown outcome, in the last 30 days. */
  undelivered: t.optional(t.int()),
});
export const ChannelGap = struct("ChannelGap", "A period whose messages may be missing.", {
  from: t.time(),
  until: t.time(),
  /** The cause, in a few words. */
  why: t.optional(t.string(256)),
});
export const ChannelAccount = struct("ChannelAccount", "State of one account of a channel.", {
  accountId: t.string(128),
  connected: t.bool(),
  authenticated: t.bool(),
  mode: t.optional(t.string(64)),
  lastActivity: t.optional(t.time()),
  /** Start of the current connection. */
  connectedSince: t.optional(t.time()),
  error: t.optional(t.text()),
  /** `silentMs`: time since the last frame of the platform. `roundTripMs`: its response time. */
  silentMs: t.optional(t.int()),
  roundTripMs: t.optional(t.int()),
  /** Queued messages: to the gateway, to the platform. */
  inboxWaiting: t.optional(t.int()),
  outboxWaiting: t.optional(t.int()),
  /** Failed deliveries and deliveries with an unknown outcome. */
  undelivered: t.optional(t.int()),
  /** The last gap, for some days. */
  gap: t.optional(ChannelGap),
  /** Total number of messages that arrived too late for an answer. */
  tooLate: t.optional(t.int()),
  capabilities: t.optional(ChannelCapabilities),
  extra: t.optional(t.object()),
  /** Only in the answer to a logout: the account is stopped, but the platform did not confirm the logout. */
  logoutUnconfirmed: t.optional(t.literal(true)),
});
const account = { channel: t.string(64, { minLength: 1 }), accountId: t.optional(t.string(128)) };
const done = { ok: t.literal(true), channel: t.string(64), accountId: t.string(128) };
const act = { callers: ["client"], scope: "admin", audit: { target: "channel" }, errors: ["channel.unknown", "channel.failed"] } as const;

method("channels.list", {
  doc: "Lists the connected channel accounts.",
  result: {
    channels: t.array(ChannelEntry, 1000),
    count: t.int(),
    /** Every channel that is bound to this gateway, with or without an account. */
    bound: t.optional(t.array(t.string(64), 256)),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("channel.inbound", {
  doc: "A channel delivers a message. The answer means that the message is durable in the gateway.",
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
  doc: "Returns the state of a channel's accounts.",
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
    /** Log in with a code that is typed on the phone with this number, instead of a QR code. */
    phone: t.optional(t.string(32)),
  },
  result: {
    ...done,
    /** The content of the QR code, the same as `login.qr`: the published client of the reference draws it. No data URL, despite its name. */
    qrDataUrl: t.optional(t.text()),
    message: t.text(),
    login: t.optional(ChannelLogin),
  },
  ...act,
});
method("channel.logout", { doc: "Logs an account out and deletes its credentials.", params: account, result: done, ...act });

// ---------------------------------------------------------------- service bindings

const ChannelRef = struct("ChannelRef", "An account of a channel.", { channel: t.string(64), accountId: t.string(128) });
struct("ChannelFileRead", "Which file of a delivery a channel reads.", {
  account: ChannelRef,
  deliveryId: t.string(160, { minLength: 1 }),
  r2Key: t.string(1024),
  /** A larger file is not read. */
  maxBytes: t.int(0, 26214400),
});
service("ChannelService", "Calls that every channel's Worker serves to the gateway.", {
  describe: { doc: "Returns the capabilities of the platform.", params: {}, result: ChannelCapabilities },
  start: {
    doc: "Connects an account, and keeps it connected. Safe to repeat.",
    params: { accountId: t.string(128), config: t.object() },
    result: ChannelAccount,
  },
  stop: { doc: "Disconnects an account. Queued messages are kept.", params: { accountId: t.string(128) }, result: ChannelAccount },
  status: {
    doc: "Returns the status of one account, or of all.",
    params: { accountId: t.optional(t.string(128)) },
    result: t.array(ChannelAccount, 256),
  },
  send: {
    doc: "Accepts a message for delivery. `queued` means that the message is durable.",
    params: { accountId: t.string(128), message: OutboundMessage },
    result: ChannelSendResult,
  },
  live: {
    doc: "Shows the answer so far, on platforms that can edit messages.",
    params: { accountId: t.string(128), live: LiveText },
    result: struct("ChannelDone", "Best effort: `ok` says whether it was done.", { ok: t.bool() }),
  },
  typing: {
    doc: "Shows the typing indicator until `active: false`, or for two minutes.",
    params: { accountId: t.string(128), peer: Peer, active: t.bool() },
    result: ref("ChannelDone"),
  },
  login: {
    doc: "Starts a login, or returns the state of the current one.",
    params: { accountId: t.string(128), force: t.optional(t.bool()), phone: t.optional(t.string(32)) },
    result: ChannelLogin,
  },
  logout: { doc: "Logs an account out and deletes its keys.", params: { accountId: t.string(128) }, result: ChannelAccount },
  recheck: {
    doc: "Everything was stopped, or goes on. After the answer, the account begins to send nothing that an agent wrote before `mayDeliver` has allowed it again.",
    params: { accountId: t.string(128) },
    result: ref("ChannelDone"),
  },
});
service("GatewayService", "Calls that the gateway serves to the Workers of channels.", {
  inbound: {
    doc: "Delivers a message. An answer means that the message is durable in the gateway; without an answer the channel must retry.",
    params: { account: ChannelRef, inbound: ChannelInbound },
    result: ChannelInboundOutcome,
  },
  media: {
    doc: "Says whether a file of a message is wanted, and its name in the storage. Files of unknown senders are not wanted.",
    params: {
      account: ChannelRef,
      inbound: ChannelInbound,
      mimeType: t.string(128),
      filename: t.optional(t.string(256)),
      index: t.int(0, 15),
    },
    result: struct("ChannelMediaSlot", "The stored file. Absent: the file is not wanted.", {
      r2Key: t.optional(t.string(1024)),
    }),
  },
  status: {
    doc: "Reports that the state of an account changed.",
    params: { account: ChannelRef, state: ChannelAccount },
    result: ref("ChannelDone"),
  },
  delivered: { doc: "Reports how a delivery ended.", params: { account: ChannelRef, report: DeliveryReport }, result: ref("ChannelDone") },
  mayDeliver: {
    doc: "Says whether messages that agents wrote may leave now. Without an answer the channel keeps them.",
    params: { account: ChannelRef },
    result: struct("ChannelMayDeliver", "`may` is false while everything is stopped: the messages stay in the channel until it is true.", {
      may: t.bool(),
    }),
  },
});
