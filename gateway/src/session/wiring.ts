/** Where a session's parts are made; `wiring` is the one seam that tests in the runtime replace. Decides nothing. */
import { createSessionMedia } from "../media/session-media.ts";
import type { SpeechAi } from "../media/transcribe.ts";
import { createModelClient, modelLimits } from "../models/model-client.ts";
import type { GatewayPort } from "../ports.ts";
import { createPromptSource } from "../workspace/prompt-source.ts";
import { createNativeTools } from "../tools/native-tools.ts";
import { createArchives } from "../workspace/archives.ts";
import { createMemoryFiles } from "../workspace/memory.ts";
import { createResultFiles } from "../workspace/results.ts";
import type { SessionParts } from "./driver.ts";

function createSessionParts(bucket: R2Bucket, gateway: GatewayPort, ai?: SpeechAi): SessionParts {
  return {
    gateway,
    model: createModelClient(),
    contextWindow: (model, config) => modelLimits(model, config).contextWindow,
    prompts: createPromptSource(bucket, gateway),
    native: createNativeTools(bucket),
    archives: createArchives(bucket),
    files: createResultFiles(bucket),
    memory: createMemoryFiles(bucket),
    media: createSessionMedia(bucket, { ai }),
  };
}

export const wiring = { createSessionParts };
