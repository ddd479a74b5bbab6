/** Creates the parts of a session. Tests in the Workers runtime replace `wiring`. Decides nothing. */
import { createSessionMedia } from "../features/media/session-media.ts";
import type { Logger } from "../platform/log.ts";
import type { SpeechAi } from "../ports/media.ts";
import type { ModelAi } from "../ports/model.ts";
import type { Readers } from "../ports/readers.ts";
import { callTerms } from "../models/terms.ts";
import { createModelClient, modelLimits } from "../models/model-client.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import { composePromptSource } from "./prompt-source.ts";
import { composeNativeTools } from "./native-tools.ts";
import { createArchives } from "../storage/archives.ts";
import { createMemoryFiles } from "../features/workspace/memory.ts";
import { createResultFiles } from "../storage/results.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Bucket } from "../storage/bucket.ts";
import { tellingBucket } from "../storage/telling-bucket.ts";
import type { SessionParts } from "../session/session-parts.ts";

export interface SessionSurroundings {
  readonly ai: (SpeechAi & ModelAi) | undefined;
  readonly readers: Readers | undefined;
  /** It runs on the owner's machine. */
  readonly isEmbedded: boolean;
  readonly log: Logger;
}
function createSessionParts(storage: Bucket, gateway: GatewayPort, { ai, readers, isEmbedded, log }: SessionSurroundings): SessionParts {
  const bucket = tellingBucket(storage, () => gateway.filesWritten());
  return {
    gateway,
    model: createModelClient({ ai }),
    terms: callTerms,
    contextWindow: (model, config) => modelLimits(model, config).contextWindow,
    prompts: composePromptSource(bucket, gateway),
    native: composeNativeTools(bucket, { readers, log }),
    archives: createArchives(bucket),
    files: createResultFiles(bucket),
    memory: createMemoryFiles(bucket),
    media: createSessionMedia(bucket, { ai, readers, imagePixels: isEmbedded ? LIMITS.imagePixels : LIMITS.imagePixelsOnEdge }),
  };
}

export const wiring = { createSessionParts };
