/** A session's media: stored with metadata under the layout's keys, deleted when the session is reset. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { failure, type Result } from "../ports/result.ts";
import { type Bucket, guarded } from "./bucket.ts";
import { mediaKey, mediaPrefix } from "./keys.ts";

export interface MediaInput {
  readonly sessionKey: string;
  readonly uuid: string;
  readonly mimeType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly filename?: string;
  /** Epoch ms. */
  readonly uploadedAt: number;
}
export async function putMedia(bucket: Bucket, input: MediaInput): Promise<Result<{ readonly key: string }>> {
  if (input.bytes.length > LIMITS.mediaBytes)
    return failure("file.too_large", `The file has ${input.bytes.length} bytes; at most ${LIMITS.mediaBytes} are accepted.`);
  const key = mediaKey(input.sessionKey, input.uuid, input.mimeType);
  const put = await guarded("store the file", () =>
    bucket.put(key, input.bytes, {
      httpMetadata: { contentType: input.mimeType },
      customMetadata: {
        originalFilename: (input.filename ?? "").slice(0, 256),
        uploadedAt: String(input.uploadedAt),
        sessionKey: input.sessionKey,
      },
    }),
  );
  return put.ok ? { ok: true, value: { key } } : put;
}
export interface DeleteWhich {
  /** Delete only files that were uploaded before this time (epoch ms). */
  readonly before: number;
  /** Keys that stay. */
  readonly keep: ReadonlySet<string>;
  /** Called with each key that is deleted. */
  readonly gone?: (key: string) => void;
}
/** Deletes all media of a session, including unused uploads. Safe to repeat; returns the number of deleted objects. */
export async function deleteMedia(
  bucket: Bucket,
  sessionKey: string,
  { before, keep, gone }: DeleteWhich = { before: Number.POSITIVE_INFINITY, keep: new Set() },
): Promise<Result<number>> {
  return guarded("delete the session's files", async () => {
    let count = 0;
    let cursor: string | undefined;
    for (;;) {
      const page = await bucket.list({
        prefix: mediaPrefix(sessionKey),
        limit: 1000,
        include: ["customMetadata"],
        ...(cursor === undefined ? {} : { cursor }),
      });
      const keys = page.objects.filter((object) => uploadedAt(object) < before && !keep.has(object.key)).map(({ key }) => key);
      if (keys.length > 0) await bucket.delete(keys);
      for (const key of keys) gone?.(key);
      count += keys.length;
      if (!page.truncated) return count;
      cursor = page.cursor;
    }
  });
}
function uploadedAt({ customMetadata, uploaded }: Pick<R2Object, "customMetadata" | "uploaded">): number {
  const said = Number(customMetadata?.["uploadedAt"]);
  return Number.isSafeInteger(said) && said > 0 ? said : uploaded.getTime();
}
