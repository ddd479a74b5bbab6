/**
 * Which addresses the gateway reads for a condition of HEARTBEAT.md (rule HB9): http and https, without credentials, and none of this
 * machine, of a local network or of a metadata service. PURE: it reads the text alone. A name that leads to such an address is refused
 * where the connection is made.
 */

export type PublicUrl = { readonly ok: true } | { readonly ok: false; readonly problem: string };

const refuse = (problem: string): PublicUrl => ({ ok: false, problem });
const LOCAL = "is an address of this machine or of a local network, which the gateway does not read";

/** `problem` continues a sentence that begins with the text. */
export function publicUrl(text: string): PublicUrl {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text)) return refuse("is not an address with http:// or https://");
  if (url.protocol !== "http:" && url.protocol !== "https:") return refuse("is not an address with http:// or https://");
  if (url.username !== "" || url.password !== "") return refuse("has a user name or a password in it, which the gateway does not send");
  return isLocal(url.hostname) ? refuse(LOCAL) : { ok: true };
}

/** `host` as a URL has it: lower case, an IPv4 address with four decimal numbers, an IPv6 address in brackets. */
function isLocal(host: string): boolean {
  if (host.startsWith("[")) return !isPublicV6(host.slice(1, -1));
  if (/^\d+(?:\.\d+){3}$/.test(host)) return !isPublicV4(host.split(".").map(Number));
  const name = host.replace(/\.$/, "");
  // A name without a dot is one of the local network.
  return !name.includes(".") || LOCAL_NAMES.some((suffix) => name.endsWith(suffix));
}
const LOCAL_NAMES = [".localhost", ".local", ".localdomain", ".internal", ".intranet", ".lan", ".home", ".corp", ".home.arpa"];

/** Address and length of the prefix, of RFC 6890 and its successors. */
const RESERVED_V4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];
const numberOf = (parts: readonly number[]): number => parts.reduce((sum, part) => sum * 256 + part, 0);
const isPublicV4 = (parts: readonly number[]): boolean =>
  !RESERVED_V4.some(([from, length]) => {
    const size = 2 ** (32 - length);
    return Math.floor(numberOf(parts) / size) === Math.floor(numberOf(from.split(".").map(Number)) / size);
  });

/** Only the global unicast addresses, without those that stand for an IPv4 address (6to4, Teredo) and those of documentation. */
function isPublicV6(text: string): boolean {
  const [first = "", second = ""] = text.split(":");
  const [high, low] = [Number.parseInt(first || "0", 16), Number.parseInt(second || "0", 16)];
  if (high < 0x2000 || high > 0x3fff || high === 0x2002) return false;
  return high !== 0x2001 || (low >= 0x200 && low !== 0xdb8);
}
