/**
 * The words of an index's texts, one after the other, and the places of some of them: in WebAssembly (`word-places.wat`), which looks at 16
 * words at a time, or in JavaScript where no module is given. Both find the same places. PURE.
 */
import type { FirstNumbers } from "./asked-words.ts";

/** Words that one call looks at. */
export const MOST_LOOKED_AT = 16_384;
const NUMBER_BYTES = 4;
const PAGE_BYTES = 65_536;
/** In the memory of the WebAssembly: what is asked for, then the places that are found, then the words. */
const ASKED_AT = 0;
const PLACES_AT = PAGE_BYTES;
const WORDS_AT = PLACES_AT + MOST_LOOKED_AT * NUMBER_BYTES;
/** So far it reads behind the words. */
const READ_BEHIND = 64;

export interface WordMemory {
  /** As many words as there is room for. Another array after `grow`. */
  readonly words: Int32Array<ArrayBuffer>;
  /** Makes room for so many words. */
  grow(words: number): void;
  /** Where one of the numbers stands between `from` and `to`, at most MOST_LOOKED_AT words. It is valid until the next call. */
  places(asked: FirstNumbers, from: number, to: number): Uint32Array<ArrayBuffer>;
}

export const wordMemory = (words: number, module?: WebAssembly.Module): WordMemory =>
  module === undefined ? new PlainMemory(words) : new CompiledMemory(words, module);

class PlainMemory implements WordMemory {
  words: Int32Array<ArrayBuffer>;

  constructor(words: number) {
    this.words = new Int32Array(words);
  }
  grow(words: number): void {
    const more = new Int32Array(words);
    more.set(this.words);
    this.words = more;
  }
  places(asked: FirstNumbers, from: number, to: number): Uint32Array<ArrayBuffer> {
    const [words, places] = [this.words, new Uint32Array(to - from)];
    let found = 0;
    for (let at = from; at < to; at++) if (asked.has(words[at] as number)) places[found++] = at;
    return places.subarray(0, found);
  }
}

type Look = (words: number, size: number, first: number, asked: number, count: number, out: number) => number;
class CompiledMemory implements WordMemory {
  words: Int32Array<ArrayBuffer>;
  readonly #memory: WebAssembly.Memory;
  readonly #look: Look;

  constructor(words: number, module: WebAssembly.Module) {
    this.#memory = new WebAssembly.Memory({ initial: pagesFor(words) });
    const look = new WebAssembly.Instance(module, { env: { memory: this.#memory } }).exports["places"];
    if (typeof look !== "function") throw new Error("word-places.wasm does not export places");
    this.#look = look as Look;
    this.words = this.#view(words);
  }
  /** The words stay where they are: nothing is copied. */
  grow(words: number): void {
    const pages = pagesFor(words) - this.#memory.buffer.byteLength / PAGE_BYTES;
    if (pages > 0) this.#memory.grow(pages);
    this.words = this.#view(words);
  }
  places(asked: FirstNumbers, from: number, to: number): Uint32Array<ArrayBuffer> {
    const buffer = this.#memory.buffer as ArrayBuffer;
    const { numbers } = asked;
    new Int32Array(buffer, ASKED_AT, numbers.length).set(numbers);
    const found = this.#look(WORDS_AT + from * NUMBER_BYTES, to - from, from, ASKED_AT, numbers.length, PLACES_AT);
    return new Uint32Array(buffer, PLACES_AT, found);
  }
  #view(words: number): Int32Array<ArrayBuffer> {
    return new Int32Array(this.#memory.buffer as ArrayBuffer, WORDS_AT, words);
  }
}
const pagesFor = (words: number): number => Math.ceil((WORDS_AT + words * NUMBER_BYTES + READ_BEHIND) / PAGE_BYTES);
