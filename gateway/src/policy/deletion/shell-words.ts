/**
 * The words of a text for a shell, with quotes, expansions and calculations (rule PO13). PURE. The commands of substitutions are read by the
 * reader of commands (command-words.ts), which extends this one.
 */

export interface ReadCommand {
  readonly words: readonly string[];
  /** The shell makes the name of the program out of a variable, a substitution or a pattern. */
  readonly isUnknown: boolean;
  /** For each word: whether the shell may make an option of it. */
  readonly options: readonly boolean[];
}
export interface Word {
  readonly text: string;
  readonly isQuoted: boolean;
  readonly isUnknown: boolean;
  readonly mayBeOption: boolean;
}

/**
 * A word that is being read. `isCut`: a part of it may become several words. `madeTo`: where the last part ends that the shell makes.
 * `isOpen`: an expansion without quotes is at its front.
 */
interface Making {
  text: string;
  isQuoted: boolean;
  isLiteral: boolean;
  isCut: boolean;
  isOpen: boolean;
  madeTo: number;
}
const newWord = (): Making => ({ text: "", isQuoted: false, isLiteral: true, isCut: false, isOpen: false, madeTo: 0 });

const MAX_NESTED = 40;
/** Variables that no one sets to a command, unless the text itself does. */
const FOLDERS: ReadonlySet<string> = new Set(["HOME", "PWD", "TMPDIR", "VIRTUAL_ENV", "CARGO_HOME", "GOPATH", "NVM_DIR"]);

/** An option whose name has an expansion, or braces that make an option. */
const MADE_OPTION = /^-[^=]*[$`*?[{]|^\{(?:[^}]*[{,])?-/;
export abstract class WordReader {
  protected readonly text: string;
  protected at = 0;
  protected nested = 0;
  protected backticks = 0;
  protected isCertain = true;
  protected readonly commands: ReadCommand[] = [];

  private readonly folders: ReadonlySet<string>;

  constructor(text: string) {
    this.text = text;
    this.folders = new Set([...FOLDERS].filter((name) => !text.includes(`${name}=`)));
  }
  /** Commands up to the given character, which is read too. */
  protected abstract list(end: "" | ")" | "`"): void;

  protected peek(ahead = 0): string {
    return this.text.charAt(this.at + ahead);
  }
  protected starts(text: string): boolean {
    return this.text.startsWith(text, this.at);
  }
  protected enter(): void {
    if (++this.nested <= MAX_NESTED) return;
    this.commands.push({ words: [], isUnknown: true, options: [] });
    this.at = this.text.length;
  }
  protected endOf(text: string): number {
    const at = this.text.indexOf(text, this.at);
    return at === -1 ? this.text.length : at;
  }
  /** The text up to there, which has no words of a command, but the commands of its substitutions run. */
  protected skip(to: number): void {
    while (this.at < to) {
      const found = /\\|\$\((?!\()|`|[<>]\(/.exec(this.text.slice(this.at, to));
      if (found === null) break;
      const [opening] = found;
      this.at += found.index + opening.length;
      if (opening === "\\") this.at += 1;
      else this.list(opening === "`" ? "`" : ")");
    }
    if (this.at > to) this.isCertain = false;
    this.at = Math.max(this.at, to);
  }
  /** A part of a text that is no word of a command. False: the character here has no meaning of its own. */
  protected quotedPart(): boolean {
    const char = this.peek();
    const isProcess = (char === "<" || char === ">") && this.peek(1) === "(";
    if (isProcess) {
      this.at += 2;
      this.list(")");
    } else if (char !== "" && "'\"\\$`".includes(char)) this.part(newWord(), char);
    else return false;
    return true;
  }
  /** A calculation up to its end, which is read too. */
  protected calculation(end: "))" | "]"): void {
    const [opening, closing] = end === "]" ? ["[", "]"] : ["(", ")"];
    this.enter();
    for (let open = 0; this.at < this.text.length; ) {
      if (open === 0 && this.starts(end)) break;
      const char = this.peek();
      // Shells disagree about quotes in here.
      if (char === "'" || char === '"') this.isCertain = false;
      if (this.quotedPart()) continue;
      if (char === opening) open += 1;
      else if (char === closing) open -= 1;
      this.at += 1;
    }
    this.at += end.length;
    this.nested -= 1;
  }
  /** Whether the `((` here begins a calculation. Else it is a group in a group. */
  protected isCalculation(): boolean {
    let open = 0;
    for (const char of this.text.slice(this.at, this.endOf("))"))) {
      if (char === "(") open += 1;
      else if (char === ")" && --open < 2) return false;
    }
    return true;
  }
  protected blanks(): void {
    while (/^\s/.test(this.peek())) this.at += 1;
  }
  /** `isArgument`: a bracket behind `!` is a pattern there, and a group before a command. */
  protected word(end: string, isArgument = false): Word {
    const made = newWord();
    while (this.at < this.text.length) {
      const char = this.peek();
      if ((char === "<" || char === ">") && this.peek(1) === "(" && made.text === "") {
        this.at += 2;
        this.list(")");
        made.text += "<()";
        this.unknown(made, true);
      } else if (char === "(" && /^[A-Za-z_]\w*\+?=$/.test(made.text)) {
        // The list of an array.
        this.at += 1;
        this.array();
      } else if (char === "(" && (isArgument ? made.text !== "" : /[^!][?*+@!]$/.test(made.text))) this.listOfPatterns(made);
      else if (char === end || /[\s;&|()<>]/.test(char)) break;
      else this.part(made, char);
    }
    const { text, isQuoted, isLiteral, isCut, isOpen, madeTo } = made;
    const name = text.lastIndexOf("/");
    // A program in an unknown folder has its name all the same.
    const isUnknown = !isLiteral && (isCut || name < madeTo || name === -1);
    return { text, isQuoted, isUnknown, mayBeOption: isOpen || (!isLiteral && MADE_OPTION.test(text)) };
  }
  /** `!(a|b)`, or `(a|b)` behind other characters, of a shell that has such patterns. */
  protected listOfPatterns(made: Making): void {
    this.enter();
    this.at += 1;
    while (this.at < this.text.length && this.peek() !== ")") if (!this.quotedPart()) this.at += 1;
    this.at += 1;
    this.nested -= 1;
    this.unknown(made, true);
    made.text += "*";
  }
  protected unknown(made: Making, isCut: boolean): void {
    made.isLiteral = false;
    made.isCut ||= isCut;
  }
  /** One character of a word, or what is in quotes. */
  protected part(made: Making, char: string): void {
    if (char === "'") {
      made.isQuoted = true;
      this.at += 1;
      const to = this.endOf("'");
      made.text += this.text.slice(this.at, to);
      this.at = to + 1;
    } else if (char === '"') this.doubleQuoted(made);
    else if (char === "\\") {
      const next = this.peek(1);
      if (next !== "\n") {
        // An escaped character is no part of a keyword.
        made.isQuoted = true;
        made.text += next;
      }
      // In a substitution it begins another one.
      if (next === "`" && this.backticks > 0) this.isCertain = false;
      this.at += 2;
    } else if (this.starts("$'")) this.escaped(made);
    else if (this.starts('$"')) this.at += 1;
    else if (char === "$" || char === "`") {
      const isFirst = made.text === "";
      this.addExpansion(made, (text) => !this.isFolder(text));
      made.isOpen ||= isFirst && made.isCut;
    } else {
      const rest = this.text.slice(this.at, this.at + 200);
      const isTest = char === "[" && (made.text === "[" || /^\[{1,2}(?=\s|$)/.test(rest));
      if (("*?[".includes(char) && !isTest) || /^\{[^\s}]*(?:,|\.\.)/.test(rest)) this.unknown(made, true);
      made.text += char;
      this.at += 1;
    }
  }
  /** `$'...'`. Its escapes can spell any name. */
  protected escaped(made: Making): void {
    made.isQuoted = true;
    this.unknown(made, true);
    const from = this.at + 2;
    let to = from;
    while (to < this.text.length && this.text.charAt(to) !== "'") to += this.text.charAt(to) === "\\" ? 2 : 1;
    const text = this.text.slice(from, to);
    made.text += text.includes("\\") ? `$${text}` : text;
    this.at = to + 1;
  }
  protected doubleQuoted(made: Making): void {
    made.isQuoted = true;
    this.at += 1;
    while (this.at < this.text.length && this.peek() !== '"') {
      const char = this.peek();
      if (char === "$" || char === "`") this.addExpansion(made, (text) => text.startsWith("${@") || text.includes("[@]"), true);
      else {
        const isEscape = char === "\\";
        const next = isEscape ? this.peek(1) : "";
        if (next === "`" && this.backticks > 0) this.isCertain = false;
        // `\n` is for the program, which makes a line end of it.
        made.text += !isEscape || /\w/.test(next) ? char + next : next;
        this.at += isEscape ? 2 : 1;
      }
    }
    this.at += 1;
  }
  protected addExpansion(made: Making, isCut: (text: string) => boolean, isInQuotes = false): void {
    const { text, isOne } = this.expansion(isInQuotes);
    made.text += text;
    if (!isOne) return;
    this.unknown(made, isCut(text));
    made.madeTo = made.text.length;
  }
  protected isFolder(text: string): boolean {
    const name = text.replace(/^\$\{|\}$/g, "");
    return this.folders.has(name);
  }
  protected array(): void {
    this.enter();
    while (this.at < this.text.length && this.peek() !== ")") {
      const from = this.at;
      if (this.peek() === "#") this.at = this.endOf("\n");
      else if (!/\s/.test(this.peek())) this.word("", true);
      if (this.at === from) this.at += 1;
    }
    this.nested -= 1;
    this.at += 1;
  }
  /** The rest of `${...}`. Shells disagree about a brace in it, and about a quote in quotes. */
  protected braces(isInQuotes: boolean): void {
    this.enter();
    while (this.at < this.text.length && this.peek() !== "}") {
      const char = this.peek();
      if (char === "{") this.isCertain = false;
      if (isInQuotes && char === "'") {
        const end = this.text.indexOf("'", this.at + 1);
        if (end > this.endOf("}")) this.isCertain = false;
        this.at += 1;
      } else if (isInQuotes && (char === "<" || char === ">")) this.at += 1;
      else if (isInQuotes && this.starts("$'")) this.at += 1;
      else if (!this.quotedPart()) this.at += 1;
    }
    this.at += 1;
    this.nested -= 1;
  }
  /** What begins with `$` or a backtick. `isOne`: it is no mere character. */
  protected expansion(isInQuotes: boolean): { readonly text: string; readonly isOne: boolean } {
    if (this.peek() === "`") {
      this.at += 1;
      this.list("`");
      return { text: "$()", isOne: true };
    }
    if (this.starts("$((") && this.isCalculation()) {
      this.at += 3;
      this.calculation("))");
      return { text: "$()", isOne: true };
    }
    if (this.starts("$[")) {
      // Not every shell calculates here.
      this.isCertain = false;
      this.at += 2;
      this.calculation("]");
      return { text: "$()", isOne: true };
    }
    if (this.starts("$(")) {
      this.at += 2;
      this.list(")");
      return { text: "$()", isOne: true };
    }
    if (this.starts("${")) {
      const from = this.at;
      this.at += 2;
      this.braces(isInQuotes);
      return { text: this.text.slice(from, this.at), isOne: true };
    }
    const name = /^\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])/.exec(this.text.slice(this.at, this.at + 100))?.[0];
    this.at += name?.length ?? 1;
    return name === undefined ? { text: "$", isOne: false } : { text: `\${${name.slice(1)}}`, isOne: true };
  }
}
