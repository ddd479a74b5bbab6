/** Commands that a script of sed runs (rule PO13). PURE. Reads each character once. */

/** Take the rest of the line. */
const TO_END = "aicrRwW#";
const LABELS = ":btTv";
/**
 * The commands of `e` in a text that may be a script of sed. `unknown`: the result of a replacement is run (the flag `e` of `s`), or the line
 * itself. A text that sed refuses has none.
 */
export function commandsOfSed(script: string): readonly string[] | "unknown" {
  const found: string[] = [];
  let at = 0;
  const peek = (): string => script.charAt(at);
  /** After the next such character that no backslash stands before. */
  const skipPast = (end: string): boolean => {
    for (; at < script.length; at++) {
      if (peek() === "\\") at++;
      else if (peek() === end) {
        at++;
        return true;
      }
    }
    return false;
  };
  const skipWhile = (characters: string): void => {
    while (at < script.length && characters.includes(peek())) at++;
  };
  const restOf = (ends: string): string => {
    const from = at;
    while (at < script.length && !ends.includes(peek())) at += peek() === "\\" ? 2 : 1;
    return script.slice(from, at);
  };
  while (at < script.length) {
    skipWhile(" \t\n\r;{}!,+~$0123456789IM");
    const char = peek();
    at++;
    if (char === "/" || char === "\\") {
      const end = char === "/" ? char : script.charAt(at++);
      if (!skipPast(end)) return found;
    } else if (char === "s" || char === "y") {
      const delimiter = script.charAt(at++);
      if (!skipPast(delimiter) || !skipPast(delimiter)) return found;
      const from = at;
      skipWhile(" gpiImMe0123456789");
      if (script.slice(from, at).includes("e")) return "unknown";
      if (peek() === "w") restOf("\n");
    } else if (char === "e") {
      const command = restOf("\n").trim();
      if (command === "") return "unknown";
      found.push(command);
    } else if (TO_END.includes(char)) restOf("\n");
    else if (LABELS.includes(char)) restOf("\n;}");
  }
  return found;
}
