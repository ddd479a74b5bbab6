/**
 * The commands of a text for a shell, with substitutions, groups and here-documents. PURE. It is made for a question about deletions (rule
 * PO13): it finds every place where a command begins, and whether the name there is written out. What it cannot follow it calls unknown.
 */

export interface ReadCommand {
  readonly words: readonly string[];
  /** The shell makes the name of the program out of a variable, a substitution or a pattern. */
  readonly isUnknown: boolean;
  /** Of each word: the shell may make an option of it. */
  readonly options: readonly boolean[];
}
export interface ReadCommands {
  /** Every construct was read as all shells read it. */
  readonly isCertain: boolean;
  readonly commands: readonly ReadCommand[];
  /** Texts that a command gets as its input: here-documents and here-strings. */
  readonly inputs: readonly string[];
}
interface Word {
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

/** Commands up to a character. `cases`: how many `case` are open. */
interface List {
  words: Word[];
  cases: number;
  readonly end: "" | ")" | "`";
}

const MAX_NESTED = 40;
/** Before a command. */
const KEYWORDS: ReadonlySet<string> = new Set(
  "if then else elif fi do done while until ! { } time coproc esac nocorrect noglob -p --".split(" "),
);
const ASSIGNMENT = /^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/;
/** Behind `time`: it is the program then. */
const HAS_OPTION = /^[ \t]+-(?!p?\s|-\s)/;
/** Behind `coproc`: the name of a group. */
const NAMED_GROUP = /^[ \t]+[A-Za-z_]\w*[ \t]+(?=[{(])/;
/** Variables that no one sets to a command, unless the text itself does. */
const FOLDERS: ReadonlySet<string> = new Set(["HOME", "PWD", "TMPDIR", "VIRTUAL_ENV", "CARGO_HOME", "GOPATH", "NVM_DIR"]);

/** An option whose name has an expansion, or braces that make an option. */
const MADE_OPTION = /^-[^=]*[$`*?[{]|^\{(?:[^}]*[{,])?-/;
/** The end of a here-document that all shells read in the same way. */
const PLAIN_END = /^[\w!.,:@%+-]+$/;

export const readCommands = (text: string): ReadCommands => new Reader(text).read();

class Reader {
  readonly #text: string;
  #at = 0;
  #nested = 0;
  #backticks = 0;
  #isCertain = true;
  readonly #commands: ReadCommand[] = [];
  readonly #inputs: string[] = [];
  #documents: { readonly end: string; readonly isIndented: boolean; readonly isQuoted: boolean }[] = [];

  readonly #folders: ReadonlySet<string>;

  constructor(text: string) {
    this.#text = text;
    this.#folders = new Set([...FOLDERS].filter((name) => !text.includes(`${name}=`)));
  }
  read(): ReadCommands {
    while (this.#at < this.#text.length) this.#list("");
    return { isCertain: this.#isCertain, commands: this.#commands, inputs: this.#inputs };
  }

  #peek(ahead = 0): string {
    return this.#text.charAt(this.#at + ahead);
  }
  #starts(text: string): boolean {
    return this.#text.startsWith(text, this.#at);
  }
  /** Commands up to the given character, which is read too. */
  #list(end: "" | ")" | "`"): void {
    this.#enter();
    if (end === "`") this.#backticks += 1;
    const list: List = { words: [], cases: 0, end };
    while (this.#at < this.#text.length) {
      const char = this.#peek();
      if (end !== "" && char === end) {
        this.#at += 1;
        break;
      }
      if (char === " " || char === "\t" || char === "\r") this.#at += 1;
      else if (this.#starts("\\\n")) this.#at += 2;
      else if (char === "\n") {
        this.#flush(list);
        this.#at += 1;
        this.#readDocuments();
      } else if (char === "#") this.#at = this.#endOf("\n");
      else if (this.#starts("&>")) {
        this.#at += 1;
        this.#redirection();
      } else if (char === ";" || char === "&" || char === "|") this.#operator(list);
      else if (char === "(" || char === ")") this.#group(list);
      else if ((char === "<" || char === ">") && this.#peek(1) !== "(") this.#redirection();
      else this.#addWord(list);
    }
    this.#flush(list);
    if (end === "`") this.#backticks -= 1;
    this.#nested -= 1;
  }
  #enter(): void {
    if (++this.#nested <= MAX_NESTED) return;
    this.#commands.push({ words: [], isUnknown: true, options: [] });
    this.#at = this.#text.length;
  }
  #flush(list: List): void {
    const [first] = list.words;
    if (first !== undefined)
      this.#commands.push({
        words: list.words.map(({ text }) => text),
        isUnknown: first.isUnknown,
        options: list.words.map(({ mayBeOption }) => mayBeOption),
      });
    list.words = [];
  }
  #operator(list: List): void {
    this.#flush(list);
    const isEndOfCase = list.cases > 0 && (this.#starts(";;") || this.#starts(";&"));
    this.#at += 1;
    if (!isEndOfCase) return;
    while (this.#peek() !== "" && ";&|".includes(this.#peek())) this.#at += 1;
    if (this.#pattern()) list.cases -= 1;
  }
  #group(list: List): void {
    if (this.#starts("((") && (list.words.length === 0 || list.words[0]?.text === "for") && this.#isCalculation()) {
      this.#at += 2;
      this.#calculation("))");
      return;
    }
    const isBegin = this.#peek() === "(";
    this.#at += 1;
    // The name of a function, or a group.
    if (isBegin && /^\s*\)/.test(this.#text.slice(this.#at, this.#at + 20))) {
      this.#at = this.#endOf(")") + 1;
      list.words = [];
      return;
    }
    this.#flush(list);
    if (isBegin) this.#list(")");
  }
  #addWord(list: List): void {
    const from = this.#at;
    const word = this.#word(list.end, list.words.length > 0);
    // A character that no word begins with.
    if (this.#at === from) this.#at += 1;
    if (/^\d+$/.test(word.text) && (this.#peek() === "<" || this.#peek() === ">")) return;
    if (list.words.length > 0 || (word.text === "time" && !word.isQuoted && HAS_OPTION.test(this.#text.slice(this.#at, this.#at + 20))))
      list.words.push(word);
    else if (word.isQuoted) {
      if (!ASSIGNMENT.test(this.#text.slice(from, this.#at))) list.words.push(word);
    } else if (word.text === "case") {
      this.#toIn();
      if (!this.#pattern()) list.cases += 1;
    } else if (word.text === "[[") this.#test();
    else if (word.text === "function") {
      while (this.#peek() === " ") this.#at += 1;
      this.#word(list.end);
    } else if (word.text === "coproc") this.#at += NAMED_GROUP.exec(this.#text.slice(this.#at, this.#at + 200))?.[0].length ?? 0;
    else if (word.text === "esac" && list.cases > 0) list.cases -= 1;
    else if (!KEYWORDS.has(word.text) && !ASSIGNMENT.test(word.text)) list.words.push(word);
  }
  #endOf(text: string): number {
    const at = this.#text.indexOf(text, this.#at);
    return at === -1 ? this.#text.length : at;
  }
  /** The text up to there, which has no words of a command, but the commands of its substitutions run. */
  #skip(to: number): void {
    while (this.#at < to) {
      const found = /\\|\$\((?!\()|`|[<>]\(/.exec(this.#text.slice(this.#at, to));
      if (found === null) break;
      const [opening] = found;
      this.#at += found.index + opening.length;
      if (opening === "\\") this.#at += 1;
      else this.#list(opening === "`" ? "`" : ")");
    }
    if (this.#at > to) this.#isCertain = false;
    this.#at = Math.max(this.#at, to);
  }
  /** A part of a text that is no word of a command. False: the character here has no meaning of its own. */
  #quotedPart(): boolean {
    const char = this.#peek();
    const isProcess = (char === "<" || char === ">") && this.#peek(1) === "(";
    if (isProcess) {
      this.#at += 2;
      this.#list(")");
    } else if (char !== "" && "'\"\\$`".includes(char)) this.#part(newWord(), char);
    else return false;
    return true;
  }
  /** A calculation up to its end, which is read too. */
  #calculation(end: "))" | "]"): void {
    const [opening, closing] = end === "]" ? ["[", "]"] : ["(", ")"];
    this.#enter();
    for (let open = 0; this.#at < this.#text.length; ) {
      if (open === 0 && this.#starts(end)) break;
      const char = this.#peek();
      // Shells disagree about quotes in here.
      if (char === "'" || char === '"') this.#isCertain = false;
      if (this.#quotedPart()) continue;
      if (char === opening) open += 1;
      else if (char === closing) open -= 1;
      this.#at += 1;
    }
    this.#at += end.length;
    this.#nested -= 1;
  }
  /** What is in `[[ ]]`. A shell without it reads a command. */
  #test(): void {
    while (this.#at < this.#text.length) {
      if (this.#starts("]]") && /^\s/.test(this.#text.charAt(this.#at - 1))) break;
      if (this.#quotedPart()) continue;
      const char = this.#peek();
      if (char === ";" || (char === "#" && /\s/.test(this.#text.charAt(this.#at - 1)))) this.#isCertain = false;
      this.#at += 1;
    }
    this.#at += 2;
  }
  /** Whether the `((` here begins a calculation. Else it is a group in a group. */
  #isCalculation(): boolean {
    let open = 0;
    for (const char of this.#text.slice(this.#at, this.#endOf("))"))) {
      if (char === "(") open += 1;
      else if (char === ")" && --open < 2) return false;
    }
    return true;
  }
  /** The word of a case, and `in`. */
  #toIn(): void {
    this.#blanks();
    this.#word("");
    this.#blanks();
    if (/^in\s/.test(this.#text.slice(this.#at, this.#at + 3))) this.#at += 2;
    else this.#isCertain = false;
  }
  #blanks(): void {
    while (/^\s/.test(this.#peek())) this.#at += 1;
  }
  /** The pattern of a case. True: there is none, the cases end. */
  #pattern(): boolean {
    this.#blanks();
    while (this.#peek() === "#") {
      this.#at = this.#endOf("\n");
      this.#blanks();
    }
    if (/^esac(?!\w)/.test(this.#text.slice(this.#at, this.#at + 5))) {
      this.#at += 4;
      return true;
    }
    if (this.#peek() === "(") this.#at += 1;
    for (let open = 0; this.#at < this.#text.length; ) {
      if (this.#quotedPart()) continue;
      const char = this.#peek();
      this.#at += 1;
      if (char === ")" && --open < 0) break;
      if (char === "(") open += 1;
      else if (char === "\n" || char === ";") this.#isCertain = false;
    }
    return false;
  }
  #redirection(): void {
    const operator = /^(?:<<<|<<-?|>>|[<>][&|>]?)/.exec(this.#text.slice(this.#at, this.#at + 3))?.[0] ?? "<";
    this.#at += operator.length;
    while (this.#peek() === " " || this.#peek() === "\t") this.#at += 1;
    const { text, isQuoted } = this.#word("");
    if (operator === "<<<") this.#inputs.push(text);
    else if (operator.startsWith("<<")) {
      this.#isCertain &&= PLAIN_END.test(text);
      this.#documents.push({ end: text, isIndented: operator.endsWith("-"), isQuoted });
    }
  }
  #readDocuments(): void {
    const documents = this.#documents;
    this.#documents = [];
    for (const { end, isIndented, isQuoted } of documents) {
      const from = this.#at;
      for (;;) {
        const to = this.#endOf("\n");
        const line = this.#text.slice(this.#at, to);
        const before = this.#at;
        this.#at = Math.min(to + 1, this.#text.length);
        if ((isIndented ? line.replace(/^\t+/, "") : line) === end || to === this.#text.length) {
          const body = this.#text.slice(from, to === this.#text.length && line !== end ? to : before);
          this.#inputs.push(body);
          if (!isQuoted) this.#skipDocument(from, from + body.length);
          break;
        }
      }
    }
  }
  /** The shell replaces what is in a here-document whose end has no quotes. */
  #skipDocument(from: number, to: number): void {
    const after = this.#at;
    this.#at = from;
    this.#skip(to);
    this.#at = Math.max(this.#at, after);
  }

  /** `isArgument`: a bracket behind `!` is a pattern there, and a group before a command. */
  #word(end: string, isArgument = false): Word {
    const made = newWord();
    while (this.#at < this.#text.length) {
      const char = this.#peek();
      if ((char === "<" || char === ">") && this.#peek(1) === "(" && made.text === "") {
        this.#at += 2;
        this.#list(")");
        made.text += "<()";
        this.#unknown(made, true);
      } else if (char === "(" && /^[A-Za-z_]\w*\+?=$/.test(made.text)) {
        // The list of an array.
        this.#at += 1;
        this.#array();
      } else if (char === "(" && (isArgument ? made.text !== "" : /[^!][?*+@!]$/.test(made.text))) this.#listOfPatterns(made);
      else if (char === end || /[\s;&|()<>]/.test(char)) break;
      else this.#part(made, char);
    }
    const { text, isQuoted, isLiteral, isCut, isOpen, madeTo } = made;
    const name = text.lastIndexOf("/");
    // A program in an unknown folder has its name all the same.
    const isUnknown = !isLiteral && (isCut || name < madeTo || name === -1);
    return { text, isQuoted, isUnknown, mayBeOption: isOpen || (!isLiteral && MADE_OPTION.test(text)) };
  }
  /** `!(a|b)`, or `(a|b)` behind other characters, of a shell that has such patterns. */
  #listOfPatterns(made: Making): void {
    this.#enter();
    this.#at += 1;
    while (this.#at < this.#text.length && this.#peek() !== ")") if (!this.#quotedPart()) this.#at += 1;
    this.#at += 1;
    this.#nested -= 1;
    this.#unknown(made, true);
    made.text += "*";
  }
  #unknown(made: Making, isCut: boolean): void {
    made.isLiteral = false;
    made.isCut ||= isCut;
  }
  /** One character of a word, or what is in quotes. */
  #part(made: Making, char: string): void {
    if (char === "'") {
      made.isQuoted = true;
      this.#at += 1;
      const to = this.#endOf("'");
      made.text += this.#text.slice(this.#at, to);
      this.#at = to + 1;
    } else if (char === '"') this.#doubleQuoted(made);
    else if (char === "\\") {
      const next = this.#peek(1);
      if (next !== "\n") {
        // An escaped character is no part of a keyword.
        made.isQuoted = true;
        made.text += next;
      }
      // In a substitution it begins another one.
      if (next === "`" && this.#backticks > 0) this.#isCertain = false;
      this.#at += 2;
    } else if (this.#starts("$'")) this.#escaped(made);
    else if (this.#starts('$"')) this.#at += 1;
    else if (char === "$" || char === "`") {
      const isFirst = made.text === "";
      this.#addExpansion(made, (text) => !this.#isFolder(text));
      made.isOpen ||= isFirst && made.isCut;
    } else {
      const rest = this.#text.slice(this.#at, this.#at + 200);
      const isTest = char === "[" && (made.text === "[" || /^\[{1,2}(?=\s|$)/.test(rest));
      if (("*?[".includes(char) && !isTest) || /^\{[^\s}]*(?:,|\.\.)/.test(rest)) this.#unknown(made, true);
      made.text += char;
      this.#at += 1;
    }
  }
  /** `$'...'`. Its escapes can spell any name. */
  #escaped(made: Making): void {
    made.isQuoted = true;
    this.#unknown(made, true);
    const from = this.#at + 2;
    let to = from;
    while (to < this.#text.length && this.#text.charAt(to) !== "'") to += this.#text.charAt(to) === "\\" ? 2 : 1;
    const text = this.#text.slice(from, to);
    made.text += text.includes("\\") ? `$${text}` : text;
    this.#at = to + 1;
  }
  #doubleQuoted(made: Making): void {
    made.isQuoted = true;
    this.#at += 1;
    while (this.#at < this.#text.length && this.#peek() !== '"') {
      const char = this.#peek();
      if (char === "$" || char === "`") this.#addExpansion(made, (text) => text.startsWith("${@") || text.includes("[@]"), true);
      else {
        const isEscape = char === "\\";
        if (isEscape && this.#peek(1) === "`" && this.#backticks > 0) this.#isCertain = false;
        made.text += isEscape ? this.#peek(1) : char;
        this.#at += isEscape ? 2 : 1;
      }
    }
    this.#at += 1;
  }
  #addExpansion(made: Making, isCut: (text: string) => boolean, isInQuotes = false): void {
    const { text, isOne } = this.#expansion(isInQuotes);
    made.text += text;
    if (!isOne) return;
    this.#unknown(made, isCut(text));
    made.madeTo = made.text.length;
  }
  #isFolder(text: string): boolean {
    const name = text.replace(/^\$\{|\}$/g, "");
    return this.#folders.has(name);
  }
  #array(): void {
    this.#enter();
    while (this.#at < this.#text.length && this.#peek() !== ")") {
      const from = this.#at;
      if (this.#peek() === "#") this.#at = this.#endOf("\n");
      else if (!/\s/.test(this.#peek())) this.#word("", true);
      if (this.#at === from) this.#at += 1;
    }
    this.#nested -= 1;
    this.#at += 1;
  }
  /** The rest of `${...}`. Shells disagree about a brace in it, and about a quote in quotes. */
  #braces(isInQuotes: boolean): void {
    this.#enter();
    while (this.#at < this.#text.length && this.#peek() !== "}") {
      const char = this.#peek();
      if (char === "{") this.#isCertain = false;
      if (isInQuotes && char === "'") {
        const end = this.#text.indexOf("'", this.#at + 1);
        if (end > this.#endOf("}")) this.#isCertain = false;
        this.#at += 1;
      } else if (isInQuotes && (char === "<" || char === ">")) this.#at += 1;
      else if (isInQuotes && this.#starts("$'")) this.#at += 1;
      else if (!this.#quotedPart()) this.#at += 1;
    }
    this.#at += 1;
    this.#nested -= 1;
  }
  /** What begins with `$` or a backtick. `isOne`: it is no mere character. */
  #expansion(isInQuotes: boolean): { readonly text: string; readonly isOne: boolean } {
    if (this.#peek() === "`") {
      this.#at += 1;
      this.#list("`");
      return { text: "$()", isOne: true };
    }
    if (this.#starts("$((") && this.#isCalculation()) {
      this.#at += 3;
      this.#calculation("))");
      return { text: "$()", isOne: true };
    }
    if (this.#starts("$[")) {
      // Not every shell calculates here.
      this.#isCertain = false;
      this.#at += 2;
      this.#calculation("]");
      return { text: "$()", isOne: true };
    }
    if (this.#starts("$(")) {
      this.#at += 2;
      this.#list(")");
      return { text: "$()", isOne: true };
    }
    if (this.#starts("${")) {
      const from = this.#at;
      this.#at += 2;
      this.#braces(isInQuotes);
      return { text: this.#text.slice(from, this.#at), isOne: true };
    }
    const name = /^\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])/.exec(this.#text.slice(this.#at, this.#at + 100))?.[0];
    this.#at += name?.length ?? 1;
    return name === undefined ? { text: "$", isOne: false } : { text: `\${${name.slice(1)}}`, isOne: true };
  }
}
