/**
 * PURE. The difference of two texts as a unified diff, for a person who decides about it. Exact: to apply it gives the new text. Where the
 * differing parts are too large to be compared line by line, it shows all old lines and then all new ones.
 */

const CONTEXT_LINES = 3;
/** Cells of the table that compares two parts. */
const MAX_CELLS = 1_000_000;
const NO_NEWLINE = "\n\\ No newline at end of file";

interface Line {
  readonly mark: " " | "-" | "+";
  readonly text: string;
}
/** Undefined: there is no such file. Empty when nothing differs. */
export function unifiedDiff(path: string, before: string | undefined, after: string | undefined): string {
  if (before === after) return "";
  const lines = compare(linesOf(before ?? ""), linesOf(after ?? ""));
  const name = (text: string | undefined): string => (text === undefined ? "/dev/null" : path);
  return [`--- ${name(before)}`, `+++ ${name(after)}`, ...hunks(lines)].join("\n");
}
function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  const last = lines.pop() ?? "";
  return last === "" ? lines : [...lines, last + NO_NEWLINE];
}
function compare(before: readonly string[], after: readonly string[]): readonly Line[] {
  const differs = before.findIndex((line, index) => line !== after[index]);
  const head = differs === -1 ? before.length : differs;
  let tail = 0;
  const spare = Math.min(before.length, after.length) - head;
  while (tail < spare && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const same = (part: readonly string[]): readonly Line[] => part.map((text) => ({ mark: " ", text }));
  return [
    ...same(before.slice(0, head)),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...same(before.slice(before.length - tail)),
  ];
}
/** By the longest common subsequence. */
function middle(before: readonly string[], after: readonly string[]): readonly Line[] {
  const removed = (text: string): Line => ({ mark: "-", text });
  const added = (text: string): Line => ({ mark: "+", text });
  const width = after.length + 1;
  if (before.length * width > MAX_CELLS) return [...before.map(removed), ...after.map(added)];
  // How many lines the rest from a row and the rest from a column have in common. Behind the last row: none.
  const common = new Uint32Array(before.length * width);
  const at = (row: number, column: number): number => common[row * width + column] ?? 0;
  const columns = [...after.keys()].reverse();
  for (const row of [...before.keys()].reverse())
    for (const column of columns)
      common[row * width + column] =
        before[row] === after[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
  const lines: Line[] = [];
  let row = 0;
  let column = 0;
  while (row < before.length || column < after.length) {
    const old = before[row];
    const fresh = after[column];
    if (old !== undefined && old === fresh) {
      lines.push({ mark: " ", text: old });
      row += 1;
      column += 1;
      // Without the old line the rest has as much in common.
    } else if (old !== undefined && (fresh === undefined || at(row + 1, column) === at(row, column))) {
      lines.push(removed(old));
      row += 1;
    } else {
      lines.push(added(fresh ?? ""));
      column += 1;
    }
  }
  return lines;
}
function hunks(lines: readonly Line[]): readonly string[] {
  const shown: string[] = [];
  let old = 1;
  let fresh = 1;
  let from = 0;
  for (;;) {
    const first = lines.findIndex(({ mark }, index) => index >= from && mark !== " ");
    if (first === -1) break;
    let end = first;
    // A next change that is near belongs to the same hunk.
    for (let index = end; index < lines.length && index <= end + 2 * CONTEXT_LINES; index++)
      if (lines[index]?.mark !== " ") end = index + 1;
    const begin = Math.max(from, first - CONTEXT_LINES);
    const stop = Math.min(lines.length, end + CONTEXT_LINES);
    old += begin - from;
    fresh += begin - from;
    const part = lines.slice(begin, stop);
    const oldCount = part.filter(({ mark }) => mark !== "+").length;
    const freshCount = part.filter(({ mark }) => mark !== "-").length;
    shown.push(`@@ -${range(old, oldCount)} +${range(fresh, freshCount)} @@`, ...part.map(({ mark, text }) => mark + text));
    old += oldCount;
    fresh += freshCount;
    from = stop;
  }
  return shown;
}
/** A range without lines names the line before it. */
const range = (line: number, count: number): string => `${count === 0 ? line - 1 : line},${count}`;
