/**
 * One call of a real model through pi-ai: build, stream, bound, classify. Never retries, stores or logs.
 */
import type { SimpleStreamOptions, ThinkingLevel } from "@mariozechner/pi-ai";
import type { ModelAi, ModelOutcome, ModelRequest } from "../ports/model.ts";
import { AnswerCollector, refusalOf, toUsage } from "./answer.ts";
import { serviceAccount } from "./cloud.ts";
import { cancelled, classify, type Fault, isOverflow, overflowed } from "./failure.ts";
import type { Target } from "./resolve.ts";
import { SseGuard } from "./sse-guard.ts";
import { answerTokens } from "./terms.ts";
import { toolNamesOf } from "./tool-names.ts";
import type { SignedCall, TranscriptWriter } from "./transcript.ts";
import { createTransport, type Fetch } from "./transport.ts";
import { startWatchdog, type Timers } from "./watchdog.ts";
import { bindingFetch } from "./wires/ai-binding.ts";
import { googleToken } from "./wires/google-token.ts";
import { loadWire } from "./wires/load.ts";
import { NO_KEY, type WireModel, type WireOptions } from "./wires/wire.ts";

export interface ProviderDeps {
  readonly fetch: Fetch;
  readonly timers: Timers;
  readonly transcripts: TranscriptWriter;
  /** Workers AI, where it is bound. */
  readonly ai?: ModelAi;
}
const USER_AGENT = "gsv/0.1";
function describe(target: Target, thinking: boolean): WireModel {
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
      ...(info.priceTiers ? { tiers: [...info.priceTiers] } : {}),
    },
    contextWindow: info.contextWindow,
    maxTokens: info.maxTokens,
    ...compatOf(target),
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
  const collector = new AnswerCollector(request);
  const guard = isEventStream(target.wire) ? undefined : new SseGuard(target.wire, (length) => collector.hold(length));
  const controller = new AbortController();
  let timedOut: Fault | undefined;
  const stop = () => controller.abort();
  request.signal.addEventListener("abort", stop, { once: true });
  const watchdog = startWatchdog(deps.timers, request.now, request.timeoutMs, (phase, ms) => {
    timedOut = { kind: "timeout", phase, ms };
    stop();
  });
  const fetch = target.bound === true && deps.ai !== undefined ? bindingFetch(deps.ai) : deps.fetch;
  const transport = createTransport({
    fetch,
    guard,
    watchdog,
    now: request.now,
    stopped: () => controller.signal.aborted,
    accepted: () => request.onAccepted?.(),
  });

  const level = request.thinkLevel ?? request.config.model.thinkLevel;
  const reasoning: ThinkingLevel | undefined = level === undefined || level === "none" ? undefined : level;
  const model = describe(target, reasoning !== undefined);
  const maxTokens = answerTokens(target.info, request.config, request.maxTokens);
  const transcript = deps.transcripts.write(request.systemPrompt, request.messages, request.tools);
  const onPayload = target.wire === "openai-completions" ? restoreExtras(deps.transcripts.signed, request.model.provider) : undefined;
  const options = async (): Promise<WireOptions> => ({
    signal: controller.signal,
    fetch: transport.fetch,
    ...(await credentials(target, (input, init) => transport.plain(input, init), request.now(), controller.signal)),
    maxRetries: 0,
    maxTokens,
    // The clients' own timeout must not fire first: the watchdog bounds the call.
    timeoutMs: request.timeoutMs + 60_000,
    sessionId: request.cacheKey,
    cacheRetention: "short",
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(onPayload ? { onPayload } : {}),
  });

  try {
    const stream = (await loadWire(target.wire))(model, transcript, await options());
    for await (const event of stream) {
      if (event.type === "done") {
        return collector.finish(target, event.message, {
          now: request.now(),
          maxTokens,
          nameOf: toolNamesOf(request.tools.map((tool) => tool.name)),
          extraOf: (id) => (guard?.extras.has(id) ? EXTRA_PREFIX + JSON.stringify(guard.extras.get(id)) : undefined),
        });
      }
      if (event.type === "error") {
        const { usage, errorMessage } = event.error;
        const spent = usage.totalTokens > 0 ? { usage: toUsage(usage, target.info.price !== undefined) } : {};
        if (request.signal.aborted) return { ...cancelled(), ...spent };
        const fault = timedOut ?? transport.fault();
        if (fault) return { ...classify(target, fault), ...spent };
        if (isOverflow(errorMessage ?? "")) return { ...overflowed(target), ...spent };
        return refusalOf(target, event.error) ?? { ...classify(target, brokenBy(errorMessage ?? "")), ...spent };
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

/** Bedrock's frames are binary and carry their own checksums. */
const isEventStream = (wire: Target["wire"]): boolean => wire === "bedrock-converse-stream";
/** Errors inside Bedrock's frames reach no guard; pi-ai names them. */
function brokenBy(message: string): Fault {
  const [kind] = /^(?:Throttling error|Service unavailable|Internal server error|Validation error)(?=:)/.exec(message) ?? [];
  if (kind === undefined) return { kind: "broken", cause: "" };
  const type = { T: "rate_limit_error", S: "overloaded_error", I: "server_error", V: "invalid_request_error" }[kind.slice(0, 1)];
  return { kind: "in_band", body: JSON.stringify({ error: { type, message: message.slice(kind.length + 1).trim() } }) };
}

/** The key, as the wire's client sends it, and the call's headers. */
async function credentials(
  target: Target,
  fetch: Fetch,
  now: number,
  signal: AbortSignal,
): Promise<Pick<WireOptions, "apiKey" | "headers">> {
  const { wire, apiKey } = target;
  const account = wire === "google-vertex" ? serviceAccount(apiKey) : undefined;
  const keyless = apiKey === undefined || account !== undefined;
  // The gateway's own key; keys of the providers behind it are stored there.
  const isAiGateway = target.provider === "cloudflare-ai-gateway" && !target.custom;
  return {
    apiKey: keyless ? NO_KEY : apiKey,
    headers: {
      "User-Agent": USER_AGENT,
      "anthropic-dangerous-direct-browser-access": null,
      // A custom server may not support Anthropic's beta features.
      ...(target.custom ? { "anthropic-beta": null } : {}),
      ...(keyless || isAiGateway ? (wire === "anthropic-messages" ? { "x-api-key": null } : { Authorization: null }) : {}),
      ...(isAiGateway ? { "cf-aig-authorization": `Bearer ${apiKey ?? ""}` } : {}),
      ...(account ? { Authorization: `Bearer ${await googleToken(account, fetch, now, signal)}` } : {}),
      ...target.headers,
    },
  };
}

function compatOf(target: Target): Pick<WireModel, "compat"> {
  const { wire, info, custom } = target;
  switch (wire) {
    case "anthropic-messages":
      return {
        compat: {
          ...(custom ? {} : info.compat),
          forceAdaptiveThinking: info.thinking === "adaptive",
          ...(custom ? { supportsEagerToolInputStreaming: false } : {}),
        },
      };
    case "openai-completions":
      // An OpenAI-compatible server may not support newer options: use only the base format.
      if (custom) return { compat: { supportsStore: false, supportsDeveloperRole: false, maxTokensField: "max_tokens" } };
      break;
    default:
  }
  return info.compat === undefined || custom ? {} : { compat: info.compat };
}
