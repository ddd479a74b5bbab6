/** Text of a PDF by PDF.js (unpdf), page by page. Loaded on first use. */
import { getDocumentProxy, getResolvedPDFJS } from "unpdf";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import type { Reader } from "../../../ports/readers.ts";
import { boundPdfjs, countFor } from "./pdf-bounds.ts";
import { sample } from "./pdf-sample.ts";
import { PdfSource, sourceWorker } from "./pdf-source.ts";
import { PdfWork } from "./pdf-work.ts";
import { textOutcome, TextOut, tooMuch, Unreadable } from "./reading.ts";

type Document = Awaited<ReturnType<typeof getDocumentProxy>>;

export const read: Reader["read"] = (bytes) => textOutcome(() => pdfText(bytes));

/** Pieces of text. Each has a character, as a rule. */
const ITEMS = LIMITS.documentTextChars;

/** Exported for its test, with what the document may cost. */
export async function pdfText(bytes: Uint8Array, work = new PdfWork()): Promise<string> {
  const done = await turn();
  try {
    if (!isBounded)
      await boundPdfjs(async () => {
        const first = new PdfWork();
        await withDocument(sample(), first, (document) => pagesText(document, first));
      });
    isBounded = true;
    countFor(work);
    return await withDocument(bytes, work, (document) => pagesText(document, work));
  } finally {
    countFor(undefined);
    done();
  }
}
let isBounded = false;

/** On Cloudflare several objects share this module; its counting serves one document at a time. */
let current: { readonly since: number } | undefined;
const TURN_MS = 60_000;
/** Asks again and again, because an object must not wait for a promise of another one. The end of a reader that died is not seen. */
async function turn(): Promise<() => void> {
  while (current !== undefined && Date.now() - current.since < TURN_MS) await new Promise((resolve) => setTimeout(resolve, 20));
  const mine = { since: Date.now() };
  current = mine;
  return () => {
    if (current === mine) current = undefined;
  };
}
async function withDocument<T>(bytes: Uint8Array, work: PdfWork, use: (document: Document) => Promise<T>): Promise<T> {
  const { PDFWorker } = await getResolvedPDFJS();
  const worker = sourceWorker(PDFWorker);
  const options = { verbosity: 0, stopAtErrors: false, worker };
  try {
    const document = await getDocumentProxy(new PdfSource(bytes, work), options).catch((error: unknown) => {
      checkWork(work);
      if (work.refused) throw tooManyParts();
      const isLocked = error instanceof Error && error.name === "PasswordException";
      throw new Unreadable(
        isLocked
          ? "It opens only with a password. Ask for a copy without one, for example printed to a new PDF."
          : "It is damaged, or it is not a PDF.",
      );
    });
    try {
      return await use(document);
    } finally {
      // What PDF.js still does for a page that is not read to its end fails at its next step.
      work.end();
      await document.loadingTask.destroy().catch(() => {});
    }
  } finally {
    worker.destroy();
  }
}
const tooManyParts = (): Unreadable => new Unreadable("Its pages are drawn from too many parts to be read here.");
/** Throws `Unreadable` when the document has cost too much. */
function checkWork({ spent }: PdfWork): void {
  if (spent === "unpacked") throw tooMuch();
  if (spent !== undefined) throw tooManyParts();
}

async function pagesText(document: Document, work: PdfWork): Promise<string> {
  const { numPages } = document;
  const pages = Math.min(numPages, LIMITS.documentPages);
  const out = new TextOut();
  let chars = 0;
  let failed = 0;
  for (let number = 1; number <= pages && !out.isFull; number++) {
    await work.pause();
    const text = await pageText(document, number).catch(() => {
      failed += 1;
      return "(This page could not be read.)";
    });
    checkWork(work);
    chars += text.length;
    out.add(`[Page ${number} of ${numPages}]\n${text}\n\n`);
  }
  if (work.refused && (failed === pages || chars === 0)) throw tooManyParts();
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
