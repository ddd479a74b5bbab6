/**
 * Whether HEARTBEAT.md says anything. By the storage layout it does not when it has only white space, headings with no
 * text under them, HTML comments and horizontal rules. PURE.
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
      // A line underlined by `=` is a heading too. One underlined by `-` more often is text above a rule: it counts as text.
      !UNDERLINE.test(lines[at + 1] ?? ""),
  );
}
