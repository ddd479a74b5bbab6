/**
 * PURE. WhatsApp's ids. A person has a number (`...@s.whatsapp.net`) and a LID (`...@lid`), which looks like a number but is not one.
 * This code never converts one into the other; only WhatsApp says which belong together (promises X15).
 */

export type JidKind = "phone" | "lid" | "group" | "status" | "newsletter" | "other";
export interface Jid {
  readonly kind: JidKind;
  readonly user: string;
  /** Without the device. */
  readonly id: string;
}
const FORM = /^([A-Za-z0-9._-]{1,64})(?::\d{1,5})?@([a-z.]{1,32})$/;
const DIGITS = /^\d{5,20}$/;

/** Undefined for an invalid id. */
export function parseJid(text: unknown): Jid | undefined {
  if (typeof text !== "string") return undefined;
  if (text === "status@broadcast") return { kind: "status", user: "status", id: text };
  const [, user = "", server = ""] = FORM.exec(text) ?? [];
  if (server === "") return undefined;
  switch (server) {
    case "s.whatsapp.net":
    case "c.us":
    case "hosted":
      return DIGITS.test(user) ? { kind: "phone", user, id: `${user}@s.whatsapp.net` } : undefined;
    case "lid":
    case "hosted.lid":
      return DIGITS.test(user) ? { kind: "lid", user, id: `${user}@lid` } : undefined;
    case "g.us":
      return { kind: "group", user, id: `${user}@g.us` };
    case "newsletter":
      return { kind: "newsletter", user, id: `${user}@newsletter` };
    default:
      return { kind: "other", user, id: `${user}@${server}` };
  }
}
/** The E.164 number; undefined when the id is not a phone number. */
export const phoneOf = (jid: Jid | undefined): string | undefined =>
  jid?.kind === "phone" && jid.user.length <= 15 ? `+${jid.user}` : undefined;

/** The account's own ids. */
export interface Self {
  readonly phone?: string;
  readonly lid?: string;
}
export function selfOf(me: { readonly id?: string | null; readonly lid?: string | null } | undefined): Self {
  const ids = [parseJid(me?.id), parseJid(me?.lid)];
  const phone = ids.find((jid) => jid?.kind === "phone")?.id;
  const lid = ids.find((jid) => jid?.kind === "lid")?.id;
  return { ...(phone === undefined ? {} : { phone }), ...(lid === undefined ? {} : { lid }) };
}
export const isSelf = (jid: Jid | undefined, { phone, lid }: Self): boolean => jid !== undefined && (jid.id === phone || jid.id === lid);
