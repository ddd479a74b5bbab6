/**
 * PURE. Reads untrusted input from Discord: each reader returns a bounded, clean value or `undefined`, and never throws.
 */
export type Fields = Readonly<Record<string, unknown>>;

export const asObject = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
export const asArray = (value: unknown, max: number): readonly unknown[] => (Array.isArray(value) ? value.slice(0, max) : []);
export const asNumber = (value: unknown, min: number, max: number): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= min && value <= max ? value : undefined;
/** A Discord id: an unsigned 64-bit number in decimal. */
export const asId = (value: unknown): string | undefined =>
  typeof value === "string" && /^[1-9]\d{4,19}$/.test(value) ? value : undefined;
export const asTime = (value: unknown): number | undefined => {
  if (typeof value !== "string" || value.length > 64) return undefined;
  const time = Date.parse(value);
  return Number.isFinite(time) && time >= 0 ? Math.trunc(time) : undefined;
};

/** Control characters except tab and line feed. */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export function cleanText(value: unknown, max: number): string {
  if (typeof value !== "string") return "";
  // Cut first, so that the cleaning is bounded, too.
  return value.slice(0, max).toWellFormed().replaceAll(/\r\n?/g, "\n").replace(CONTROLS, "").trim();
}
/** Creation time from an id, epoch ms. */
export const timeOfId = (id: string): number => Number((BigInt(id) >> 22n) + 1_420_070_400_000n);
/** The smallest id of a time. */
export const idAtTime = (ms: number): string => String(BigInt(Math.max(0, Math.trunc(ms) - 1_420_070_400_000)) << 22n);
export const isNewerId = (left: string, right: string): boolean => BigInt(left) > BigInt(right);
