/**
 * Setting names: `model.provider`, `agents.list[0].model.id`, `identityLinks["a.b"]`. PURE. Names that JavaScript gives a meaning
 * (`__proto__`, `constructor`, `prototype`) are never part of a path.
 */

const FORBIDDEN: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);
export const isForbiddenName = (name: string): boolean => FORBIDDEN.has(name);

const MAX_SEGMENTS = 16;

/** The segments of a path; undefined when it is none. A list's position is a segment of digits: `list.0` and `list[0]` are the same. */
export function parsePath(text: string): readonly string[] | undefined {
  const segments: string[] = [];
  let rest = text.trim();
  while (rest !== "") {
    const match =
      /^\[(\d{1,6})\]/.exec(rest) ??
      /^\[("(?:[^"\\]|\\.)*")\]/.exec(rest) ??
      (segments.length === 0 ? /^([^.[\]]+)/ : /^\.([^.[\]]+)/).exec(rest);
    if (match?.[1] === undefined) return undefined;
    const name = match[1].startsWith('"') ? unquote(match[1]) : match[1];
    if (name === undefined || name === "" || isForbiddenName(name)) return undefined;
    segments.push(name);
    if (segments.length > MAX_SEGMENTS) return undefined;
    rest = rest.slice(match[0].length);
  }
  return segments.length === 0 ? undefined : segments;
}

function unquote(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The canonical text of a path; `parsePath` reads it back. */
export function formatPath(segments: readonly string[]): string {
  return segments
    .map((name, index) => (/^[^.[\]"\s]+$/.test(name) ? `${index === 0 ? "" : "."}${name}` : `[${JSON.stringify(name)}]`))
    .join("");
}

/** Edits (insert, remove, replace, swap neighbours) that make one text of the other. */
export function editDistance(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let at = 1; at <= left.length; at++) {
    const next = [at];
    for (let to = 1; to <= right.length; to++) {
      const same = left[at - 1] === right[to - 1];
      let cost = Math.min((row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1, (row[to - 1] ?? 0) + (same ? 0 : 1));
      if (at > 1 && to > 1 && left[at - 1] === right[to - 2] && left[at - 2] === right[to - 1])
        cost = Math.min(cost, (before[to - 2] ?? 0) + 1);
      next.push(cost);
    }
    before = row;
    row = next;
  }
  return row[right.length] ?? 0;
}

/** The candidate that was probably meant, if any is near enough. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let bestCost = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    const known = candidate.toLowerCase();
    // A name with a part left out (`fallback`, `resetPolicy`) is near whatever its length.
    const part = wanted.length >= 4 && (known.includes(wanted) || wanted.includes(known));
    const cost = part ? 1 : editDistance(wanted, known);
    if (cost < bestCost) [best, bestCost] = [candidate, cost];
  }
  return best;
}
