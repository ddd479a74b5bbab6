/** Creates the parts of a session. Tests in the Workers runtime replace `wiring`. Decides nothing. */
import { createSessionMedia } from "../features/media/session-media.ts";
import type { SpeechAi } from "../ports/media.ts";
import { createModelClient, modelLimits } from "../models/model-client.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import { composePromptSource } from "./prompt-source.ts";
import { composeNativeTools } from "./native-tools.ts";
import { createArchives } from "../storage/archives.ts";
import { createMemoryFiles } from "../features/workspace/memory.ts";
import { createResultFiles } from "../storage/results.ts";
import type { SessionParts } from "../session/session-parts.ts";

function createSessionParts(bucket: R2Bucket, gateway: GatewayPort, ai?: SpeechAi): SessionParts {
  return {
    gateway,
    model: createModelClient(),
    contextWindow: (model, config) => modelLimits(model, config).contextWindow,
    prompts: composePromptSource(bucket, gateway),
    native: composeNativeTools(bucket),
    archives: createArchives(bucket),
    files: createResultFiles(bucket),
    memory: createMemoryFiles(bucket),
    media: createSessionMedia(bucket, { ai }),
  };
}

export const wiring = { createSessionParts };
