/**
 * Parts of a text for a shell that delete nothing, replaced by plain words (rule PO13). PURE. A message in a here-document, the usual set-up of a
 * tool, and what known commands print. In doubt a part stays as it is.
 */
import { withoutQuotes } from "../quotes.ts";
import { readShell } from "../shell.ts";
import { runsAnother, SHELLS, nameOf } from "../wrappers.ts";
import { mayCopyOrMove } from "./copied-programs.ts";

/** The text with plain words for these parts. */
export function withPlainParts(given: string): string {
  if (!given.includes("$")) return given;
  let text = given.includes("cat <<") ? withoutMessages(given) : given;
  if (text.includes("eval")) text = withoutSetUps(text);
  if (text.includes("$$")) text = text.replaceAll(PROCESS, (_, path: string) => `${path}0`);
  return text.includes("$(") ? withoutPrinted(text) : text;
}

/** The number of the shell in the name of something directly in the folder for temporary files. */
const PROCESS = /(?<![\w./-])(\/tmp\/[\w.-]{1,60})\$\$(?![[({$'"])/g;

/** A message as the value of an option. */
const MESSAGE = '"$(cat <<';
const OPTION = /\s(?:-a?m|--(?:message|body|title|notes)|-b)[ =]$/;
const NAME = /(['"])([A-Za-z_]\w{0,40})\1\n/y;
const END = /\s{0,9}\)"/y;
const TAKES_MESSAGE =
  /^(?:git (?:-C [\w./-]{1,200} )?(?:commit|tag|merge|notes)|(?:gh|glab) (?:pr|mr|issue|release) (?:create|edit|comment|note|update|close|merge|review))\s/;
const MAX_MESSAGES = 4;
function withoutMessages(given: string): string {
  const text = withFewerMessages(given);
  return text !== given && mayRunMessage(text) ? given : text;
}
/** Whether another command may run what git has kept of a message. */
function mayRunMessage(text: string): boolean {
  const mayFeed = /[|<>]/.test(text);
  const runs = (word: string): boolean => SHELLS.has(nameOf(word)) || word === "eval" || word === "source";
  const isFed = (word: string): boolean => mayFeed && (/^\.{1,2}\//.test(word) || runsAnother([word]));
  return /(?:^|[;&|(\n])\s{0,9}\.\s/.test(text) || text.split(/[\s;&|()<>`"']+/).some((word) => runs(word) || isFed(word));
}
function withFewerMessages(given: string): string {
  let text = given;
  for (let left = MAX_MESSAGES; left > 0; left--) {
    const at = text.indexOf(MESSAGE);
    NAME.lastIndex = at + MESSAGE.length;
    const name = at === -1 ? undefined : NAME.exec(text)?.[2];
    if (name === undefined || !OPTION.test(text.slice(Math.max(0, at - 20), at)) || !isMessageOf(text.slice(0, at))) return text;
    const from = NAME.lastIndex;
    const to = text.indexOf(`\n${name}\n`, from - 1);
    END.lastIndex = to + name.length + 2;
    if (to === -1 || !END.test(text) || !isReadByAll(text.slice(from, to))) return text;
    text = `${text.slice(0, at)}"message"${text.slice(END.lastIndex)}`;
  }
  return text;
}
/** These change nothing about where a quote ends. */
const WORD = /[~*]|\$\w{1,60}|\$\{\w{1,60}\}/g;
/** Whether what follows is an argument of a command that takes a message. */
function isMessageOf(before: string): boolean {
  const lines = before.split("\n").filter((line) => line.trim() !== "");
  const reads = lines.map((line, at) => readShell((at === lines.length - 1 ? `${line}x` : line).replaceAll(WORD, "x")));
  const last = reads.at(-1);
  if (last?.kind !== "plain" || !reads.every(({ kind }) => kind === "plain")) return false;
  return TAKES_MESSAGE.test(last.commands.at(-1)?.words.join(" ") ?? "");
}
/** Older shells look for the end of a substitution in here-documents too. */
const isReadByAll = (body: string): boolean => !/[()]/.test(body.replaceAll(/(?<!\\)\([^()'"`\\\n]{0,300}\)/g, ""));

/** Set up the shell that reads them. They stand before anything that could change what their names mean. */
const SET_UP =
  /^((?:\s*cd [\w./~-]{1,200}\s*(?:&&|;|\n))?\s*)eval (?:"\$\(((?:[^()"$`\\\n]){1,80})\)"|\$\(([^()"$`\\\n]{1,80})\))(?=\s*(?:$|&&|;|\n|\|\| ))/;
const SETS_UP = new RegExp(
  `^(?:${[
    "fnm env(?: --use-on-cd| --shell[ =](?:ba|z)sh){0,2}",
    "conda shell\\.(?:bash|zsh|posix) hook",
    "micromamba shell hook(?: -s (?:ba|z)sh)?",
    "(?:pyenv|rbenv|nodenv|goenv|jenv|phpenv) init (?:-|--path|- (?:ba|z)sh|- --no-rehash)",
    "pyenv virtualenv-init -",
    "ssh-agent(?: -s)?",
    "(?:\\/opt\\/homebrew\\/bin\\/|\\/usr\\/local\\/bin\\/|\\/home\\/linuxbrew\\/\\.linuxbrew\\/bin\\/)?brew shellenv",
    "direnv (?:export|hook) (?:ba|z)sh",
    "opam env",
    "mise (?:activate|env|hook-env)(?: (?:-s )?(?:ba|z)sh)?",
    "(?:zoxide|starship) init (?:ba|z)sh",
  ].join("|")})$`,
);
const MAX_SET_UPS = 5;
function withoutSetUps(given: string): string {
  let text = given;
  for (let left = MAX_SET_UPS; left > 0; left--) {
    const found = SET_UP.exec(text);
    if (found === null || !SETS_UP.test(found[2] ?? found[3] ?? "")) return text;
    text = `${found[1] ?? ""}true${text.slice(found[0].length)}`.replace(/^(\s*)true\s*(?:&&|;|\n)/, "$1");
  }
  return text;
}

const REVISION = String.raw`[A-Za-z][\w./@{}~^-]{0,80}`;
/** Print one folder. */
const FOLDER = /\$\((?:git rev-parse --show-toplevel|pwd|go env GOPATH|npm bin|npm root|npm prefix|yarn bin|brew --prefix)\)/g;
/** Print the name of one commit. A name that git does not know it prints as it is. */
const COMMIT = new RegExp(
  String.raw`\$\((?:git merge-base (?:--fork-point )?${REVISION} ${REVISION}|git rev-parse (?:--short )?HEAD(?:[~^]\d{0,3}){0,3}|git rev-list (?:-n ?1|-1|--max-count=1) ${REVISION})\)`,
  "g",
);
/** May change what such a command prints, or where it is run. A folder may have an option in its name. */
const CHANGES =
  /\(\)|(?:^|[\s;&|({])(?:function|alias|hash|enable|eval|source|\.|read)\s|(?<![\w${])(?:PATH|IFS)\b|(?<![\w$])(?:GOPATH|GOFLAGS|GOENV|GIT_\w{1,40}|HOMEBREW_\w{1,40}|npm_\w{1,40})=|BASH_|go env -w|\$'|\\\n|\s-delete\b|\b(?:cd|pushd|chdir)\s{1,9}[^\s;&|]{0,300}["'$*?[\\~{`]/;
function withoutPrinted(text: string): string {
  const made = text.replaceAll(FOLDER, "/printed").replaceAll(COMMIT, "HEAD");
  if (made === text || CHANGES.test(text) || CHANGES.test(withoutQuotes(text))) return text;
  // Where a move ends is read from the text as it is.
  return mayCopyOrMove(withoutQuotes(made).replaceAll(/\bgit\b/g, "")) ? text : made;
}
