/**
 * The bucket's interface for the workspace, with its failures as values. Must not know the layout of paths.
 */
import { newerStateText } from "../ports/newer-state.ts";
import { failure, type Result, storageFailed } from "../ports/result.ts";
import { contentTypeOf } from "./keys.ts";

export type Bucket = Pick<R2Bucket, "get" | "put" | "head" | "delete" | "list">;

/** Runs one operation on the bucket. An exception becomes a failure; its text is not shown to people, unless it is the refusal of newer state. */
export async function guarded<T>(what: string, work: () => Promise<T>): Promise<Result<T>> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    const newer = newerStateText(error);
    if (newer !== undefined) return failure("storage.newer_version", newer);
    return storageFailed(`The storage could not ${what}.`);
  }
}
export const hasBody = (object: R2Object | R2ObjectBody): object is R2ObjectBody => "body" in object;

/** At most `maxBytes` of an object's text, never cut inside a character. Invalid UTF-8 becomes U+FFFD. */
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
/** The beginning of a text, never cut inside a character. */
export const decodeStart = (bytes: Uint8Array, maxBytes: number): string =>
  new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: bytes.length >= maxBytes });

/** The text, or undefined when the bytes are not valid text. */
export function asText(bytes: ArrayBuffer | Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The content type of a file with these bytes: by its name when it is text. */
export const contentTypeFor = (path: string, bytes: Uint8Array): string =>
  asText(bytes) === undefined ? "application/octet-stream" : contentTypeOf(path);
