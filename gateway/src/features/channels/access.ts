/**
 * Decides who may talk to the agent over a channel (product P3.4, promises S6-S8, X7, X8, X15). PURE; denies by default.
 *
 * A person is (channel, account, the platform's exact id). Names that people choose have no authority. A phone number counts only where
 * the channel itself says that an id is one. A person other than the owner has a separate conversation, without private files; so has
 * every group, also when the owner writes in it.
 */
import type { ChannelConfig, ChannelInbound, PairRole } from "../../../../protocol/gen/types.ts";
import { e164, phoneOf } from "../../kernel/routing/identity-links.ts";

export type Access =
  /** `role`, `owner`: only the owner takes part in this conversation. `speaker`: the author of this message. */
  | { readonly kind: "allow"; readonly role: PairRole; readonly speaker: PairRole }
  /** A stranger, who may send a pairing request. */
  | { readonly kind: "pair" }
  /** Not meant for the agent, or from a sender who gets no answer. */
  | {
      readonly kind: "ignore";
      readonly why: "not-mentioned" | "groups-off" | "group-not-allowed" | "not-allowed" | "rejected" | "no-sender" | "bot";
    };

/** The owner's earlier decision about a person. */
export type Known = PairRole | "rejected" | undefined;

export interface AccessInput {
  readonly channel: string;
  readonly inbound: ChannelInbound;
  readonly config: ChannelConfig;
  /** By the sender's exact id on this account. */
  readonly known: Known;
}

export function accessOf({ channel, inbound, config, known }: AccessInput): Access {
  const { peer } = inbound;
  // A channel's word alone makes no one the owner.
  if (claimsOwner(inbound) && config.selfChat === true) return allow("owner");
  const senderId = senderIdOf(inbound);
  if (senderId === undefined) return { kind: "ignore", why: "no-sender" };
  const isBot = inbound.sender?.bot === true;
  // The policy `open` is for people: a program may talk here only when it was allowed by its id.
  const person = roleOf(channel, senderId, inbound, isBot ? namedOnly(config) : config, known);
  if (isBot && person === undefined) return { kind: "ignore", why: "bot" };
  return peer.kind === "dm" ? direct(person, config) : group(person, inbound, config);
}

/** The same configuration without the policy `open`: only people who are named. */
export const namedOnly = (config: ChannelConfig): ChannelConfig => ({
  ...config,
  dmPolicy: "allowlist",
  allowFrom: (config.allowFrom ?? []).filter((entry) => entry !== "*"),
});

/** The channel says that this is the chat of its account with itself. */
export const claimsOwner = ({ fromOwner, peer }: ChannelInbound): boolean => fromOwner === true && peer.kind === "dm";

const allow = (role: PairRole) => ({ kind: "allow", role, speaker: role }) as const;

/** In a direct conversation the peer is the sender, also when the channel does not name the sender. */
export const senderIdOf = ({ peer, sender }: ChannelInbound): string | undefined =>
  sender?.id ?? (peer.kind === "dm" ? peer.id : undefined);

function direct(person: Known, config: ChannelConfig): Access {
  if (person === "rejected") return { kind: "ignore", why: "rejected" };
  if (person !== undefined) return allow(person);
  switch (config.dmPolicy ?? "pairing") {
    case "open":
      return allow("guest");
    case "allowlist":
      return { kind: "ignore", why: "not-allowed" };
    case "pairing":
      return { kind: "pair" };
  }
}
function group(person: Known, inbound: ChannelInbound, config: ChannelConfig): Access {
  if (person === "rejected") return { kind: "ignore", why: "rejected" };
  const policy = config.groups ?? "mention";
  if (policy === "off") return { kind: "ignore", why: "groups-off" };
  const allowed = config.groupAllow ?? [];
  if (allowed.length > 0 && !allowed.includes(inbound.peer.id)) return { kind: "ignore", why: "group-not-allowed" };
  if (policy === "mention" && inbound.wasMentioned !== true && inbound.repliedToAgent !== true)
    return { kind: "ignore", why: "not-mentioned" };
  // Senders with direct access may talk here; with the policy `open` everyone may. Others read along, so no one has the owner's role here.
  if (person !== undefined || config.dmPolicy === "open") return { ...allow("guest"), speaker: person ?? "guest" };
  return { kind: "ignore", why: "not-allowed" };
}

/** The owner let the sender in by name: by pairing or in the configuration, not by a policy for everyone. */
export function isKnownSender({ channel, inbound, config, known }: AccessInput): boolean {
  if (claimsOwner(inbound) && config.selfChat === true) return true;
  const senderId = senderIdOf(inbound);
  const person = senderId === undefined ? undefined : roleOf(channel, senderId, inbound, namedOnly(config), known);
  return person === "owner" || person === "guest";
}

/** A person's role, by the configuration or else by the owner's earlier decision. */
function roleOf(channel: string, senderId: string, inbound: ChannelInbound, config: ChannelConfig, known: Known): Known {
  const is = (entries: readonly string[] | undefined): boolean => (entries ?? []).some((entry) => names(entry, channel, senderId, inbound));
  if (is(config.owners)) return "owner";
  if (known !== undefined) return known;
  const allowed = config.allowFrom ?? [];
  return allowed.includes("*") || is(allowed) ? "guest" : undefined;
}
/**
 * An entry means one thing: with a plus it is a phone number, which only the platform's own word can match, otherwise an exact id. Both may
 * begin with the channel's name and a colon. So an id that people choose freely cannot be spelled like an entry of another meaning.
 */
function names(entry: string, channel: string, senderId: string, { senderIds }: ChannelInbound): boolean {
  const meant = entry.startsWith(`${channel}:`) ? entry.slice(channel.length + 1) : entry;
  if (!meant.trim().startsWith("+")) return meant === senderId;
  if (senderIds?.phone === undefined) return false;
  const phone = phoneOf({ channel, id: senderId, phone: senderIds.phone });
  return phone !== undefined && phone === e164(meant, "written");
}
