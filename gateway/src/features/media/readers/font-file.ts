/** Looks into the files of TrueType and OpenType fonts (ISO/IEC 14496-22) before PDF.js does. PURE. */

const MAX_TABLES = 256;

/** How many codes the largest table of characters maps. PDF.js makes an entry for each code of a range. Infinity: too odd. */
export function mappedCodes(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const u16 = (at: number): number => (at + 2 <= bytes.length ? view.getUint16(at) : 0);
  const u32 = (at: number): number => (at + 4 <= bytes.length ? view.getUint32(at) : 0);
  // A collection of fonts ("ttcf") has no place in a PDF.
  if (u32(0) === 0x74746366) return Number.POSITIVE_INFINITY;
  const tables = u16(4);
  if (tables > MAX_TABLES) return Number.POSITIVE_INFINITY;
  let codes = 0;
  for (let entry = 12; entry < 12 + 16 * tables; entry += 16) {
    if (u32(entry) !== 0x636d6170) continue;
    const cmap = u32(entry + 8);
    const maps = u16(cmap + 2);
    if (maps > MAX_TABLES) return Number.POSITIVE_INFINITY;
    for (let map = 0; map < maps; map++) codes = Math.max(codes, codesOf(cmap + u32(cmap + 4 + 8 * map + 4), u16, u32));
  }
  return codes;
}
function codesOf(at: number, u16: (at: number) => number, u32: (at: number) => number): number {
  const format = u16(at);
  const size = (first: number, last: number): number => Math.max(0, last - first + 1);
  let codes = 0;
  if (format === 2) for (let high = 0; high < 256; high++) codes += u16(at + 518 + 8 * (u16(at + 6 + 2 * high) >> 3) + 2);
  else if (format === 4) {
    const ranges = u16(at + 6) >> 1;
    for (let range = 0; range < ranges; range++) codes += size(u16(at + 16 + 2 * (ranges + range)), u16(at + 14 + 2 * range));
  } else if (format === 6) codes = u16(at + 8);
  else if (format === 12) {
    const groups = u32(at + 12);
    if (groups > 65_536) return Number.POSITIVE_INFINITY;
    for (let group = 0; group < groups; group++) codes += size(u32(at + 16 + 12 * group), u32(at + 16 + 12 * group + 4));
  }
  return codes;
}
