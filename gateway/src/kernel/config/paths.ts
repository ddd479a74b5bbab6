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
