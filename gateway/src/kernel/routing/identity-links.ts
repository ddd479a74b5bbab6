/**
 * Recognises one person across channels (product P3.1): `session.identityLinks` names a person and their ids. PURE.
 *
 *   +31612345678        that number, on any channel, where the platform itself says that the id is a phone number
 *   discord:123         that id on that channel alone, exactly as the platform spells it
 *
 * Nothing else matches: digits in a name, a LID or a user name are not a phone number (promises S7, X15).
 */
import { decodeSegment, encodeSegment } from "./session-keys.ts";

/** A person on a channel, as the channel's code identifies them. */
export interface Peer {
  /** Lower case. */
  readonly channel: string;
  /** As the platform spells it. */
  readonly id: string;
  /** Set only where the platform says that the id is a phone number. */
  readonly phone?: string;
}
export interface IdentityLinks {
  readonly people: readonly { readonly name: string; readonly phones: ReadonlySet<string>; readonly ids: ReadonlySet<string> }[];
  /** Links that match no one, with the reason, for the check of the configuration. */
  readonly problems: readonly string[];
}

/**
 * A phone number in E.164 form, `+` and 7 to 15 digits. `written` by a person it begins with `+`; from a platform the `+` may be
 * missing. Undefined: it is none.
 */
export function e164(number: string, from: "written" | "platform"): string | undefined {
  const text = number
    .trim()
    .replace(/\(0\)/g, "")
    .replace(/[\s().\-/\u00a0\u2010-\u2015]/g, "");
  const digits = text.startsWith("+") ? text.slice(1) : from === "platform" ? text : undefined;
  return digits !== undefined && /^[1-9][0-9]{6,14}$/.test(digits) ? `+${digits}` : undefined;
}

const CHANNEL_ID = /^([A-Za-z][A-Za-z0-9_-]*):([\s\S]+)$/;
/** No colon in either part could move to the other: a channel has none. */
const idKey = (channel: string, id: string): string => `${channel}:${id}`;

export function compileLinks(links: Readonly<Record<string, readonly string[]>> | undefined): IdentityLinks {
  const people: { name: string; phones: Set<string>; ids: Set<string> }[] = [];
  const problems: string[] = [];
  for (const [name, entries] of Object.entries(links ?? {})) {
    if (name.trim() === "" || /[:+]/.test(name) || encodeSegment(name) === undefined) {
      problems.push(`session.identityLinks: ${JSON.stringify(name)} can't be a person's name; it must have no \`:\` and no \`+\` in it.`);
      continue;
    }
    const person = { name, phones: new Set<string>(), ids: new Set<string>() };
    for (const entry of entries) {
      const phone = entry.trim().startsWith("+") ? e164(entry, "written") : undefined;
      const [, channel = "", id = ""] = CHANNEL_ID.exec(entry) ?? [];
      if (phone !== undefined) person.phones.add(phone);
      else if (id !== "") person.ids.add(idKey(channel.toLowerCase(), id));
      else
        problems.push(`session.identityLinks: ${JSON.stringify(entry)} of ${name} is neither a number like +31612345678 nor channel:id.`);
    }
    people.push(person);
  }
  return { people, problems };
}

/** The person that a peer is, by the first link that says so. */
export function personOf(links: IdentityLinks, peer: Peer): string | undefined {
  const phone = phoneOf(peer);
  const id = idKey(peer.channel, peer.id);
  return links.people.find(({ phones, ids }) => ids.has(id) || (phone !== undefined && phones.has(phone)))?.name;
}
export const phoneOf = (peer: Peer): string | undefined => (peer.phone === undefined ? undefined : e164(peer.phone, "platform"));

/**
 * What a peer is called in session keys: the person's name, else the peer's own id. Two peers that are not one person never get
 * one name. `anyChannel`: where the key does not say the channel, the name must.
 */
export function peerName(links: IdentityLinks, peer: Peer, anyChannel: boolean): string {
  const person = personOf(links, peer);
  if (person !== undefined) return person;
  if (anyChannel) return phoneOf(peer) ?? idKey(peer.channel, peer.id);
  // An id that looks like a person's name, or like what stands in for such an id, says that it is an id.
  const taken = links.people.some(({ name }) => name === peer.id) || peer.id.startsWith(`${peer.channel}:`);
  return taken ? idKey(peer.channel, peer.id) : peer.id;
}

/** Whether text survives as part of a session key. Half a character does not. */
export const isKeyText = (text: string): boolean => {
  const encoded = encodeSegment(text);
  return encoded !== undefined && encoded !== "" && decodeSegment(encoded) === text;
};
