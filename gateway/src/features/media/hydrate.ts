/**
 * Replaces references to stored files by their content, as far as the model accepts it. A list without files is returned unchanged,
 * and messages without files are never copied. A missing file becomes a note, never a failed call.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import { type ContentBlock, type ImageBlock, isMediaBlock, type MediaBlock, type Message, type TextBlock } from "../../ports/messages.ts";
import { asText, type Bucket, decodeStart, hasBody } from "../../storage/bucket.ts";
import { derivedKey } from "../../storage/keys.ts";
import { decodeBase64, encodeBase64 } from "../../storage/base64.ts";
import type { MediaView } from "../../ports/media.ts";
import type { MediaCache } from "./cache.ts";
import { isScalableImage, isShownImage, isTextLike, sniff } from "../../storage/media-kinds.ts";
import { type DocumentKind, documentKind } from "./document-kinds.ts";
import { firstFrame, imageFacts } from "./readers/image-facts.ts";
import type { Readings } from "./readings.ts";
import {
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
/** Providers refuse an image with a longer side, in pixels. */
const IMAGE_SIDE = 8_000;
/** Limits for the number and the total size of images in one request. */
const IMAGES_SHOWN = 20;
const IMAGES_SHOWN_BYTES = 20_971_520;
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
  readonly readings: Readings;
}
type Store = Pick<HydrateInput, "bucket" | "cache" | "readings">;
/** The result for one file. `why`: a sentence. */
type Loaded =
  | { readonly kind: "text"; readonly text: string; readonly isCut: boolean }
  | { readonly kind: "image"; readonly data: string; readonly mimeType: string }
  | { readonly kind: "missing" }
  | { readonly kind: "unreadable"; readonly why?: string };

export async function hydrate({ messages, images, numbers, ...store }: HydrateInput): Promise<readonly Message[]> {
  const places = messages.flatMap((message, index) => (hasMedia(message) ? [index] : []));
  if (places.length === 0) return messages;
  const blocks = places.flatMap((index) => mediaOf(messages[index]));
  const numberOf = numbers(blocks.map(({ r2Key }) => r2Key));
  const hidden = images ? tooMany(blocks) : new Set<MediaBlock>();
  const texts = places.flatMap((index) => documentsOf(messages[index]));
  const wanted = new Map<string, MediaBlock>();
  for (const block of blocks) if (images && isShowable(block) && !hidden.has(block)) wanted.set(block.r2Key, block);
  for (const block of texts) wanted.set(block.r2Key, block);
  const loaded = await loadAll([...wanted.values()], store);
  const place = (given: ContentBlock): TextBlock | readonly [TextBlock, ImageBlock] | ImageBlock => {
    if (!isMediaBlock(given)) return given;
    const number = numberOf.get(given.r2Key);
    const block: NamedFile = number === undefined ? given : { ...given, id: shortName(number) };
    const got = loaded.get(block.r2Key);
    if (got?.kind === "missing") return text(missingNote(block));
    if (got?.kind === "unreadable") return text(unreadableNote(block, got.why));
    if (block.type === "audio") return text(voiceNote(block));
    if (block.type !== "image")
      return text(
        got?.kind === "text" ? documentText(block, got.text, got.isCut ? LIMITS.inlineDocumentBytes : undefined) : fileNote(block),
      );
    if (!images) return text(blindNote(block));
    if (!isScalableImage(block.mimeType)) return text(imageKindNote(block));
    if (hidden.has(given)) return text(olderImageNote(block));
    if (got?.kind !== "image") return text(unreadableNote(block));
    const image: ImageBlock = { type: "image", data: got.data, mimeType: got.mimeType };
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
    const isRead = documentKind(block) !== undefined;
    if (block.type !== "document" || (!isRead && !isTextLike(block.mimeType, block.filename))) return false;
    // The text of a document may be larger or smaller than its file.
    left -= isRead ? LIMITS.inlineDocumentBytes : Math.min(block.sizeBytes ?? LIMITS.inlineDocumentBytes, LIMITS.inlineDocumentBytes);
    return left >= 0;
  });
}
const isShowable = (block: MediaBlock): boolean => block.type === "image" && isScalableImage(block.mimeType);
const shownBytes = ({ sizeBytes = IMAGE_BYTES }: MediaBlock): number => Math.min(sizeBytes, IMAGE_BYTES);
/** The oldest images that exceed the limits of one request. */
function tooMany(blocks: readonly MediaBlock[]): ReadonlySet<MediaBlock> {
  const shown = blocks.filter(isShowable);
  let bytes = 0;
  let keep = 0;
  for (const block of shown.toReversed()) {
    bytes += shownBytes(block);
    if (keep >= IMAGES_SHOWN || bytes > IMAGES_SHOWN_BYTES) break;
    keep += 1;
  }
  const over = shown.length - keep;
  const dropped = Math.min(Math.ceil(over / IMAGES_DROPPED_AT_ONCE) * IMAGES_DROPPED_AT_ONCE, shown.length - 1);
  return new Set(shown.slice(0, Math.max(over, dropped)));
}

async function loadAll(blocks: readonly MediaBlock[], store: Store): Promise<ReadonlyMap<string, Loaded>> {
  const loaded = new Map<string, Loaded>();
  const waiting = [...blocks];
  const work = async (): Promise<void> => {
    for (let block = waiting.shift(); block !== undefined; block = waiting.shift()) loaded.set(block.r2Key, await load(block, store));
  };
  await Promise.all(Array.from({ length: Math.min(LOADS_AT_ONCE, blocks.length) }, work));
  return loaded;
}
function load(block: MediaBlock, store: Store): Promise<Loaded> {
  const unreadable = (): Loaded => ({ kind: "unreadable" });
  const read = block.type === "image" ? readImage(block, store) : readDocument(block, store);
  return within(afterTimeout, LOAD_MS, read.catch(unreadable), unreadable);
}

/** By the first bytes, whatever the sender said: a provider refuses the whole request for an image of another type. */
const typeOfImage = (data: string): string | undefined => sniff(decodeBase64(data.slice(0, 64)) ?? new Uint8Array());

/** The image itself if models accept it, else a scaled copy. */
async function readImage(block: MediaBlock, { bucket, cache, readings }: Store): Promise<Loaded> {
  const { r2Key, mimeType, sizeBytes = 0 } = block;
  const scaledKey = derivedKey(r2Key, "scaled");
  const known = cache.get(r2Key);
  if (known !== undefined) return { kind: "image", data: known, mimeType: typeOfImage(known) ?? mimeType };
  const knownScaled = cache.get(scaledKey);
  if (knownScaled !== undefined) return { kind: "image", data: knownScaled, mimeType: "image/jpeg" };
  const show = (key: string, bytes: Uint8Array, shownType: string): Loaded => {
    const data = encodeBase64(bytes);
    cache.set(key, data);
    return { kind: "image", data, mimeType: shownType };
  };
  if (isShownImage(mimeType) && sizeBytes <= IMAGE_BYTES) {
    const object = await bucket.get(r2Key);
    if (!object || !hasBody(object)) return { kind: "missing" };
    const bytes = new Uint8Array(await object.arrayBuffer());
    const shownType = sniff(bytes) ?? "";
    const shown = shownType === "image/gif" ? (firstFrame(bytes) ?? bytes) : bytes;
    const { width = 0, height = 0 } = imageFacts(shown) ?? {};
    const isTaken = isShownImage(shownType) && shown.length <= IMAGE_BYTES && Math.max(width, height) <= IMAGE_SIDE;
    if (isTaken) return show(r2Key, shown, shownType);
  }
  const scaled = await readings.scaled(block);
  return scaled.kind === "read" ? show(scaledKey, scaled.bytes, "image/jpeg") : scaled;
}
async function readDocument(block: MediaBlock, store: Store): Promise<Loaded> {
  const kind = documentKind(block);
  return kind === undefined ? readPlain(block, store) : readByReader(block, kind, store);
}
async function readPlain(block: MediaBlock, { bucket, cache }: Store): Promise<Loaded> {
  const { r2Key, sizeBytes } = block;
  const most = LIMITS.inlineDocumentBytes;
  const given = (text: string): Loaded => ({ kind: "text", text, isCut: sizeBytes === undefined ? isFull(text) : sizeBytes > most });
  const known = cache.get(r2Key);
  if (known !== undefined) return given(known);
  const object = await bucket.get(r2Key, sizeBytes !== undefined && sizeBytes <= most ? undefined : { range: { offset: 0, length: most } });
  if (!object || !hasBody(object)) return { kind: "missing" };
  const words = asText(uncut(new Uint8Array(await object.arrayBuffer()), most).slice().buffer);
  if (words === undefined) return { kind: "unreadable", why: "It is not text." };
  cache.set(r2Key, words);
  return given(words);
}
async function readByReader(block: MediaBlock, kind: DocumentKind, { cache, readings }: Store): Promise<Loaded> {
  const key = derivedKey(block.r2Key, "text");
  const known = cache.get(key);
  if (known !== undefined) return { kind: "text", text: known, isCut: isFull(known) };
  const got = await readings.text(block, kind);
  if (got.kind !== "read") return got;
  const text = decodeStart(got.bytes, LIMITS.inlineDocumentBytes);
  cache.set(key, text);
  return { kind: "text", text, isCut: got.bytes.length > LIMITS.inlineDocumentBytes };
}
/** A text that was cut ends within a character of the limit. */
const isFull = (text: string): boolean =>
  text.length * 3 >= LIMITS.inlineDocumentBytes && utf8Bytes(text) >= LIMITS.inlineDocumentBytes - 4;
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
