/**
 * One call of a real model through pi-ai: build, stream, bound, classify. Never retries, stores or logs.
 */
import { streamSimple as streamAnthropic } from "@mariozechner/pi-ai/api/anthropic-messages";
import { streamSimple as streamOpenai } from "@mariozechner/pi-ai/api/openai-completions";
import type { Model, SimpleStreamOptions, ThinkingLevel } from "@mariozechner/pi-ai";
import type { ModelOutcome, ModelRequest } from "../ports/model.ts";
import { AnswerCollector, refusalOf, toUsage } from "./answer.ts";
import { cancelled, classify, type Fault, isOverflow, overflowed } from "./failure.ts";
import type { Target } from "./resolve.ts";
import { SseGuard } from "./sse-guard.ts";
import { toolNamesOf } from "./tool-names.ts";
import type { SignedCall, TranscriptWriter } from "./transcript.ts";
import { createTransport, type Fetch } from "./transport.ts";
import { startWatchdog, type Timers } from "./watchdog.ts";

export interface ProviderDeps {
  readonly fetch: Fetch;
  readonly timers: Timers;
  readonly transcripts: TranscriptWriter;
}
const USER_AGENT = "gsv/0.1";
/** Default for the maximum answer length, in tokens; models may offer far more. */
const USUAL_MAX_TOKENS = 32_000;
/** pi-ai requires a key even when the server needs none. The header with this placeholder is removed. */
const NO_KEY = "none";

type PiModel = Omit<Model<"anthropic-messages">, "api" | "compat">;

function describe(target: Target, thinking: boolean): PiModel {
  const { info } = target;
  const price = info.price;
  return {
    id: target.id,
    name: target.id,
    provider: target.provider,
    baseUrl: target.baseUrl,
    reasoning: info.thinking !== "none" && (thinking || info.levels !== undefined),
    ...(info.levels ? { thinkingLevelMap: { ...info.levels } } : {}),
    input: info.images ? ["text", "image"] : ["text"],
    cost: {
      input: price?.input ?? 0,
      output: price?.output ?? 0,
      cacheRead: price?.cacheRead ?? price?.input ?? 0,
      cacheWrite: price?.cacheWrite ?? price?.input ?? 0,
    },
    contextWindow: info.contextWindow,
    maxTokens: info.maxTokens,
  };
}

/** Restores the provider's `extra_content` of tool calls, which pi-ai drops. */
function restoreExtras(signed: readonly SignedCall[], provider: string): SimpleStreamOptions["onPayload"] {
  const extras = new Map<string, unknown>();
  for (const call of signed) {
    if (call.provider !== provider || !call.signature.startsWith(EXTRA_PREFIX)) continue;
    extras.set(call.id, JSON.parse(call.signature.slice(EXTRA_PREFIX.length)));
  }
  if (extras.size === 0) return undefined;
  return (payload) => {
    for (const message of listOf(payload, "messages")) {
      for (const call of listOf(message, "tool_calls")) {
        if (isRecord(call) && typeof call["id"] === "string" && extras.has(call["id"])) call["extra_content"] = extras.get(call["id"]);
      }
    }
    return payload;
  };
}
const EXTRA_PREFIX = "extra:";
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
function listOf(value: unknown, key: string): readonly unknown[] {
  const list: unknown = isRecord(value) ? value[key] : undefined;
  return Array.isArray(list) ? list : [];
}

export async function callProvider(target: Target, request: ModelRequest, deps: ProviderDeps): Promise<ModelOutcome> {
  if (request.signal.aborted) return cancelled();
  const guard = new SseGuard(target.wire);
  const controller = new AbortController();
  let timedOut: Fault | undefined;
  const stop = () => controller.abort();
  request.signal.addEventListener("abort", stop, { once: true });
  const watchdog = startWatchdog(deps.timers, request.now, request.timeoutMs, (phase, ms) => {
    timedOut = { kind: "timeout", phase, ms };
    stop();
  });
  const transport = createTransport({ fetch: deps.fetch, guard, watchdog, now: request.now, stopped: () => controller.signal.aborted });
  const collector = new AnswerCollector(request.onText);

  const level = request.thinkLevel ?? request.config.model.thinkLevel;
  const reasoning: ThinkingLevel | undefined = level === undefined || level === "none" ? undefined : level;
  const model = describe(target, reasoning !== undefined);
  const maxTokens = Math.min(
    request.maxTokens ?? request.config.model.maxTokens ?? Math.min(target.info.maxTokens, USUAL_MAX_TOKENS),
    target.info.maxTokens,
  );
  const transcript = deps.transcripts.write(request.systemPrompt, request.messages, request.tools);
  const onPayload = target.wire === "openai-completions" ? restoreExtras(deps.transcripts.signed, request.model.provider) : undefined;
  const keyless = target.apiKey === undefined;
  const options: SimpleStreamOptions = {
    signal: controller.signal,
    fetch: transport.fetch,
    apiKey: target.apiKey ?? NO_KEY,
    maxRetries: 0,
    maxTokens,
    // The clients' own timeout must not fire first: the watchdog bounds the call.
    timeoutMs: request.timeoutMs + 60_000,
    sessionId: request.cacheKey,
    cacheRetention: "short",
    headers: {
      "User-Agent": USER_AGENT,
      "anthropic-dangerous-direct-browser-access": null,
      // A custom server may not support Anthropic's beta features.
      ...(target.custom ? { "anthropic-beta": null } : {}),
      ...(keyless ? (target.wire === "anthropic-messages" ? { "x-api-key": null } : { Authorization: null }) : {}),
      ...target.headers,
    },
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(onPayload ? { onPayload } : {}),
  };

  try {
    const stream =
      target.wire === "anthropic-messages"
        ? streamAnthropic(
            {
              ...model,
              api: "anthropic-messages",
              compat: { forceAdaptiveThinking: target.info.thinking === "adaptive", supportsEagerToolInputStreaming: !target.custom },
            },
            transcript,
            options,
          )
        : streamOpenai({ ...model, api: "openai-completions", ...compatOf(target) }, transcript, options);
    for await (const event of stream) {
      if (event.type === "done") {
        return collector.finish(target, event.message, {
          now: request.now(),
          maxTokens,
          nameOf: toolNamesOf(request.tools.map((tool) => tool.name)),
          extraOf: (id) => (guard.extras.has(id) ? EXTRA_PREFIX + JSON.stringify(guard.extras.get(id)) : undefined),
        });
      }
      if (event.type === "error") {
        const { usage, errorMessage } = event.error;
        const spent = usage.totalTokens > 0 ? { usage: toUsage(usage, target.info.price !== undefined) } : {};
        if (request.signal.aborted) return { ...cancelled(), ...spent };
        const fault = timedOut ?? transport.fault();
        if (fault) return { ...classify(target, fault), ...spent };
        if (isOverflow(errorMessage ?? "")) return { ...overflowed(target), ...spent };
        return refusalOf(target, event.error) ?? { ...classify(target, { kind: "broken", cause: "" }), ...spent };
      }
      collector.take(event);
      if (collector.tooLarge) return classify(target, { kind: "too_large" });
    }
    return classify(target, { kind: "broken", cause: "" });
  } catch (error) {
    if (request.signal.aborted) return cancelled();
    const fault = timedOut ?? transport.fault();
    if (fault) return classify(target, fault);
    throw error;
  } finally {
    watchdog.stop();
    request.signal.removeEventListener("abort", stop);
    controller.abort();
  }
}

function compatOf(target: Target): Pick<Model<"openai-completions">, "compat"> {
  if (target.provider === "mistral")
    return { compat: { supportsStore: false, supportsDeveloperRole: false, maxTokensField: "max_tokens", supportsReasoningEffort: false } };
  if (target.provider === "google") return { compat: { supportsStore: false, supportsDeveloperRole: false } };
  if (!target.custom) return {};
  // An OpenAI-compatible server may not support newer options: use only the base format.
  return { compat: { supportsStore: false, supportsDeveloperRole: false, maxTokensField: "max_tokens" } };
}
