/**
 * The vectors of an index in one piece of memory, for the exact search: reading them from the database takes ten times as long as comparing
 * them. PURE. A mirror of the table, which can be dropped at any time.
 */
import type { Vector } from "../../ports/embeddings.ts";
import { Nearest } from "./nearest-texts.ts";
import { cosine } from "./static-embeddings.ts";

/** Numbers that are compared before the rest is estimated. A multiple of four. */
const BLOCK = 64;
/** The lengths of rests have fewer digits than the sums. */
const ROUNDING = 1e-5;

export class VectorCache {
  readonly #size: number;
  readonly #bytes: Int8Array<ArrayBuffer>;
  readonly #scales: Float64Array<ArrayBuffer>;
  /** Of each row, the lengths of what follows each block. */
  readonly #rests: Float32Array<ArrayBuffer>;
  readonly #docs: Float64Array<ArrayBuffer>;
  readonly #sources: Float64Array<ArrayBuffer>;
  #rows = 0;
  readonly #rowOf = new Map<number, number>();

  /** `size`: numbers of a vector, a multiple of four. The memory is taken at once, for `most` vectors: growing would need twice as much. */
  constructor(size: number, most: number) {
    this.#size = size;
    this.#bytes = new Int8Array(most * size);
    this.#scales = new Float64Array(most);
    this.#rests = new Float32Array(most * Math.ceil(size / BLOCK));
    this.#docs = new Float64Array(most);
    this.#sources = new Float64Array(most);
  }
  get #blocks(): number {
    return Math.ceil(this.#size / BLOCK);
  }
  get rows(): number {
    return this.#rows;
  }

  /** Replaces the vector of the text, if it has one. False: there is no place for it. */
  put(doc: number, source: number, { bytes, scale }: Vector): boolean {
    const known = this.#rowOf.get(doc);
    if (known === undefined && this.#rows >= this.#docs.length) return false;
    const row = known ?? this.#rows++;
    this.#bytes.set(bytes, row * this.#size);
    this.#scales[row] = scale;
    this.#rests.set(restsOf(bytes, scale), row * this.#blocks);
    this.#docs[row] = doc;
    this.#sources[row] = source;
    this.#rowOf.set(doc, row);
    return true;
  }
  /** The last row takes the place of the removed one; nothing of it is left. */
  remove(doc: number): void {
    const row = this.#rowOf.get(doc);
    if (row === undefined) return;
    const last = --this.#rows;
    const size = this.#size;
    if (row !== last) {
      const moved = this.#docs[last] ?? 0;
      this.#bytes.copyWithin(row * size, last * size, (last + 1) * size);
      this.#scales[row] = this.#scales[last] ?? 0;
      this.#rests.copyWithin(row * this.#blocks, last * this.#blocks, (last + 1) * this.#blocks);
      this.#docs[row] = moved;
      this.#sources[row] = this.#sources[last] ?? 0;
      this.#rowOf.set(moved, row);
    }
    this.#bytes.fill(0, last * size, (last + 1) * size);
    this.#rowOf.delete(doc);
  }

  /** Undefined: the text has no vector. */
  cosine(query: Vector, doc: number): number | undefined {
    const row = this.#rowOf.get(doc);
    if (row === undefined) return undefined;
    return cosine(query, this.#bytes.subarray(row * this.#size, (row + 1) * this.#size), this.#scales[row] ?? 0);
  }
  /**
   * Every vector is compared, most of them only by their first numbers: the product of the lengths of both rests is the most that the rests can
   * add, and the numbers of the table are sorted by how much they tell.
   */
  nearest(query: Vector, isSearched: (source: number) => boolean, limit: number, least: number): Nearest {
    const nearest = new Nearest(limit, least);
    const [size, bytes, scales, rests, given] = [this.#size, this.#bytes, this.#scales, this.#rests, query.bytes];
    const blocks = Math.ceil(size / BLOCK);
    const most = restsOf(given, query.scale);
    rows: for (let row = 0; row < this.#rows; row++) {
      const scale = query.scale * (scales[row] as number);
      let at = row * size;
      let sum = 0;
      for (let block = 0; block < blocks; block++) {
        const end = Math.min(size, (block + 1) * BLOCK);
        let [a, b, c, d] = [0, 0, 0, 0];
        for (let index = block * BLOCK; index < end; index += 4, at += 4) {
          a += (given[index] as number) * (bytes[at] as number);
          b += (given[index + 1] as number) * (bytes[at + 1] as number);
          c += (given[index + 2] as number) * (bytes[at + 2] as number);
          d += (given[index + 3] as number) * (bytes[at + 3] as number);
        }
        sum += a + b + c + d;
        if (sum * scale + (most[block] as number) * (rests[row * blocks + block] as number) + ROUNDING <= nearest.worst) continue rows;
      }
      const near = sum * scale;
      if (near > nearest.worst && isSearched(this.#sources[row] as number)) nearest.offer(this.#docs[row] as number, near);
    }
    return nearest;
  }
}
/** The lengths of what follows each block. */
function restsOf(bytes: Int8Array, scale: number): Float32Array {
  const rests = new Float32Array(Math.ceil(bytes.length / BLOCK));
  let sum = 0;
  for (let index = bytes.length - 1; index >= 0; index--) {
    if ((index + 1) % BLOCK === 0) rests[Math.floor(index / BLOCK)] = Math.sqrt(sum) * scale;
    sum += (bytes[index] as number) ** 2;
  }
  return rests;
}
