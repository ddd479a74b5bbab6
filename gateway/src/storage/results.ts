/** Stores the full texts of long tool results (gateway rule G4). Repeating a write is safe. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { failure, type Result } from "../ports/result.ts";
import { type Bucket, guarded } from "./bucket.ts";
import { contentTypeOf, fileKey, parsePath } from "./keys.ts";

export interface ResultFiles {
  put(agentId: string, path: string, text: string): Promise<Result<void>>;
}
/** The JSON of a node's output may be slightly longer than the output. */
export const MAX_RESULT_BYTES = LIMITS.toolResultBytes * 2;

export function createResultFiles(bucket: Bucket): ResultFiles {
  return {
    async put(agentId, given, text) {
      const path = parsePath(given);
      if (!path.ok) return path;
      const bytes = new TextEncoder().encode(text.toWellFormed());
      if (bytes.length > MAX_RESULT_BYTES)
        return failure("file.too_large", `The result has ${bytes.length} bytes; at most ${MAX_RESULT_BYTES} are kept.`);
      const put = await guarded("store the result", () =>
        bucket.put(fileKey(agentId, path.value), bytes, { httpMetadata: { contentType: contentTypeOf(path.value) } }),
      );
      return put.ok ? { ok: true, value: undefined } : put;
    },
  };
}
