/** Reads a stored file as text for tools: plain text, or the text of a document. Does not read images and recordings. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { MediaBlock } from "../../ports/messages.ts";
import { failure, type Result } from "../../ports/result.ts";
import { asText, type Bucket, guarded, hasBody } from "../../storage/bucket.ts";
import { documentKind } from "./document-kinds.ts";
import type { Readings } from "./readings.ts";

const gone = failure("path.not_found", "The file is no longer stored.");

export async function mediaText(block: MediaBlock, bucket: Bucket, readings: Readings): Promise<Result<string>> {
  const kind = documentKind(block);
  if (kind === undefined) return plainText(block, bucket);
  const read = await guarded("read the file", () => readings.text(block, kind));
  if (!read.ok) return read;
  switch (read.value.kind) {
    case "read":
      return { ok: true, value: new TextDecoder().decode(read.value.bytes) };
    case "missing":
      return gone;
    case "unreadable":
      return failure("media.unsupported", `This file cannot be read. ${read.value.why}`);
  }
}
async function plainText({ type, r2Key, sizeBytes = 0 }: MediaBlock, bucket: Bucket): Promise<Result<string>> {
  if (type !== "document")
    return failure("media.unsupported", "Only documents are read as text; images and recordings are shown with their message.");
  if (sizeBytes > LIMITS.documentExpandedBytes) return failure("file.too_large", "The file is too large to be read as text.");
  const found = await guarded("read the file", async () => {
    const object = await bucket.get(r2Key);
    return object && hasBody(object) ? await object.arrayBuffer() : undefined;
  });
  if (!found.ok) return found;
  if (found.value === undefined) return gone;
  const text = asText(found.value);
  return text === undefined ? failure("media.unsupported", "The file is not text.") : { ok: true, value: text };
}
