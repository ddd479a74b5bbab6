/** Names from outside (of people, chats, files), as one line that cannot imitate other text. PURE. */

/** Controls, direction marks, invisible characters and line breaks of all kinds. */
export const DECEPTIVE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** At most `maxChars` UTF-16 units; undefined when the value is not a text or nothing is left. */
export function cleanName(value: unknown, maxChars = 128): string | undefined {
  if (typeof value !== "string") return undefined;
  // The first cut bounds the work, the second the result.
  const line = value
    .slice(0, maxChars * 4)
    .toWellFormed()
    .replace(DECEPTIVE, " ")
    .replace(/\s+/g, " ")
    .trim();
  const name = line
    .slice(0, maxChars)
    .replace(/[\ud800-\udbff]$/, "")
    .trimEnd();
  return name === "" ? undefined : name;
}
