/**
 * Whether HEARTBEAT.md says anything. By the storage layout it does not when it has only white space, headings with no
 * text under them, HTML comments and horizontal rules. Pure.
 */
const HEADING = /^#{1,6}(\s|$)/;
const RULE = /^(?:-(?:\s*-){2,}|\*(?:\s*\*){2,}|_(?:\s*_){2,}|={3,})$/;

export function isMeaningful(text: string): boolean {
  // A comment that is never closed hides the rest, as in Markdown.
  const visible = text.replace(/<!--[\s\S]*?(?:-->|$)/g, "");
  return visible.split(/\r?\n/).some((line) => {
    const trimmed = line.trim();
    return trimmed !== "" && trimmed !== "\ufeff" && !HEADING.test(trimmed) && !RULE.test(trimmed);
  });
}
