/**
 * The commands of a text for a shell, with substitutions, groups and here-documents. PURE. It is made for a question about deletions (rule
 * PO13): it finds every place where a command begins, and whether the name there is written out. What it cannot follow it calls unknown.
 */

export interface ReadCommand {
  readonly words: readonly string[];
  /** The shell makes the name of the program out of a variable, a substitution or a pattern. */
  readonly isUnknown: boolean;
}
export interface ReadCommands {
  readonly commands: readonly ReadCommand[];
  /** Texts that a command gets as its input: here-documents and here-strings. */
  readonly inputs: readonly string[];
}
interface Word {
  readonly text: string;
  readonly isQuoted: boolean;
  readonly isUnknown: boolean;
}

/** A word that is being read. `isCut`: a part of it may become several words. `madeTo`: where the last part ends that the shell makes. */
interface Making {
  text: string;
  isQuoted: boolean;
  isLiteral: boolean;
  isCut: boolean;
  madeTo: number;
}

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
/** Variables that no one sets to a command, unless the text itself does. */
const FOLDERS: ReadonlySet<string> = new Set(["HOME", "PWD", "TMPDIR", "VIRTUAL_ENV", "CARGO_HOME", "GOPATH", "NVM_DIR"]);

export const readCommands = (text: string): ReadCommands => new Reader(text).read();

class Reader {
  readonly #text: string;
  #at = 0;
  #nested = 0;
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
    return { commands: this.#commands, inputs: this.#inputs };
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
    this.#nested -= 1;
  }
  #enter(): void {
    if (++this.#nested <= MAX_NESTED) return;
    this.#commands.push({ words: [], isUnknown: true });
    this.#at = this.#text.length;
  }
  #flush(list: List): void {
    const [first] = list.words;
    if (first !== undefined) this.#commands.push({ words: list.words.map(({ text }) => text), isUnknown: first.isUnknown });
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
      this.#skip(this.#endOf("))") + 2);
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
    const word = this.#word(list.end);
    // A character that no word begins with.
    if (this.#at === from) this.#at += 1;
    if (/^\d+$/.test(word.text) && (this.#peek() === "<" || this.#peek() === ">")) return;
    if (list.words.length > 0) list.words.push(word);
    else if (word.isQuoted) {
      if (!ASSIGNMENT.test(this.#text.slice(from, this.#at))) list.words.push(word);
    } else if (word.text === "case") {
      this.#skip(this.#afterIn());
      if (!this.#pattern()) list.cases += 1;
    } else if (word.text === "[[") this.#skip(this.#endOf("]]") + 2);
    else if (word.text === "function") {
      while (this.#peek() === " ") this.#at += 1;
      this.#word(list.end);
    } else if (word.text === "esac" && list.cases > 0) list.cases -= 1;
    else if (!KEYWORDS.has(word.text) && !ASSIGNMENT.test(word.text)) list.words.push(word);
  }
  #endOf(text: string): number {
    const at = this.#text.indexOf(text, this.#at);
    return at === -1 ? this.#text.length : at;
  }
  /** Goes on there. What is in between has no words of a command, but the commands of its substitutions run. */
  #skip(to: number): void {
    for (;;) {
      const found = /\$\((?!\()|`|[<>]\(/.exec(this.#text.slice(this.#at, to));
      if (found === null) break;
      const [opening] = found;
      this.#at += found.index + opening.length;
      this.#list(opening === "`" ? "`" : ")");
    }
    this.#at = Math.max(this.#at, to);
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
  #afterIn(): number {
    const found = /\sin\s/g;
    found.lastIndex = this.#at;
    return found.exec(this.#text) === null ? this.#text.length : found.lastIndex;
  }
  /** The pattern of a case. True: there is none, the cases end. */
  #pattern(): boolean {
    while (/\s/.test(this.#peek())) this.#at += 1;
    if (/^esac\b/.test(this.#text.slice(this.#at, this.#at + 5))) {
      this.#at += 4;
      return true;
    }
    this.#skip(this.#endOf(")") + 1);
    return false;
  }
  #redirection(): void {
    const operator = /^(?:<<<|<<-?|>>|[<>][&|>]?)/.exec(this.#text.slice(this.#at, this.#at + 3))?.[0] ?? "<";
    this.#at += operator.length;
    while (this.#peek() === " " || this.#peek() === "\t") this.#at += 1;
    const { text, isQuoted } = this.#word("");
    if (operator === "<<<") this.#inputs.push(text);
    else if (operator.startsWith("<<")) this.#documents.push({ end: text, isIndented: operator.endsWith("-"), isQuoted });
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

  #word(end: string): Word {
    const made: Making = { text: "", isQuoted: false, isLiteral: true, isCut: false, madeTo: 0 };
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
      } else if (char === end || /[\s;&|()<>]/.test(char)) break;
      else this.#part(made, char);
    }
    const { text, isQuoted, isLiteral, isCut, madeTo } = made;
    const name = text.lastIndexOf("/");
    // A program in an unknown folder has its name all the same.
    return { text, isQuoted, isUnknown: !isLiteral && (isCut || name < madeTo || name === -1) };
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
      if (this.#peek(1) !== "\n") made.text += this.#peek(1);
      this.#at += 2;
    } else if (char === "$" && (this.#peek(1) === "'" || this.#peek(1) === '"')) {
      // Its escapes can spell any name.
      if (this.#peek(1) === "'") this.#unknown(made, true);
      this.#at += 1;
    } else if (char === "$" || char === "`") this.#addExpansion(made, (text) => !this.#isFolder(text));
    else {
      const rest = this.#text.slice(this.#at, this.#at + 200);
      const isTest = char === "[" && (made.text === "[" || /^\[{1,2}(?=\s|$)/.test(rest));
      if (("*?[".includes(char) && !isTest) || /^\{[^\s}]*(?:,|\.\.)/.test(rest)) this.#unknown(made, true);
      made.text += char;
      this.#at += 1;
    }
  }
  #doubleQuoted(made: Making): void {
    made.isQuoted = true;
    this.#at += 1;
    while (this.#at < this.#text.length && this.#peek() !== '"') {
      const char = this.#peek();
      if (char === "$" || char === "`") this.#addExpansion(made, (text) => text.startsWith("${@") || text.includes("[@]"));
      else {
        const isEscape = char === "\\";
        made.text += isEscape ? this.#peek(1) : char;
        this.#at += isEscape ? 2 : 1;
      }
    }
    this.#at += 1;
  }
  #addExpansion(made: Making, isCut: (text: string) => boolean): void {
    const { text, isOne } = this.#expansion();
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
      if (!/\s/.test(this.#peek())) this.#word("");
      if (this.#at === from) this.#at += 1;
    }
    this.#nested -= 1;
    this.#at += 1;
  }
  /** What begins with `$` or a backtick. `isOne`: it is no mere character. */
  #expansion(): { readonly text: string; readonly isOne: boolean } {
    if (this.#peek() === "`") {
      this.#at += 1;
      this.#list("`");
      return { text: "$()", isOne: true };
    }
    if (this.#starts("$((") && this.#isCalculation()) {
      this.#skip(this.#endOf("))") + 2);
      return { text: "$()", isOne: true };
    }
    if (this.#starts("$(")) {
      this.#at += 2;
      this.#list(")");
      return { text: "$()", isOne: true };
    }
    if (this.#starts("${")) {
      const from = this.#at;
      let open = 0;
      let to = from;
      for (; to < this.#text.length; to++) {
        const char = this.#text.charAt(to);
        if (char === "{") open += 1;
        else if (char === "}" && --open === 0) break;
      }
      this.#at += 2;
      this.#skip(to + 1);
      return { text: this.#text.slice(from, this.#at), isOne: true };
    }
    const name = /^\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])/.exec(this.#text.slice(this.#at, this.#at + 100))?.[0];
    this.#at += name?.length ?? 1;
    return name === undefined ? { text: "$", isOne: false } : { text: `\${${name.slice(1)}}`, isOne: true };
  }
}
