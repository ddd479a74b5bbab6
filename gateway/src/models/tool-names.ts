/**
 * Tool names on a provider's wire. Providers accept `[A-Za-z0-9_-]{1,64}`; ours may be longer and contain dots (node ids do).
 * A name that does not fit is replaced by an alias that depends only on the name, so that history and requests agree
 * and prompts stay byte-identical. PURE.
 */
const FITS = /^[A-Za-z0-9_-]{1,64}$/;

/** 32-bit FNV-1a over UTF-16 units, in hex. For distinct names only, not for security. */
export function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
export function wireName(name: string): string {
  if (FITS.test(name)) return name;
  return `${name.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, 55)}_${shortHash(name)}`;
}
/** Our name for a name that a model used. An unknown name is returned unchanged: the machine answers it. */
export function toolNamesOf(names: readonly string[]): (wire: string) => string {
  const odd = new Map<string, string>();
  for (const name of names) if (!FITS.test(name)) odd.set(wireName(name), name);
  return odd.size === 0 ? (wire) => wire : (wire) => odd.get(wire) ?? wire;
}
