/** The id of a request in a text that is no good frame, so that its sender can still be answered (wire rule F1). PURE. */

/** Nobody hides an id further in than this. */
const SEARCHED_CHARS = 65_536;
const MAX_ID = 128;
export const UNKNOWN_ID = "0";

/** The string under `id` at the first level of an object. Reads text that may be broken anywhere. */
export function peekId(text: string): string {
  const end = Math.min(text.length, SEARCHED_CHARS);
  let depth = 0;
  let name: string | undefined;
  for (let at = 0; at < end; at++) {
    const unit = text[at];
    if (unit === "{" || unit === "[") depth++;
    else if (unit === "}" || unit === "]") depth--;
    else if (unit === ",") name = undefined;
    else if (unit === '"') {
      const close = closing(text, at, end);
      if (close === undefined) return UNKNOWN_ID;
      if (depth === 1) {
        const value = unquoted(text.slice(at, close + 1));
        if (name === "id") return value !== undefined && value !== "" && [...value].length <= MAX_ID ? value : UNKNOWN_ID;
        name = /^\s*:/.test(text.slice(close + 1, close + 32)) ? value : undefined;
      }
      at = close;
    }
  }
  return UNKNOWN_ID;
}

function closing(text: string, open: number, end: number): number | undefined {
  for (let at = open + 1; at < end; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return undefined;
}

function unquoted(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
