/** Text of Excel files: each sheet as CSV, with dates as people read them. Formulas are not computed. */
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import { local, unpacked } from "./office.ts";
import { inTurns, TextOut, Unreadable } from "./reading.ts";
import { attribute, type XmlPart, xmlParts } from "./xml.ts";

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
