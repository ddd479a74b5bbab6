/** Signatures of the example channel: hex of the HMAC-SHA256 of `timestamp.body` under the account's secret. */
import { toHex } from "../../../protocol/runtime/hex.ts";

const encoder = new TextEncoder();

export async function sign(secret: string, timestamp: string, body: string): Promise<string> {
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const mac = await crypto.subtle.sign("HMAC", key, encoder.encode(`${timestamp}.${body}`));
  return toHex(mac);
}
/** Compares in constant time. */
export async function isSigned(secret: string, timestamp: string, body: string, signature: string): Promise<boolean> {
  const expected = encoder.encode(await sign(secret, timestamp, body));
  const given = encoder.encode(signature);
  return given.length === expected.length && crypto.subtle.timingSafeEqual(given, expected);
}
