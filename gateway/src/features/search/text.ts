/**
 * Prepares text for the index and for display: separates words of scripts without spaces, splits text into bounded pieces, and
 * builds the line that shows a hit. PURE.
 *
 * The index's tokenizer treats a run of letters as one word. In Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese that would
 * be a whole sentence. So an invisible separator divides their characters, in the index and in queries: each character is a word,
 * and a run of them in a query is a phrase. The separator never leaves the index.
 */

/** Zero width space: a separator for the tokenizer, invisible to people. */
const SEPARATOR = "\u200b";
export const MARK_BEGIN = "\ue000";
export const MARK_END = "\ue001";

const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*/gu;
/** Control characters except tab and line feed, our marks, and the separator. */
const FOREIGN = /[\u0000-\u0008\u000b-\u001f\u007f\u200b\ue000\ue001]/g;

/** The text as it is stored in the index. */
export function segment(text: string): string {
  return text.toWellFormed().replace(FOREIGN, " ").replace(UNSPACED, `${SEPARATOR}$&${SEPARATOR}`);
}
/** Whether the tokenizer finds a word in the text. */
export const hasWord = (text: string): boolean => /[\p{L}\p{N}]/u.test(text);

export interface Piece {
  readonly text: string;
  /** The line of the piece's beginning, from 1. */
  readonly line: number;
}
/** Splits a text into pieces of at most `maxChars`, between lines if possible, else between words. */
export function pieces(text: string, maxChars: number): Piece[] {
  const out: Piece[] = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    const end = at + maxChars >= text.length ? text.length : borderIn(text, at, at + maxChars);
    const piece = text.slice(at, end);
    if (hasWord(piece)) out.push({ text: piece, line });
    for (let feed = piece.indexOf("\n"); feed !== -1; feed = piece.indexOf("\n", feed + 1)) line++;
    at = end;
  }
  return out;
}
function borderIn(text: string, from: number, to: number): number {
  const feed = text.lastIndexOf("\n", to - 1);
  if (feed > from) return feed + 1;
  const gap = text.slice(from, to).search(/\s\S*$/u);
  if (gap > 0) return from + gap + 1;
  return (text.charCodeAt(to - 1) & 0xfc00) === 0xd800 ? to - 1 : to;
}

/** Files of memories: each line is a text of its own. */
export const isMemory = (path: string): boolean => path === "MEMORY.md" || path.startsWith("memory/");
/** The lines of a text, long ones in pieces. */
export function linePieces(text: string, maxChars: number): Piece[] {
  return text
    .split("\n")
    .flatMap((line, index) => (hasWord(line) ? pieces(line, maxChars).map((piece) => ({ ...piece, line: index + 1 })) : []));
}

const MONTHS = [
  "january",
  "february",
  "march",
  "april",
  "may",
  "june",
  "july",
  "august",
  "september",
  "october",
  "november",
  "december",
] as const;
const DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;
/** The words of a day: `2026-03-09 monday 9 march`. */
export function dayWords(at: number): string {
  const day = new Date(at);
  if (!(at > 0) || Number.isNaN(day.getTime())) return "";
  return `${day.toISOString().slice(0, 10)} ${DAYS[day.getUTCDay()] ?? ""} ${day.getUTCDate()} ${MONTHS[day.getUTCMonth()] ?? ""}`;
}
/** The day that a file's name has. */
export function dayOfName(path: string): string {
  const date = /(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)/.exec(path)?.[1];
  return date === undefined ? "" : dayWords(Date.parse(`${date}T12:00:00Z`));
}

interface Range {
  readonly begin: number;
  readonly end: number;
}
/** Turns the index's text with marks and separators into the original text and the positions of matches. */
export function unmarked(marked: string): { readonly text: string; readonly ranges: readonly Range[] } {
  let text = "";
  let begin = 0;
  const ranges: Range[] = [];
  for (const part of marked.replaceAll(SEPARATOR, "").split(/([\ue000\ue001])/)) {
    if (part === MARK_BEGIN) begin = text.length;
    else if (part === MARK_END) ranges.push({ begin, end: text.length });
    else text += part;
  }
  return { text, ranges };
}
/** Lines before the first match. */
export function linesBefore(marked: string): number {
  const first = marked.indexOf(MARK_BEGIN);
  return first === -1 ? 0 : marked.slice(0, first).split("\n").length - 1;
}

export const SNIPPET_CHARS = 240;
const LEAD_CHARS = 60;
/**
 * One line around most of the matches. `scrub` masks secrets; a line with a masked secret gets no marks, because they would
 * show which part of the secret matched.
 */
export function snippetOf(marked: string, scrub: (text: string) => string, maxChars = SNIPPET_CHARS): string {
  const plain = unmarked(marked);
  const clean = scrub(plain.text);
  const ranges = clean === plain.text ? plain.ranges : [];
  const from = clean === plain.text ? beginOf(clean, ranges, maxChars) : 0;
  const to = Math.min(clean.length, from + maxChars);
  let line = "";
  let at = from;
  for (const { begin, end } of ranges) {
    if (begin < from || begin >= to) continue;
    line += `${clean.slice(at, begin)}${MARK_BEGIN}${clean.slice(begin, Math.min(end, to))}${MARK_END}`;
    at = Math.min(end, to);
  }
  line = (line + clean.slice(at, to)).toWellFormed().replace(/\s+/gu, " ").trim();
  return `${from > 0 ? "…" : ""}${line}${to < clean.length ? "…" : ""}`;
}
function beginOf(text: string, ranges: readonly Range[], maxChars: number): number {
  let [best, most] = [0, 0];
  // The ranges are in order, so the first and the last one inside only move on.
  let [first, behind] = [0, 0];
  for (const { begin } of ranges) {
    const from = Math.max(0, begin - LEAD_CHARS);
    while ((ranges[first]?.begin ?? from) < from) first++;
    while ((ranges[behind]?.end ?? Number.POSITIVE_INFINITY) <= from + maxChars) behind++;
    if (behind - first > most) [best, most] = [from, behind - first];
  }
  // Not in the middle of a word.
  if (best === 0) return 0;
  const gap = text.slice(best, best + LEAD_CHARS).search(/\s/u);
  return gap === -1 ? best : best + gap + 1;
}
/** For a model or a terminal without colours. */
export const withoutMarks = (snippet: string): string => snippet.replace(/[\ue000\ue001]/g, "");
