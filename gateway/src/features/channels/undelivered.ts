/**
 * What people and models are told of messages that did not get to a platform, or may not have come from one (promises P9, P10), and
 * the names of deliveries, by which that is found. PURE. What platforms and people say is data in it: one line, without what deceives,
 * names only as JSON.
 */
import type { ChannelGap, Peer } from "../../../../protocol/gen/types.ts";
import { cleanName } from "./envelope.ts";

export interface Undelivered {
  readonly id: string;
  readonly channel: string;
  readonly peer?: Peer;
  readonly state: "failed" | "unknown";
  readonly error?: string;
}
const MAX_ERROR = 300;

export function undeliveredText({ id, channel, peer, state, error }: Undelivered): string {
  const name = cleanName(peer?.name);
  const to =
    peer === undefined
      ? ""
      : ` to ${JSON.stringify({ [peer.kind]: cleanName(peer.id, 256) ?? "", ...(name === undefined ? {} : { name }) })}`;
  const why = cleanName(error, MAX_ERROR);
  const what = id.startsWith(MESSAGE) ? "A message that you had sent" : id.startsWith(NOTICE) ? "A notice" : "An answer";
  const end = state === "failed" ? "could not be delivered" : "may or may not have arrived, and is not sent again";
  return `${what} over ${channel}${to} ${end}${why === undefined ? "" : `: ${why}`}. (${cleanName(id, 160) ?? ""})`;
}

/** What came over a channel in this time may be missing. */
export function gapText({ channel, gap: { from, until, why } }: { readonly channel: string; readonly gap: ChannelGap }): string {
  const reason = cleanName(why, MAX_ERROR);
  const time = (at: number): string => new Date(at).toISOString().slice(0, 16).replace("T", " ");
  return `Messages over ${channel} between ${time(from)} and ${time(until)} UTC may be missing${reason === undefined ? "" : `: ${reason}`}.`;
}

/** Deliveries have names: `msg:{callId}` is a message that the agent sent of itself, `in:{message}` a notice at the door, else an answer. */
const MESSAGE = "msg:";
const NOTICE = "in:";
/** A name has at most 160. */
const MAX_KEY_CHARS = 157;
export const messageDelivery = (callId: string): string => `${MESSAGE}${callId}`;
/** What tells messages apart stands at the end of their keys. */
export const noticeDelivery = (key: string): string =>
  key.length <= MAX_KEY_CHARS ? `${NOTICE}${key}` : `${NOTICE}#${key.slice(1 - MAX_KEY_CHARS)}`;
/** The short name of the conversation that it came from; undefined: from none. */
export function refOfDelivery(id: string): string | undefined {
  if (id.startsWith(NOTICE)) return undefined;
  return /^([a-z0-9]+)\//.exec(id.startsWith(MESSAGE) ? id.slice(MESSAGE.length) : id)?.[1];
}
/** Of a notice at the door, as far as its name has it whole: `in:{channel}/{account}/["dm","anna","m1"]`. */
export function peerOfNotice(id: string): Peer | undefined {
  const json = /^in:[^/#]+\/[^/]+\/(\[.*)$/.exec(id)?.[1]?.replace(/\/let-in$/, "");
  if (json === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(json);
    if (!Array.isArray(parsed)) return undefined;
    const [kind, peerId] = parsed as readonly unknown[];
    const isKind = kind === "dm" || kind === "group" || kind === "channel" || kind === "thread";
    return isKind && typeof peerId === "string" && peerId !== "" ? { kind, id: peerId } : undefined;
  } catch {
    return undefined;
  }
}
