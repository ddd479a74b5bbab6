/** Where a session's parts are made; `wiring` is the one seam that tests in the runtime replace. Decides nothing. */
import { createModelClient } from "../models/model-client.ts";
import type { GatewayPort } from "../ports.ts";
import { createPromptSource } from "../workspace/prompt-source.ts";
import { createNativeTools } from "../tools/native-tools.ts";
import { createArchives } from "../workspace/archives.ts";
import { createResultFiles } from "../workspace/results.ts";
import type { SessionParts } from "./driver.ts";

function createSessionParts(bucket: R2Bucket, gateway: GatewayPort): SessionParts {
  return {
    gateway,
    model: createModelClient(),
    prompts: createPromptSource(bucket),
    native: createNativeTools(bucket),
    archives: createArchives(bucket),
    files: createResultFiles(bucket),
  };
}

export const wiring = { createSessionParts };
