/** Characters that no key has. A key is sent in an HTTP header; what a provider echoes of any other text is not recognised as the key. PURE. */

/** A key file of a service account has lines. */
const USABLE = /^[\t\n\r\x20-\x7e]*$/;
const KINDS: readonly (readonly [RegExp, string])[] = [
  [/[\u2018-\u201f\u00ab\u00bb]/, "a typographic quotation mark"],
  [/[\u2010-\u2015\u2212]/, "a typographic dash"],
  [/[\p{Z}\p{C}]/u, "an invisible character"],
];

/** What is wrong with a key's characters, without the key; undefined: nothing. */
export function keyCharacterProblem(key: string): string | undefined {
  if (USABLE.test(key)) return undefined;
  const foreign = key.replace(/[\t\n\r\x20-\x7e]/g, "");
  const kind = KINDS.find(([characters]) => characters.test(foreign))?.[1] ?? "a character outside ASCII";
  return `the key contains ${kind}, which no key has. Copy the key again from the provider's page.`;
}
