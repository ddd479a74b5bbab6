/**
 * Splits a long text into pieces that fit a platform's limit (product P7). PURE.
 *
 * Prefers coarse borders: between paragraphs, then lines, sentences and words, and only then inside a word, never inside a grapheme.
 * A code block stays whole when it fits a piece; otherwise it is cut between lines, and each part is a block of its own. Nothing is
 * lost but the white space at the borders.
 */

/** Shorter pieces cannot hold a fence and a word. */
export const MIN_PIECE = 64;
/** The longest info string of a fence; a longer one makes it ordinary text. */
const MAX_INFO = 24;

/** A part of the text and the white space before it. */
interface Part {
  readonly glue: string;
  readonly text: string;
  readonly fence?: Fence;
}
interface Fence {
  readonly opener: string;
  readonly closer: string;
  readonly lines: readonly string[];
}
const OPENER = /^ {0,3}(`{3,}|~{3,})([^`\n]*)$/;

/** Pieces of at most `limit` UTF-16 units, none of them blank. A blank text gives no pieces. Throws RangeError for a limit below `MIN_PIECE`. */
export function splitText(text: string, limit: number): string[] {
  if (!Number.isInteger(limit) || limit < MIN_PIECE) throw new RangeError(`pieces have at least ${MIN_PIECE} characters`);
  const body = text.toWellFormed().replace(/\r\n?/g, "\n");
  if (body.trim() === "") return [];
  if (body.length <= limit) return [body.trimEnd().replace(/^\n+/, "")];
  return pack(blocksOf(body), limit, (part) => (part.fence ? splitFence(part.fence, limit) : splitProse(part.text, limit)))
    .map((piece) => piece.trimEnd().replace(/^\n+/, ""))
    .filter((piece) => piece.trim() !== "");
}

/** Fills pieces from left to right; breaks up a part that is longer than a piece. */
function pack(parts: readonly Part[], limit: number, breakUp: (part: Part) => readonly string[]): string[] {
  const out: string[] = [];
  let piece = "";
  for (const part of parts) {
    const longer = piece === "" ? part.text : piece + part.glue + part.text;
    if (longer.length <= limit) {
      piece = longer;
      continue;
    }
    if (piece !== "") out.push(piece);
    const [last = "", ...before] = part.text.length <= limit ? [part.text] : breakUp(part).toReversed();
    out.push(...before.toReversed());
    piece = last;
  }
  if (piece !== "") out.push(piece);
  return out;
}

/** Paragraphs and fenced blocks. */
function blocksOf(text: string): Part[] {
  const lines = text.split("\n");
  const parts: Part[] = [];
  let prose: string[] = [];
  const flush = (): void => {
    parts.push(...cut(prose.join("\n"), /\n[ \t]*\n\s*?(?=[^\n])/g, parts.length === 0 ? "" : "\n"));
    prose = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const mark = OPENER.exec(line);
    const end = mark === null ? -1 : endOfFence(lines, at, mark[1] ?? "");
    if (mark === null || end === -1) {
      prose.push(line);
      continue;
    }
    const fence = { opener: line, closer: lines[end] ?? mark[1] ?? "", lines: lines.slice(at + 1, end) };
    flush();
    parts.push({ glue: parts.length === 0 ? "" : "\n", text: lines.slice(at, end + 1).join("\n"), fence });
    at = end;
  }
  flush();
  return parts;
}
/** Index of the line that closes the fence; -1 when it is never closed or its info string is too long to repeat. */
function endOfFence(lines: readonly string[], from: number, mark: string): number {
  if ((lines[from] ?? "").length > MAX_INFO + 3) return -1;
  return lines.findIndex((each, at) => {
    const line = each.trim();
    return at > from && line.length >= mark.length && line === (mark[0] ?? "").repeat(line.length);
  });
}
function splitFence({ opener, closer, lines }: Fence, limit: number): string[] {
  const budget = limit - opener.length - closer.length - 2;
  if (budget < MIN_PIECE / 4) return splitProse([opener, ...lines, closer].join("\n"), limit);
  const parts = lines.map((text): Part => ({ glue: "\n", text }));
  // Not `pack`: it would take an empty line for the start of a piece.
  const bodies = packLines(parts, budget);
  return bodies.map((body) => `${opener}\n${body}\n${closer}`);
}
function packLines(parts: readonly Part[], limit: number): string[] {
  const out: string[] = [];
  let piece: string | undefined;
  for (const { text } of parts) {
    const longer: string = piece === undefined ? text : `${piece}\n${text}`;
    if (longer.length <= limit) {
      piece = longer;
      continue;
    }
    if (piece !== undefined) out.push(piece);
    const rows = text.length <= limit ? [text] : splitCharacters(text, limit);
    out.push(...rows.slice(0, -1));
    piece = rows.at(-1);
  }
  if (piece !== undefined) out.push(piece);
  return out;
}

const FINER: readonly RegExp[] = [/\n+/g, /(?<=[.!?…。！？]["'”’)\]]*)\s+/gu, /\s+/g];
function splitProse(text: string, limit: number, level = 0): string[] {
  const border = FINER[level];
  if (!border) return splitCharacters(text, limit);
  return pack(cut(text, border, ""), limit, (part) => splitProse(part.text, limit, level + 1));
}

/** Cuts the text at its borders; a border becomes the glue of the next part. */
function cut(text: string, border: RegExp, firstGlue: string): Part[] {
  const parts: Part[] = [];
  let from = 0;
  let glue = firstGlue;
  for (const match of text.matchAll(border)) {
    const before = text.slice(from, match.index);
    if (before !== "") {
      parts.push({ glue, text: before });
      glue = "";
    }
    glue += match[0];
    from = match.index + match[0].length;
  }
  const rest = text.slice(from);
  if (rest !== "") parts.push({ glue, text: rest });
  return parts;
}

const characters = new Intl.Segmenter("und", { granularity: "grapheme" });
function splitCharacters(text: string, limit: number): string[] {
  const out: string[] = [];
  let piece = "";
  for (const { segment } of characters.segment(text)) {
    // A grapheme can be arbitrarily long; beyond the limit it is cut between code points.
    for (const unit of segment.length <= limit ? [segment] : segment) {
      if (piece.length + unit.length > limit) {
        out.push(piece);
        piece = "";
      }
      piece += unit;
    }
  }
  if (piece !== "") out.push(piece);
  return out;
}
