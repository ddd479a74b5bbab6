/**
 * Text of Word, Excel and PowerPoint files (Office Open XML, ECMA-376): a zip of XML files. Bounded: only the files with text are
 * unpacked, up to a total size that is counted while unpacking, never believed from the archive's header.
 */
import { Unzip, UnzipInflate } from "fflate";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import { inTurns, pause, TextOut, tooMuch, Unreadable } from "./reading.ts";
import { attribute, type XmlPart, xmlParts } from "./xml.ts";

/** A small piece expands to at most a thousand times its size, so what is in memory at once stays small. */
const PIECE_BYTES = 16_384;
const PAUSE_BYTES = 4_194_304;

/** The unpacked texts by name. Throws `Unreadable`. */
export async function unpacked(bytes: Uint8Array, isWanted: (name: string) => boolean): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  let total = 0;
  let files = 0;
  const unzip = new Unzip((file) => {
    files += 1;
    if (files > LIMITS.documentFiles) throw new Unreadable(`It has more than ${LIMITS.documentFiles} files in it.`);
    if (!isWanted(file.name)) return;
    const decoder = new TextDecoder();
    let text = "";
    file.ondata = (error, chunk, isLast) => {
      // The library hands on what was thrown here.
      if (error) throw error instanceof Unreadable ? error : new Unreadable("It is damaged.");
      total += chunk.length;
      if (total > LIMITS.documentExpandedBytes) throw tooMuch();
      text += decoder.decode(chunk, { stream: !isLast });
      if (isLast) texts.set(file.name, text);
    };
    file.start();
  });
  unzip.register(UnzipInflate);
  try {
    let paused = 0;
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      unzip.push(bytes.subarray(at, at + PIECE_BYTES), at + PIECE_BYTES >= bytes.length);
      if (total - paused < PAUSE_BYTES) continue;
      paused = total;
      await pause();
    }
  } catch (error) {
    throw error instanceof Unreadable ? error : new Unreadable("It is damaged, or it is encrypted with a password.");
  }
  return texts;
}
const local = (name: string): string => name.slice(name.indexOf(":") + 1);

// ---------------------------------------------------------------- Word

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

// ---------------------------------------------------------------- PowerPoint

const SLIDE = /^ppt\/slides\/slide(\d{1,5})\.xml$/;
const NOTES = /^ppt\/notesSlides\/notesSlide(\d{1,5})\.xml$/;

export async function slidesText(bytes: Uint8Array): Promise<string> {
  const files = await unpacked(bytes, (name) => SLIDE.test(name) || NOTES.test(name));
  const numbers = [...files.keys()].flatMap((name) => SLIDE.exec(name)?.[1] ?? []).sort((left, right) => Number(left) - Number(right));
  if (numbers.length === 0) throw new Unreadable("It is damaged, or it is not a PowerPoint file.");
  const out = new TextOut();
  for (const number of numbers) {
    if (out.isFull) break;
    out.add(`[Slide ${number}]\n${await drawingText(files.get(`ppt/slides/slide${number}.xml`) ?? "")}\n`);
    const notes = (await drawingText(files.get(`ppt/notesSlides/notesSlide${number}.xml`) ?? "")).trim();
    if (notes !== "" && notes !== number) out.add(`[Notes] ${notes}\n`);
    out.add("\n");
  }
  return out.toString().trim();
}
async function drawingText(source: string): Promise<string> {
  const out: string[] = [];
  let isText = false;
  for await (const parts of inTurns(xmlParts(source)))
    for (const part of parts) {
      if (part.kind === "text") {
        if (isText) out.push(part.text);
        continue;
      }
      const name = local(part.name);
      if (name === "t") isText = part.kind === "open" && !part.isEmpty;
      else if (name === "br" || (name === "p" && part.kind === "close")) out.push("\n");
      else if (name === "tc" && part.kind === "close") out.push(" | ");
    }
  return out
    .join("")
    .replace(/\n \| /g, " | ")
    .replace(/\n{2,}/g, "\n")
    .trim();
}

// ---------------------------------------------------------------- Excel

const SHEET = /^xl\/worksheets\/[\w-]{1,64}\.xml$/;
const WORKBOOK = ["xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/sharedStrings.xml", "xl/styles.xml"];
/** Built-in number formats that show a date or a time. */
const DATE_FORMATS = new Set([14, 15, 16, 17, 18, 19, 20, 21, 22, 45, 46, 47]);
/** A cell can have no more (Excel's own limit), and many cells may refer to one long text. */
const CELL_CHARS = 32_767;

export async function sheetsText(bytes: Uint8Array): Promise<string> {
  const files = await unpacked(bytes, (name) => WORKBOOK.includes(name) || SHEET.test(name));
  const sheets = await sheetList(files);
  if (sheets.length === 0) throw new Unreadable("It is damaged, or it is not an Excel workbook.");
  const shared = await sharedStrings(files.get("xl/sharedStrings.xml") ?? "");
  const dates = await dateStyles(files.get("xl/styles.xml") ?? "");
  const out = new TextOut();
  for (const { name, file } of sheets) {
    if (out.isFull) break;
    out.add(`[Sheet ${JSON.stringify(name)}]\n`);
    for await (const row of sheetRows(files.get(file) ?? "", shared, dates)) {
      if (out.isFull) break;
      out.add(`${row.map(csvField).join(",")}\n`);
    }
    out.add("\n");
  }
  return out.toString().trim();
}
const csvField = (value: string): string => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

async function sheetList(files: ReadonlyMap<string, string>): Promise<readonly { readonly name: string; readonly file: string }[]> {
  const targets = new Map<string, string>();
  for await (const parts of inTurns(xmlParts(files.get("xl/_rels/workbook.xml.rels") ?? "")))
    for (const part of parts)
      if (part.kind === "open" && local(part.name) === "Relationship") {
        const target = attribute(part.attributes, "Target") ?? "";
        targets.set(attribute(part.attributes, "Id") ?? "", target.startsWith("/") ? target.slice(1) : `xl/${target}`);
      }
  const named: { name: string; file: string }[] = [];
  for await (const parts of inTurns(xmlParts(files.get("xl/workbook.xml") ?? "")))
    for (const part of parts)
      if (part.kind === "open" && local(part.name) === "sheet") {
        const file = targets.get(attribute(part.attributes, "r:id") ?? "");
        if (file !== undefined && files.has(file)) named.push({ name: attribute(part.attributes, "name") ?? "", file });
      }
  if (named.length > 0) return named;
  return [...files.keys()].filter((file) => SHEET.test(file)).map((file) => ({ name: file.slice(14, -4), file }));
}
async function sharedStrings(source: string): Promise<readonly string[]> {
  const strings: string[] = [];
  let text: string | undefined;
  let isText = false;
  // Phonetic guides repeat the text for the eye.
  let isPhonetic = false;
  for await (const parts of inTurns(xmlParts(source)))
    for (const part of parts) {
      if (part.kind === "text") {
        if (text !== undefined && isText && !isPhonetic) text += part.text;
        continue;
      }
      const name = local(part.name);
      const isOpen = part.kind === "open" && !part.isEmpty;
      if (name === "t") isText = isOpen;
      else if (name === "rPh") isPhonetic = isOpen;
      else if (name === "si") {
        if (part.kind === "open") text = "";
        if (!isOpen) {
          strings.push(text ?? "");
          text = undefined;
        }
      }
    }
  return strings;
}
/** For each cell style, whether it shows a date. */
async function dateStyles(source: string): Promise<readonly boolean[]> {
  const custom = new Set<number>();
  const styles: boolean[] = [];
  let isCells = false;
  for await (const parts of inTurns(xmlParts(source)))
    for (const part of parts) {
      if (part.kind === "text") continue;
      const name = local(part.name);
      if (name === "cellXfs") isCells = part.kind === "open";
      if (part.kind !== "open") continue;
      if (name === "numFmt" && isDateFormat(attribute(part.attributes, "formatCode") ?? ""))
        custom.add(Number(attribute(part.attributes, "numFmtId")));
      if (name === "xf" && isCells) {
        const format = Number(attribute(part.attributes, "numFmtId") ?? 0);
        styles.push(DATE_FORMATS.has(format) || custom.has(format));
      }
    }
  return styles;
}
/** Excel's own limit is 255. */
const FORMAT_CHARS = 256;
/**
 * Quoted texts, colours and conditions in brackets, and escaped characters are not part of the format. A quote or bracket without end
 * reaches to the end of the code: so the work stays linear.
 */
const isDateFormat = (code: string): boolean =>
  /[ymdhs]/i.test(code.slice(0, FORMAT_CHARS).replace(/"[^"]*(?:"|$)|\[[^\]]*(?:\]|$)|\\./g, ""));

async function* sheetRows(source: string, shared: readonly string[], dates: readonly boolean[]): AsyncGenerator<readonly string[]> {
  let row: string[] = [];
  let cell: { readonly column: number; readonly type: string; readonly style: number; value: string } | undefined;
  let isValue = false;
  const put = (): void => {
    if (cell === undefined || cell.value === "" || cell.column >= LIMITS.sheetColumns) return;
    while (row.length < cell.column) row.push("");
    row[cell.column] = shownCell(cell.type, cell.value, shared, dates[cell.style] === true).slice(0, CELL_CHARS);
  };
  for await (const parts of inTurns(xmlParts(source)))
    for (const part of parts) {
      if (part.kind === "text") {
        if (cell !== undefined && isValue) cell.value += part.text;
        continue;
      }
      const name = local(part.name);
      if (name === "v" || name === "t") isValue = isOpened(part);
      else if (name === "c" && part.kind === "open")
        cell = {
          column: columnOf(attribute(part.attributes, "r")) ?? row.length,
          type: attribute(part.attributes, "t") ?? "n",
          style: Number(attribute(part.attributes, "s") ?? -1),
          value: "",
        };
      else if (name === "c") {
        put();
        cell = undefined;
      } else if (name === "row" && part.kind === "close") {
        if (row.length > 0) yield row;
        row = [];
      }
    }
}
const isOpened = (part: XmlPart): boolean => part.kind === "open" && !part.isEmpty;
/** `C7` is column 2. */
function columnOf(reference: string | undefined): number | undefined {
  const letters = /^([A-Z]{1,3})/.exec(reference ?? "")?.[1];
  if (letters === undefined) return undefined;
  let column = 0;
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64;
  return column - 1;
}
function shownCell(type: string, value: string, shared: readonly string[], isDate: boolean): string {
  if (type === "s") return shared[Number(value)] ?? "";
  if (type === "b") return value === "1" ? "TRUE" : "FALSE";
  if (type !== "n" || !isDate) return value;
  const days = Number(value);
  if (!Number.isFinite(days) || days < 0 || days > 2_958_466) return value;
  // Day 25,569 is 1 January 1970 (dates of the 1900 system).
  const iso = new Date(Math.round((days - 25_569) * 86_400) * 1_000).toISOString();
  if (days < 1) return iso.slice(11, 19);
  return Number.isInteger(days) ? iso.slice(0, 10) : iso.slice(0, 19).replace("T", " ");
}
