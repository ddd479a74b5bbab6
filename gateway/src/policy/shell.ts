/**
 * A conservative reader of shell commands. PURE. It understands plain words, quotes without expansion, `&& || ; |` between simple commands,
 * and redirections to /dev/null, and gives the argument vectors that every common shell (sh, bash, zsh, fish) would run. All other text is
 * `complex`: no rule allows it. crates/gsv-tools/src/shell.rs does the same; both are tested with test/tables/shell-cases.jsonl.
 */

/** Why a text is complex. Codes, because both readers must agree on them. */
export type Complexity =
  | "empty"
  | "too_long"
  | "too_many"
  | "control"
  | "newline"
  | "unicode"
  | "expansion"
  | "escape"
  | "quote"
  | "glob"
  | "tilde"
  | "history"
  | "comment"
  | "group"
  | "redirection"
  | "background"
  | "operator"
  | "assignment"
  | "keyword"
  | "builtin"
  | "character";

export interface SimpleCommand {
  readonly words: readonly string[];
  /** Where the command is in the text. */
  readonly start: number;
  readonly end: number;
}
export type ShellText =
  | { readonly kind: "plain"; readonly commands: readonly SimpleCommand[] }
  | { readonly kind: "complex"; readonly why: Complexity };

const MAX_CHARS = 16_384;
/** More commands than a person would read before answering a question. */
const MAX_COMMANDS = 20;

/** Words that change how the shell reads what follows. */
const KEYWORDS: ReadonlySet<string> = new Set(
  (
    "if then else elif fi case esac for foreach select while until repeat do done in function time coproc end begin switch and or not " +
    "nocorrect noglob namespace"
  ).split(" "),
);
/** Commands of the shell that run their arguments, or that change what later commands mean. */
const BUILTINS: ReadonlySet<string> = new Set(
  (
    ". source eval exec command builtin alias unalias trap set unset shopt setopt unsetopt emulate enable disable hash rehash declare typeset local " +
    "export readonly let read mapfile readarray history fc bind complete compgen compopt abbr functions autoload zmodload sched vared getopts " +
    "ulimit umask wait"
  ).split(" "),
);
const PLAIN = /[A-Za-z0-9_./,:+@%=-]+/y;
const WHY: Readonly<Record<string, Complexity>> = {
  $: "expansion",
  "`": "expansion",
  "\\": "escape",
  "*": "glob",
  "?": "glob",
  "[": "glob",
  "]": "glob",
  "~": "tilde",
  "!": "history",
  "^": "history",
  "#": "comment",
  "(": "group",
  ")": "group",
  "{": "group",
  "}": "group",
};
const DEV_NULL = "/dev/null";

/** Why a character outside quotes makes a text complex: it is invisible, or looks like another one. */
function hiddenIn(code: number): Complexity | undefined {
  if (code === 0x0a) return "newline";
  if ((code < 0x20 && code !== 0x09) || code === 0x7f) return "control";
  return code >= 0x80 ? "unicode" : undefined;
}
/** Ranges of code points that show nothing, or that change how their neighbours are shown. Others from U+00A1 on may stand in quotes. */
const INVISIBLE: readonly (readonly [from: number, to: number])[] = [
  [0x7f, 0xa0],
  [0xad, 0xad],
  [0x300, 0x36f],
  [0x600, 0x605],
  [0x61c, 0x61c],
  [0x6dd, 0x6dd],
  [0x70f, 0x70f],
  [0x8e2, 0x8e2],
  [0x115f, 0x1160],
  [0x1680, 0x1680],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x2000, 0x200f],
  [0x2028, 0x202f],
  [0x205f, 0x206f],
  [0x2800, 0x2800],
  [0x3000, 0x3000],
  [0x3164, 0x3164],
  [0xd800, 0xf8ff],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0x10ffff],
];
const isInvisible = (code: number): boolean => INVISIBLE.some(([from, to]) => code >= from && code <= to);

class Complex {
  readonly why: Complexity;
  constructor(why: Complexity) {
    this.why = why;
  }
}

/** The last answer: rules, the mode and grants read the same command. */
let last: { readonly text: string; readonly read: ShellText } | undefined;
export function readShell(text: string): ShellText {
  if (text.length > MAX_CHARS) return { kind: "complex", why: "too_long" };
  if (last?.text === text) return last.read;
  const found = new Reader(text).read();
  const read: ShellText = found instanceof Complex ? { kind: "complex", why: found.why } : { kind: "plain", commands: found };
  last = { text, read };
  return read;
}

class Reader {
  readonly #text: string;
  #at = 0;
  readonly #commands: SimpleCommand[] = [];
  #words: string[] = [];
  #start = 0;
  #end = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): readonly SimpleCommand[] | Complex {
    // `;` may be the last character; after `&&`, `||` and `|` a command must follow.
    let mustFollow = true;
    for (;;) {
      this.#skipBlanks();
      if (this.#at >= this.#text.length) break;
      const char = this.#peek();
      if (char === ";" || char === "&" || char === "|") {
        const operator = this.#operator();
        if (operator instanceof Complex) return operator;
        const ended = this.#endCommand();
        if (ended !== undefined) return ended;
        mustFollow = operator !== ";";
      } else {
        const problem = char === ">" || char === "<" ? this.#redirection() : this.#word();
        if (problem !== undefined) return problem;
        mustFollow = false;
      }
    }
    if (this.#words.length > 0) {
      const ended = this.#endCommand();
      if (ended !== undefined) return ended;
    } else if (mustFollow) return new Complex(this.#commands.length === 0 ? "empty" : "operator");
    return this.#commands;
  }

  #peek(ahead = 0): string {
    return this.#text.charAt(this.#at + ahead);
  }
  #skipBlanks(): void {
    while (this.#peek() === " " || this.#peek() === "\t") this.#at++;
  }
  /** `joined`: a further command must follow. */
  #operator(): ";" | "joined" | Complex {
    const [first, second, third] = [this.#peek(), this.#peek(1), this.#peek(2)];
    if (first === ";") {
      if (second === ";" || second === "&") return new Complex("operator");
      this.#at += 1;
      return ";";
    }
    if (first === second) {
      if (third === "&" || third === "|" || third === ">") return new Complex("operator");
      this.#at += 2;
      return "joined";
    }
    if (first === "&") return new Complex(second === ">" ? "redirection" : "background");
    if (second === "&") return new Complex("redirection");
    this.#at += 1;
    return "joined";
  }
  #endCommand(): Complex | undefined {
    const [name] = this.#words;
    if (name === undefined) return new Complex("operator");
    if (this.#commands.length === MAX_COMMANDS) return new Complex("too_many");
    this.#commands.push({ words: this.#words, start: this.#start, end: this.#end });
    this.#words = [];
    this.#start = this.#end = this.#at;
    return undefined;
  }
  /** Whether a word or a redirection ends here. */
  #isBorder(): boolean {
    // At the end it is the empty text, which every text includes.
    return " \t;&|".includes(this.#peek());
  }
  /** `>/dev/null`, `< /dev/null`, `2>&1`; `digit` before it was read. */
  #redirection(descriptor = ""): Complex | undefined {
    if (this.#words.length === 0) return new Complex("redirection");
    const isInput = this.#peek() === "<";
    this.#at += 1;
    if (isInput && descriptor !== "") return new Complex("redirection");
    if (!isInput && this.#peek() === "&") {
      if (descriptor === "" || !"12".includes(this.#peek(1)) || this.#peek(1) === "") return new Complex("redirection");
      this.#at += 2;
    } else {
      this.#skipBlanks();
      if (!this.#text.startsWith(DEV_NULL, this.#at)) return new Complex("redirection");
      this.#at += DEV_NULL.length;
    }
    if (!this.#isBorder()) return new Complex("redirection");
    this.#end = this.#at;
    return undefined;
  }
  #word(): Complex | undefined {
    const start = this.#at;
    const isFirst = this.#words.length === 0;
    let word = "";
    while (!this.#isBorder()) {
      const char = this.#peek();
      if (char === ">" || char === "<") {
        const before = this.#text.slice(start, this.#at);
        if (before === "1" || before === "2") return this.#redirection(before);
        if (/^[0-9]+$/.test(before)) return new Complex("redirection");
        break;
      }
      if (char === "'" || char === '"') {
        const quoted = this.#quoted(char);
        if (quoted instanceof Complex) return quoted;
        word += quoted.text;
        continue;
      }
      PLAIN.lastIndex = this.#at;
      const [plain] = PLAIN.exec(this.#text) ?? [];
      if (plain === undefined) return new Complex(WHY[char] ?? hiddenIn(char.charCodeAt(0)) ?? "character");
      // zsh reads `=name` as the path of a program.
      if (char === "=" && this.#at === start) return new Complex("expansion");
      word += plain;
      this.#at += plain.length;
    }
    if (isFirst) {
      const problem = nameProblem(word);
      if (problem !== undefined) return new Complex(problem);
      this.#start = start;
    }
    this.#words.push(word);
    this.#end = this.#at;
    return undefined;
  }
  #quoted(quote: string): { readonly text: string } | Complex {
    const end = this.#text.indexOf(quote, this.#at + 1);
    if (end === -1) return new Complex("quote");
    const text = this.#text.slice(this.#at + 1, end);
    for (const char of text) {
      const code = char.codePointAt(0) ?? 0;
      // In fish a backslash means something in single quotes too.
      if (char === "\\") return new Complex("escape");
      if (quote === '"' && (char === "$" || char === "`")) return new Complex("expansion");
      if (quote === '"' && char === "!") return new Complex("history");
      const hidden = hiddenIn(code);
      if (hidden === "control" || (hidden === "unicode" && isInvisible(code))) return new Complex(hidden);
    }
    this.#at = end + 1;
    return { text };
  }
}

/** What makes the first word something else than the name of a program. */
function nameProblem(name: string): Complexity | undefined {
  if (name === "") return "empty";
  if (name.includes("=")) return "assignment";
  // `%1` continues a job.
  if (name.startsWith("%") || name.startsWith("-") || name.startsWith("+")) return "character";
  if (KEYWORDS.has(name)) return "keyword";
  return BUILTINS.has(name) ? "builtin" : undefined;
}
