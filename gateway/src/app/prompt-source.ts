/** Composes the prompt of a session from its features: the agent's files, the default files of a new agent, approved skills. */
import { ensureDefaults } from "../features/agents/defaults.ts";
import { PromptSkills, type SeenPort } from "../features/skills/read.ts";
import { createPromptSource } from "../features/workspace/prompt-source.ts";
import type { PromptSource } from "../ports/prompt.ts";
import type { Bucket } from "../storage/bucket.ts";

export const composePromptSource = (bucket: Bucket, gateway: SeenPort): PromptSource =>
  createPromptSource(bucket, {
    skills: new PromptSkills(bucket, gateway),
    ensureDefaults: (agentId, files) => ensureDefaults(bucket, agentId, files),
  });
