/**
 * Decides to whom the agent may write on its own initiative (promises X9, P9; gateway rules CH19-CH21). It may
 * write to people and groups that it talks with already, and to those that the configuration names; never to a stranger, and never
 * without a named target. PURE.
 */
import type { ChannelConfig, ChannelInbound, Peer } from "../../../../protocol/gen/types.ts";
import type { Target } from "../../tools/message-target.ts";
import { accessOf, type Known, namedOnly } from "./access.ts";

/** The record of a conversation in which a person has written. */
export interface KnownPlace {
  /** Who wrote there last, by the platform's id and, where it says one, their number. */
  readonly senderId: string;
  readonly phone?: string | undefined;
  /** It is the account's chat with itself. */
  readonly self: boolean;
}
/** `place` undefined: there was never a message. `known`: the decision about that person. */
export function mayAddress(
  { channel, peer }: Target,
  place: KnownPlace | undefined,
  config: ChannelConfig,
  known: (senderId: string) => Known,
): boolean {
  if (peer.kind !== "dm") {
    const groups = config.groupAllow ?? [];
    const allowed = groups.length === 0 ? place !== undefined : groups.includes(peer.id);
    return (config.groups ?? "mention") !== "off" && allowed;
  }
  const { senderId, phone, self } = place ?? { senderId: peer.id, phone: undefined, self: false };
  const inbound = nextWord({ peer, senderId, phone, self });
  // A person who never wrote must be listed by id: `open` allows messages to the agent, not from it.
  return accessOf({ channel, inbound, config: place ? config : namedOnly(config), known: known(senderId) }).kind === "allow";
}
/** Decides as for a new message of the last sender to the agent. */
export const nextWord = ({ peer, senderId, phone, self }: KnownPlace & { readonly peer: Peer }): ChannelInbound => ({
  peer,
  sender: { id: senderId },
  ...(phone === undefined ? {} : { senderIds: { phone } }),
  ...(self ? { fromOwner: true } : {}),
  wasMentioned: true,
  message: { id: "none", text: "" },
  receivedAt: 0,
});
