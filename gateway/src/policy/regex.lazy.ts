/** The engine for regular expressions of rules. A file of its own, which is loaded when the first such rule is used. */
import { RE2JS } from "re2js";
import type { RegexEngine } from "./regex.ts";

const FLAGS: Readonly<Record<string, number>> = {
  i: RE2JS.CASE_INSENSITIVE,
  m: RE2JS.MULTILINE,
  s: RE2JS.DOTALL,
};

export const re2: RegexEngine = (pattern, flags) => {
  try {
    const compiled = RE2JS.compile(
      pattern,
      [...flags].reduce((all, flag) => all | (FLAGS[flag] ?? 0), 0),
    );
    return { ok: true, regex: { test: (text) => compiled.test(text) } };
  } catch (error) {
    const problem = error instanceof Error ? error.message.slice(0, 200) : "it is not a regular expression";
    return { ok: false, problem: `${problem}. Patterns are those of RE2: no look-around and no back references` };
  }
};
