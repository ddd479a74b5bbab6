/**
 * Ranges of files that can only be read from their beginning. A reader of a large file asks for one range after the other, so the stream of a
 * range that was read to its end is kept for a while: the range that begins there goes on with it, and no byte is fetched twice.
 */

/** Streams that are kept at once. */
const MAX_KEPT = 4;
/** Until a stream without a next range is given up. */
const KEPT_MS = 30_000;

type Open = (version: string) => Promise<ReadableStream<Uint8Array> | null>;
interface Reading {
  readonly version: string;
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  /** Of the file, of the next byte. */
  at: number;
  /** What was read and not given yet. */
  rest: Uint8Array;
}
interface Kept {
  readonly reading: Reading;
  readonly timer: ReturnType<typeof setTimeout>;
}

export class RangeReader {
  readonly #open: Open;
  #kept: readonly Kept[] = [];

  constructor(open: Open) {
    this.#open = open;
  }

  /** The bytes from `offset`. Null: there is no such file. */
  async read(version: string, { offset, length }: { offset: number; length: number }): Promise<ReadableStream<Uint8Array> | null> {
    const reading = this.#take(version, offset) ?? (await this.#begin(version));
    if (reading === null) return null;
    const end = offset + length;
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        while (reading.at < end) {
          const piece = await next(reading, reading.at < offset ? offset - reading.at : end - reading.at);
          if (piece === undefined) throw new Error("the file is shorter than its object");
          if (reading.at <= offset) continue;
          controller.enqueue(piece);
          if (reading.at < end) return;
        }
        controller.close();
        this.#keep(reading);
      },
      cancel: (reason) => reading.reader.cancel(reason),
    });
  }

  async #begin(version: string): Promise<Reading | null> {
    const body = await this.#open(version);
    return body && { version, reader: body.getReader(), at: 0, rest: new Uint8Array(0) };
  }
  #take(version: string, offset: number): Reading | undefined {
    const found = this.#kept.find(({ reading }) => reading.version === version && reading.at === offset);
    if (found === undefined) return undefined;
    this.#forget(found);
    return found.reading;
  }
  #keep(reading: Reading): void {
    const kept: Kept = { reading, timer: setTimeout(() => this.#drop(kept), KEPT_MS) };
    this.#kept = [...this.#kept, kept];
    const [oldest] = this.#kept;
    if (this.#kept.length > MAX_KEPT && oldest !== undefined) this.#drop(oldest);
  }
  #forget(kept: Kept): void {
    clearTimeout(kept.timer);
    this.#kept = this.#kept.filter((other) => other !== kept);
  }
  #drop(kept: Kept): void {
    this.#forget(kept);
    void kept.reading.reader.cancel().catch(() => undefined);
  }
}

/** The next bytes, at most so many. Undefined: the file has ended. */
async function next(reading: Reading, most: number): Promise<Uint8Array | undefined> {
  if (reading.rest.length === 0) {
    const { value, done } = await reading.reader.read();
    if (done || value === undefined) return undefined;
    reading.rest = value;
  }
  const piece = reading.rest.subarray(0, most);
  reading.rest = reading.rest.subarray(piece.length);
  reading.at += piece.length;
  return piece;
}
