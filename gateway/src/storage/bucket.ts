/**
 * The bucket as the workspace uses it, and what can go wrong with it as values. Nothing here knows a path.
 */
import type { GsvError, Result } from "../ports/result.ts";

export type Bucket = Pick<R2Bucket, "get" | "put" | "head" | "delete" | "list">;

export const failure = (reason: GsvError["reason"], message: string): { ok: false; error: GsvError } => ({
  ok: false,
  error: { reason, message },
});

/** Runs one thing on the bucket. What it throws is the storage's fault, and its text is not for people. */
export async function guarded<T>(what: string, work: () => Promise<T>): Promise<Result<T>> {
  try {
    return { ok: true, value: await work() };
  } catch {
    return failure("storage.failed", `The storage could not ${what}. Try again.`);
  }
}
export const hasBody = (object: R2Object | R2ObjectBody): object is R2ObjectBody => "body" in object;

/** Text of an object, at most `maxBytes` of it, never half a character. Bytes that are no UTF-8 become U+FFFD. */
export async function readStart(
  bucket: Bucket,
  key: string,
  sizeBytes: number,
  maxBytes: number,
): Promise<{ text: string; etag: string; sizeBytes: number } | undefined> {
  const object = await bucket.get(key, sizeBytes > maxBytes ? { range: { offset: 0, length: maxBytes } } : undefined);
  if (!object || !hasBody(object)) return undefined;
  const bytes = new Uint8Array(await object.arrayBuffer());
  return { text: decodeStart(bytes, maxBytes), etag: object.etag, sizeBytes: object.size };
}
/** The beginning of a text, never half a character. */
export const decodeStart = (bytes: Uint8Array, maxBytes: number): string =>
  new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: bytes.length >= maxBytes });

/** A text, or undefined when the bytes are not one. */
export function asText(bytes: ArrayBuffer): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
