/**
 * A tiny PDF that makes PDF.js use each class that pdf-bounds.ts looks for: a compressed stream, a Type 3 font, a font with two-byte codes,
 * and two embedded font files.
 */
const OBJECTS = [
  "<</Type/Catalog/Pages 2 0 R>>",
  "<</Type/Pages/Kids[3 0 R]/Count 1>>",
  "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</A 5 0 R/B 6 0 R/C 10 0 R/D 11 0 R>>>>>>",
  encoded("BT /A 1 Tf (a) Tj /B 1 Tf <0041> Tj /C 1 Tf (a) Tj /D 1 Tf (a) Tj ET"),
  "<</Type/Font/Subtype/Type3/FontBBox[0 0 1 1]/FontMatrix[1 0 0 1 0 0]/FirstChar 97/LastChar 97/Widths[1]/CharProcs<</a 8 0 R>>/Encoding<</Type/Encoding/Differences[97/a]>>>>",
  "<</Type/Font/Subtype/Type0/BaseFont/B/Encoding/Identity-H/DescendantFonts[7 0 R]/ToUnicode 9 0 R>>",
  "<</Type/Font/Subtype/CIDFontType2/BaseFont/B/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>",
  encoded("1 0 d0"),
  encoded("1 begincodespacerange <0000><FFFF> endcodespacerange 1 beginbfchar <0041><0041> endbfchar endcmap"),
  // The beginning of a font's file is enough.
  "<</Type/Font/Subtype/Type1/BaseFont/C/FontDescriptor<</Type/FontDescriptor/FontName/C/Flags 4/FontFile3 12 0 R>>>>",
  "<</Type/Font/Subtype/Type1/BaseFont/D/FontDescriptor<</Type/FontDescriptor/FontName/D/Flags 4/FontFile 13 0 R>>>>",
  encoded("\u0001\u0000\u0004\u0001 no more", "/Subtype/Type1C"),
  encoded("%!PS-AdobeFont-1.0: D\ncurrentfile eexec\n0000000000", "/Length1 40/Length2 10/Length3 0"),
];
function encoded(text: string, dict = ""): string {
  const hex = Array.from(text, (sign) => sign.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  return `<<${dict}/Filter/ASCIIHexDecode/Length ${hex.length + 1}>>\nstream\n${hex}>\nendstream`;
}

export const sample = (): Uint8Array =>
  new TextEncoder().encode(
    `%PDF-1.7\n${OBJECTS.map((object, index) => `${index + 1} 0 obj\n${object}\nendobj\n`).join("")}trailer\n<</Root 1 0 R/Size ${OBJECTS.length + 1}>>\n%%EOF\n`,
  );
