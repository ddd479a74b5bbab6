/** The readers of documents and of image headers: what they read, and how they refuse. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { strToU8, zipSync } from "fflate";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import { bmp, docx, eml, gif, pptx, xlsx } from "../../../../test/support/documents.ts";
import { documentText } from "./documents.lazy.ts";
import { htmlText } from "./html.ts";
import { firstFrame, imageFacts, turned } from "./image-facts.ts";
import { TextOut, Unreadable } from "./reading.ts";
import { attribute, unescaped, xmlParts } from "./xml.ts";

describe("[P12.2][M7] documents as text", () => {
  test("Word: headings, paragraphs, tables; deleted text is left out", async () => {
    const text = await documentText(
      "docx",
      docx(
        ["Offer", "Five & six < seven"],
        [
          ["a", "b"],
          ["c", "d"],
        ],
      ),
    );
    assert.equal(text, "# Offer\nFive & six < seven\na | b\nc | d");
  });
  test("Excel: sheets as CSV, shared strings, numbers and dates", async () => {
    const bytes = xlsx("Costs & more", [
      ["item", "price, net", "day"],
      ["pen", 1.5, { date: 46_328 }],
    ]);
    assert.equal(await documentText("xlsx", bytes), '[Sheet "Costs & more"]\nitem,"price, net",day\npen,1.5,2026-11-02');
  });
  test("[F41][TH16] Excel: a code of a number format is read to its 256th character; a bracket without end reaches to the end", async () => {
    const shown = async (code: string): Promise<string> => {
      const files = {
        "xl/styles.xml": `<styleSheet><numFmts><numFmt numFmtId="200" formatCode="${code}"/></numFmts><cellXfs><xf numFmtId="200"/></cellXfs></styleSheet>`,
        "xl/worksheets/sheet1.xml": '<sheetData><row><c r="A1" s="0"><v>46328</v></c></row></sheetData>',
      };
      const bytes = zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)])));
      return (await documentText("xlsx", bytes)).split("\n")[1] ?? "";
    };
    for (const date of ["yyyy", "[$-407]d.m.", `${"0".repeat(255)}d`]) assert.equal(await shown(date), "2026-11-02", date);
    for (const number of ["0.00", "[Red]0", `${"0".repeat(256)}d`, "[[[[d", "0&quot;&quot;&quot;d"])
      assert.equal(await shown(number), "46328", number);
  });
  test("PowerPoint: slides in order", async () => {
    const slides = Array.from({ length: 11 }, (_, index) => `text ${index + 1}`);
    const text = await documentText("pptx", pptx(slides));
    assert.deepEqual([...text.matchAll(/text \d+/g)].map(String), slides);
    assert.match(text, /^\[Slide 1\]\ntext 1/);
  });
  test("e-mail: headers, text of the HTML, names of attachments", async () => {
    const text = await documentText("eml", eml("Lunch", "<p>At <b>eight</b>?</p><script>steal()</script>"));
    for (const part of ["From: Ann <ann@example.org>", "Subject: Lunch", 'Attachment: "offer.pdf" (application/pdf, 6 bytes)', "At eight?"])
      assert.ok(text.includes(part), text);
    assert.ok(!text.includes("steal"));
  });
  test("HTML: text, lists, tables and links; no scripts and styles", async () => {
    const html = `<html><head><title>T&amp;C</title><style>p{}</style></head><body><h1>Hi</h1><p>a
      <a href="https://example.org/?a=1&amp;b=2">link</a><ul><li>one<li>two</ul><table><tr><td>x</td><td>y</td></tr></table>
      <script>if (a < b) document.write("<p>no</p>")</script>&#x41;&nbsp;&euro;</body></html>`;
    const text = await htmlText(html);
    assert.match(text, /^T&C\n\nHi\n/);
    for (const part of ["link (https://example.org/?a=1&b=2)", "- one", "- two", "x | y", "A €"]) assert.ok(text.includes(part), text);
    assert.ok(!/document|p\{\}/.test(text));
  });
  test("[F41][TH16] the work for XML and HTML grows with their size, also when no tag, comment or quote ends", () => {
    /** Counts the characters that are searched or read one by one. */
    class Counted extends String {
      reads = 0;
      override charAt(at: number): string {
        this.reads += 1;
        return super.charAt(at);
      }
      override charCodeAt(at: number): number {
        this.reads += 1;
        return super.charCodeAt(at);
      }
      override indexOf(what: string, from = 0): number {
        const found = super.indexOf(what, from);
        this.reads += (found < 0 ? this.length : found) - from + 1;
        return found;
      }
    }
    const units = [
      "<",
      "< ",
      "<1",
      "</",
      "</ ",
      "</1",
      "<a",
      "<a ",
      '<a b="',
      "<a b='",
      "<!",
      "<!--",
      "<![CDATA[",
      "<?",
      "<a>",
      "<a b=''>",
      "&",
      "<!>",
      "<!-->",
    ];
    for (const source of units.map((unit) => unit.repeat(2_000))) {
      const counted = new Counted(source);
      let parts = 0;
      for (const _ of xmlParts(counted as unknown as string)) parts += 1;
      assert.ok(parts <= source.length);
      assert.ok(
        counted.reads <= 6 * source.length,
        `${counted.reads} characters were read of ${source.slice(0, 12)}... (${source.length})`,
      );
    }
  });
  test("[F41] HTML: a letter that grows in lower case does not move what is left out", async () => {
    assert.equal(await htmlText(`${"İ".repeat(20)}<script>hidden()</script>seen`), `${"İ".repeat(20)}seen`);
  });
  test("XML: damaged input gives what can be read; entities expand to single characters only", () => {
    assert.equal(unescaped("&lt;&#65;&#x1F600;&lol;&#0;&#xD800;"), "<A😀&lol;��");
    const parts = [...xmlParts(`a<b c="x>y">d</b><!-- <e> --><![CDATA[<f>]]>1 < 2<g/><h`)];
    assert.deepEqual(
      parts.map((part) => (part.kind === "text" ? part.text : `${part.kind} ${part.name}`)),
      ["a", "open b", "d", "close b", "<f>", "1 ", "<", " 2", "open g", "open h"],
    );
    const kinds = (source: string): string[] =>
      [...xmlParts(source)].map((part) => (part.kind === "open" ? `${part.name}|${part.attributes}|${part.isEmpty}` : part.kind));
    for (const [source, is] of [
      ["<a b=\"1>2\" c='3>4'/>", ["a| b=\"1>2\" c='3>4'/|true"]],
      // A quote that follows no equals sign, as in careless HTML, opens nothing.
      ['<a b" >t', ['a| b" |false', "text"]],
      ["<a it's>t", ["a| it's|false", "text"]],
      ['<a b = ">">t', ['a| b = ">"|false', "text"]],
      ['<a b="never closed>t', ['a| b="never closed>t|false']],
      ["<a><!-- never closed", ["a||false"]],
      ["<![CDATA[never closed", ["text"]],
      ["<a>", ["a||false"]],
      ["t", ["text"]],
      ["", []],
    ] as const)
      assert.deepEqual(kinds(source), is, source);
  });
});

describe("[P12.2][M8] hostile and damaged files are refused in a sentence", () => {
  const refusal = (kind: Parameters<typeof documentText>[0], bytes: Uint8Array, why = /^It.*\.$/) =>
    assert.rejects(documentText(kind, bytes), (error) => error instanceof Unreadable && why.test(error.message));
  test("a zip that expands without end", async () => {
    const huge = zipSync({ "word/document.xml": new Uint8Array(LIMITS.documentExpandedBytes + 1) }, { level: 9 });
    assert.ok(huge.length < 200_000);
    await refusal("docx", huge, /^Its content is larger than 64 MiB when it is unpacked\.$/);
  });
  test("a zip with too many files, another kind of zip, no zip, a cut one", async () => {
    const many = zipSync(Object.fromEntries(Array.from({ length: 2_100 }, (_, index) => [`x${index}`, new Uint8Array(0)])));
    await refusal("docx", many, /^It has more than 2000 files in it\.$/);
    await refusal("docx", zipSync({ "a.txt": strToU8("x") }));
    await refusal("xlsx", docx(["x"]));
    await refusal("pptx", strToU8("PK, or not"));
    const cut = docx(["x".repeat(5_000)]);
    await refusal("docx", cut.subarray(0, 100));
  });
  test("[TH16] other work has its turn while a document is read", async () => {
    const archive = (name: string, text: string): Uint8Array => zipSync({ [name]: strToU8(text) });
    for (const [kind, bytes] of [
      ["docx", archive("word/document.xml", `<w:document>${"<w:p/>".repeat(1_500_000)}<w:t>end</w:t></w:document>`)],
      ["html", strToU8(`${"<p>".repeat(1_000_000)}end`)],
      [
        "xlsx",
        archive("xl/worksheets/sheet1.xml", `<sheetData>${"<row/>".repeat(1_000_000)}<row><c r="A1"><v>1</v></c></row></sheetData>`),
      ],
    ] as const) {
      let turns = 0;
      const timer = setInterval(() => (turns += 1), 0);
      await documentText(kind, bytes).finally(() => clearInterval(timer));
      assert.ok(turns >= 10, `${kind}: ${turns} turns`);
    }
  });
  test("every damaged byte of a document gives text or a sentence", async () => {
    const bytes = xlsx("Sheet", [["a", 1, { date: 46_000 }]]);
    for (let at = 0; at < bytes.length; at += 3) {
      const damaged = bytes.slice();
      damaged[at] = (damaged[at] ?? 0) ^ 0x5a;
      await documentText("xlsx", damaged).catch((error: unknown) => assert.ok(error instanceof Unreadable, String(error)));
    }
  });
  test("[F41][TH16] an e-mail with too many parts, lines, levels or bytes of text; large attachments are no text", async () => {
    const mail = (type: string, body: string): Uint8Array => strToU8(`From: a@example.org\r\nContent-Type: ${type}\r\n\r\n${body}`);
    const mixed = (parts: number): Uint8Array => mail("multipart/mixed; boundary=b", `${"--b\r\n\r\nx\r\n".repeat(parts)}--b--\r\n`);
    const levels = (depth: number): Uint8Array => {
      let body = "x";
      for (let level = depth; level > 0; level--)
        body = `--b${level}\r\nContent-Type: multipart/mixed; boundary=b${level + 1}\r\n\r\n${body}`;
      return mail("multipart/mixed; boundary=b1", body);
    };
    await refusal("eml", mixed(2_001), /^It has too many parts: more than 2000 lines begin with `--`\.$/);
    await refusal("eml", mail("text/plain", "\n".repeat(500_001)), /^It has more than 500000 lines\.$/);
    await refusal("eml", levels(11));
    const long = mail("text/plain", "some words\r\n".repeat(180_000));
    await refusal("eml", long, /^Its text without attachments is larger than 2 MiB\.$/);
    assert.equal((await documentText("eml", mixed(100))).match(/x/g)?.length, 101);
    assert.match(await documentText("eml", levels(9)), /From/);
    const file = `${"JVBE".repeat(19)}\r\n`.repeat(30_000);
    const attached = `--b\r\n\r\nWords.\r\n--b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n${file}--b--\r\n`;
    assert.match(await documentText("eml", mail("multipart/mixed; boundary=b", attached)), /1710000 bytes\)\n\nWords\.$/);
  });
  test("a text that is longer than what is kept is cut with a note", async () => {
    const text = await documentText("docx", docx(["t", "x".repeat(LIMITS.documentTextChars + 5)]));
    assert.ok(text.length < LIMITS.documentTextChars + 100);
    assert.match(text, /Only the first 1000000 characters are kept/);
  });
  test("a text that fits exactly has no note; with one more piece it has", () => {
    const out = new TextOut();
    out.add("x".repeat(LIMITS.documentTextChars));
    assert.ok(!out.isFull && out.toString().length === LIMITS.documentTextChars);
    out.add("y");
    assert.ok(out.isFull);
    assert.match(out.toString(), /x\n\[Only the first 1000000 characters are kept\.\]$/);
  });
});

describe("[P12.2][M9] image headers", () => {
  const bytes = (text: string): Uint8Array => Uint8Array.from(text, (sign) => sign.charCodeAt(0));
  test("sizes of each format, and the orientation of a JPEG", () => {
    const png = bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x10\0\0\0\x0b\xd0");
    assert.deepEqual(imageFacts(png), { width: 4096, height: 3024, orientation: 1 });
    assert.deepEqual(imageFacts(gif(1)), { width: 1, height: 1, orientation: 1 });
    assert.deepEqual(imageFacts(bmp(30, 20)), { width: 30, height: 20, orientation: 1 });
    const exif = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    const jpeg = bytes(`\xff\xd8\xff\xe1\0${String.fromCharCode(exif.length + 2)}${exif}\xff\xc0\0\x11\x08\0\x64\0\xc8\x03\0\0\0\0`);
    assert.deepEqual(imageFacts(jpeg), { width: 200, height: 100, orientation: 6 });
    const webp = bytes("RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x0f\x27\0\x63\0\0");
    assert.deepEqual(imageFacts(webp), { width: 10_000, height: 100, orientation: 1 });
    const other = bytes("\x89PNG\r\n\x1a\n\0\0\0\x04CgBI\x50\0\x20\x02\0\0\0\0");
    for (const none of [png.subarray(0, 23), other, ...["", "nothing", "\xff\xd8\xff\xd9", "GIF89a"].map(bytes)])
      assert.equal(imageFacts(none), undefined);
  });
  test("[F41][TH16] a GIF is as large as its largest frame, because that is what a decoder allocates", () => {
    const large = gif(2);
    // The second frame: its descriptor says 20,000 x 3 pixels.
    const at = large.lastIndexOf(0x2c);
    large.set([0x20, 0x4e, 3, 0], at + 5);
    assert.deepEqual(imageFacts(large), { width: 20_000, height: 3, orientation: 1 });
    assert.deepEqual(imageFacts(large.subarray(0, at + 9)), { width: 20_000, height: 3, orientation: 1 });
  });
  test("of an animation the first frame stays; a single picture stays as it is", () => {
    assert.deepEqual(firstFrame(gif(3)), gif(1));
    const single = gif(1);
    assert.equal(firstFrame(single), single);
    assert.equal(firstFrame(gif(1).subarray(0, 30)), undefined);
  });
  test("turned pictures become upright", () => {
    // Two rows of three pixels, named by their numbers.
    const at = (values: readonly number[]): Uint8Array => new Uint8Array(Uint32Array.from(values).buffer);
    const shown = (orientation: number): readonly [number, number, ...number[]] => {
      const out = turned({ pixels: at([1, 2, 3, 4, 5, 6]), width: 3, height: 2 }, orientation);
      return [out.width, out.height, ...new Uint32Array(out.pixels.buffer)];
    };
    assert.deepEqual([1, 2, 3, 4, 5, 6, 7, 8].map(shown), [
      [3, 2, 1, 2, 3, 4, 5, 6],
      [3, 2, 3, 2, 1, 6, 5, 4],
      [3, 2, 6, 5, 4, 3, 2, 1],
      [3, 2, 4, 5, 6, 1, 2, 3],
      [2, 3, 1, 4, 2, 5, 3, 6],
      [2, 3, 4, 1, 5, 2, 6, 3],
      [2, 3, 6, 3, 5, 2, 4, 1],
      [2, 3, 3, 6, 2, 5, 1, 4],
    ]);
  });
});
describe("[M7] characters and attributes of XML", () => {
  test("a reference is its character, or a mark where there is none", () => {
    const of = (code: number): string => unescaped(`&#x${code.toString(16)};`);
    for (const code of [1, 0xd7ff, 0xe000, 0x10ffff]) assert.equal(of(code), String.fromCodePoint(code));
    for (const code of [0, 0xd800, 0xdfff, 0x110000]) assert.equal(of(code), "\ufffd");
    assert.equal(unescaped("&#65;&nosuch;&constructor;&amp"), "A&nosuch;&constructor;&amp");
  });
  test("an attribute is found by its whole name", () => {
    assert.equal(attribute('id="1" r:id="2"', "id"), "1");
    assert.equal(attribute(" xid=\"1\" id = '2'", "id"), "2");
    assert.equal(attribute(" xid=1 id=3", "id"), "3");
    assert.equal(attribute(' id2="1" valid', "id"), undefined);
  });
});
