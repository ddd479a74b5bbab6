/**
 * Replaces references to stored files by their content, as far as the model accepts it. A list without files is returned unchanged,
 * and messages without files are never copied. A missing file becomes a note, never a failed call.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type ContentBlock, type ImageBlock, isMediaBlock, type MediaBlock, type Message, type TextBlock } from "../../ports/messages.ts";
import { asText, type Bucket, hasBody } from "../../storage/bucket.ts";
import { encodeBase64 } from "./base64.ts";
import type { MediaView } from "../../ports/media.ts";
import type { MediaCache } from "./cache.ts";
import { isShownImage, isTextLike } from "../../storage/media-kinds.ts";
import {
  bigImageNote,
  blindNote,
  documentText,
  fileNote,
  imageKindNote,
  imageText,
  missingNote,
  type NamedFile,
  olderImageNote,
  shortName,
  unreadableNote,
  voiceNote,
} from "./words.ts";

/** The largest providers take 5 MB of base64 for one image. */
export const IMAGE_BYTES = 3_932_160;
/** Limits for the number and the total size of images in one request. */
export const IMAGES_SHOWN = 20;
export const IMAGES_SHOWN_BYTES = 20_971_520;
/** When old images must be dropped, drop some more, so that a provider's prefix cache stays valid longer. */
const IMAGES_DROPPED_AT_ONCE = 5;
/** Limit for the text of files in one message. */
const DOCUMENT_BYTES_PER_MESSAGE = LIMITS.injectedTotalBytes;
const LOADS_AT_ONCE = 6;
const LOAD_MS = 20_000;

export interface HydrateInput extends MediaView {
  readonly messages: readonly Message[];
  readonly bucket: Bucket;
  readonly cache: MediaCache;
}
/** The result for one file: its text (base64 or plain), or why there is none. */
type Loaded = { readonly text: string } | "missing" | "unreadable" | "binary";

export async function hydrate({ messages, images, numbers, bucket, cache }: HydrateInput): Promise<readonly Message[]> {
  const places = messages.flatMap((message, index) => (hasMedia(message) ? [index] : []));
  if (places.length === 0) return messages;
  const blocks = places.flatMap((index) => mediaOf(messages[index]));
  const numberOf = numbers(blocks.map(({ r2Key }) => r2Key));
  const hidden = images ? tooMany(blocks) : new Set<MediaBlock>();
  const texts = places.flatMap((index) => documentsOf(messages[index]));
  const wanted = new Map<string, MediaBlock>();
  for (const block of blocks) if (images && isShowable(block) && !hidden.has(block)) wanted.set(block.r2Key, block);
  for (const block of texts) wanted.set(block.r2Key, block);
  const loaded = await loadAll([...wanted.values()], bucket, cache);
  const readable = new Set(texts);
  const place = (given: ContentBlock): TextBlock | readonly [TextBlock, ImageBlock] | ImageBlock => {
    if (!isMediaBlock(given)) return given;
    const number = numberOf.get(given.r2Key);
    const block: NamedFile = number === undefined ? given : { ...given, id: shortName(number) };
    const got = loaded.get(block.r2Key);
    if (got === "missing") return text(missingNote(block));
    if (got === "unreadable") return text(unreadableNote(block));
    if (block.type === "audio") return text(voiceNote(block));
    if (block.type !== "image") {
      if (got === undefined || got === "binary" || !readable.has(given)) return text(fileNote(block));
      return text(documentText(block, got.text, isCut(block, got.text) ? LIMITS.inlineDocumentBytes : undefined));
    }
    if (!images) return text(blindNote(block));
    if (!isShownImage(block.mimeType)) return text(imageKindNote(block));
    if (hidden.has(given)) return text(olderImageNote(block));
    if (got === undefined || got === "binary" || (got.text.length / 4) * 3 > IMAGE_BYTES + 2) return text(bigImageNote(block, IMAGE_BYTES));
    const image: ImageBlock = { type: "image", data: got.text, mimeType: block.mimeType };
    return block.id === undefined ? image : [text(imageText(block)), image];
  };
  const out = [...messages];
  for (const index of places) {
    const message = messages[index];
    if (message?.role === "user" && typeof message.content !== "string")
      out[index] = { ...message, content: message.content.flatMap(place) };
    else if (message?.role === "toolResult") out[index] = { ...message, content: message.content.flatMap(place) };
  }
  return out;
}
const text = (words: string): TextBlock => ({ type: "text", text: words });

const contentOf = (message: Message | undefined): readonly ContentBlock[] =>
  message === undefined || message.role === "assistant" || typeof message.content === "string" ? [] : message.content;
const hasMedia = (message: Message): boolean =>
  message.role !== "assistant" && typeof message.content !== "string" && message.content.some(isMediaBlock);
const mediaOf = (message: Message | undefined): readonly MediaBlock[] => contentOf(message).filter((block) => isMediaBlock(block));

/** The files of one message that are shown as text, in order, within the size limit. */
function documentsOf(message: Message | undefined): readonly MediaBlock[] {
  let left = DOCUMENT_BYTES_PER_MESSAGE;
  return mediaOf(message).filter((block) => {
    if (block.type !== "document" || !isTextLike(block.mimeType, block.filename)) return false;
    left -= Math.min(block.sizeBytes ?? LIMITS.inlineDocumentBytes, LIMITS.inlineDocumentBytes);
    return left >= 0;
  });
}
const isCut = (block: MediaBlock, shown: string): boolean =>
  block.sizeBytes === undefined
    ? shown.length * 3 >= LIMITS.inlineDocumentBytes && new TextEncoder().encode(shown).length >= LIMITS.inlineDocumentBytes - 4
    : block.sizeBytes > LIMITS.inlineDocumentBytes;

const isShowable = (block: MediaBlock): boolean =>
  block.type === "image" && isShownImage(block.mimeType) && (block.sizeBytes ?? 0) <= IMAGE_BYTES;
/** The oldest images that exceed the limits of one request. */
function tooMany(blocks: readonly MediaBlock[]): ReadonlySet<MediaBlock> {
  const shown = blocks.filter(isShowable);
  let bytes = 0;
  let keep = 0;
  for (const block of shown.toReversed()) {
    bytes += block.sizeBytes ?? IMAGE_BYTES;
    if (keep >= IMAGES_SHOWN || bytes > IMAGES_SHOWN_BYTES) break;
    keep += 1;
  }
  const over = shown.length - keep;
  const dropped = Math.min(Math.ceil(over / IMAGES_DROPPED_AT_ONCE) * IMAGES_DROPPED_AT_ONCE, shown.length - 1);
  return new Set(shown.slice(0, Math.max(over, dropped)));
}

async function loadAll(blocks: readonly MediaBlock[], bucket: Bucket, cache: MediaCache): Promise<ReadonlyMap<string, Loaded>> {
  const loaded = new Map<string, Loaded>();
  const waiting = [...blocks];
  const work = async (): Promise<void> => {
    for (let block = waiting.shift(); block !== undefined; block = waiting.shift())
      loaded.set(block.r2Key, await load(block, bucket, cache));
  };
  await Promise.all(Array.from({ length: Math.min(LOADS_AT_ONCE, blocks.length) }, work));
  return loaded;
}
async function load(block: MediaBlock, bucket: Bucket, cache: MediaCache): Promise<Loaded> {
  const known = cache.get(block.r2Key);
  if (known !== undefined) return { text: known };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Loaded>((resolve) => {
    timer = setTimeout(() => resolve("unreadable"), LOAD_MS);
  });
  const got = await Promise.race([read(block, bucket).catch((): Loaded => "unreadable"), late]);
  clearTimeout(timer);
  if (typeof got === "object") cache.set(block.r2Key, got.text);
  return got;
}
async function read(block: MediaBlock, bucket: Bucket): Promise<Loaded> {
  const asImage = block.type === "image";
  const most = asImage ? IMAGE_BYTES + 1 : LIMITS.inlineDocumentBytes;
  const whole = block.sizeBytes !== undefined && block.sizeBytes <= most;
  const object = await bucket.get(block.r2Key, whole ? undefined : { range: { offset: 0, length: most } });
  if (!object || !hasBody(object)) return "missing";
  const bytes = new Uint8Array(await object.arrayBuffer());
  if (asImage) return { text: encodeBase64(bytes) };
  const words = asText(uncut(bytes, most).slice().buffer);
  return words === undefined ? "binary" : { text: words };
}
/** Drops an incomplete character at the end. */
function uncut(bytes: Uint8Array, most: number): Uint8Array {
  if (bytes.length < most) return bytes;
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}
