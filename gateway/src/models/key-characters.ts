/** Characters that no key has. A key is sent in an HTTP header; what a provider echoes of any other text is not recognised as the key. PURE. */
import type { Problem } from "../ports/result.ts";

const KEY = /^[\t\x20-\x7e]*$/;
const IN_HEADER = /^[\x20-\x7e]*$/;
const KINDS: readonly (readonly [RegExp, string])[] = [
  [/[\u2018-\u201f\u00ab\u00bb]/, "a typographic quotation mark"],
  [/[\u2010-\u2015\u2212]/, "a typographic dash"],
  [/[\r\n]/, "a line break"],
  [/\t/, "a tab"],
  [/[\p{Z}\p{C}]/u, "an invisible character"],
];

/** What is wrong with a key's characters, without the key; undefined: nothing. */
export function keyCharacterProblem(key: string): Problem | undefined {
  const text = key.trim();
  // The key file of a service account is JSON, and has lines.
  const line = text.startsWith("{") ? text.replace(/[\r\n]/g, "") : text;
  return KEY.test(line)
    ? undefined
    : { message: `the key contains ${foreignKind(line)}, which no key has.`, hint: "Copy the key again from the provider's page." };
}
/** The same of another secret that is sent in an HTTP header as it is: it has no line either. */
export function headerCharacterProblem(secret: string): string | undefined {
  return IN_HEADER.test(secret)
    ? undefined
    : `it contains ${foreignKind(secret)}, which cannot be sent in an HTTP header. Copy it again from where it was created.`;
}
function foreignKind(text: string): string {
  const foreign = text.replace(/[\x20-\x7e]/g, "");
  return KINDS.find(([characters]) => characters.test(foreign))?.[1] ?? "a character outside ASCII";
}
