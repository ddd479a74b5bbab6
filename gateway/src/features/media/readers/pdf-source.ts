/**
 * The bytes of a PDF, for PDF.js in this thread. Forms may draw forms, so a small file can ask for work without end; PDF.js looks up the
 * form for each of these, and each look-up begins with the buffer of the file, which is counted here.
 */
import type { PDFWorker } from "unpdf/pdfjs";
import { COST, type PdfWork } from "./pdf-work.ts";

export class PdfSource extends Uint8Array<ArrayBuffer> {
  readonly #work: PdfWork;

  constructor(bytes: Uint8Array, work: PdfWork) {
    // A copy, because the caller keeps its bytes.
    super(new Uint8Array(bytes).buffer);
    this.#work = work;
    /** What PDF.js cuts out of the file. To find the objects of a file without a table, it cuts each of them out of all bytes. */
    class Part extends Uint8Array<ArrayBuffer> {
      static get [Symbol.species](): Uint8ArrayConstructor {
        return Uint8Array;
      }
      override subarray(begin?: number, end?: number): Uint8Array<ArrayBuffer> {
        work.take("steps", COST.part);
        return super.subarray(begin, end);
      }
    }
    Object.defineProperty(this, "constructor", { value: { [Symbol.species]: Part } });
  }
  override get buffer(): ArrayBuffer {
    this.#work.take("steps", COST.lookup);
    return super.buffer as ArrayBuffer;
  }
}

type Listener = (event: { readonly data: unknown }) => void;
/** As between threads, the other side gets a copy; only of the source it gets the source itself, because a copy would not count. */
function copied(message: unknown): unknown {
  const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null;
  if (!isObject(message) || !isObject(message["data"]) || !(message["data"]["data"] instanceof PdfSource)) return structuredClone(message);
  const { data: source, ...rest } = message["data"];
  return { ...message, data: { ...structuredClone(rest), data: source } };
}
/** One end of a channel inside this thread. */
class Port {
  readonly #listeners = new Set<Listener>();
  other: Port | undefined;

  postMessage(message: unknown): void {
    const data = copied(message);
    void Promise.resolve().then(() => this.other?.take(data));
  }
  take(data: unknown): void {
    for (const listener of this.#listeners) listener({ data });
  }
  addEventListener(_type: string, listener: Listener, options?: { readonly signal?: AbortSignal }): void {
    this.#listeners.add(listener);
    options?.signal?.addEventListener("abort", () => this.#listeners.delete(listener));
  }
  removeEventListener(_type: string, listener: Listener): void {
    this.#listeners.delete(listener);
  }
  /** PDF.js asks this of a worker. */
  start(): void {}
}
interface Handler {
  readonly initializeFromPort: (port: Port) => void;
}
/** PDF.js's worker in this thread, which gets the source itself. */
export function sourceWorker(PdfWorker: typeof PDFWorker): PDFWorker {
  const [here, there] = [new Port(), new Port()];
  here.other = there;
  there.other = here;
  const { pdfjsWorker } = globalThis as { readonly pdfjsWorker?: { readonly WorkerMessageHandler: Handler } };
  if (pdfjsWorker === undefined) throw new Error("this is not the PDF.js that this file was written for");
  // The types know no port.
  const worker = new PdfWorker({ port: here as unknown as null, verbosity: 0 });
  pdfjsWorker.WorkerMessageHandler.initializeFromPort(there);
  return worker;
}
