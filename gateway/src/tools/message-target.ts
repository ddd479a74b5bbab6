/** How gsv__Message names a place on a channel. PURE. One reading for the tool and for the policy that decides about its call. */
import type { Peer, PeerKind } from "../../../protocol/gen/types.ts";

/** A conversation on a platform. */
export interface Target {
  readonly channel: string;
  /** A model may leave it out; then it is the only account that knows the conversation. */
  readonly accountId?: string;
  readonly peer: Peer;
}
const isKind = (text: string | undefined): text is PeerKind => text === "dm" || text === "group" || text === "channel" || text === "thread";

/** `whatsapp/default/dm/31612345678@s.whatsapp.net`. The peer's id comes last, because it may contain a slash. */
export const targetName = ({ channel, accountId, peer }: Required<Target>): string => `${channel}/${accountId}/${peer.kind}/${peer.id}`;
export function parseTarget(text: string): Target | undefined {
  const [channel = "", accountId = "", kind, ...rest] = text.trim().split("/");
  const id = rest.join("/");
  if (channel === "" || accountId === "" || !isKind(kind) || id === "" || id.length > 256) return undefined;
  return { channel: channel.toLowerCase(), accountId, peer: { kind, id } };
}
