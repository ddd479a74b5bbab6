/** The part of search that is loaded with the first search of memories: text to vectors. */
export { readTable } from "./static-embeddings.ts";
