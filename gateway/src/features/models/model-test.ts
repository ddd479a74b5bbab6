/** `model.test`: one small call of a model, for `gsv doctor` and `gsv setup` (rule SP11). Must not store the key that it is given. */
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { ModelRef, Usage } from "../../../../protocol/gen/types.ts";
import { hideSecrets } from "../../../../protocol/runtime/secret-shapes.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { Handler } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { cappedUsage } from "../../models/capped-usage.ts";
import { agentChoice, type ModelChoice, withAlternative } from "../../models/choice.ts";
import { tokensOfText } from "../../models/estimate.ts";
import { keyCharacterProblem } from "../../models/key-characters.ts";
import { modelProblem } from "../../models/providers.ts";
import { DEMO, resolveModelId } from "../../models/resolve.ts";
import { callTerms } from "../../models/terms.ts";
import type { ModelClient, ModelOutcome } from "../../ports/model.ts";
import type { ModelAccess } from "../../ports/run-context.ts";
import { failure, type GsvError, type Result, succeed } from "../../ports/result.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { Amount, OwnUse, SpendPort } from "../../ports/spend.ts";

export interface ModelTestPorts extends Pick<KernelPorts, "audit" | "config" | "now" | "scrub">, Pick<SpendPort, "ownCall">, StopPort {
  readonly model: Pick<ModelClient, "call" | "refusal">;
}

const TIMEOUT_MS = 30_000;
const TESTED_AT_ONCE = 4;
/** Enough for one word, also of a model that thinks a little first. */
const MAX_TOKENS = 256;
const SYSTEM_PROMPT = "This is a test of the connection.";
const QUESTION = "Answer with the word ok.";

export function modelTest(ports: ModelTestPorts): Handler<"model.test"> {
  // Open calls. After a restart there are none.
  let running = 0;
  return async ({ connection }, { model: asked, apiKey }) => {
    const { audit, config } = ports;
    const agentId = config.defaultAgentId();
    const ofAgent = config.agent(agentId).model;
    const { provider, id } = asked ?? ofAgent ?? config.effective().model;
    const model: ModelRef = { provider, id };
    // A stored one of an earlier version still answers.
    const problem = asked && provider === DEMO ? modelProblem(model, config.effective()) : undefined;
    const begun =
      problem !== undefined
        ? failure("model.unknown", problem.message, problem.hint)
        : running < TESTED_AT_ONCE
          ? begin(ports, model, apiKey)
          : failure("limit.rate", "Too many models are being tested at once.");
    /** With a way back to a model that answers, where the configured one was tested. */
    const failedWithAlternative = (error: GsvError): Result<never> => {
      if (asked !== undefined) return { ok: false, error };
      const choice: ModelChoice = ofAgent === undefined ? { kind: "config" } : agentChoice(agentId, config.effective().agents?.list);
      return { ok: false, error: withAlternative(error, choice) };
    };
    const entry = { actor: actorOf(connection.principal), action: "model.test", target: nameOf(ports, model) };
    // Before the call, so that none is without its entry.
    if (!begun.ok) {
      audit.append({ ...entry, decision: "denied", detail: begun.error.reason });
      return failedWithAlternative(begun.error);
    }
    running++;
    try {
      audit.append({ ...entry, decision: "allowed" });
      const tested = await testModel(ports, model, apiKey, begun);
      return tested.ok ? tested : failedWithAlternative(tested.error);
    } finally {
      running--;
    }
  };
}
/** For the audit and the usage. Someone may have pasted a key in the wrong field. */
const nameOf = ({ scrub }: Pick<ModelTestPorts, "scrub">, model: ModelRef): string =>
  hideSecrets(scrub(`${model.provider}/${resolveModelId(model)}`)).slice(0, 256);

/** `settle` of undefined: the demo model, which is not counted. */
interface Begun {
  readonly ok: true;
  readonly signal: AbortSignal;
  readonly settle?: (used: OwnUse) => void;
  /** Limits the provider's count to what the call can have used (rule SP12). */
  readonly cap: (usage: Usage) => Usage;
}
/** Sets the call's worst cost aside, or says why no call is made. */
function begin(
  ports: ModelTestPorts,
  model: ModelRef,
  apiKey: string | undefined,
): Begun | { readonly ok: false; readonly error: GsvError } {
  const { config, ownCall, stopped, stopSignal } = ports;
  if (stopped() !== undefined) return failure("gateway.stopped", "GSV is stopped, so the model was not called.");
  const problem = apiKey === undefined ? undefined : keyCharacterProblem(apiKey);
  if (problem !== undefined) return failure("model.auth", `The model was not called: ${problem.message}`, problem.hint);
  // No call of it could be made, so there is none to count.
  const refusal = ports.model.refusal(model, config.effective(), accessOf(ports, model, apiKey));
  if (refusal !== undefined) return { ok: false, error: refusal };
  const inputTokens = tokensOfText(SYSTEM_PROMPT + QUESTION);
  const terms = callTerms(model, config.effective(), { inputTokens, cachedTokens: 0, maxTokens: MAX_TOKENS, thinkLevel: "none" });
  const signal = stopSignal();
  const cap = (usage: Usage): Usage => (terms && cappedUsage(usage, terms, inputTokens)) ?? usage;
  if (terms === undefined) return { ok: true, signal, cap };
  const { rates, inputUsd, output } = terms;
  const need: Amount = rates ? { costUsd: inputUsd + output * rates.output, tokens: 0 } : { costUsd: 0, tokens: inputTokens + output };
  const reserved = ownCall({ agentId: config.defaultAgentId(), model: nameOf(ports, model), need });
  return reserved.ok ? { ...reserved, signal, cap } : reserved;
}

/** With the key that is tested. */
function accessOf({ config }: Pick<ModelTestPorts, "config">, { provider }: ModelRef, apiKey: string | undefined): ModelAccess {
  const stored = config.access([provider]);
  return apiKey === undefined ? stored : { ...stored, apiKeys: { ...stored.apiKeys, [provider]: apiKey } };
}

async function testModel(
  ports: ModelTestPorts,
  model: ModelRef,
  apiKey: string | undefined,
  { settle, signal, cap }: Begun,
): Promise<Result<ResultOf<"model.test">>> {
  const { config, model: client, now } = ports;
  const { provider } = model;
  const began = now();
  let hasText = false;
  const outcome = await client.call({
    model,
    config: config.effective(),
    access: accessOf(ports, model, apiKey),
    systemPrompt: SYSTEM_PROMPT,
    messages: [{ role: "user", content: QUESTION, timestamp: began }],
    tools: [],
    thinkLevel: "none",
    maxTokens: MAX_TOKENS,
    cacheKey: "model.test",
    timeoutMs: TIMEOUT_MS,
    signal,
    now,
    onText: () => {
      hasText = true;
    },
  });
  const used = usedBy(outcome, hasText, cap);
  if (used !== undefined) settle?.(used);
  if (signal.aborted) return failure("gateway.stopped", "GSV was stopped while the model was called.");
  if (outcome.kind === "failed" && whole(outcome) === undefined) return { ok: false, error: outcome.error };
  return succeed({ model: { provider, id: resolveModelId(model) }, tookMs: Math.max(0, now() - began) });
}

/** Reasons of an answer that ended and is of no use, such as thoughts up to its limit. The model was reached. */
const USELESS: ReadonlySet<string> = new Set(["model.bad_answer", "model.refused"]);
/** The usage of an answer that ended. Undefined: there is none. */
const whole = (outcome: ModelOutcome): Usage | undefined =>
  outcome.kind === "replied" || (!outcome.retryable && USELESS.has(outcome.error.reason)) ? outcome.usage : undefined;

/** A provider that answers a request with one of these has not begun to answer it. */
const NEVER_BILLED: ReadonlySet<string> = new Set([
  "model.auth",
  "model.context_overflow",
  "model.not_configured",
  "model.overloaded",
  "model.rate_limited",
  "model.rejected",
  "model.unknown",
]);
/** Undefined: what was set aside stays counted, because the provider may have billed a call that was cut off, however much. */
function usedBy(outcome: ModelOutcome, hasText: boolean, cap: Begun["cap"]): OwnUse | undefined {
  const counted = whole(outcome);
  const usage = counted && cap(counted);
  if (usage !== undefined && usage.total > 0)
    return { ...usage, costUsd: usage.costUsd ?? 0, tokens: usage.costUsd === undefined ? usage.total : 0 };
  const hasBegun = hasText || outcome.usage !== undefined;
  const isRefused = outcome.kind === "failed" && !hasBegun && NEVER_BILLED.has(outcome.error.reason);
  return isRefused ? { costUsd: 0, tokens: 0 } : undefined;
}
