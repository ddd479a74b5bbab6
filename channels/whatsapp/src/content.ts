/**
 * PURE. Reads the content of a WhatsApp message: text, file, location and kind. The payload comes from a stranger: every field is
 * treated as unknown, prototypes are ignored, all values are bounded.
 */
import { toHex } from "../../../protocol/runtime/hex.ts";
import { cleanName } from "../../../protocol/runtime/clean-name.ts";
import type { InboundFile } from "../../kit/src/platform.ts";

const CONTENT = {
  /** WhatsApp's own limit for a message. */
  textChars: 65_536,
  nameChars: 200,
  wrappers: 6,
  contacts: 20,
  options: 20,
} as const;

export type Bag = Readonly<Record<string, unknown>>;
export const bag = (value: unknown): Bag | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array) ? { ...value } : undefined;
/** An own property; never one of the prototype. */
export const own = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
export const child = (value: unknown, name: string): Bag | undefined => bag(own(value, name));

/** A text without NUL characters and broken surrogates. */
export function textOf(value: unknown): string {
  if (typeof value !== "string") return "";
  const text = value.length > CONTENT.textChars ? `${value.slice(0, CONTENT.textChars)}\n[cut off]` : value;
  return text.toWellFormed().replaceAll("\0", "");
}
export const nameOf = (value: unknown): string | undefined => cleanName(value, CONTENT.nameChars);
/** A non-negative integer; accepts the 64-bit objects of protobufjs. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "string" && /^\d{1,15}$/.test(value)) return Number(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  const [low, high] = [own(value, "low"), own(value, "high")];
  if (typeof low !== "number" || typeof high !== "number") return undefined;
  const number = (high >>> 0) * 2 ** 32 + (low >>> 0);
  return Number.isSafeInteger(number) ? number : undefined;
}
const positive = (value: unknown): number | undefined => {
  const number = numberOf(value);
  return number !== undefined && number > 0 ? number : undefined;
};

// ---------------------------------------------------------------- wrappers

const WRAPPERS = [
  "ephemeralMessage",
  "viewOnceMessage",
  "viewOnceMessageV2",
  "viewOnceMessageV2Extension",
  "documentWithCaptionMessage",
  "deviceSentMessage",
  "botInvokeMessage",
  "groupMentionedMessage",
  "lottieStickerMessage",
  "associatedChildMessage",
] as const;

/** The innermost message, at a bounded depth. */
export function unwrap(message: unknown): { readonly message: Bag | undefined; readonly viewOnce: boolean } {
  let inner = bag(message);
  let viewOnce = false;
  for (let depth = 0; inner && depth < CONTENT.wrappers; depth++) {
    const outer: Bag = inner;
    const wrapper = WRAPPERS.find((name) => child(outer, name));
    if (wrapper === undefined) break;
    viewOnce ||= wrapper.startsWith("viewOnce");
    inner = child(own(outer, wrapper), "message");
  }
  return { message: inner, viewOnce };
}

// ---------------------------------------------------------------- content

export interface Content {
  readonly text: string;
  readonly file?: Omit<InboundFile, "index">;
  readonly location?: { readonly lat: number; readonly lon: number; readonly name?: string };
  /** Quotes and mentions. */
  readonly context?: Bag;
  /** An unknown kind. */
  readonly unknown?: string;
}
type Reader = (part: Bag) => Content;

/** Fields that are metadata, not content. */
const BESIDE = new Set(["messageContextInfo", "senderKeyDistributionMessage", "fastRatchetKeySenderKeyDistributionMessage"]);
/** Protocol messages between programs. */
const SILENT = new Set([
  "albumMessage",
  "encReactionMessage",
  "keepInChatMessage",
  "pinInChatMessage",
  "pollUpdateMessage",
  "encCommentMessage",
  "encEventResponseMessage",
  "secretEncryptedMessage",
  "placeholderMessage",
  "call",
]);

const withContext = (part: Bag, content: Omit<Content, "context">): Content => {
  const context = child(part, "contextInfo");
  return context ? { ...content, context } : content;
};
const say =
  (read: (part: Bag) => string): Reader =>
  (part) =>
    withContext(part, { text: read(part) });
const selected: Reader = (part) =>
  withContext(part, {
    text: textOf(own(part, "selectedDisplayText") ?? own(part, "title") ?? own(part, "selectedId") ?? own(part, "selectedButtonId")),
  });

const MIME = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}(?:; ?[a-z0-9-]+=[A-Za-z0-9._-]{1,32})*$/i;
function fileReader(kind: InboundFile["kind"], type: string, fallback: string): Reader {
  return (part) => {
    const mimetype = own(part, "mimetype");
    const mimeType = typeof mimetype === "string" && mimetype.length <= 128 && MIME.test(mimetype) ? mimetype.toLowerCase() : fallback;
    const reference = referenceOf(part, type);
    const text = textOf(own(part, "caption"));
    if (!reference)
      return withContext(part, { text: [text, `[A file of kind ${kind} came without its keys.]`].filter(Boolean).join("\n") });
    const filename = nameOf(own(part, "fileName"))?.replaceAll(/[/\\]/g, "_");
    const sizeBytes = positive(own(part, "fileLength"));
    const durationSeconds = positive(own(part, "seconds"));
    return withContext(part, {
      text,
      file: {
        kind,
        mimeType,
        ...(filename === undefined ? {} : { filename }),
        ...(sizeBytes === undefined ? {} : { sizeBytes: Math.floor(sizeBytes) }),
        ...(durationSeconds === undefined ? {} : { durationSeconds }),
        reference,
      },
    });
  };
}
/** What is needed to fetch and verify a file. */
export interface FileReference {
  readonly type: string;
  readonly directPath: string;
  readonly url?: string;
  /** Hex. */
  readonly mediaKey: string;
  readonly sha256?: string;
}
function referenceOf(part: Bag, type: string): FileReference | undefined {
  const [mediaKey, directPath, url, sha256] = [own(part, "mediaKey"), own(part, "directPath"), own(part, "url"), own(part, "fileSha256")];
  if (!(mediaKey instanceof Uint8Array) || mediaKey.length !== 32) return undefined;
  if (typeof directPath !== "string" || !/^\/[^\s\\]{1,2000}$/.test(directPath) || directPath.startsWith("//")) return undefined;
  return {
    type,
    directPath,
    ...(typeof url === "string" && url.length <= 2048 && URL.canParse(url) ? { url } : {}),
    mediaKey: toHex(mediaKey),
    ...(sha256 instanceof Uint8Array && sha256.length === 32 ? { sha256: toHex(sha256) } : {}),
  };
}

const list = (value: unknown, most: number): readonly unknown[] => (Array.isArray(value) ? value.slice(0, most) : []);
function placeOf(part: Bag): Content {
  const [lat, lon] = [numberOf(own(part, "degreesLatitude")), numberOf(own(part, "degreesLongitude"))];
  const name = nameOf(own(part, "name")) ?? nameOf(own(part, "address"));
  const comment = textOf(own(part, "caption") ?? own(part, "comment"));
  if (lat === undefined || lon === undefined || Math.abs(lat) > 90 || Math.abs(lon) > 180)
    return withContext(part, { text: [comment, "[An invalid location]"].filter(Boolean).join("\n") });
  return withContext(part, {
    text: [comment, `[Location${name === undefined ? "" : ` ${name}`}: ${lat}, ${lon}]`].filter(Boolean).join("\n"),
    location: { lat, lon, ...(name === undefined ? {} : { name }) },
  });
}
/** Names and numbers of a vCard; other fields are dropped. */
function contactOf(part: unknown): string {
  const card = textOf(own(part, "vcard")).slice(0, 8_192);
  const numbers = [...card.matchAll(/^TEL[^:\n]*:([+()\d .-]{3,32})\s*$/gim)].slice(0, 5).map(([, number]) => (number ?? "").trim());
  return [`[Contact ${nameOf(own(part, "displayName")) ?? "without a name"}`, ...numbers].join(", ").concat("]");
}
const poll: Reader = (part) =>
  withContext(part, {
    text: [
      `[Poll: ${nameOf(own(part, "name")) ?? ""}]`,
      ...list(own(part, "options"), CONTENT.options).map((option) => `- ${nameOf(own(option, "optionName")) ?? ""}`),
    ].join("\n"),
  });

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ["extendedTextMessage", say((part) => textOf(own(part, "text")))],
  ["imageMessage", fileReader("image", "image", "image/jpeg")],
  ["stickerMessage", fileReader("image", "sticker", "image/webp")],
  ["videoMessage", fileReader("video", "video", "video/mp4")],
  ["ptvMessage", fileReader("video", "video", "video/mp4")],
  ["audioMessage", fileReader("audio", "audio", "audio/ogg")],
  ["documentMessage", fileReader("document", "document", "application/octet-stream")],
  ["locationMessage", placeOf],
  ["liveLocationMessage", placeOf],
  ["contactMessage", say(contactOf)],
  ["contactsArrayMessage", say((part) => list(own(part, "contacts"), CONTENT.contacts).map(contactOf).join("\n"))],
  ...["", "V2", "V3", "V4", "V5"].map((version) => [`pollCreationMessage${version}`, poll] as const),
  ["buttonsResponseMessage", selected],
  ["listResponseMessage", selected],
  ["templateButtonReplyMessage", selected],
  ["interactiveResponseMessage", say((part) => textOf(own(own(part, "body"), "text")))],
  ["buttonsMessage", say((part) => textOf(own(part, "contentText")))],
  ["templateMessage", say((part) => textOf(own(child(part, "hydratedTemplate"), "hydratedContentText")))],
  ["interactiveMessage", say((part) => textOf(own(child(part, "body"), "text")))],
  ["groupInviteMessage", say((part) => `[Invitation to the group ${nameOf(own(part, "groupName")) ?? ""}]`)],
  [
    "eventMessage",
    say((part) => [`[Event: ${nameOf(own(part, "name")) ?? ""}]`, textOf(own(part, "description"))].filter(Boolean).join("\n")),
  ],
  ["productMessage", say((part) => `[Product: ${nameOf(own(child(part, "product"), "title")) ?? ""}]`)],
  ["orderMessage", say((part) => `[Order: ${nameOf(own(part, "orderTitle")) ?? ""}]`)],
]);

/** Undefined when the message has no content. */
export function contentOf(wrapped: unknown): Content | undefined {
  const { message, viewOnce } = unwrap(wrapped);
  if (!message) return undefined;
  const plain = own(message, "conversation");
  if (typeof plain === "string" && plain !== "") return { text: textOf(plain) };
  const kinds = Object.keys(message).filter((name) => !BESIDE.has(name) && child(message, name));
  for (const kind of kinds) {
    const part = child(message, kind);
    const content = part && READERS.get(kind)?.(part);
    if (content) return viewOnce ? { ...content, text: ["[Shown once]", content.text].filter(Boolean).join(" ") } : content;
  }
  const [kind] = kinds.filter((name) => !SILENT.has(name));
  if (kind === undefined) return undefined;
  const shown = /^[A-Za-z0-9]{1,48}$/.test(kind) ? kind : "unnamed";
  return { text: `[A message of a kind that can't be shown here: ${shown}]`, unknown: shown };
}
/** Text for a quoted message: its own text, or its kind. */
export function quotedText(message: unknown): string | undefined {
  const content = contentOf(message);
  if (!content) return undefined;
  const label = content.file ? `[${content.file.filename ?? content.file.kind}]` : "";
  return [label, content.text].filter(Boolean).join(" ") || undefined;
}
