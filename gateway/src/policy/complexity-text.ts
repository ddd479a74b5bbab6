/** Why a command can't be compared with a rule, in words. PURE. */
import type { Complexity } from "./shell.ts";

const WHY: Readonly<Record<Complexity, string>> = {
  empty: "it is empty",
  too_long: "it is too long",
  too_many: "it has too many commands",
  control: "it has control characters",
  newline: "it has several lines",
  unicode: "it has characters that are not seen",
  expansion: "the shell makes some of its words (`$`, a backtick)",
  escape: "it has backslashes",
  quote: "a quote in it does not end",
  glob: "it has patterns (`*`, `?`, `[`)",
  tilde: "it has `~`",
  history: "it has `!`",
  comment: "it has a comment",
  group: "it has brackets (`(`, `{`)",
  redirection: "it redirects input or output",
  background: "it runs something in the background (`&`)",
  operator: "an operator in it is not complete, or is not known",
  assignment: "it sets a variable",
  keyword: "it has words of the shell language, such as `for`",
  builtin: "it runs a command that the shell itself has",
  character: "it has a character that a plain command does not have",
};
export const complexityText = (why: Complexity): string => WHY[why];
