/** Small documents of every kind that is read, made here, so that a test says what is in them. */
import { strToU8, zipSync } from "fflate";

const zip = (files: Readonly<Record<string, string>>): Uint8Array =>
  zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)])));
const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

export const docx = (paragraphs: readonly string[], table: readonly (readonly string[])[] = []): Uint8Array => {
  const p = (text: string): string => `<w:p><w:r><w:t xml:space="preserve">${escaped(text)}</w:t></w:r></w:p>`;
  const rows = table.map((cells) => `<w:tr>${cells.map((cell) => `<w:tc>${p(cell)}</w:tc>`).join("")}</w:tr>`).join("");
  const [title = "", ...rest] = paragraphs;
  return zip({
    "[Content_Types].xml": "<Types/>",
    "word/document.xml": `<?xml version="1.0"?><w:document xmlns:w="w"><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>${escaped(title)}</w:t></w:r></w:p>${rest.map(p).join("")}<w:tbl>${rows}</w:tbl><w:p><w:r><w:delText>deleted</w:delText></w:r></w:p></w:body></w:document>`,
  });
};
/** The first sheet. Dates are given as days since 1900 with the style of a date. */
export const xlsx = (name: string, rows: readonly (readonly (string | number | { readonly date: number })[])[]): Uint8Array => {
  const shared: string[] = [];
  const cell = (value: string | number | { readonly date: number }, column: number, row: number): string => {
    const at = `r="${String.fromCharCode(65 + column)}${row + 1}"`;
    if (typeof value === "number") return `<c ${at}><v>${value}</v></c>`;
    if (typeof value === "object") return `<c ${at} s="1"><v>${value.date}</v></c>`;
    shared.push(value);
    return `<c ${at} t="s"><v>${shared.length - 1}</v></c>`;
  };
  const data = rows.map((cells, row) => `<row>${cells.map((value, column) => cell(value, column, row)).join("")}</row>`).join("");
  return zip({
    "xl/workbook.xml": `<workbook><sheets><sheet name="${escaped(name)}" sheetId="1" r:id="rId7"/></sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="rId7" Target="worksheets/sheet1.xml"/></Relationships>`,
    "xl/styles.xml": `<styleSheet><cellStyleXfs><xf numFmtId="0"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
    "xl/sharedStrings.xml": `<sst>${shared.map((text) => `<si><t>${escaped(text)}</t></si>`).join("")}</sst>`,
    "xl/worksheets/sheet1.xml": `<worksheet><sheetData>${data}</sheetData></worksheet>`,
  });
};
export const pptx = (slides: readonly string[]): Uint8Array =>
  zip(
    Object.fromEntries(
      slides.map((text, index) => [`ppt/slides/slide${index + 1}.xml`, `<p:sld><a:p><a:r><a:t>${escaped(text)}</a:t></a:r></a:p></p:sld>`]),
    ),
  );

/** One text on each page, in Helvetica (PDF 1.4). */
export function pdf(pages: readonly string[]): Uint8Array {
  const objects: string[] = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"];
  const kids: number[] = [];
  for (const text of pages) {
    const stream = `BT /F1 12 Tf 40 700 Td (${text.replace(/[()\\]/g, "\\$&")}) Tj ET`;
    objects.push(`<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`);
    objects.push(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${objects.length} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
    );
    kids.push(objects.length);
  }
  objects[1] = `<< /Type /Pages /Kids [${kids.map((id) => `${id} 0 R`).join(" ")}] /Count ${kids.length} >>`;
  let text = "%PDF-1.4\n";
  const offsets = objects.map((object, index) => {
    const at = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const table = text.length;
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("")}`;
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${table}\n%%EOF\n`;
  return strToU8(text, true);
}

export const eml = (subject: string, html: string): Uint8Array =>
  strToU8(
    [
      "From: Ann <ann@example.org>",
      "To: sam@example.org",
      `Subject: ${subject}`,
      "Date: Mon, 02 Nov 2026 10:00:00 +0000",
      "MIME-Version: 1.0",
      'Content-Type: multipart/mixed; boundary="b"',
      "",
      "--b",
      "Content-Type: text/html; charset=utf-8",
      "",
      html,
      "--b",
      'Content-Type: application/pdf; name="offer.pdf"',
      'Content-Disposition: attachment; filename="offer.pdf"',
      "Content-Transfer-Encoding: base64",
      "",
      "JVBERi0x",
      "--b--",
      "",
    ].join("\r\n"),
  );

/** A GIF of that many frames of one pixel. */
export const gif = (frames: number): Uint8Array =>
  Uint8Array.from([
    ...[0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255],
    ...Array.from({ length: frames }, () => [0x21, 0xf9, 4, 0, 1, 0, 0, 0, 0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0]).flat(),
    0x3b,
  ]);
/** Uncompressed, 24 bits a pixel: large files with few words. */
export function bmp(width: number, height: number): Uint8Array {
  const row = Math.ceil((width * 3) / 4) * 4;
  const bytes = new Uint8Array(54 + row * height);
  const view = new DataView(bytes.buffer);
  bytes.set([0x42, 0x4d]);
  view.setUint32(2, bytes.length, true);
  view.setUint32(10, 54, true);
  view.setUint32(14, 40, true);
  view.setInt32(18, width, true);
  view.setInt32(22, height, true);
  view.setUint16(26, 1, true);
  view.setUint16(28, 24, true);
  view.setUint32(34, row * height, true);
  for (let at = 54; at < bytes.length; at++) bytes[at] = (at * 7 + (at >> 9)) & 255;
  return bytes;
}
