/** The part of search that is loaded with the first search of memories: text to vectors, and their comparison. */
import type { Embedder } from "./static-embeddings.ts";
import { readTable as read } from "./static-embeddings.ts";
import dots from "./dots.wasm";

export const readTable = (file: ArrayBuffer): Embedder => read(file, dots);
