/** What is known of many texts, each field in an array of its own: an object for each text takes five times as much memory. PURE. */
import type { Candidate } from "./ranking.ts";

const FIRST_TEXTS = 1_024;
/** Growth factor of full arrays. */
const GROWTH = 1.5;

export class TextColumns {
  /** The rows that are in use, from the first one on. */
  size = 0;
  ids: Float64Array;
  sources: Float64Array;
  ords: Float64Array;
  ats: Float64Array;
  /** How many words each text has. */
  lengths: Uint32Array;

  /** `room`: texts for which there is room before the arrays grow. */
  constructor(room = FIRST_TEXTS) {
    this.ids = new Float64Array(room);
    this.sources = new Float64Array(room);
    this.ords = new Float64Array(room);
    this.ats = new Float64Array(room);
    this.lengths = new Uint32Array(room);
  }

  /** Its row. */
  add({ id, source, ord, at }: Candidate, length: number): number {
    const row = this.#next();
    this.ids[row] = id;
    this.sources[row] = source;
    this.ords[row] = ord;
    this.ats[row] = at;
    this.lengths[row] = length;
    return row;
  }
  /** Its row here. */
  copy(other: TextColumns, row: number): number {
    const copy = this.#next();
    this.ids[copy] = other.ids[row] as number;
    this.sources[copy] = other.sources[row] as number;
    this.ords[copy] = other.ords[row] as number;
    this.ats[copy] = other.ats[row] as number;
    this.lengths[copy] = other.lengths[row] as number;
    return copy;
  }
  at(row: number): Candidate {
    return {
      id: this.ids[row] as number,
      source: this.sources[row] as number,
      ord: this.ords[row] as number,
      at: this.ats[row] as number,
    };
  }
  #next(): number {
    if (this.size === this.ids.length) {
      const most = Math.ceil(this.size * GROWTH);
      this.ids = grown(this.ids, most);
      this.sources = grown(this.sources, most);
      this.ords = grown(this.ords, most);
      this.ats = grown(this.ats, most);
      this.lengths = grown(this.lengths, most);
    }
    return this.size++;
  }
}
export function grown<Values extends Float64Array | Uint32Array | Uint8Array>(values: Values, size: number): Values {
  const more = new (values.constructor as new (size: number) => Values)(size);
  more.set(values);
  return more;
}
