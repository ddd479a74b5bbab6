/** AWS's signature version 4 for one request with a body that is known whole. */
import type { AwsKeys } from "../cloud.ts";

export interface Unsigned {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly region: string;
  readonly service: string;
}
const utf8 = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(new TextEncoder().encode(text));
const hex = (bytes: ArrayBuffer): string => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const sha256 = async (text: string): Promise<string> => hex(await crypto.subtle.digest("SHA-256", utf8(text)));
async function hmac(key: BufferSource, text: string): Promise<ArrayBuffer> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return crypto.subtle.sign("HMAC", imported, utf8(text));
}
/** Proxies may change it on the way. */
const UNSIGNED = new Set(["user-agent"]);

/** The headers of the request, with its signature. */
export async function signed({ url, headers, body, region, service }: Unsigned, keys: AwsKeys, now: Date): Promise<Record<string, string>> {
  const time = now.toISOString().replace(/[-:]|\.\d{3}/g, "");
  const day = time.slice(0, 8);
  const all: Record<string, string> = {
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    "x-amz-date": time,
    ...(keys.sessionToken === undefined ? {} : { "x-amz-security-token": keys.sessionToken }),
  };
  const lines = Object.entries({ ...all, host: url.host })
    .filter(([name]) => !UNSIGNED.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const names = lines.map(([name]) => name).join(";");
  // The path is encoded once more than it is sent.
  const path = url.pathname.split("/").map(strictly).join("/");
  const fields = lines.map(([name, value]) => `${name}:${value.trim().replace(/\s+/g, " ")}\n`).join("");
  const canonical = ["POST", path, "", fields, names, await sha256(body)].join("\n");
  const scope = [day, region, service, "aws4_request"];
  const text = ["AWS4-HMAC-SHA256", time, scope.join("/"), await sha256(canonical)].join("\n");
  let key: BufferSource = utf8(`AWS4${keys.secretAccessKey}`);
  for (const part of scope) key = await hmac(key, part);
  const signature = hex(await hmac(key, text));
  const credential = `${keys.accessKeyId}/${scope.join("/")}`;
  return { ...all, authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names}, Signature=${signature}` };
}
const strictly = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
