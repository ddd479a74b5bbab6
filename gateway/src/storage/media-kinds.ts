/**
 * Determines a file's type: from its first bytes, else from the sender's type, else `application/octet-stream`. PURE; must not
 * trust the sender's type for images, because images are passed to models and viewers.
 */
import type { MediaBlock } from "../ports/messages.ts";

export const UNKNOWN_TYPE = "application/octet-stream";
/** The number of leading bytes that `typeOf` needs. */
export const HEAD_BYTES = 512;
/** Image types for models. Never SVG, which can contain scripts. */
const SHOWN = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
export const isShownImage = (mimeType: string): boolean => SHOWN.has(mimeType);
/** Image types that are shown after a conversion. */
export const isScalableImage = (mimeType: string): boolean => SHOWN.has(mimeType) || mimeType === "image/bmp";

const TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/;
const ALIASES: Readonly<Record<string, string>> = {
  "image/jpg": "image/jpeg",
  "image/pjpeg": "image/jpeg",
  "image/x-png": "image/png",
  "audio/x-wav": "audio/wav",
  "audio/wave": "audio/wav",
  "audio/vnd.wave": "audio/wav",
  "audio/x-m4a": "audio/m4a",
  "audio/x-flac": "audio/flac",
  "audio/mpeg3": "audio/mpeg",
  "application/x-pdf": "application/pdf",
};
/** Normalises a type: lower case, no parameters. An invalid type becomes `application/octet-stream`. */
export function normaliseType(given: string): string {
  const type = given.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (!TYPE.test(type)) return UNKNOWN_TYPE;
  return (Object.hasOwn(ALIASES, type) ? ALIASES[type] : undefined) ?? type;
}

const ascii = (bytes: Uint8Array, from: number, length: number): string => String.fromCharCode(...bytes.subarray(from, from + length));
const begins = (bytes: Uint8Array, ...start: readonly number[]): boolean => start.every((byte, at) => bytes[at] === byte);
/** The type by the first bytes; undefined when they are not conclusive. */
export function sniff(bytes: Uint8Array): string | undefined {
  if (begins(bytes, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return "image/png";
  if (begins(bytes, 0xff, 0xd8, 0xff)) return "image/jpeg";
  if (/^GIF8[79]a/.test(ascii(bytes, 0, 6))) return "image/gif";
  const riff = ascii(bytes, 0, 4) === "RIFF" ? ascii(bytes, 8, 4) : "";
  if (riff === "WEBP") return "image/webp";
  if (riff === "WAVE") return "audio/wav";
  if (ascii(bytes, 0, 5) === "%PDF-") return "application/pdf";
  if (ascii(bytes, 0, 4) === "OggS") return "audio/ogg";
  if (ascii(bytes, 0, 2) === "BM" && bytes.length > 26 && bytes[14] === 40) return "image/bmp";
  if (ascii(bytes, 0, 4) === "fLaC") return "audio/flac";
  if (ascii(bytes, 0, 3) === "ID3") return "audio/mpeg";
  if (begins(bytes, 0x1a, 0x45, 0xdf, 0xa3)) return "video/webm";
  if (ascii(bytes, 4, 4) === "ftyp") return boxed(ascii(bytes, 8, 4));
  if (begins(bytes, 0x49, 0x49, 0x2a, 0x00) || begins(bytes, 0x4d, 0x4d, 0x00, 0x2a)) return "image/tiff";
  return undefined;
}
function boxed(brand: string): string {
  if (/^(?:heic|heix|hevc|mif1|msf1)$/.test(brand)) return "image/heic";
  if (/^avi[fs]$/.test(brand)) return "image/avif";
  if (brand.startsWith("M4A")) return "audio/mp4";
  return brand === "qt  " ? "video/quicktime" : "video/mp4";
}
const family = (type: string): string => type.slice(0, type.indexOf("/"));
/** Containers for audio or video: the sender's type decides which. */
const isRecording = (type: string): boolean => family(type) === "audio" || family(type) === "video";

/** The file's type. `head`: its first `HEAD_BYTES`, or the whole file. */
export function typeOf(given: string, head: Uint8Array): string {
  const said = normaliseType(given);
  const seen = sniff(head);
  if (family(said) === "image") return seen ?? (said === "image/svg+xml" && looksLikeSvg(head) ? said : UNKNOWN_TYPE);
  if (seen === undefined) return said === "application/pdf" ? UNKNOWN_TYPE : said;
  return isRecording(said) && isRecording(seen) ? said : seen;
}
function looksLikeSvg(head: Uint8Array): boolean {
  const text = new TextDecoder().decode(head, { stream: true });
  return /^\s*(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]*?-->\s*)*(?:<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]/i.test(text);
}

export function kindOf(mimeType: string): MediaBlock["type"] {
  const of = family(mimeType);
  return of === "image" || of === "audio" || of === "video" ? of : "document";
}

const TEXT_TYPE =
  /^(?:text\/.+|application\/(?:.+\+json|.+\+xml|json|ld\+json|x-ndjson|jsonl|yaml|x-yaml|toml|x-toml|xml|csv|javascript|ecmascript|x-javascript|typescript|sql|x-sh|x-shellscript|x-python|graphql))$/;
const TEXT_NAME =
  /(?:^|[./])(?:txt|text|md|markdown|rst|org|adoc|log|json|jsonl|ndjson|json5|yaml|yml|toml|ini|cfg|conf|env|properties|csv|tsv|xml|html?|css|scss|less|js|mjs|cjs|jsx|ts|mts|cts|tsx|vue|svelte|py|rb|php|pl|lua|r|jl|rs|go|java|kt|kts|scala|groovy|c|h|cc|cpp|cxx|hpp|cs|fs|swift|m|mm|zig|nim|dart|ex|exs|erl|hs|ml|clj|lisp|el|vim|sh|bash|zsh|fish|ps1|bat|cmd|sql|graphql|proto|tf|nix|gradle|cmake|mk|makefile|dockerfile|gitignore|diff|patch|tex|bib|srt|vtt|ics|vcf|eml)$/i;
/** Whether the type or name says text; the caller must still check the bytes. */
export const isTextLike = (mimeType: string, filename: string | undefined): boolean =>
  TEXT_TYPE.test(mimeType) ||
  (family(mimeType) !== "image" && !isRecording(mimeType) && filename !== undefined && TEXT_NAME.test(filename));

/** A file name that is safe to store and show: no folders, control or direction characters. Undefined when nothing remains. */
export function cleanFilename(filename: string | undefined): string | undefined {
  if (filename === undefined) return undefined;
  const base = filename.slice(Math.max(filename.lastIndexOf("/"), filename.lastIndexOf("\\")) + 1).toWellFormed();
  const name = base.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, "").trim();
  // Cut by characters, so that no surrogate pair is split.
  const kept = Array.from(name).slice(0, 128).join("");
  return kept === "" ? undefined : kept;
}
