/**
 * Fetches and decrypts a file of a message. The bytes are verified with the keys in the message before any is passed on. Only WhatsApp's
 * own hosts are contacted, whatever URL the message names (promises S18).
 */
import { createDecipheriv, createHash, createHmac, timingSafeEqual } from "node:crypto";
import { getMediaKeys, type MediaType } from "@whiskeysockets/baileys";
import { FileRefused } from "../../kit/src/inbox.ts";
import { type FileReference, own } from "./content.ts";
import { isLoopback } from "./platform/trust.ts";

const DEFAULT_HOST = "mmg.whatsapp.net";
const MAC_BYTES = 10;
const TYPES: readonly string[] = ["image", "video", "audio", "document", "sticker"];

/** Reads a stored reference, also of an older version. */
export function readReference(value: unknown): FileReference {
  const [type, directPath, url, mediaKey, sha256] = ["type", "directPath", "url", "mediaKey", "sha256"].map((name) => own(value, name));
  if (typeof type !== "string" || typeof directPath !== "string" || typeof mediaKey !== "string" || !TYPES.includes(type))
    throw new FileRefused("its reference is not valid");
  return {
    type,
    directPath,
    mediaKey,
    ...(typeof url === "string" ? { url } : {}),
    ...(typeof sha256 === "string" ? { sha256 } : {}),
  };
}
/** The URL to fetch from. `socketUrl`: a test server on this machine may serve files from this machine, too. */
export function addressOf({ url, directPath }: FileReference, socketUrl: string): string {
  const host = url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
  const trusted =
    host?.protocol === "https:" &&
    host.username === "" &&
    (/^[a-z0-9-]+(\.[a-z0-9-]+)*\.whatsapp\.net$/.test(host.host) || (isLoopback(host.href) && isLoopback(socketUrl)));
  return `https://${trusted ? host.host : DEFAULT_HOST}${directPath}`;
}

export async function fetchMedia(reference: FileReference, socketUrl: string, maxBytes: number): Promise<Uint8Array> {
  const response = await fetch(addressOf(reference, socketUrl), {
    redirect: "manual",
    headers: { Origin: "https://web.whatsapp.com" },
    signal: AbortSignal.timeout(60_000),
  });
  if (response.status === 404 || response.status === 410)
    throw new FileRefused("WhatsApp no longer has it; ask the sender to send it again");
  if (response.status !== 200) throw new Error(`WhatsApp's file server answered ${response.status}`);
  // The padding block and the MAC follow the file.
  const sealed = await readBounded(response, maxBytes + 16 + MAC_BYTES);
  return open(sealed, await getMediaKeys(Buffer.from(reference.mediaKey, "hex"), reference.type as MediaType), reference.sha256);
}
interface Keys {
  readonly iv: Uint8Array;
  readonly cipherKey: Uint8Array;
  readonly macKey?: Uint8Array;
}
export function open(sealed: Uint8Array, { iv, cipherKey, macKey }: Keys, sha256: string | undefined): Uint8Array {
  const secret = sealed.subarray(0, Math.max(0, sealed.length - MAC_BYTES));
  const seal = sealed.subarray(secret.length);
  if (!macKey || secret.length === 0) throw new FileRefused("it is damaged");
  const mac = createHmac("sha256", macKey).update(iv).update(secret).digest().subarray(0, MAC_BYTES);
  if (seal.length !== MAC_BYTES || !timingSafeEqual(mac, seal)) throw new FileRefused("it is damaged");
  const decipher = createDecipheriv("aes-256-cbc", cipherKey, iv);
  const plain = Buffer.concat([decipher.update(secret), decipher.final()]);
  if (sha256 !== undefined && createHash("sha256").update(plain).digest("hex") !== sha256) throw new FileRefused("it is another file");
  return plain;
}
async function readBounded(response: Response, maxBytes: number): Promise<Uint8Array> {
  const announced = Number(response.headers.get("content-length") ?? 0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (;;) {
    if (Math.max(size, announced) > maxBytes) {
      await reader?.cancel();
      throw new FileRefused("it is too large");
    }
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) return Buffer.concat(chunks);
    size += value.length;
    chunks.push(value);
  }
}
