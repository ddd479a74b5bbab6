/** A tiny PDF that makes PDF.js use each class that pdf-bounds.ts looks for: a packed stream, a drawn font, codes of two bytes. */
const OBJECTS = [
  "<</Type/Catalog/Pages 2 0 R>>",
  "<</Type/Pages/Kids[3 0 R]/Count 1>>",
  "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</A 5 0 R/B 6 0 R>>>>>>",
  packed("BT /A 1 Tf (a) Tj /B 1 Tf <0041> Tj ET"),
  "<</Type/Font/Subtype/Type3/FontBBox[0 0 1 1]/FontMatrix[1 0 0 1 0 0]/FirstChar 97/LastChar 97/Widths[1]/CharProcs<</a 8 0 R>>/Encoding<</Type/Encoding/Differences[97/a]>>>>",
  "<</Type/Font/Subtype/Type0/BaseFont/B/Encoding/Identity-H/DescendantFonts[7 0 R]/ToUnicode 9 0 R>>",
  "<</Type/Font/Subtype/CIDFontType2/BaseFont/B/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>",
  packed("1 0 d0"),
  packed("1 begincodespacerange <0000><FFFF> endcodespacerange 1 beginbfchar <0041><0041> endbfchar endcmap"),
];
function packed(text: string): string {
  const hex = Array.from(text, (sign) => sign.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  return `<</Filter/ASCIIHexDecode/Length ${hex.length + 1}>>\nstream\n${hex}>\nendstream`;
}

export const sample = (): Uint8Array =>
  new TextEncoder().encode(
    `%PDF-1.7\n${OBJECTS.map((object, index) => `${index + 1} 0 obj\n${object}\nendobj\n`).join("")}trailer\n<</Root 1 0 R/Size ${OBJECTS.length + 1}>>\n%%EOF\n`,
  );
