/** The reader of PDFs against files that ask for work or memory without end. Counts work, never time. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { zlibSync } from "fflate";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import { pdf } from "../../../../test/support/documents.ts";
import { pdfText } from "./pdf.lazy.ts";
import { PdfSource } from "./pdf-source.ts";
import { Unreadable } from "./reading.ts";

const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (sign) => sign.charCodeAt(0));
/** Objects 1 to n of a PDF without a table, which PDF.js rebuilds. */
const file = (objects: readonly string[], trailer = ""): Uint8Array =>
  latin1(
    `%PDF-1.7\n${objects.map((object, index) => `${index + 1} 0 obj\n${object}\nendobj\n`).join("")}trailer\n<</Root 1 0 R /Size ${objects.length + 1}${trailer}>>\n%%EOF\n`,
  );
const stream = (dict: string, data: string, lineEnd = "\n"): string =>
  `<<${dict} /Length ${data.length}>>\nstream${lineEnd}${data}\nendstream`;
const onePage = (content: string, more: readonly string[] = [], resources = ""): Uint8Array =>
  file([
    "<</Type/Catalog/Pages 2 0 R>>",
    "<</Type/Pages/Kids[3 0 R]/Count 1>>",
    `<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>> ${resources}>>>>`,
    content,
    "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ...more,
  ]);
/** Forms that draw the forms of the next level: `draws` to the power of `levels` in all. */
function nested(levels: number, draws: number, last: string): Uint8Array {
  const forms: string[] = [];
  for (let level = 0; level < levels; level++)
    for (let n = 0; n < draws; n++) {
      const next = Array.from({ length: draws }, (_, other) => `/X${other} ${6 + (level + 1) * draws + other} 0 R`).join("");
      const isLast = level === levels - 1;
      const resources = `/Resources<</Font<</F 5 0 R>>${isLast ? "" : `/XObject<<${next}>>`}>>`;
      const content = isLast ? last : Array.from({ length: draws }, (_, other) => `/X${other} Do `).join("");
      forms.push(stream(`/Type/XObject/Subtype/Form/BBox[0 0 99 99]${resources}`, content));
    }
  return onePage(stream("", "/X0 Do"), forms, "/XObject<</X0 6 0 R>>");
}

const bufferGetter = Object.getOwnPropertyDescriptor(PdfSource.prototype, "buffer")?.get;
/** How many objects PDF.js looks up in the file while `work` runs. */
async function lookups(context: TestContext, work: () => Promise<void>): Promise<number> {
  let count = 0;
  const counted = context.mock.getter(PdfSource.prototype, "buffer", function (this: PdfSource) {
    count += 1;
    return bufferGetter?.call(this) as ArrayBuffer;
  });
  await work();
  counted.mock.restore();
  return count;
}
const refused = (bytes: Uint8Array, why: RegExp, bound?: number) =>
  assert.rejects(pdfText(bytes, bound), (error) => error instanceof Unreadable && why.test(error.message));

describe("[F41][TH16] a PDF ends within a bounded number of steps", () => {
  test("forms that draw forms: nine levels of ten, with and without text", async (context) => {
    for (const last of ["BT /F 9 Tf 1 0 0 1 9 9 Tm (ab) Tj ET", "q Q"]) {
      const count = await lookups(context, () => refused(nested(9, 10, last), /too many parts/, 2_000));
      assert.ok(count > 1_000 && count < 2_200, `${count} objects were looked up`);
    }
  });
  test("forms within the bound are read", async () => {
    assert.match(await pdfText(nested(2, 3, "BT /F 9 Tf 1 0 0 1 9 9 Tm (ab) Tj ET")), /ab/);
    assert.match(await pdfText(pdf(["The first page", "The second page"])), /The first page\n\n\[Page 2 of 2\]\nThe second page/);
  });
  test("a page with more text than is kept is read no further", async (context) => {
    const text = `BT /F 9 Tf ${"1 0 0 1 9 9 Tm (aaaaaaaaaaaaaaaa) Tj ".repeat(65_000)}ET `;
    const form = stream("/Type/XObject/Subtype/Form/BBox[0 0 99 99]", "BT /F 9 Tf 1 0 0 1 9 9 Tm (ab) Tj ET");
    const count = await lookups(context, async () => {
      const shown = await pdfText(onePage(stream("", text + "/X Do ".repeat(3_000)), [form], "/XObject<</X 6 0 R>>"));
      assert.ok(shown.length < LIMITS.documentTextChars + 100);
      assert.match(shown, /Only the first 1000000 characters are kept/);
    });
    assert.ok(count < 300, `${count} objects were looked up`);
  });
});

describe("[F41][TH16] a PDF that unpacks to more than is read is refused before", () => {
  const latin = (bytes: Uint8Array): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const words = "BT /F 9 Tf 1 0 0 1 9 9 Tm (words) Tj ET";
  const flate = (bytes: Uint8Array | string): string => latin(zlibSync(typeof bytes === "string" ? latin1(bytes) : bytes, { level: 9 }));
  const hex = (text: string): string => `${Array.from(text, (sign) => sign.charCodeAt(0).toString(16).padStart(2, "0")).join("")}>`;
  const bomb = flate(new Uint8Array(LIMITS.documentExpandedBytes + 1).fill(32));
  const large = /larger than 64 MiB when it is unpacked/;
  test("Flate, whatever stands behind the keyword, and alone or in a chain", async () => {
    for (const lineEnd of ["\n", "\r\n", " \n", "%x\r"]) await refused(onePage(stream("/Filter/FlateDecode", bomb, lineEnd)), large);
    await refused(onePage(stream("/Filter[/ASCIIHexDecode/FlateDecode]", hex(bomb))), large);
    await refused(onePage(stream("/F[/AHx/AHx/Fl]", hex(hex(bomb)))), large);
    await refused(onePage(stream("/Filter[/FlateDecode/FlateDecode]", flate(bomb))), large);
  });
  test("runs of one byte", async () => {
    await refused(onePage(stream("/Filter/RunLengthDecode", "\x81 ".repeat(530_000))), large);
  });
  test("what cannot be counted: encrypted files, filters elsewhere in the file, chains of other kinds", async () => {
    await refused(file(["<</Type/Catalog>>"], "/Encrypt 1 0 R"), /It is encrypted/);
    await refused(file(["<</Type/Catalog>>"], "/E#6ecrypt 1 0 R"), /It is encrypted/);
    for (const filter of ["/Filter 9 0 R", "/Filter[/LZWDecode/FlateDecode]", "/Filter/BrotliDecode", "/Filter[/AHx%\n/Fl]"])
      await refused(onePage(stream(filter, words)), /cannot be checked/);
  });
  test("the same filters with a small text are read", async () => {
    const runs = latin1(words).length - 1;
    for (const content of [
      stream("/Filter/FlateDecode", flate(words), " \n"),
      stream("/Filter[/ASCIIHexDecode/FlateDecode]", hex(flate(words))),
      stream("/Filter/FlateDecode", flate(words)) + "\nendobj\n".padEnd(100_000),
      `${stream("/Filter/FlateDecode", flate(words))}\nendobj\n9 0 obj\n<</Type/Sig/Filter/Adobe.PPKLite>>`,
      stream("/Filter/RunLengthDecode", `${String.fromCharCode(runs)}${words}\x80`),
    ])
      assert.match(await pdfText(onePage(content)), /words/);
  });
});
