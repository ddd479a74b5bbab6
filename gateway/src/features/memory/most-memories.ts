/** How many memories an agent may have. PURE. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { EmbeddingModel } from "../../ports/embeddings.ts";
import type { VectorIndex } from "../../ports/vector-index.ts";

/** More where a vector index finds them. Otherwise each question compares every vector (rules LM1, LM20). `of`: of the chosen service. */
export const mostMemories = (of: EmbeddingModel | undefined, index: Pick<VectorIndex, "isUsedFor"> | undefined): number =>
  of !== undefined && index?.isUsedFor(of.dimensions) === true ? LIMITS.memoriesIndexed : LIMITS.memories;
