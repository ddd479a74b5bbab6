/**
 * The commands of a text for a shell, with substitutions, groups and here-documents. PURE. It is made for a question about deletions (rule
 * PO13): it finds every place where a command begins, and whether the name there is written out. What it cannot follow it calls unknown.
 */

import { type ReadCommand, type Word, WordReader } from "./shell-words.ts";

export type { ReadCommand };
export interface ReadCommands {
  /** Every construct was read as all shells read it. */
  readonly isCertain: boolean;
  readonly commands: readonly ReadCommand[];
  /** Texts that a command gets as its input: here-documents and here-strings. */
  readonly inputs: readonly string[];
}
/** Commands up to a character. `cases`: how many `case` are open. */
interface List {
  words: Word[];
  cases: number;
  readonly end: "" | ")" | "`";
}

/** Before a command. */
const KEYWORDS: ReadonlySet<string> = new Set(
  "if then else elif fi do done while until ! { } time coproc esac nocorrect noglob -p --".split(" "),
);
const ASSIGNMENT = /^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/;
/** Behind `time`: it is the program then. */
const HAS_OPTION = /^[ \t]+-(?!p?\s|-\s)/;
/** Behind `coproc`: the name of a group. */
const NAMED_GROUP = /^[ \t]+[A-Za-z_]\w*[ \t]+(?=[{(])/;
/** The end of a here-document that all shells read in the same way. */
const PLAIN_END = /^[\w!.,:@%+-]+$/;

export const readCommands = (text: string): ReadCommands => new Reader(text).read();

class Reader extends WordReader {
  private readonly inputs: string[] = [];
  private documents: { readonly end: string; readonly isIndented: boolean; readonly isQuoted: boolean }[] = [];

  read(): ReadCommands {
    while (this.at < this.text.length) this.list("");
    return { isCertain: this.isCertain, commands: this.commands, inputs: this.inputs };
  }
  /** Commands up to the given character, which is read too. */
  protected override list(end: "" | ")" | "`"): void {
    this.enter();
    if (end === "`") this.backticks += 1;
    const list: List = { words: [], cases: 0, end };
    while (this.at < this.text.length) {
      const char = this.peek();
      if (end !== "" && char === end) {
        this.at += 1;
        break;
      }
      if (char === " " || char === "\t" || char === "\r") this.at += 1;
      else if (this.starts("\\\n")) this.at += 2;
      else if (char === "\n") {
        this.flush(list);
        this.at += 1;
        this.readDocuments();
      } else if (char === "#") this.at = this.endOf("\n");
      else if (this.starts("&>")) {
        this.at += 1;
        this.redirection();
      } else if (char === ";" || char === "&" || char === "|") this.operator(list);
      else if (char === "(" || char === ")") this.group(list);
      else if ((char === "<" || char === ">") && this.peek(1) !== "(") this.redirection();
      else this.addWord(list);
    }
    this.flush(list);
    if (end === "`") this.backticks -= 1;
    this.nested -= 1;
  }
  private flush(list: List): void {
    const [first] = list.words;
    if (first !== undefined)
      this.commands.push({
        words: list.words.map(({ text }) => text),
        isUnknown: first.isUnknown,
        options: list.words.map(({ mayBeOption }) => mayBeOption),
      });
    list.words = [];
  }
  private operator(list: List): void {
    this.flush(list);
    const isEndOfCase = list.cases > 0 && (this.starts(";;") || this.starts(";&"));
    this.at += 1;
    if (!isEndOfCase) return;
    while (this.peek() !== "" && ";&|".includes(this.peek())) this.at += 1;
    if (this.pattern()) list.cases -= 1;
  }
  private group(list: List): void {
    if (this.starts("((") && (list.words.length === 0 || list.words[0]?.text === "for") && this.isCalculation()) {
      this.at += 2;
      this.calculation("))");
      return;
    }
    const isBegin = this.peek() === "(";
    this.at += 1;
    // The name of a function, or a group.
    if (isBegin && /^\s*\)/.test(this.text.slice(this.at, this.at + 20))) {
      this.at = this.endOf(")") + 1;
      list.words = [];
      return;
    }
    this.flush(list);
    if (isBegin) this.list(")");
  }
  private addWord(list: List): void {
    const from = this.at;
    const word = this.word(list.end, list.words.length > 0);
    // A character that no word begins with.
    if (this.at === from) this.at += 1;
    if (/^\d+$/.test(word.text) && (this.peek() === "<" || this.peek() === ">")) return;
    if (list.words.length > 0 || (word.text === "time" && !word.isQuoted && HAS_OPTION.test(this.text.slice(this.at, this.at + 20))))
      list.words.push(word);
    else if (word.isQuoted) {
      if (!ASSIGNMENT.test(this.text.slice(from, this.at))) list.words.push(word);
    } else if (word.text === "case") {
      this.toIn();
      if (!this.pattern()) list.cases += 1;
    } else if (word.text === "[[") this.test();
    else if (word.text === "function") {
      while (this.peek() === " ") this.at += 1;
      this.word(list.end);
    } else if (word.text === "coproc") this.at += NAMED_GROUP.exec(this.text.slice(this.at, this.at + 200))?.[0].length ?? 0;
    else if (word.text === "esac" && list.cases > 0) list.cases -= 1;
    else if (!KEYWORDS.has(word.text) && !ASSIGNMENT.test(word.text)) list.words.push(word);
  }
  /** What is in `[[ ]]`. A shell without it reads a command. */
  private test(): void {
    while (this.at < this.text.length) {
      if (this.starts("]]") && /^\s/.test(this.text.charAt(this.at - 1))) break;
      if (this.quotedPart()) continue;
      const char = this.peek();
      if (char === ";" || (char === "#" && /\s/.test(this.text.charAt(this.at - 1)))) this.isCertain = false;
      this.at += 1;
    }
    this.at += 2;
  }
  /** The word of a case, and `in`. */
  private toIn(): void {
    this.blanks();
    this.word("");
    this.blanks();
    if (/^in\s/.test(this.text.slice(this.at, this.at + 3))) this.at += 2;
    else this.isCertain = false;
  }
  /** The pattern of a case. True: there is none, the cases end. */
  private pattern(): boolean {
    this.blanks();
    while (this.peek() === "#") {
      this.at = this.endOf("\n");
      this.blanks();
    }
    if (/^esac(?!\w)/.test(this.text.slice(this.at, this.at + 5))) {
      this.at += 4;
      return true;
    }
    if (this.peek() === "(") this.at += 1;
    for (let open = 0; this.at < this.text.length; ) {
      if (this.quotedPart()) continue;
      const char = this.peek();
      this.at += 1;
      if (char === ")" && --open < 0) break;
      if (char === "(") open += 1;
      else if (char === "\n" || char === ";") this.isCertain = false;
    }
    return false;
  }
  private redirection(): void {
    const operator = /^(?:<<<|<<-?|>>|[<>][&|>]?)/.exec(this.text.slice(this.at, this.at + 3))?.[0] ?? "<";
    this.at += operator.length;
    while (this.peek() === " " || this.peek() === "\t") this.at += 1;
    const { text, isQuoted } = this.word("");
    if (operator === "<<<") this.inputs.push(text);
    else if (operator.startsWith("<<")) {
      this.isCertain &&= PLAIN_END.test(text);
      this.documents.push({ end: text, isIndented: operator.endsWith("-"), isQuoted });
    }
  }
  private readDocuments(): void {
    const documents = this.documents;
    this.documents = [];
    for (const { end, isIndented, isQuoted } of documents) {
      const from = this.at;
      for (;;) {
        const to = this.endOf("\n");
        const line = this.text.slice(this.at, to);
        const before = this.at;
        this.at = Math.min(to + 1, this.text.length);
        if ((isIndented ? line.replace(/^\t+/, "") : line) === end || to === this.text.length) {
          const body = this.text.slice(from, to === this.text.length && line !== end ? to : before);
          this.inputs.push(body);
          if (!isQuoted) this.skipDocument(from, from + body.length);
          break;
        }
      }
    }
  }
  /** The shell replaces what is in a here-document whose end has no quotes. */
  private skipDocument(from: number, to: number): void {
    const after = this.at;
    this.at = from;
    this.skip(to);
    this.at = Math.max(this.at, after);
  }
}
