/**
 * Dot products of a vector of bytes with many others in one piece of memory: in WebAssembly (`dots.wat`), which compares 16 numbers at a time,
 * or in JavaScript where no module is given. Both give the same sums. PURE.
 */
const PAGE_BYTES = 65_536;
const SUM_BYTES = 4;
/** Numbers that the WebAssembly compares at once. */
const LANES = 16;

export interface Dots {
  /** The vectors, one after the other. */
  readonly bytes: Int8Array<ArrayBuffer>;
  /** The sums of the first `count` vectors. They are valid until the next call. */
  readonly of: (query: Int8Array, count: number) => Int32Array<ArrayBuffer>;
}

/** `size`: numbers of a vector. The memory for `most` vectors is taken at once. */
export function dots(size: number, most: number, module?: WebAssembly.Module): Dots {
  return module === undefined || size % LANES !== 0 ? plain(size, most) : compiled(size, most, module);
}
function plain(size: number, most: number): Dots {
  const bytes = new Int8Array(most * size);
  const sums = new Int32Array(most);
  const of = (query: Int8Array, count: number): Int32Array<ArrayBuffer> => {
    for (let row = 0, at = 0; row < count; row++) {
      let sum = 0;
      for (let index = 0; index < size; index++, at++) sum += (bytes[at] as number) * (query[index] as number);
      sums[row] = sum;
    }
    return sums;
  };
  return { bytes, of };
}
function compiled(size: number, most: number, module: WebAssembly.Module): Dots {
  const sumsAt = Math.ceil((most * size) / SUM_BYTES) * SUM_BYTES;
  const queryAt = sumsAt + most * SUM_BYTES;
  const memory = new WebAssembly.Memory({ initial: Math.ceil((queryAt + size) / PAGE_BYTES) });
  const run = new WebAssembly.Instance(module, { env: { memory } }).exports["dots"];
  if (typeof run !== "function") throw new Error("dots.wasm does not export dots");
  // It never grows, so that its buffer stays.
  const buffer = memory.buffer as ArrayBuffer;
  const given = new Int8Array(buffer, queryAt, size);
  const sums = new Int32Array(buffer, sumsAt, most);
  const of = (query: Int8Array, count: number): Int32Array<ArrayBuffer> => {
    given.set(query);
    run(0, queryAt, count, size, sumsAt);
    return sums;
  };
  return { bytes: new Int8Array(buffer, 0, most * size), of };
}
