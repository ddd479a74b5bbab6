/** Text of a PDF by PDF.js (unpdf), page by page. Loaded on first use. */
import { getDocumentProxy, getResolvedPDFJS } from "unpdf";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import type { Reader } from "../../../ports/readers.ts";
import { checkExpansion } from "./pdf-expansion.ts";
import { PdfSource, sourceWorker } from "./pdf-source.ts";
import { textOutcome, TextOut, Unreadable } from "./reading.ts";

type Document = Awaited<ReturnType<typeof getDocumentProxy>>;

export const read: Reader["read"] = (bytes) => textOutcome(() => pdfText(bytes));

/** A page of a real document looks up some dozens of objects; a map with thousands of symbols, some thousands. */
const LOOKUPS = 50_000;
/** Pieces of text. Each has a character, as a rule. */
const ITEMS = LIMITS.documentTextChars;

/** Exported for its test, with how often PDF.js may look up an object. */
export async function pdfText(bytes: Uint8Array, lookups = LOOKUPS): Promise<string> {
  checkExpansion(bytes);
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
