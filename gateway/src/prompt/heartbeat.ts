/**
 * Decides whether HEARTBEAT.md has content. White space, headings without text under them, HTML comments and horizontal rules
 * don't count (storage layout). PURE.
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
