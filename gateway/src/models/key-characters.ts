/** Characters that no key has. A key is sent in an HTTP header; what a provider echoes of any other text is not recognised as the key. PURE. */

/** A key file of a service account has lines. */
const USABLE = /^[\t\n\r\x20-\x7e]*$/;
const IN_HEADER = /^[\x20-\x7e]*$/;
const KINDS: readonly (readonly [RegExp, string])[] = [
  [/[\u2018-\u201f\u00ab\u00bb]/, "a typographic quotation mark"],
  [/[\u2010-\u2015\u2212]/, "a typographic dash"],
  [/[\p{Z}\p{C}]/u, "an invisible character"],
];

/** What is wrong with a key's characters, without the key; undefined: nothing. */
export function keyCharacterProblem(key: string): string | undefined {
  return USABLE.test(key)
    ? undefined
    : `the key contains ${foreignKind(key)}, which no key has. Copy the key again from the provider's page.`;
}
/** The same of another secret that is sent in an HTTP header as it is: it has no line either. */
export function headerCharacterProblem(secret: string): string | undefined {
  if (IN_HEADER.test(secret)) return undefined;
  const kind = USABLE.test(secret) ? "a line break or a tab" : foreignKind(secret);
  return `it contains ${kind}, which cannot be sent in an HTTP header. Copy it again from where it was created.`;
}
function foreignKind(text: string): string {
  const foreign = text.replace(/[\t\n\r\x20-\x7e]/g, "");
  return KINDS.find(([characters]) => characters.test(foreign))?.[1] ?? "a character outside ASCII";
}
