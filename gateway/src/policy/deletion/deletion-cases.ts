/** Helpers for tests of deletions (rule PO13): lists of texts and the verdict that each has. */
import { deletionOf } from "./deletions.ts";

/** A text that occurs twice in a list is a mistake: one of the two was meant to be another text. */
function unique(texts: readonly string[]): readonly string[] {
  const twice = texts.filter((text, at) => texts.indexOf(text) !== at);
  if (twice.length > 0) throw new Error(`Texts occur twice in one list: ${twice.join(" | ")}`);
  return texts;
}
export const all = (texts: readonly string[]): Record<string, string> =>
  Object.fromEntries(unique(texts).map((text) => [text, deletionOf(text)]));
export const each = (texts: readonly string[], verdict: string): Record<string, string> =>
  Object.fromEntries(unique(texts).map((text) => [text, verdict]));
/** With `§` for `$` before a brace, which is a template elsewhere. */
export const braced = (text: string): string => text.replaceAll("§", "$");
export const files = (count: number): string => Array.from({ length: count }, (_, index) => `f${index}`).join(" ");
