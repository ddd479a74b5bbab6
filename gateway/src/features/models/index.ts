/** Calls a model once for `gsv doctor`. It belongs to no session: nothing is stored, and no budget of a run counts it. */
import type { ModelRef } from "../../../../protocol/gen/types.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { resolveModelId } from "../../models/resolve.ts";
import type { ModelClient } from "../../ports/model.ts";
import { succeed } from "../../ports/result.ts";

export interface ModelPorts extends Pick<KernelPorts, "config" | "now"> {
  readonly model: Pick<ModelClient, "call">;
}

const TIMEOUT_MS = 30_000;
/** Enough for one word, also of a model that thinks a little first. */
const MAX_TOKENS = 256;

export const modelsFeature: FeatureDefinition<ModelPorts, object> = {
  name: "models",
  create: (ports) => ({ offers: {}, methods: modelMethods(ports) }),
};

const modelMethods = ({ config, now, model: client }: ModelPorts): Handlers => ({
  "model.test": async (_caller, { model: asked }) => {
    const inForce = config.effective();
    const { provider, id } = asked ?? config.agent(config.defaultAgentId()).model ?? inForce.model;
    const model: ModelRef = { provider, id };
    const began = now();
    const outcome = await client.call({
      model,
      config: inForce,
      access: config.access([provider]),
      systemPrompt: "This is a test of the connection.",
      messages: [{ role: "user", content: "Answer with the word ok.", timestamp: began }],
      tools: [],
      thinkLevel: "none",
      maxTokens: MAX_TOKENS,
      cacheKey: "model.test",
      timeoutMs: TIMEOUT_MS,
      signal: new AbortController().signal,
      now,
      onText: () => {},
    });
    // A failure with usage is an answer that was of no use, such as one that ended at its limit: the model was reached.
    if (outcome.kind === "failed" && outcome.usage === undefined) return { ok: false, error: outcome.error };
    return succeed({ model: { provider, id: resolveModelId(model) }, tookMs: Math.max(0, now() - began) });
  },
});
