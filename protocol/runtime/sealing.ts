/**
 * Seals secrets that are stored: AES-256-GCM under a key that is not stored beside them. A sealed text names its key and belongs to one
 * place (such as the path of a setting), so that it cannot be moved to another. Random bytes come in as arguments.
 */
import { toHex } from "./hex.ts";
import { createCipheriv, createDecipheriv } from "node:crypto";

/** `gsv-sealed:1:<id of the key>:<base64url of nonce, ciphertext and tag>`; the number is the version of the format. */
const SEALED = /^gsv-sealed:1:([0-9a-f]{16}):([A-Za-z0-9_-]{38,})$/;
const CIPHER = "aes-256-gcm";
const TAG_BYTES = 16;
export const SEAL_NONCE_BYTES = 12;
const MAX_KEYS = 8;

export interface SealingKeys {
  /** Seals. */
  readonly current: { readonly id: string; readonly key: Uint8Array };
  /** All keys open. */
  readonly byId: ReadonlyMap<string, Uint8Array>;
}
export type ReadKeys = { readonly ok: true; readonly keys: SealingKeys } | { readonly ok: false; readonly problem: "missing" | "invalid" };

/** Keys as 64 hex digits each, separated by white space or commas. The first one seals, the others only open what they have sealed. */
export function readSealingKeys(text: string | undefined): ReadKeys {
  const words = (text ?? "").split(/[\s,]+/).filter((word) => word !== "");
  if (words.length === 0) return { ok: false, problem: "missing" };
  if (words.length > MAX_KEYS || words.some((word) => !/^[0-9a-fA-F]{64}$/.test(word))) return { ok: false, problem: "invalid" };
  const all = words.map((word) => {
    const key = new Uint8Array(32).map((_, at) => Number.parseInt(word.slice(2 * at, 2 * at + 2), 16));
    return { id: keyId(key), key };
  });
  const [current] = all;
  if (current === undefined) return { ok: false, problem: "missing" };
  return { ok: true, keys: { current, byId: new Map(all.map(({ id, key }) => [id, key])) } };
}

/** The tag of an empty text under a nonce that sealing never uses: says which key it is, and nothing about it. */
function keyId(key: Uint8Array): string {
  const cipher = createCipheriv(CIPHER, key, new Uint8Array(SEAL_NONCE_BYTES), { authTagLength: TAG_BYTES });
  cipher.setAAD(utf8("id of a key"));
  cipher.final();
  return toHex(cipher.getAuthTag().subarray(0, 8));
}

export const isSealed = (text: unknown): boolean => typeof text === "string" && SEALED.test(text);
/** The id of the key that sealed a text. */
export const sealedBy = (text: string): string | undefined => SEALED.exec(text)?.[1];

/** `nonce` must be new random bytes each time, SEAL_NONCE_BYTES of them. */
export function seal({ current }: SealingKeys, place: string, text: string, nonce: Uint8Array): string {
  if (nonce.length !== SEAL_NONCE_BYTES || nonce.every((byte) => byte === 0)) throw new Error("this is no nonce for sealing");
  const cipher = createCipheriv(CIPHER, current.key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(utf8(place));
  const body = [cipher.update(utf8(text)), cipher.final(), cipher.getAuthTag()];
  return `gsv-sealed:1:${current.id}:${base64url([nonce, ...body])}`;
}

export type Opened =
  | { readonly ok: true; readonly text: string }
  /** `no_key`: none of the keys sealed it. `damaged`: it was changed, or belongs to another place. */
  | { readonly ok: false; readonly problem: "no_key" | "damaged" };

export function open(keys: SealingKeys | undefined, place: string, sealed: string): Opened {
  const [, id = "", body = ""] = SEALED.exec(sealed) ?? [];
  const key = keys?.byId.get(id);
  if (key === undefined) return { ok: false, problem: id === "" ? "damaged" : "no_key" };
  try {
    const bytes = fromBase64url(body);
    if (bytes === undefined) return { ok: false, problem: "damaged" };
    const end = bytes.length - TAG_BYTES;
    const cipher = createDecipheriv(CIPHER, key, bytes.subarray(0, SEAL_NONCE_BYTES), { authTagLength: TAG_BYTES });
    cipher.setAAD(utf8(place));
    cipher.setAuthTag(bytes.subarray(end));
    const parts = [cipher.update(bytes.subarray(SEAL_NONCE_BYTES, end)), cipher.final()];
    return { ok: true, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(joined(parts)) };
  } catch {
    return { ok: false, problem: "damaged" };
  }
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const base64url = (parts: readonly Uint8Array[]): string =>
  btoa(Array.from(joined(parts), (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

/** Undefined unless it is exactly what `base64url` writes, so that no bit of the text can change unseen. */
function fromBase64url(text: string): Uint8Array | undefined {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  return base64url([bytes]) === text ? bytes : undefined;
}
