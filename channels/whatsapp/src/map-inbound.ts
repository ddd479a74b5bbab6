/**
 * PURE. Maps a WhatsApp message to the gateway's form, or says why it is ignored. Takes any payload and never throws. Marks which of a
 * sender's ids is a number and which is a LID, exactly as WhatsApp does. Makes no access decisions.
 */
import type { ChannelInbound, SenderIds } from "../../../protocol/gen/types.ts";
import { DAY_MS } from "../../../protocol/runtime/day.ts";
import type { InboundItem } from "../../kit/src/platform.ts";
import { type Bag, type Content, child, contentOf, nameOf, numberOf, own, quotedText, textOf, unwrap } from "./content.ts";
import { isSelf, type Jid, parseJid, phoneOf, type Self } from "./jid.ts";

export interface InboundContext {
  readonly self: Self;
  /** Messages in the owner's chat with their own number are for the agent. */
  readonly selfChat: boolean;
  readonly receivedAt: number;
  /** The message was written while the account was offline. */
  readonly backlog: boolean;
  readonly groupName?: string;
  /** True for an id that this account sent: the message is an echo. */
  readonly isOwnMessage: (id: string) => boolean;
}
export type IgnoreReason = "malformed" | "own" | "status" | "newsletter" | "undecryptable" | "empty" | "unknown_chat";
export type Mapped =
  | { readonly kind: "item"; readonly item: InboundItem; readonly unknown?: string }
  | { readonly kind: "ignored"; readonly why: IgnoreReason };

/** Data that `Platform.acknowledged` needs for the read receipt. */
export interface Receipt {
  readonly remoteJid: string;
  readonly id: string;
  readonly participant?: string;
}
const MAX_MENTIONS = 256;
const MESSAGE_ID = /^[!-~]{1,128}$/;
/** Values of WhatsApp's ProtocolMessage.Type and StubType. */
const REVOKE = 0;
const MESSAGE_EDIT = 14;
const CIPHERTEXT_STUB = 2;
const FIRST_TIMESTAMP_S = 1_230_768_000;

const ignored = (why: IgnoreReason): Mapped => ({ kind: "ignored", why });

export function mapInbound(message: unknown, context: InboundContext): Mapped {
  const key = child(message, "key");
  const id = own(key, "id");
  const chat = parseJid(own(key, "remoteJid"));
  if (typeof id !== "string" || !MESSAGE_ID.test(id) || !chat) return ignored("malformed");
  if (chat.kind === "status") return ignored("status");
  if (chat.kind === "newsletter") return ignored("newsletter");
  if (chat.kind === "other") return ignored("unknown_chat");
  const fromOwner = own(key, "fromMe") === true;
  if (fromOwner && !(context.selfChat && isSelf(chat, context.self) && !context.isOwnMessage(id))) return ignored("own");
  const sender = chat.kind === "group" ? parseJid(own(key, "participant")) : chat;
  if (!sender || (sender.kind !== "phone" && sender.kind !== "lid")) return ignored("malformed");
  if (!fromOwner && isSelf(sender, context.self)) return ignored("own");

  const said = saidOf(message, key);
  if (said === "undecryptable" || said === "empty") return ignored(said);
  const quote = said.content.context;
  const quotedBy = parseJid(own(quote, "participant"));
  const answers = messageId(own(quote, "stanzaId"));
  const mentions = mentionsOf(quote);
  const alternative = parseJid(own(key, chat.kind === "group" ? "participantAlt" : "remoteJidAlt"));
  const name = nameOf(own(message, "pushName"));
  const sentAt = timestamp(own(message, "messageTimestamp"), context.receivedAt);
  const replyToText = answers === undefined ? undefined : quotedText(own(quote, "quotedMessage"));
  const senderIds = senderIdsOf([sender, alternative]);
  const participant = chat.kind === "group" ? own(key, "participant") : undefined;

  const inbound: ChannelInbound = {
    peer: {
      kind: chat.kind === "group" ? "group" : "dm",
      id: chat.id,
      ...optional("name", chat.kind === "group" ? nameOf(context.groupName) : name),
    },
    sender: { id: sender.id, ...optional("name", name), ...optional("handle", senderIds.phone) },
    senderIds,
    message: {
      id,
      text: withoutAddress(
        said.content.text,
        mentions.filter((jid) => isSelf(jid, context.self)),
      ),
      ...optional("timestamp", sentAt),
      ...optional("replyToId", answers),
      ...optional("replyToText", replyToText),
      ...optional("replyToSenderId", answers === undefined ? undefined : quotedBy?.id),
      ...optional("location", said.content.location),
      ...(own(quote, "isForwarded") === true ? { forwarded: true } : {}),
      ...said.more,
    },
    receivedAt: context.receivedAt,
    ...(mentions.length === 0 ? {} : { mentionedIds: mentions.map((jid) => jid.id) }),
    ...(chat.kind === "group" ? { wasMentioned: mentions.some((jid) => isSelf(jid, context.self)) } : {}),
    ...((answers !== undefined && isSelf(quotedBy, context.self)) || said.toOwn ? { repliedToAgent: true } : {}),
    ...(context.backlog ? { backlog: true } : {}),
    ...(fromOwner ? { fromOwner: true } : {}),
  };
  const receipt: Receipt = { remoteJid: chat.id, id, ...(typeof participant === "string" ? { participant } : {}) };
  const item: InboundItem = {
    key: id,
    inbound,
    files: said.content.file ? [{ index: 0, ...said.content.file }] : [],
    ...(fromOwner ? {} : { receipt }),
  };
  return { kind: "item", item, ...optional("unknown", said.content.unknown) };
}

interface Said {
  readonly content: Content;
  readonly more: Partial<ChannelInbound["message"]>;
  /** The message replies to or reacts to one of ours. */
  readonly toOwn: boolean;
}
function saidOf(message: unknown, key: Bag | undefined): Said | "undecryptable" | "empty" {
  const { message: inner } = unwrap(own(message, "message"));
  if (!inner) {
    if (own(key, "isViewOnce") === true)
      return { content: { text: "[A message that is shown once, and only on the phone]" }, more: {}, toOwn: false };
    return own(message, "messageStubType") === CIPHERTEXT_STUB ? "undecryptable" : "empty";
  }
  const reaction = child(inner, "reactionMessage");
  if (reaction) {
    const target = messageId(own(child(reaction, "key"), "id"));
    if (target === undefined) return "empty";
    const emoji = textOf(own(reaction, "text")).slice(0, 32);
    return {
      content: { text: emoji === "" ? "[Took a reaction back]" : `[Reacted with ${emoji}]` },
      more: { reaction: emoji, replyToId: target },
      toOwn: own(child(reaction, "key"), "fromMe") === true,
    };
  }
  const protocol = child(inner, "protocolMessage") ?? child(child(child(inner, "editedMessage"), "message"), "protocolMessage");
  if (protocol) {
    const target = messageId(own(child(protocol, "key"), "id"));
    if (target === undefined) return "empty";
    // An absent value means the first of the enum.
    const type = own(protocol, "type") ?? REVOKE;
    if (type === REVOKE) return { content: { text: "[Took a message back]" }, more: { editOf: target, deleted: true }, toOwn: false };
    const content = type === MESSAGE_EDIT ? contentOf(own(protocol, "editedMessage")) : undefined;
    return content ? { content, more: { editOf: target }, toOwn: false } : "empty";
  }
  const content = contentOf(inner);
  return content ? { content: withViewOnce(message, content), more: {}, toOwn: false } : "empty";
}
/** `contentOf` sees only the unwrapped message. */
const withViewOnce = (message: unknown, content: Content): Content =>
  unwrap(own(message, "message")).viewOnce ? { ...content, text: ["[Shown once]", content.text].filter(Boolean).join(" ") } : content;

/** Removes a leading mention of the agent ("@31612345678 do it"), unless the text would become empty. */
function withoutAddress(text: string, own: readonly Jid[]): string {
  const called = own.map(({ user }) => `@${user}`).find((name) => text.trimStart().startsWith(name));
  const rest = called === undefined ? undefined : text.trimStart().slice(called.length);
  return rest === undefined || !/^[\s,:]+\S/.test(rest) ? text : rest.replace(/^[\s,:]+/, "");
}
const messageId = (value: unknown): string | undefined => (typeof value === "string" && MESSAGE_ID.test(value) ? value : undefined);
function mentionsOf(context: Bag | undefined): Jid[] {
  const mentioned = own(context, "mentionedJid");
  if (!Array.isArray(mentioned)) return [];
  const jids = mentioned.slice(0, MAX_MENTIONS).map(parseJid);
  return jids.filter((jid) => jid !== undefined).filter((jid, at, all) => all.findIndex((other) => other.id === jid.id) === at);
}
/** Converts seconds to milliseconds; drops impossible times. */
function timestamp(value: unknown, now: number): number | undefined {
  const seconds = numberOf(value);
  if (seconds === undefined || seconds < FIRST_TIMESTAMP_S || seconds * 1000 > now + DAY_MS) return undefined;
  return Math.floor(seconds) * 1000;
}
function senderIdsOf(jids: readonly (Jid | undefined)[]): SenderIds {
  const phone = jids.map(phoneOf).find((number) => number !== undefined);
  const lid = jids.find((jid) => jid?.kind === "lid")?.id;
  return { ...optional("phone", phone), ...optional("lid", lid) };
}
function optional<N extends string, T>(name: N, value: T | undefined): { [name in N]?: T } {
  const found: { [name in N]?: T } = {};
  if (value !== undefined) found[name] = value;
  return found;
}
