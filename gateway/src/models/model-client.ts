/**
 * The gateway's model client: picks the demo or a provider, makes one call, returns an outcome. Never throws, never
 * retries over time (the session's machine does), never stores anything. Make one for each conversation: it keeps the conversation's
 * last transcript in memory. What makes calls is loaded with the first one.
 */
import { once } from "../../../protocol/runtime/once.ts";
import type { ModelAi, ModelClient } from "../ports/model.ts";
import { isDemo, resolveTarget, takesImages } from "./resolve.ts";
import type { TranscriptWriter } from "./transcript.ts";
import type { Fetch } from "./transport.ts";
import { systemTimers, type Timers } from "./watchdog.ts";

export { modelLimits, resolveModelId } from "./resolve.ts";

export interface ModelClientDeps {
  readonly fetch?: Fetch;
  readonly timers?: Timers;
  /** Workers AI, where it is bound. */
  readonly ai?: ModelAi | undefined;
}

export function createModelClient(deps: ModelClientDeps = {}): ModelClient {
  const fetch: Fetch = deps.fetch ?? ((input, init) => globalThis.fetch(input, init));
  const timers = deps.timers ?? systemTimers;
  const load = once(() => import("./model-call.lazy.ts"));
  let transcripts: TranscriptWriter | undefined;
  const platform = { workersAi: deps.ai !== undefined };
  return {
    takesImages,
    refusal(model, config, access) {
      if (isDemo(model)) return undefined;
      const target = resolveTarget(model, config, access, platform);
      return target.ok ? undefined : target.error;
    },
    async call(request) {
      try {
        const { callDemo, callProvider, TranscriptWriter } = await load();
        if (isDemo(request.model)) return await callDemo(request, timers);
        const target = resolveTarget(request.model, request.config, request.access, platform);
        if (!target.ok) return { kind: "failed", error: target.error, retryable: false };
        transcripts ??= new TranscriptWriter();
        return await callProvider(target.value, request, { fetch, timers, transcripts, ...(deps.ai ? { ai: deps.ai } : {}) });
      } catch (error) {
        // A bug here must not break the session. The error's text may contain anything, so only its kind is shown.
        const kind = error instanceof Error ? error.name : "unknown";
        return {
          kind: "failed",
          error: { reason: "internal", message: `The model call failed inside GSV (${kind}). The log has the details.` },
          retryable: false,
        };
      }
    },
  };
}
