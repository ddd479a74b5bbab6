/**
 * Finds characters that a person does not see but a model reads (controls, direction marks, zero-width characters, tags) and
 * makes them visible. PURE; never removes characters silently.
 */

/** Each of these can make a text read differently than it looks. Line ends and tabs are not included. */
const DANGEROUS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;
/** Includes harmless invisible characters. The emoji joiner and variation selector are removed before the test. */
const INVISIBLE =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]|\u034f|\u17b4|\u17b5|\u180b|\u180c|\u180d|\u180f/u;
const EVERY_INVISIBLE = new RegExp(INVISIBLE, "gu");
const EMOJI_JOINER = /(?<=\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]?)\u200d(?=\p{Extended_Pictographic})/gu;

const codeOf = (found: string): string => `U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** The first invisible character of a short text, by its code point. */
export function invisibleIn(text: string): string | undefined {
  const found = INVISIBLE.exec(text.replace(EMOJI_JOINER, ""))?.[0];
  return found === undefined ? undefined : codeOf(found);
}

/** The first character of a long text that changes how it reads, and its line. Every script is allowed. */
export function dangerousIn(text: string): { readonly code: string; readonly line: number } | undefined {
  const found = DANGEROUS.exec(text);
  return found === null ? undefined : { code: codeOf(found[0]), line: text.slice(0, found.index).split("\n").length };
}

/** One line of at most `maxChars`, with every invisible character written as its code point. */
export function visible(text: string, maxChars: number): string {
  const line = text.replace(/[\t\n\r ]+/g, " ").trim();
  const shown = line.split(EMOJI_JOINER).map((part) => part.replace(EVERY_INVISIBLE, (found) => `[${codeOf(found)}]`));
  const out = shown.join("\u200d").toWellFormed();
  if (out.length <= maxChars) return out;
  const cut = out.slice(0, maxChars - 1).replace(/[\ud800-\udbff]$/, "");
  return `${cut}…`;
}
