/**
 * Takes files out of messages and results, stores them in the bucket, and leaves references. A reference must name an existing file of
 * the same session. Must not change the session.
 */
import { failure, type Result, sentence } from "../../ports/result.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ErrorReason } from "../../../../protocol/gen/errors.ts";
import type { Attachment } from "../../../../protocol/gen/types.ts";
import { type ContentBlock, isMediaBlock, type ImageBlock, type MediaBlock, type TextBlock } from "../../ports/messages.ts";
import type { ToolTarget } from "../../ports/tool-target.ts";
import { type Bucket, guarded } from "../../storage/bucket.ts";
import { putMedia } from "../../storage/media-objects.ts";
import { decodeBase64, decodedBytes } from "../../storage/base64.ts";
import { cleanFilename, HEAD_BYTES, isShownImage, kindOf, normaliseType, typeOf } from "../../storage/media-kinds.ts";
import { isOwnKey } from "../../storage/keys.ts";
import { isKeyOf, uuidFor } from "../../storage/media-names.ts";

/** Limit for the images of one result; a note reports the rest. */
const RESULT_IMAGES = 16;
const PUTS_AT_ONCE = 4;

const nameOf = (attachment: Attachment, index: number): string => {
  const name = cleanFilename(attachment.filename);
  return name === undefined ? `Attachment ${index + 1}` : `The attachment ${JSON.stringify(name)}`;
};

export interface TakeAttachments {
  readonly sessionKey: string;
  readonly messageId: string;
  readonly attachments: readonly Attachment[];
  /** An invalid file becomes a note, and the message with its other files is accepted. A failing bucket is still an error. */
  readonly badFilesAsNotes?: true;
  readonly now: number;
}
type Taken = { readonly block: MediaBlock } | { readonly note: string };

export async function takeAttachments(
  input: TakeAttachments,
  bucket: Bucket,
): Promise<Result<{ readonly blocks: readonly MediaBlock[]; readonly notes: readonly string[] }>> {
  const { attachments, badFilesAsNotes = false } = input;
  const left = attachments.length - LIMITS.attachments;
  if (left > 0 && !badFilesAsNotes)
    return failure(
      "protocol.invalid_params",
      `A message can have at most ${LIMITS.attachments} files.`,
      "Send the rest with another message.",
    );
  const taken: Taken[] = [];
  // In small groups, so that not all files of 25 MB are in memory twice.
  for (let from = 0; from < Math.min(attachments.length, LIMITS.attachments); from += PUTS_AT_ONCE) {
    const group = await Promise.all(
      attachments.slice(from, from + PUTS_AT_ONCE).map((attachment, at) => take(input, attachment, from + at, bucket)),
    );
    for (const [at, one] of group.entries()) {
      const attachment = attachments[from + at];
      if (one.ok) taken.push(one.value);
      else if (!badFilesAsNotes || attachment === undefined || one.error.reason === "storage.failed") return one;
      else taken.push({ note: missing(attachment, from + at, one.error.reason) });
    }
  }
  if (left > 0) taken.push({ note: `${left} more files came with this message; at most ${LIMITS.attachments} are kept.` });
  return {
    ok: true,
    value: {
      blocks: taken.flatMap((one) => ("block" in one ? [one.block] : [])),
      notes: taken.flatMap((one) => ("note" in one ? [one.note] : [])),
    },
  };
}
/** Notes for the model, which can ask the sender. They are not meant for a program that resends. */
function missing(attachment: Attachment, index: number, reason: ErrorReason): string {
  const named = `${nameOf(attachment, index)} (${normaliseType(attachment.mimeType)})`;
  switch (reason) {
    case "file.too_large":
      return `${named} is larger than ${LIMITS.mediaBytes / 1_048_576} MiB and is not kept.`;
    case "media.unsupported":
      return `${named} could not be read and is not kept.`;
    default:
      return `${named} could not be downloaded from the platform and is not kept.`;
  }
}
async function take(input: TakeAttachments, attachment: Attachment, index: number, bucket: Bucket): Promise<Result<Taken>> {
  const { data, r2Key, filename } = attachment;
  const named = nameOf(attachment, index);
  if ((data === undefined) === (r2Key === undefined))
    return failure("protocol.invalid_params", `${named} needs either \`data\` (base64) or \`r2Key\` (from POST /media), and not both.`);
  if (r2Key !== undefined) return referred(input.sessionKey, r2Key, filename, named, bucket);
  if (data === undefined || data === "") return { ok: true, value: { note: `${named} is empty and is not kept.` } };
  if (decodedBytes(data) > LIMITS.mediaBytes)
    return failure("file.too_large", `${named} has ${decodedBytes(data)} bytes; at most ${LIMITS.mediaBytes} are accepted.`);
  const bytes = decodeBase64(data);
  if (bytes === undefined)
    return failure("media.unsupported", `${named} is not base64: the standard alphabet, padded, without line breaks or a data: prefix.`);
  const mimeType = typeOf(attachment.mimeType, bytes.subarray(0, HEAD_BYTES));
  const uuid = await uuidFor(input.sessionKey, { kind: "message", messageId: input.messageId, index });
  const name = cleanFilename(filename);
  const put = await putMedia(bucket, {
    sessionKey: input.sessionKey,
    uuid,
    mimeType,
    bytes,
    ...(name === undefined ? {} : { filename: name }),
    uploadedAt: input.now,
  });
  if (!put.ok) return put;
  return { ok: true, value: { block: blockOf(put.value.key, mimeType, name, bytes.length) } };
}
const blockOf = (r2Key: string, mimeType: string, filename: string | undefined, sizeBytes: number): MediaBlock => ({
  type: kindOf(mimeType),
  r2Key,
  mimeType,
  ...(filename === undefined ? {} : { filename }),
  sizeBytes,
});

/** An uploaded file. Its type was determined at the upload; the message's type is ignored. */
async function referred(
  sessionKey: string,
  r2Key: string,
  filename: string | undefined,
  named: string,
  bucket: Bucket,
): Promise<Result<Taken>> {
  const gone = failure(
    "media.not_found",
    `${named} is not among this session's files. Upload it for this session (POST /media) and send again.`,
  );
  if (!isOwnKey(sessionKey, r2Key)) return gone;
  const object = await guarded("look for the file", () => bucket.head(r2Key));
  if (!object.ok) return object;
  if (object.value === null) return gone;
  const { httpMetadata, customMetadata, size } = object.value;
  const name = cleanFilename(filename) ?? cleanFilename(customMetadata?.["originalFilename"]);
  return { ok: true, value: { block: blockOf(r2Key, normaliseType(httpMetadata?.contentType ?? ""), name, size) } };
}

export interface TakeResult {
  readonly sessionKey: string;
  readonly callId: string;
  readonly target: ToolTarget;
  readonly content: readonly ContentBlock[];
  readonly now: number;
}
export async function takeResult(input: TakeResult, bucket: Bucket): Promise<readonly ContentBlock[]> {
  let images = 0;
  const out: ContentBlock[] = [];
  for (const block of input.content) {
    if (block.type === "text") {
      out.push(block);
      continue;
    }
    images += 1;
    out.push(
      images > RESULT_IMAGES
        ? left(`Only the first ${RESULT_IMAGES} images of a result are kept.`)
        : isMediaBlock(block)
          ? await uploaded(input, block, bucket)
          : await inline(input, block, images - 1, bucket),
    );
  }
  return out;
}
const left = (why: string): TextBlock => ({ type: "text", text: `[An image of this result was left out. ${why}]` });

async function inline(input: TakeResult, { data, mimeType: said }: ImageBlock, index: number, bucket: Bucket): Promise<ContentBlock> {
  const size = decodedBytes(data);
  if (size > LIMITS.imageBytes) return left(`It has ${size} bytes; a tool may return at most ${LIMITS.imageBytes}.`);
  const bytes = decodeBase64(data);
  if (bytes === undefined || bytes.length === 0) return left("It is not base64.");
  const mimeType = typeOf(said, bytes.subarray(0, HEAD_BYTES));
  if (!isShownImage(mimeType))
    return left(`Its declared type is ${JSON.stringify(said.slice(0, 64))}, but it is not a PNG, JPEG, GIF or WebP.`);
  const uuid = await uuidFor(input.sessionKey, { kind: "result", callId: input.callId, index });
  const put = await putMedia(bucket, { sessionKey: input.sessionKey, uuid, mimeType, bytes, uploadedAt: input.now });
  return put.ok ? blockOf(put.value.key, mimeType, undefined, bytes.length) : left(sentence(put.error));
}
/** Accepts only a file that this machine uploaded for this call. */
async function uploaded({ sessionKey, callId, target }: TakeResult, { r2Key }: MediaBlock, bucket: Bucket): Promise<ContentBlock> {
  if (target.kind !== "node" || !(await isKeyOf(sessionKey, { kind: "call", callId, nodeId: target.nodeId }, r2Key)))
    return left("It refers to a file that was not uploaded for this call.");
  const object = await guarded("look for the image", () => bucket.head(r2Key));
  if (!object.ok) return left(sentence(object.error));
  const mimeType = object.value?.httpMetadata?.contentType ?? "";
  if (object.value === null || !isShownImage(mimeType)) return left("There is no such image in the storage.");
  const { size } = object.value;
  return size > LIMITS.imageBytes
    ? left(`It has ${size} bytes; a tool may return at most ${LIMITS.imageBytes}.`)
    : blockOf(r2Key, mimeType, undefined, size);
}
