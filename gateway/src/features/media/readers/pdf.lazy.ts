/** Text of a PDF by PDF.js (unpdf), page by page. Loaded on first use. */
import { Inflate } from "fflate";
import { getDocumentProxy, getResolvedPDFJS } from "unpdf";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import type { Reader } from "../../../ports/readers.ts";
import { PdfSource, sourceWorker } from "./pdf-source.ts";
import { textOutcome, TextOut, tooMuch, Unreadable } from "./reading.ts";

type Document = Awaited<ReturnType<typeof getDocumentProxy>>;

export const read: Reader["read"] = (bytes) => textOutcome(() => pdfText(bytes));

/** A page of a real document looks up some dozens of objects; a map with thousands of symbols, some thousands. */
const LOOKUPS = 50_000;
/** Pieces of text. Each has a character, as a rule. */
const ITEMS = LIMITS.documentTextChars;

/** Exported for its test, with how often PDF.js may look up an object. */
export async function pdfText(bytes: Uint8Array, lookups = LOOKUPS): Promise<string> {
  if (expandsTooFar(bytes)) throw tooMuch();
  const { PDFWorker } = await getResolvedPDFJS();
  const source = new PdfSource(bytes, lookups);
  const worker = sourceWorker(PDFWorker);
  const options = { verbosity: 0, stopAtErrors: false, worker };
  try {
    const document = await getDocumentProxy(source, options).catch((error: unknown) => {
      const isLocked = error instanceof Error && error.name === "PasswordException";
      throw source.isSpent
        ? tooManyParts()
        : new Unreadable(isLocked ? "It is protected by a password." : "It is damaged, or it is not a PDF.");
    });
    try {
      return await pagesText(document, source);
    } finally {
      // What PDF.js still does for a page that is not read to its end fails at its next object.
      source.end();
      await document.loadingTask.destroy().catch(() => {});
    }
  } finally {
    worker.destroy();
  }
}
const tooManyParts = (): Unreadable => new Unreadable("Its pages are drawn from too many parts to be read here.");

async function pagesText(document: Document, source: PdfSource): Promise<string> {
  const { numPages } = document;
  const pages = Math.min(numPages, LIMITS.documentPages);
  const out = new TextOut();
  let chars = 0;
  let failed = 0;
  for (let number = 1; number <= pages && !out.isFull; number++) {
    const text = await pageText(document, number).catch(() => {
      failed += 1;
      return "(This page could not be read.)";
    });
    if (source.isSpent) throw tooManyParts();
    chars += text.length;
    out.add(`[Page ${number} of ${numPages}]\n${text}\n\n`);
  }
  if (failed === pages) throw new Unreadable("It is damaged: none of its pages can be read.");
  if (chars === 0) throw new Unreadable(`It has ${numPages} pages without any text: they are probably scanned images.`);
  if (pages < numPages) out.add(`[Only the first ${pages} of ${numPages} pages are read.]`);
  return out.toString().trim();
}
/** Takes what PDF.js has found, piece by piece, and stops it when that is more than a document may have. */
async function pageText(document: Document, number: number): Promise<string> {
  const page = await document.getPage(number);
  const reader = page.streamTextContent().getReader();
  const found: string[] = [];
  let chars = 0;
  let items = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    for (const item of value.items) {
      const text = "str" in item ? item.str + (item.hasEOL ? "\n" : "") : "";
      found.push(text);
      chars += text.length;
      items += 1;
    }
    // One character more than fits, so that the text gets its note.
    if (chars <= LIMITS.documentTextChars && items <= ITEMS) continue;
    await reader.cancel(new Error("enough text")).catch(() => {});
    break;
  }
  page.cleanup();
  return found.join("").trim();
}

/** All compressed streams together; a real document of 200 pages with images stays far below. */
const ALL_STREAMS_BYTES = 4 * LIMITS.documentExpandedBytes;

/**
 * PDF.js unpacks a stream whole, so a small file could fill the memory. Here the streams are unpacked first, piece by piece, and only
 * counted. A stream inside a stream is counted, too.
 */
function expandsTooFar(bytes: Uint8Array): boolean {
  // One character for each byte.
  const text = new TextDecoder("latin1").decode(bytes);
  let total = 0;
  for (let at = text.indexOf("stream"); at >= 0; at = text.indexOf("stream", at)) {
    let start = at + 6;
    if (bytes[start] === 13) start += 1;
    if (bytes[start] === 10) start += 1;
    const end = text.indexOf("endstream", start);
    at = end < 0 ? text.length : end + 9;
    if (!isZlib(bytes, start)) continue;
    const size = expandedBytes(bytes.subarray(start, at), 2);
    total += size;
    if (size > LIMITS.documentExpandedBytes || total > ALL_STREAMS_BYTES) return true;
  }
  return false;
}
const isZlib = (bytes: Uint8Array, at = 0): boolean =>
  ((bytes[at] ?? 0) & 15) === 8 && (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)) % 31 === 0;

/** Stops counting above the limit. `depth`: how many layers of compression are looked into. */
function expandedBytes(packed: Uint8Array, depth: number): number {
  let size = 0;
  const inner: Uint8Array[] = [];
  let isInner = false;
  const inflate = new Inflate((chunk) => {
    if (size === 0 && depth > 1) isInner = isZlib(chunk);
    size += chunk.length;
    if (isInner) inner.push(chunk);
  });
  // Without the two bytes of the zlib header. A piece expands to at most a thousand times its size.
  for (let at = 2; at < packed.length && size <= LIMITS.documentExpandedBytes; at += PIECE_BYTES) {
    try {
      inflate.push(packed.subarray(at, at + PIECE_BYTES));
    } catch {
      // The end of the data, or damage: PDF.js reads no further either.
      break;
    }
  }
  if (!isInner || size > LIMITS.documentExpandedBytes) return size;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of inner) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return Math.max(size, expandedBytes(whole, depth - 1));
}
const PIECE_BYTES = 16_384;
