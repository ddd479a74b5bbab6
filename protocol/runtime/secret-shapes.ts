/** How secrets look in a text and how their fields are called, for every program that hides them. PURE. */
import { toHex } from "./hex.ts";

/** Stands where a secret was; the only mark for this, in every text, answer and log. Generated for Rust. */
export const HIDDEN = "[redacted]";

/** Names of fields whose values are secrets, compared without case, `_` and `-`, at the end of the name: `authToken`, `x-api-key`. */
const SECRET_NAME =
  /(authorization|cookie|password|passwd|secret|(?:api|access|private|public|secret|signing)keys?|bearer|private|credentials?|token|qrdataurl|pairingcode|^key|^code|^qr|^session)$/;

export const isSecretName = (name: string): boolean => SECRET_NAME.test(name.toLowerCase().replace(/[_-]/g, ""));

/** Tokens of this and of every other gateway. */
export const GSV_TOKEN = /\bgsv_[a-z-]+_[A-Za-z0-9]+_[0-9a-fA-F]{16,}\b/g;

/** Tokens of GSV, keys of common providers, HTTP credentials and JSON web tokens. */
const SECRET_SHAPES: readonly RegExp[] = [
  GSV_TOKEN,
  /\b(?:sk|pk|rk|xox[abprs]|gh[pousr]|glpat|AIza|AKIA)[-_A-Za-z0-9]{14,}/g,
  /\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*/g,
];

/** A shorter part of an encoded value would be found in ordinary texts. */
const SHORTEST_ENCODED = 8;

/**
 * The values with their usual spellings, longest first: as they are, inside JSON, percent-encoded, in hexadecimal, and in base64 at each
 * of the three places where they can begin. What a program does on purpose to hide a value is not found by this.
 */
export function spellingsOf(values: Iterable<string>): readonly string[] {
  const all = new Set<string>();
  for (const value of values) {
    all.add(value);
    for (const spelled of encodedOf(value)) if (spelled.length >= SHORTEST_ENCODED) all.add(spelled);
  }
  return [...all].sort((left, right) => right.length - left.length);
}
function encodedOf(value: string): string[] {
  const bytes = new TextEncoder().encode(value);
  const hex = toHex(bytes);
  const base64 = [0, 1, 2].map((before) => base64At(bytes, before));
  const url = base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"));
  // A part of a pair of UTF-16 units has no percent-encoding.
  const percent = value.isWellFormed() ? [encodeURIComponent(value)] : [];
  return [JSON.stringify(value).slice(1, -1), ...percent, hex, hex.toUpperCase(), ...base64, ...url];
}
/** Base64 of the bytes behind so many others: only the characters that the others do not change. */
function base64At(bytes: Uint8Array, before: number): string {
  const text = btoa(String.fromCharCode(...new Uint8Array(before), ...bytes));
  const first = Math.ceil((before * 8) / 6);
  return text.slice(first, Math.floor(((before + bytes.length) * 8) / 6));
}

/** Where the beginning of one of these values starts at the end of a text, which may go on; the length of the text where none does. */
export function unfinishedAt(text: string, values: readonly string[]): number {
  let at = text.length;
  for (const value of values)
    for (let length = Math.min(value.length - 1, text.length); length > text.length - at; length--)
      if (text.endsWith(value.slice(0, length))) at = text.length - length;
  return at;
}

/** The text without these values. Give longer values first, so that a secret that contains another is hidden whole. */
export function hideValues(text: string, values: readonly string[]): string {
  let clean = text;
  for (const value of values) if (clean.includes(value)) clean = clean.replaceAll(value, HIDDEN);
  return clean;
}

/** The text with all that looks like a secret hidden; `more` are the caller's own shapes, with the flag `g`. */
export function hideSecrets(text: string, more: readonly RegExp[] = []): string {
  let clean = text;
  for (const shape of [...SECRET_SHAPES, ...more]) clean = clean.replace(shape, HIDDEN);
  return clean;
}
