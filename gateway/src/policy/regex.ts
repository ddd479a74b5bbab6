/**
 * Regular expressions of rules: linear in time and without look-around or back references, so that no pattern of a rule and no argument
 * of a call can stop the gateway. PURE. The engine is loaded on first use (load.ts), because most owners have no such rule.
 */

/** UTF-16 code units. */
export const MAX_PATTERN_CHARS = 1024;
/** A longer text is not searched. */
export const MAX_SEARCHED_CHARS = 262_144;

export interface Regex {
  readonly test: (text: string) => boolean;
}
export type Compiled = { readonly ok: true; readonly regex: Regex } | { readonly ok: false; readonly problem: string };
export type RegexEngine = (pattern: string, flags: string) => Compiled;

/** Checks what an engine need not: length and flags. */
export function compileRegex(engine: RegexEngine, pattern: unknown, flags = ""): Compiled {
  if (typeof pattern !== "string" || pattern === "") return { ok: false, problem: "the value of regex is a pattern, as text" };
  if (pattern.length > MAX_PATTERN_CHARS) return { ok: false, problem: `the pattern is longer than ${MAX_PATTERN_CHARS} characters` };
  if (!/^[ims]*$/.test(flags)) return { ok: false, problem: "flags are i, m and s" };
  return engine(pattern, flags);
}
