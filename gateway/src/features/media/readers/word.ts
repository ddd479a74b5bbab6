/** Text of Word files: the document with its headings, lists and tables, then its notes and comments. */
import { local, unpacked } from "./office.ts";
import { inTurns, TextOut, Unreadable } from "./reading.ts";
import { attribute, type XmlPart, xmlParts } from "./xml.ts";

const WORD_PARTS = ["word/document.xml", "word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"];

export async function wordText(bytes: Uint8Array): Promise<string> {
  const files = await unpacked(bytes, (name) => WORD_PARTS.includes(name));
  if (!files.has("word/document.xml")) throw new Unreadable("It is damaged, or it is not a Word document.");
  const out = new TextOut();
  for (const name of WORD_PARTS) {
    const source = files.get(name);
    if (source === undefined || out.isFull) continue;
    const text = (await wordPart(source)).trim();
    if (text === "") continue;
    out.add(name === "word/document.xml" ? text : `\n\n[${name.slice(5, -4)}]\n${text}`);
  }
  return out.toString();
}
async function wordPart(source: string): Promise<string> {
  const reader = new WordReader();
  for await (const parts of inTurns(xmlParts(source))) for (const part of parts) reader.take(part);
  return lines(reader.out.join("")).replace(/\n{3,}/g, "\n\n");
}
class WordReader {
  readonly out: string[] = [];
  #isText = false;
  #cells = 0;
  /** Paragraphs of one table cell stay in one line. */
  #isNextParagraph = false;

  take(part: XmlPart): void {
    if (part.kind === "open") this.#open(local(part.name), part);
    else if (part.kind === "close") this.#close(local(part.name));
    else if (this.#isText) {
      this.out.push(this.#isNextParagraph ? ` ${part.text}` : part.text);
      this.#isNextParagraph = false;
    }
  }
  #open(name: string, { name: full, attributes, isEmpty }: XmlPart & { readonly kind: "open" }): void {
    switch (name) {
      case "t":
        this.#isText = !isEmpty;
        return;
      case "tab":
        return void this.out.push("\t");
      case "br":
      case "cr":
        return void this.out.push("\n");
      case "pStyle":
        return void this.out.push(heading(attribute(attributes, `${full.slice(0, -6)}val`)));
      case "numPr":
        return void this.out.push("- ");
      case "tr":
        this.#cells = 0;
        return;
      case "tc":
        this.out.push(this.#cells > 0 ? " | " : "");
        this.#cells += 1;
        this.#isNextParagraph = false;
    }
  }
  #close(name: string): void {
    switch (name) {
      case "t":
        this.#isText = false;
        return;
      case "p":
        if (this.#cells > 0) this.#isNextParagraph = true;
        else this.out.push("\n");
        return;
      case "tr":
        this.out.push("\n");
        this.#isNextParagraph = false;
        return;
      case "tbl":
        this.out.push("\n");
        this.#cells = 0;
    }
  }
}
/** Without spaces at the ends of lines. */
const lines = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
function heading(style: string | undefined): string {
  const level = /^heading ?([1-6])$/i.exec(style ?? "")?.[1];
  return level === undefined ? "" : `${"#".repeat(Number(level))} `;
}
