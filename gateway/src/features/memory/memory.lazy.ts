/** The part of long-term memory that is loaded with the first memory or search. */
export { D1Memory } from "./d1-store.ts";
export { embeddingService } from "../../embeddings/service.ts";
export { EmbeddingPass } from "./embedding-pass.ts";
export { MemoryKeeper } from "./keeper.ts";
export { VectorIndexPass } from "./vector-index-pass.ts";
export { Vectorize } from "./vectorize.ts";
