/** What the readers of documents share. */
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import type { ReaderOutcome } from "../../../ports/readers.ts";

/** A file that cannot be read; the message is a sentence for the model. */
export class Unreadable extends Error {
  override readonly name = "Unreadable";
}
export const tooMuch = (): Unreadable =>
  new Unreadable(`Its content is larger than ${LIMITS.documentExpandedBytes / 1_048_576} MiB when it is unpacked.`);

/** A reader's work as data: each bundled module has a class `Unreadable` of its own, so its caller could not tell it from damage. */
export async function outcomeOf(work: () => Uint8Array | Promise<Uint8Array>): Promise<ReaderOutcome> {
  try {
    return { bytes: await work() };
  } catch (error) {
    return { unreadable: error instanceof Unreadable ? error.message : "It is damaged, or of a kind that cannot be read." };
  }
}
export const textOutcome = (text: () => Promise<string>): Promise<ReaderOutcome> =>
  outcomeOf(async () => {
    const found = await text();
    if (found.trim() === "") throw new Unreadable("It has no text.");
    return new TextEncoder().encode(found);
  });

/** Collects text up to the limit for one document. */
export class TextOut {
  readonly #parts: string[] = [];
  #chars = 0;
  /** More text came than fits. */
  get isFull(): boolean {
    return this.#chars > LIMITS.documentTextChars;
  }
  add(text: string): void {
    if (this.isFull) return;
    const room = LIMITS.documentTextChars - this.#chars;
    const kept = text.length <= room ? text : text.slice(0, room).toWellFormed();
    this.#parts.push(kept);
    this.#chars += text.length;
  }
  toString(): string {
    const note = this.isFull ? `\n[Only the first ${LIMITS.documentTextChars} characters are kept.]` : "";
    return this.#parts.join("") + note;
  }
}

/** Other work of this thread has its turn. */
export const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
const PARTS = 20_000;
/** The same parts in order, some at a time, with a pause after each group. */
export async function* inTurns<T>(parts: Iterable<T>): AsyncGenerator<readonly T[]> {
  let group: T[] = [];
  for (const part of parts) {
    group.push(part);
    if (group.length < PARTS) continue;
    yield group;
    group = [];
    await pause();
  }
  yield group;
}
export async function eachInTurns<T>(parts: Iterable<T>, take: (part: T) => void): Promise<void> {
  for await (const group of inTurns(parts)) for (const part of group) take(part);
}
