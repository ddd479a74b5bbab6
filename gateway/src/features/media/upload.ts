/**
 * Streams an uploaded file into the bucket: bounded, typed by its first bytes, hashed on the way, never whole in memory. The first
 * file under a name stays, and a repeated upload gets the same answer.
 */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import type { MediaUploaded } from "../../../../protocol/gen/types.ts";
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import { failure, type Result, storageFailed } from "../../ports/result.ts";
import { type Bucket, guarded, hasBody } from "../../storage/bucket.ts";
import { cleanFilename, HEAD_BYTES, isShownImage, typeOf } from "../../storage/media-kinds.ts";
import { keyFor, type MediaOrigin } from "../../storage/media-names.ts";

export interface UploadInput {
  readonly sessionKey: string;
  readonly origin: MediaOrigin;
  /** The type that the sender declares. */
  readonly contentType: string;
  /** The body's size that the sender declares. */
  readonly sizeBytes: number;
  readonly body: ReadableStream<Uint8Array>;
  readonly filename?: string;
  readonly now: number;
  /** Accept only image types for models. */
  readonly imagesOnly: boolean;
}
/** A sender that is silent for this long counts as gone. */
const IDLE_MS = 30_000;

const broken = failure("protocol.invalid_params", "The upload broke off, or its length differs from its Content-Length.", "Send it again.");

export async function upload(input: UploadInput, bucket: Bucket): Promise<Result<MediaUploaded>> {
  const source = new Source(input.body);
  const head = await source.head();
  if (head === undefined) return broken;
  const mimeType = typeOf(input.contentType, head);
  if (input.imagesOnly && !isShownImage(mimeType)) {
    await source.cancel();
    return failure("media.unsupported", "A tool's result can only have PNG, JPEG, GIF and WebP images.");
  }
  const r2Key = await keyFor(input.sessionKey, input.origin, mimeType);
  const filename = cleanFilename(input.filename);
  const answer = (sizeBytes: number, sha256: string): Result<MediaUploaded> => ({
    ok: true,
    value: { r2Key, mimeType, sizeBytes, sha256, ...(filename === undefined ? {} : { filename }) },
  });
  const known = await guarded("look for the file", () => bucket.get(r2Key));
  if (!known.ok) return known;
  if (known.value !== null && hasBody(known.value)) {
    // Uploaded before: the stored file is used, and the new body is discarded.
    const [there] = await Promise.all([hashOf(known.value.body), source.drain()]);
    return there === undefined ? storageFailed("The storage could not read the file.") : answer(known.value.size, there);
  }
  const { readable, writable } = new FixedLengthStream(input.sizeBytes);
  const put = guarded("store the file", () =>
    bucket.put(r2Key, readable, {
      httpMetadata: { contentType: mimeType },
      customMetadata: { originalFilename: filename ?? "", uploadedAt: String(input.now), sessionKey: input.sessionKey },
    }),
  );
  const [stored, sha256] = await Promise.all([put, source.pour(writable, input.sizeBytes)]);
  if (sha256 === undefined) return broken;
  return stored.ok ? answer(input.sizeBytes, sha256) : stored;
}

/** The body, read once, with its beginning buffered until the rest is read. */
class Source {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #first: Uint8Array[] = [];

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }
  /** The first bytes, enough for the type. Undefined when the body broke off. */
  async head(): Promise<Uint8Array | undefined> {
    let bytes = 0;
    while (bytes < HEAD_BYTES) {
      const chunk = await this.#next();
      if (chunk === "broken") return undefined;
      if (chunk === "end") break;
      this.#first.push(chunk);
      bytes += chunk.length;
    }
    const head = new Uint8Array(Math.min(bytes, HEAD_BYTES));
    let at = 0;
    for (const chunk of this.#first) {
      const part = chunk.subarray(0, head.length - at);
      head.set(part, at);
      at += part.length;
    }
    return head;
  }
  async #next(): Promise<Uint8Array | "end" | "broken"> {
    const read = this.#reader.read().then(
      ({ done, value }) => (done ? ("end" as const) : value),
      () => "broken" as const,
    );
    return within(afterTimeout, IDLE_MS, read, () => "broken" as const);
  }
  /** Writes the whole body. Returns its sha256 in hex; undefined when it broke off or its length differs from the declared one. */
  async pour(to: WritableStream<Uint8Array>, sizeBytes: number): Promise<string | undefined> {
    const writer = to.getWriter();
    const digest = new crypto.DigestStream("SHA-256");
    const hasher = digest.getWriter();
    // The writes report these failures.
    for (const ended of [writer.closed, hasher.closed, digest.digest]) ended.catch(() => {});
    let left = sizeBytes;
    const give = async (chunk: Uint8Array): Promise<void> => {
      left -= chunk.length;
      if (left < 0) throw new Error("longer than declared");
      await Promise.all([writer.write(chunk), hasher.write(chunk)]);
    };
    try {
      for (const chunk of this.#first.splice(0)) await give(chunk);
      for (;;) {
        const chunk = await this.#next();
        if (chunk === "end") break;
        if (chunk === "broken") throw new Error("broke off");
        await give(chunk);
      }
      if (left > 0) throw new Error("shorter than declared");
      await Promise.all([writer.close(), hasher.close()]);
      return toHex(await digest.digest);
    } catch (error) {
      // The bucket must not store an incomplete file.
      await Promise.allSettled([writer.abort(error), hasher.abort(error), this.cancel()]);
      return undefined;
    }
  }
  async drain(): Promise<void> {
    let chunk: Uint8Array | "end" | "broken";
    do chunk = await this.#next();
    while (typeof chunk !== "string");
  }
  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }
}
async function hashOf(body: ReadableStream): Promise<string | undefined> {
  const digest = new crypto.DigestStream("SHA-256");
  digest.digest.catch(() => {});
  try {
    await body.pipeTo(digest);
    return toHex(await digest.digest);
  } catch {
    return undefined;
  }
}
