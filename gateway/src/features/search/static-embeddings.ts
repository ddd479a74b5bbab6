/**
 * Turns English text into a vector without running a model: the mean of the vectors of its word pieces, from a table (gateway/embeddings).
 * PURE. The text is split as BERT's uncased tokenizer does it: lower case, no accents, greedy longest pieces.
 */

import { shortened } from "../../embeddings/answer.ts";
import type { Vector } from "../../ports/embeddings.ts";

export const DIMENSIONS = 256;
/** Changes with the table or with how a text is split: then every text is embedded again. */
export const MODEL = "static-256-1";
/** A longer word is no word of the table. */
const MAX_WORD_CHARS = 64;
/** The vector of a longer text hardly changes with what follows. */
const MAX_PIECES = 512;
const HEADER_BYTES = 4;

export interface Embedder {
  readonly model: string;
  /** Undefined: no word of the text is in the table. */
  readonly embed: (text: string) => Vector | undefined;
  /** `dots.wasm`, which compares vectors. Undefined: they are compared in JavaScript. */
  readonly dots?: WebAssembly.Module;
}

/** The table as one file: bytes of the vocabulary (u32), vocabulary, scales (f32), rows (i8); the first two are padded to four bytes together. */
export function readTable(file: ArrayBuffer, dots?: WebAssembly.Module): Embedder {
  const vocabularyBytes = new DataView(file).getUint32(0, true);
  const words = new TextDecoder()
    .decode(new Uint8Array(file, HEADER_BYTES, vocabularyBytes))
    .trimEnd()
    .split("\n");
  const from = (HEADER_BYTES + vocabularyBytes + 3) & ~3;
  if (file.byteLength !== from + words.length * (4 + DIMENSIONS))
    throw new Error("the table of vectors has another size than its words need");
  const scales = new Float32Array(file, from, words.length);
  const rows = new Int8Array(file, from + words.length * 4);
  const ids = new Map(words.map((word, id) => [word, id]));
  const embed = (text: string): Vector | undefined => embedded(piecesOf(text, ids), scales, rows);
  return { model: MODEL, embed, ...(dots === undefined ? {} : { dots }) };
}

function embedded(pieces: readonly number[], scales: Float32Array, rows: Int8Array): Vector | undefined {
  const sum = new Float64Array(DIMENSIONS);
  for (const id of pieces) {
    const scale = scales[id] ?? 0;
    const at = id * DIMENSIONS;
    for (let index = 0; index < DIMENSIONS; index++) sum[index] = (sum[index] ?? 0) + scale * (rows[at + index] ?? 0);
  }
  return shortened(sum);
}

/** The ids of the text's word pieces. Words that the table does not have are left out. */
export function piecesOf(text: string, ids: ReadonlyMap<string, number>): readonly number[] {
  const found: number[] = [];
  const plain = text
    .toLowerCase()
    .normalize("NFD")
    .replace(/\p{Mn}/gu, "");
  for (const [word] of plain.matchAll(/[\p{L}\p{N}\p{M}]+|[^\s\p{L}\p{N}\p{M}\p{C}]/gu)) {
    found.push(...wordPieces(word, ids));
    if (found.length >= MAX_PIECES) break;
  }
  return found;
}
function wordPieces(word: string, ids: ReadonlyMap<string, number>): readonly number[] {
  if (word.length > MAX_WORD_CHARS) return [];
  const pieces: number[] = [];
  for (let from = 0; from < word.length; ) {
    let to = word.length;
    let id: number | undefined;
    for (; to > from; to--) {
      id = ids.get((from === 0 ? "" : "##") + word.slice(from, to));
      if (id !== undefined) break;
    }
    if (id === undefined) return [];
    pieces.push(id);
    from = to;
  }
  return pieces;
}

/** The cosine of two vectors of length 1 and the same size. */
export function cosine(one: Vector, bytes: Int8Array, scale: number): number {
  let [a, b, c, d] = [0, 0, 0, 0];
  const mine = one.bytes;
  const size = mine.length;
  const even = size - (size % 4);
  for (let index = 0; index < even; index += 4) {
    a += (mine[index] as number) * (bytes[index] as number);
    b += (mine[index + 1] as number) * (bytes[index + 1] as number);
    c += (mine[index + 2] as number) * (bytes[index + 2] as number);
    d += (mine[index + 3] as number) * (bytes[index + 3] as number);
  }
  for (let index = even; index < size; index++) a += (mine[index] as number) * (bytes[index] as number);
  return (a + b + c + d) * one.scale * scale;
}
