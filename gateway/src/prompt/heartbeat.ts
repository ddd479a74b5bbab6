/**
 * What a heartbeat reads and answers: whether HEARTBEAT.md has content, and whether an answer says nothing. White space, headings without
 * text under them, HTML comments and horizontal rules are no content. PURE.
 */
const HEADING = /^#{1,6}(\s|$)/;
const RULE = /^(?:-(?:\s*-){2,}|\*(?:\s*\*){2,}|_(?:\s*_){2,})$/;
const UNDERLINE = /^=+$/;

export function isMeaningful(text: string): boolean {
  // A comment that is never closed hides the rest, as in Markdown.
  const visible = text.replace(/<!--[\s\S]*?(?:-->|$)/g, "");
  const lines = visible.split(/\r\n?|\n/).map((line) => line.replaceAll("\ufeff", "").trim());
  return lines.some(
    (line, at) =>
      line !== "" &&
      !HEADING.test(line) &&
      !RULE.test(line) &&
      !UNDERLINE.test(line) &&
      // A line underlined with `=` is a heading too. A line above `-` is usually text above a rule, so it counts as text.
      !UNDERLINE.test(lines[at + 1] ?? ""),
  );
}

const OK = "HEARTBEAT_OK";
/** What may stand beside the word. */
const BESIDE_CHARS = 300;
const EDGE = /^[\s*_`"'.!()[\]-]+|[\s*_`"'.!()[\]-]+$/g;
/** The answer says that there is nothing to say (rule HB5): the word at its beginning or end, with a few words beside it. */
export function saysNothing(text: string): boolean {
  const said = text.replace(EDGE, "");
  if (!said.startsWith(OK) && !said.endsWith(OK)) return false;
  return said.replaceAll(OK, "").trim().length <= BESIDE_CHARS;
}
/** An answer without the word. */
export const withoutWord = (text: string): string => text.replaceAll(new RegExp(`[*_\`]*${OK}[*_\`]*`, "g"), "").trim();
