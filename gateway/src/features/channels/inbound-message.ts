/** Parts of a message from a platform, as the session and the channel take them. PURE. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { Attachment, ChannelInbound, OutboundMessage, PairRole } from "../../../../protocol/gen/types.ts";
import { hashPair } from "../../../../protocol/runtime/hash.ts";
import { readCode } from "../../calls/approval.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import type { ChannelOrigin } from "../../ports/origin.ts";
import type { ReplyRoute } from "../../ports/session.ts";
import { isOwnKey } from "../../storage/keys.ts";
import { senderIdOf } from "./access.ts";
import { noticeDelivery } from "./delivery-ids.ts";

/** "@Ada /stop" asks Ada to stop. */
export const withoutMention = ({ wasMentioned, message: { text } }: ChannelInbound): string =>
  wasMentioned === true ? text.replace(/^\s*@\S{1,128}\s+(?=\/)/, "") : text;
/** An answer to a question about a tool call: `allow K7Q2A`, `deny K7Q2A use git instead`. Undefined: the text is something else. */
export function approvalAnswerOf(
  text: string,
): { readonly code: string; readonly decision: "allow" | "deny"; readonly word?: string } | undefined {
  const [, verb = "", typed = "", word = ""] = /^\s*(allow|deny)\s+([A-Za-z0-9]{5})(?:[\s:,]+([\s\S]{1,500}))?\s*$/i.exec(text) ?? [];
  const code = readCode(typed);
  const decision = verb.toLowerCase();
  if (code === undefined || (decision !== "allow" && decision !== "deny")) return undefined;
  // "allow K7Q2A but only once" is no plain yes.
  if (decision === "allow") return word.trim() === "" ? { code, decision } : undefined;
  return { code, decision, ...(word.trim() === "" ? {} : { word: word.trim() }) };
}
/** A hash of the message's key, so that a repeated message has the same run id. */
export const runIdOf = (key: string): string =>
  hashPair(key)
    .map((hash) => hash.toString(36))
    .join("");
export const notice = (key: string, { peer, message }: ChannelInbound, text: string): OutboundMessage => ({
  deliveryId: noticeDelivery(key),
  kind: "notice",
  peer,
  text,
  replyToId: message.id,
});
export function routeOf({ channel, accountId }: ChannelRef, { peer, message }: ChannelInbound): ReplyRoute {
  return { channel, accountId, peer, replyToId: message.id };
}
export function originOf({ channel, accountId }: ChannelRef, inbound: ChannelInbound, role: PairRole): ChannelOrigin {
  const senderId = senderIdOf(inbound);
  return { kind: "channel", channel, accountId, peer: inbound.peer, ...(senderId === undefined ? {} : { senderId }), role };
}
/** The files of a message. One that is not stored among this conversation's files has no key; the session makes a note of it. */
export function attachmentsOf({ message }: ChannelInbound, sessionKey: string): { attachments?: Attachment[] } {
  const attachments = (message.media ?? [])
    .map(
      ({ mimeType, filename, r2Key }): Attachment => ({
        mimeType,
        ...(filename === undefined ? {} : { filename }),
        ...(r2Key !== undefined && isOwnKey(sessionKey, r2Key) ? { r2Key } : {}),
      }),
    )
    .slice(0, LIMITS.attachments);
  return attachments.length === 0 ? {} : { attachments };
}
