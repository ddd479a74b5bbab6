/**
 * The vectors of an index in one piece of memory, for the exact search: reading them from the database takes ten times as long as comparing
 * them. PURE. A mirror of the table, which can be dropped at any time.
 */
import type { Vector } from "../../ports/embeddings.ts";
import { dots, type Dots } from "./dots.ts";
import { Nearest } from "./nearest-texts.ts";
import { cosine } from "./static-embeddings.ts";

export class VectorCache {
  readonly #size: number;
  readonly #dots: Dots;
  readonly #scales: Float64Array<ArrayBuffer>;
  readonly #docs: Float64Array<ArrayBuffer>;
  readonly #sources: Float64Array<ArrayBuffer>;
  #rows = 0;
  /** The sums of the last question: they hold until a vector changes. */
  #compared: { readonly query: Int8Array; readonly sums: Int32Array } | undefined;
  readonly #rowOf = new Map<number, number>();

  /** `size`: numbers of a vector. The memory is taken at once, for `most` vectors: growing would need twice as much. */
  constructor(size: number, most: number, module?: WebAssembly.Module) {
    this.#size = size;
    this.#dots = dots(size, most, module);
    this.#scales = new Float64Array(most);
    this.#docs = new Float64Array(most);
    this.#sources = new Float64Array(most);
  }
  get rows(): number {
    return this.#rows;
  }

  /** Replaces the vector of the text, if it has one. False: there is no place for it. */
  put(doc: number, source: number, { bytes, scale }: Vector): boolean {
    const known = this.#rowOf.get(doc);
    if (known === undefined && this.#rows >= this.#docs.length) return false;
    const row = known ?? this.#rows++;
    this.#compared = undefined;
    this.#dots.bytes.set(bytes, row * this.#size);
    this.#scales[row] = scale;
    this.#docs[row] = doc;
    this.#sources[row] = source;
    this.#rowOf.set(doc, row);
    return true;
  }
  /** The last row takes the place of the removed one; nothing of it is left. */
  remove(doc: number): void {
    const row = this.#rowOf.get(doc);
    if (row === undefined) return;
    this.#compared = undefined;
    const last = --this.#rows;
    const size = this.#size;
    const { bytes } = this.#dots;
    if (row !== last) {
      const moved = this.#docs[last] ?? 0;
      bytes.copyWithin(row * size, last * size, (last + 1) * size);
      this.#scales[row] = this.#scales[last] ?? 0;
      this.#docs[row] = moved;
      this.#sources[row] = this.#sources[last] ?? 0;
      this.#rowOf.set(moved, row);
    }
    bytes.fill(0, last * size, (last + 1) * size);
    this.#rowOf.delete(doc);
  }

  /** Undefined: the text has no vector. */
  cosine(query: Vector, doc: number): number | undefined {
    const row = this.#rowOf.get(doc);
    if (row === undefined) return undefined;
    if (this.#compared?.query === query.bytes) return (this.#compared.sums[row] ?? 0) * query.scale * (this.#scales[row] ?? 0);
    return cosine(query, this.#dots.bytes.subarray(row * this.#size, (row + 1) * this.#size), this.#scales[row] ?? 0);
  }
  /** Every vector is compared. */
  nearest(query: Vector, isSearched: (source: number) => boolean, limit: number, least: number): Nearest {
    const nearest = new Nearest(limit, least);
    const [rows, scale, scales, sums] = [this.#rows, query.scale, this.#scales, this.#dots.of(query.bytes, this.#rows)];
    this.#compared = { query: query.bytes, sums };
    let { worst } = nearest;
    for (let row = 0; row < rows; row++) {
      const near = (sums[row] as number) * scale * (scales[row] as number);
      if (near <= worst || !isSearched(this.#sources[row] as number)) continue;
      nearest.offer(this.#docs[row] as number, near, this.#sources[row] as number);
      worst = nearest.worst;
    }
    return nearest;
  }
}
