/** Media of a session: put under the layout's keys with its metadata, deleted when the session is reset. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Result } from "../ports.ts";
import { type Bucket, failure, guarded } from "./bucket.ts";
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
    return failure("file.too_large", `The file has ${input.bytes.length} bytes; at most ${LIMITS.mediaBytes} are taken.`);
  const key = mediaKey(input.sessionKey, input.uuid, input.mimeType);
  const put = await guarded("keep the file", () =>
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
/** Everything that a session's messages came with. Safe to repeat; gives how many objects went. */
export async function deleteMedia(bucket: Bucket, sessionKey: string): Promise<Result<number>> {
  return guarded("delete the session's files", async () => {
    let count = 0;
    for (;;) {
      const page = await bucket.list({ prefix: mediaPrefix(sessionKey), limit: 1000 });
      const keys = page.objects.map(({ key }) => key);
      if (keys.length > 0) await bucket.delete(keys);
      count += keys.length;
      if (!page.truncated || keys.length === 0) return count;
    }
  });
}
