/** Where a session's parts are made. Decides nothing. */
import { createModelClient } from "../models/model-client.ts";
import type { GatewayPort } from "../ports.ts";
import { createPromptSource } from "../workspace/prompt-source.ts";
import { createNativeTools } from "../tools/native-tools.ts";
import { createArchives } from "../workspace/archives.ts";
import { createResultFiles } from "../workspace/results.ts";
import type { SessionParts } from "./driver.ts";

export function createSessionParts(bucket: R2Bucket, gateway: GatewayPort): SessionParts {
  return {
    gateway,
    model: createModelClient(),
    prompts: createPromptSource(bucket),
    native: createNativeTools(bucket),
    archives: createArchives(bucket),
    files: createResultFiles(bucket),
  };
}
