/** Parts of a message from a platform, as the session and the channel take them. PURE. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { Attachment, ChannelInbound, OutboundMessage, PairRole } from "../../../../protocol/gen/types.ts";
import { hashPair } from "../../../../protocol/runtime/hash.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import type { ChannelOrigin } from "../../ports/origin.ts";
import type { ReplyRoute } from "../../ports/session.ts";
import { isOwnKey } from "../../storage/keys.ts";
import { senderIdOf } from "./access.ts";
import { noticeDelivery } from "./delivery-ids.ts";

/** "@Ada /stop" asks Ada to stop. */
export const withoutMention = ({ wasMentioned, message: { text } }: ChannelInbound): string =>
  wasMentioned === true ? text.replace(/^\s*@\S{1,128}\s+(?=\/)/, "") : text;
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
