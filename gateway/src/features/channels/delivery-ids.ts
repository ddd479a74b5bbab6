/**
 * Ids of deliveries: `msg:{callId}` for a message that the agent sends on its own, `in:{message key}` for a notice to a sender, and the
 * id of a run's answer otherwise. They lead back to the conversation or the peer. PURE.
 */
import type { Peer } from "../../../../protocol/gen/types.ts";

const MESSAGE = "msg:";
const NOTICE = "in:";
/** The contract allows 160 characters for an id. */
const MAX_KEY_CHARS = 157;
export function kindOfDelivery(id: string): "message" | "notice" | "answer" {
  if (id.startsWith(MESSAGE)) return "message";
  return id.startsWith(NOTICE) ? "notice" : "answer";
}
export const messageDelivery = (callId: string): string => `${MESSAGE}${callId}`;
/** A long key loses its beginning: the distinguishing suffix comes last. */
export const noticeDelivery = (key: string): string =>
  key.length <= MAX_KEY_CHARS ? `${NOTICE}${key}` : `${NOTICE}#${key.slice(1 - MAX_KEY_CHARS)}`;
/** The ref of the conversation that the delivery came from; undefined for a notice, whose id has a colon before its first slash. */
export const refOfDelivery = (id: string): string | undefined =>
  /^([a-z0-9]+)\//.exec(id.startsWith(MESSAGE) ? id.slice(MESSAGE.length) : id)?.[1];
/** The peer in the id of a notice, `in:{channel}/{account}/["dm","anna","m1"]`; undefined when the id is hashed or shortened. */
export function peerOfNotice(id: string): Peer | undefined {
  const [, list = ""] = /^in:[^/#]+\/[^/]+\/(\[.*)$/.exec(id) ?? [];
  try {
    // JSON that begins with a bracket is a list; an empty text is no JSON.
    const [kind, peerId] = JSON.parse(list.replace(/\/(?:let-in|held|stopped)$/, "")) as readonly unknown[];
    const isKind = kind === "dm" || kind === "group" || kind === "channel" || kind === "thread";
    return isKind && typeof peerId === "string" && peerId !== "" ? { kind, id: peerId } : undefined;
  } catch {
    return undefined;
  }
}
