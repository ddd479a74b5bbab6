/** Reads a text in parts, and replaces text in it. PURE. Lines are counted from 1, characters from 0. */
import type { Result } from "../../ports/result.ts";

/** Well under the size at which a tool's result is cut, so that reading a stored long result never gives another long result. */
const MAX_PART_CHARS = 40_000;

export interface Part {
  readonly text: string;
  readonly totalLines: number;
  /** Present when there is more: where to continue. */
  readonly note?: string;
}
/** Where each line begins. The empty text after a final line break does not count as a line. */
function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1 && at + 1 < text.length; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
export function readPart(text: string, { offset, limit, column }: { offset: number; limit: number | undefined; column: number }): Part {
  const starts = lineStarts(text);
  const totalLines = text === "" ? 0 : starts.length;
  if (offset > Math.max(1, totalLines)) return { text: "", totalLines, note: `[The file has ${totalLines} lines.]` };
  const lineEnd = (line: number): number => starts[line] ?? text.length;
  const begin = Math.min((starts[offset - 1] ?? 0) + column, lineEnd(offset));
  const wanted = limit === undefined ? text.length : lineEnd(offset - 1 + limit);
  let end = Math.min(wanted, text.length);
  if (end - begin > MAX_PART_CHARS) {
    // Whole lines if possible.
    end = begin + MAX_PART_CHARS;
    const lineBreak = text.lastIndexOf("\n", end - 1);
    if (lineBreak >= begin) end = lineBreak + 1;
    else if (isHighSurrogate(text.charCodeAt(end - 1))) end--;
  }
  const part = text.slice(begin, end);
  if (end >= text.length) return { text: part, totalLines };
  let next = offset;
  while (lineEnd(next) <= end) next++;
  const inside = end - (starts[next - 1] ?? 0);
  return {
    text: part,
    totalLines,
    note: `[There is more: ${totalLines} lines in all. Continue with offset ${next}${inside > 0 ? ` and column ${inside}` : ""}.]`,
  };
}
const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;

export function edit(
  text: string,
  oldString: string,
  newString: string,
  replaceAll: boolean,
): Result<{ readonly text: string; readonly count: number }> {
  const fail = (reason: "edit.no_match" | "edit.ambiguous" | "tool.bad_args", message: string, hint: string) =>
    ({ ok: false, error: { reason, message, hint } }) as const;
  if (oldString === "") return fail("tool.bad_args", "`oldString` is empty.", "To create a file or replace all of it, use gsv__WriteFile.");
  if (oldString === newString) return fail("tool.bad_args", "`oldString` and `newString` are the same.", "Give a different `newString`.");
  const pieces = text.split(oldString);
  const count = pieces.length - 1;
  if (count === 0)
    return fail(
      "edit.no_match",
      "`oldString` is not in the file.",
      "Read the file again and copy the text exactly, including white space.",
    );
  if (count > 1 && !replaceAll)
    return fail(
      "edit.ambiguous",
      `\`oldString\` is in the file ${count} times.`,
      "Include more of the text around it, or set `replaceAll`.",
    );
  return { ok: true, value: { text: pieces.join(newString), count } };
}
