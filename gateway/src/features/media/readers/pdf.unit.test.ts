/** The reader of PDFs against files that ask for work or memory without end. Counts work, never time. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { zlibSync } from "fflate";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import { pdf } from "../../../../test/support/documents.ts";
import { pdfText } from "./pdf.lazy.ts";
import { PdfWork, WORK_LIMITS } from "./pdf-work.ts";
import { mappedCodes } from "./font-file.ts";
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

/** Steps until the bound is small, so that a test needs no second. */
const small = (steps = 400_000): PdfWork => new PdfWork({ ...WORK_LIMITS, steps });
const refusedBy = (bytes: Uint8Array, why: RegExp, work: PdfWork) =>
  assert.rejects(pdfText(bytes, work), (error) => error instanceof Unreadable && why.test(error.message));
const refused = (bytes: Uint8Array, why: RegExp, work = small()) => refusedBy(bytes, why, work);
/** A font of two-byte codes as object 5, with its parts from object 6 on. */
const wide = (more: string, inner: string, objects: readonly string[] = []): Uint8Array =>
  file([
    "<</Type/Catalog/Pages 2 0 R>>",
    "<</Type/Pages/Kids[3 0 R]/Count 1>>",
    "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
    stream("", "BT /F 9 Tf 1 0 0 1 9 9 Tm <00410042> Tj ET"),
    `<</Type/Font/Subtype/Type0/BaseFont/B/DescendantFonts[6 0 R]${more}>>`,
    `<</Type/Font/Subtype/CIDFontType2/BaseFont/B/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>${inner}>>`,
    ...objects,
  ]);
const latin = (bytes: Uint8Array): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
const flate = (bytes: Uint8Array | string): string => latin(zlibSync(typeof bytes === "string" ? latin1(bytes) : bytes, { level: 9 }));
const hex = (text: string): string => `${Array.from(text, (sign) => sign.charCodeAt(0).toString(16).padStart(2, "0")).join("")}>`;
const words = "BT /F 9 Tf 1 0 0 1 9 9 Tm (words) Tj ET";
const many = /drawn from too many parts/;

describe("[F41][TH16] a PDF ends within a bounded number of steps", () => {
  test("forms that draw forms: nine levels of ten, with and without text", async () => {
    for (const last of ["BT /F 9 Tf 1 0 0 1 9 9 Tm (ab) Tj ET", "q Q"]) await refused(nested(9, 10, last), many);
  });
  test("a large form that is drawn often", async () => {
    const form = stream(
      "/Type/XObject/Subtype/Form/BBox[0 0 99 99]/Resources<</Font<</F 5 0 R>>>>/Filter/FlateDecode",
      flate(`${"q Q ".repeat(20_000)}${words}`),
    );
    await refused(onePage(stream("", "/X Do q Q ".repeat(1_000)), [form], "/XObject<</X 6 0 R>>"), many);
  });
  test("forms within the bound are read", async () => {
    assert.match(await pdfText(nested(2, 3, "BT /F 9 Tf 1 0 0 1 9 9 Tm (ab) Tj ET")), /ab/);
    assert.match(await pdfText(pdf(["The first page", "The second page"])), /The first page\n\n\[Page 2 of 2\]\nThe second page/);
  });
  test("a page with more text than is kept is read no further", async () => {
    const text = `BT /F 9 Tf ${"1 0 0 1 9 9 Tm (aaaaaaaaaaaaaaaa) Tj ".repeat(65_000)}ET `;
    const form = stream("/Type/XObject/Subtype/Form/BBox[0 0 99 99]", "BT /F 9 Tf 1 0 0 1 9 9 Tm (ab) Tj ET");
    // The forms alone would take more steps than there are.
    const file = onePage(stream("", text + "/X Do ".repeat(60_000)), [form], "/XObject<</X 6 0 R>>");
    const shown = await pdfText(file);
    assert.ok(shown.length < LIMITS.documentTextChars + 100);
    assert.match(shown, /Only the first 1000000 characters are kept/);
  });
  test("one operator that cannot pause: a long list, a long string", async () => {
    await refused(onePage(stream("/Filter/FlateDecode", flate(`BT /F 9 Tf [${"(a)1".repeat(2_000_000)}] TJ ET`))), many, new PdfWork());
    const long = onePage(stream("/Filter/FlateDecode", flate(`BT /F 9 Tf (${"a".repeat(4_000_000)}) Tj ET`)));
    await assert.rejects(pdfText(long), Unreadable);
  });
  test("objects without an end, which contain each other", async () => {
    await refused(latin1(`%PDF-1.7\n${"1 0 obj <<".repeat(20_000)}`), many);
  });
  test("fonts whose widths and codes have ranges without end", async () => {
    const range = (from: string, to: string) => stream("", `1 beginbfrange <${from}> <${to}> <0041> endbfrange `.repeat(40));
    for (const font of [
      wide("/Encoding/Identity-H", "/W[0 4294967290 500]"),
      wide("/Encoding/Identity-H", "/W[65 7 0 R 500]", ["4294967290"]),
      wide("/Encoding/Identity-H", "/FirstChar 0/LastChar 4294967290"),
    ])
      await assert.rejects(pdfText(font), Unreadable);
    await refused(wide("/Encoding/Identity-H/ToUnicode 7 0 R", "", [range("0000", "FFFF")]), many);
    await refused(wide("/Encoding/Identity-H", `/W[${"0 65535 500 ".repeat(40)}]`), many);
    // A range that no font has is left out, and the rest is read.
    assert.match(await pdfText(wide("/Encoding/Identity-H/ToUnicode 7 0 R", "", [range("000000", "FFFFF0")]), small()), /Page 1 of 1/);
    const names = stream("", "1 begincodespacerange <0000><FFFF> endcodespacerange 2 beginbfchar <0041><0058> <0042><0059> endbfchar");
    assert.match(await pdfText(wide("/Encoding/Identity-H/ToUnicode 7 0 R", "/W[65 66 500]", [names])), /XY/);
  });
  test("a font whose letters call each other without end is left out, and the text is read", async () => {
    // Eleven programs; each calls the next one fifty times.
    const calls = (next: number): string => String.fromCharCode(next + 139, 10).repeat(50);
    const programs = Array.from({ length: 11 }, (_, n) => (n === 10 ? "\x0b" : calls(n + 1)));
    const subrs = programs.map((code, n) => `dup ${n} ${code.length} RD ${code} NP\n`).join("");
    const letter = `${String.fromCharCode(139, 10)}\x0e`;
    const secret = `xxxxdup /Private 9 dict dup begin /lenIV -1 def /Subrs 11 array\n${subrs}ND\n2 index /CharStrings 1 dict dup begin\n/a ${letter.length} RD ${letter} ND\nend\n`;
    let key = 55_665;
    const eexec = Array.from(secret, (sign) => {
      const packed = sign.charCodeAt(0) ^ (key >> 8);
      key = ((packed + key) * 52_845 + 22_719) & 65_535;
      return String.fromCharCode(packed);
    }).join("");
    const head = "%!PS-AdobeFont-1.0: X\ncurrentfile eexec\n";
    const font =
      "<</Type/Font/Subtype/Type1/BaseFont/X/Encoding/WinAnsiEncoding/FirstChar 97/LastChar 98/Widths[500 500]/FontDescriptor<</Type/FontDescriptor/FontName/X/Flags 32/FontFile 6 0 R>>>>";
    const file = stream(`/Length1 ${head.length}/Length2 ${eexec.length}/Length3 0`, head + eexec);
    const page = latin(onePage(stream("", "BT /F 9 Tf 1 0 0 1 9 9 Tm (ab) Tj ET"), [file]));
    const work = new PdfWork();
    assert.match(await pdfText(latin1(page.replace("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", font)), work), /ab/);
    assert.equal(work.refused, true);
  });
  test("tables of characters in a font's file: their codes are counted before they are read", () => {
    const sfnt = (...words: readonly number[]): Uint8Array => {
      const bytes = new Uint8Array(40 + 2 * words.length);
      const view = new DataView(bytes.buffer);
      const head = [1, 0, 1, 0, 0, 0, 0x636d, 0x6170, 0, 0, 0, 28, 0, 100, 0, 1, 3, 1, 0, 12, ...words];
      for (const [at, word] of head.entries()) view.setUint16(2 * at, word);
      return bytes;
    };
    assert.equal(mappedCodes(sfnt(12, 0, 0, 0, 0, 0, 0, 2, 0, 5, 0, 9, 0, 0, 0, 0, 65_535, 65_535, 0, 0)), 5 + 2 ** 32);
    assert.equal(mappedCodes(sfnt(4, 0, 0, 4, 0, 0, 0, 9, 65_535, 0, 5, 65_000)), 5 + 536);
    assert.equal(mappedCodes(sfnt(6, 0, 0, 32, 700)), 700);
    assert.equal(mappedCodes(latin1("ttcf and more")), Number.POSITIVE_INFINITY);
    assert.equal(mappedCodes(new Uint8Array(3)), 0);
  });
  test("other work has its turn while a page is read", async () => {
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 0);
    await refused(onePage(stream("", "q Q ".repeat(500_000))), many).finally(() => clearInterval(timer));
    assert.ok(turns >= 10, `${turns} turns`);
  });
  test("images of drawn letters are not unpacked, and their text is read", async () => {
    const glyph = stream("", "1000 0 0 0 9 9 d1 /I Do");
    const font =
      "<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]/FirstChar 97/LastChar 97/Widths[1]/CharProcs<</a 6 0 R>>/Encoding<</Differences[97/a]>>/Resources<</XObject<</I 7 0 R>>>>>>";
    const image = stream(
      "/Type/XObject/Subtype/Image/Width 9/Height 9/BitsPerComponent 8/ColorSpace/DeviceGray/Filter/FlateDecode",
      flate(new Uint8Array(LIMITS.documentExpandedBytes + 1)),
    );
    const page = onePage(stream("", "BT /T 9 Tf 1 0 0 1 9 9 Tm (aa) Tj ET"), [glyph, image], "").slice();
    const text = latin(page)
      .replace("/Font<</F 5 0 R>>", "/Font<</T 5 0 R>>")
      .replace("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", font);
    assert.match(await pdfText(latin1(text)), /aa/);
  });
});

describe("[F41][TH16] a PDF is unpacked up to a bound, however its streams are written", () => {
  const bomb = flate(new Uint8Array(LIMITS.documentExpandedBytes + 1).fill(32));
  const refused = (bytes: Uint8Array, why: RegExp, work = new PdfWork()) => refusedBy(bytes, why, work);
  const large = /larger than 64 MiB when it is unpacked/;
  /** The parts of a page's drawing are unpacked whole before they are joined. */
  const joined = (content: string, more: readonly string[] = []): Uint8Array =>
    latin1(latin(onePage(content, more)).replace("/Contents 4 0 R", "/Contents[4 0 R]"));
  test("Flate, whatever stands behind the keyword, and alone or in a chain", async () => {
    for (const lineEnd of ["\n", "\r\n", " \n", "%x\r"]) await refused(joined(stream("/Filter/FlateDecode", bomb, lineEnd)), large);
    await refused(joined(stream("/Filter[/ASCIIHexDecode/FlateDecode]", hex(bomb))), large);
    await refused(joined(stream("/F[/AHx/AHx/Fl]", hex(hex(bomb)))), large);
    await refused(joined(stream("/Filter[/FlateDecode/FlateDecode]", flate(bomb))), large);
  });
  test("names with escapes, filters elsewhere in the file, the word stream in front of it, comments", async () => {
    await refused(joined(stream("/Filter/Fl#61teDecode", bomb)), large);
    await refused(joined(stream("/#46ilter[/AHx/Fl]", hex(bomb))), large);
    await refused(joined(stream("/Filter 6 0 R", bomb), ["/FlateDecode"]), large);
    await refused(joined(stream("/F 6 0 R", hex(bomb)), ["[/AHx/Fl]"]), large);
    await refused(joined(stream("/X(stream\n)/Filter[/AHx%\n/Fl]", hex(bomb))), large);
  });
  test("runs of one byte, rows of a predictor, and many streams together", async () => {
    await refused(joined(stream("/Filter/RunLengthDecode", "\x81 ".repeat(530_000))), large);
    for (const parms of ["/Predictor 2/Colors 100/BitsPerComponent 16/Columns 100000000", "/Predictor 12/Columns 90000000"])
      await refused(joined(stream(`/Filter/FlateDecode/DecodeParms<<${parms}>>`, flate("\x02abc"))), large);
    const form = stream(
      "/Type/XObject/Subtype/Form/BBox[0 0 99 99]/Resources<</Font<</F 5 0 R>>>>/Filter/FlateDecode",
      flate(words.padEnd(9_000)),
    );
    const work = new PdfWork({ ...WORK_LIMITS, unpackedBytes: 100_000 });
    await refused(onePage(stream("", "/X Do q Q ".repeat(20)), [form], "/XObject<</X 6 0 R>>"), large, work);
  });
  test("what makes buffers of its own is not unpacked: images and Brotli as the drawing of a page", async () => {
    for (const filter of ["/DCTDecode", "/JPXDecode", "/JBIG2Decode", "/BrotliDecode"])
      await assert.rejects(pdfText(onePage(stream(`/Filter${filter}`, words)), small()), Unreadable);
    await refused(joined(stream("/Filter/CCITTFaxDecode/DecodeParms<</K -1/Columns 600000000/Rows 9>>", "\xff".repeat(999))), /.+/);
  });
  test("the same filters with a small text are read", async () => {
    const runs = latin1(words).length - 1;
    for (const content of [
      stream("/Filter/FlateDecode", flate(words), " \n"),
      stream("/Filter/Fl#61teDecode", flate(words)),
      stream("/Filter[/ASCIIHexDecode/FlateDecode]", hex(flate(words))),
      stream("/Filter[/ASCIIHexDecode/ASCIIHexDecode]", hex(hex(words))),
      stream("/Filter/FlateDecode", flate(words)) + "\nendobj\n".padEnd(100_000),
      `${stream("/Filter/FlateDecode", flate(words))}\nendobj\n9 0 obj\n<</Type/Sig/Filter/Adobe.PPKLite>>`,
      stream("/Filter/RunLengthDecode", `${String.fromCharCode(runs)}${words}\x80`),
    ])
      assert.match(await pdfText(onePage(content)), /words/);
  });

  const md5 = (...parts: readonly Uint8Array[]): Uint8Array => createHash("md5").update(Buffer.concat(parts)).digest();
  function rc4(key: Uint8Array, data: Uint8Array): Uint8Array {
    const box = Uint8Array.from({ length: 256 }, (_, at) => at);
    const at = (index: number): number => box[index & 255] ?? 0;
    const swap = (left: number, right: number): void => {
      const kept = at(left);
      box[left] = at(right);
      box[right] = kept;
    };
    let [left, right] = [0, 0];
    for (let index = 0; index < 256; index++) {
      right = (right + at(index) + (key[index % key.length] ?? 0)) & 255;
      swap(index, right);
    }
    right = 0;
    return data.map((byte) => {
      left = (left + 1) & 255;
      right = (right + at(left)) & 255;
      swap(left, right);
      return byte ^ at(at(left) + at(right));
    });
  }
  /** The standard handler, revision 2: the page's content is object 4. */
  function encrypted(dict: string, data: string, password = ""): Uint8Array {
    const padding = Uint8Array.from(Buffer.from("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A", "hex"));
    const [owner, id] = [new Uint8Array(32).fill(7), new Uint8Array(16).fill(9)];
    const padded = new Uint8Array([...latin1(password), ...padding]).subarray(0, 32);
    const key = md5(padded, owner, Uint8Array.of(0xfc, 0xff, 0xff, 0xff), id).subarray(0, 5);
    const content = rc4(md5(key, Uint8Array.of(4, 0, 0, 0, 0)).subarray(0, 10), latin1(data));
    const text = (bytes: Uint8Array): string => `<${Buffer.from(bytes).toString("hex")}>`;
    const encrypt = `/Encrypt<</Filter/Standard/V 1/R 2/O${text(owner)}/U${text(rc4(key, padding))}/P -4>>/ID[${text(id)}${text(id)}]`;
    return latin1(latin(joined(stream(dict, latin(content)))).replace(/(?=\/Size \d)/, encrypt));
  }
  test("a file that is encrypted and opens without a password is read, with the same bound", async () => {
    assert.match(await pdfText(encrypted("", words)), /words/);
    assert.match(await pdfText(encrypted("/Filter/FlateDecode", flate(words))), /words/);
    await refused(encrypted("/Filter/FlateDecode", bomb), large);
    await refused(encrypted("", words, "secret"), /opens only with a password.* printed to a new PDF/);
  });
});
