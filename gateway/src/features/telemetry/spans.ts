/**
 * The spans of one run, from its stored record: the run, each call of the model, each call of a tool. Names and attributes are those of
 * OpenTelemetry's conventions for generative AI (1.41), and `gsv.*` where they have none. Everything follows from the record, so the same
 * run gives the same spans. Texts are part of a span only when the record has them. PURE.
 */
import type { StoryCall, StoryFailed, StorySent, StoryStep, Usage } from "../../../../protocol/gen/types.ts";
import type { RunRecord } from "../../ports/session.ts";
import { type Attributes, KIND, type Span, type SpanEvent } from "./otlp.ts";
import type { ShownTexts } from "./redact-texts.ts";

/** A span whose ids are not hashed yet: `key` names it in the whole gateway. */
export interface SpanPlan extends Omit<Span, "traceId" | "spanId" | "parentSpanId"> {
  readonly key: string;
  readonly parent?: string;
}
/** A run without secrets. */
export interface ShownRun extends Omit<RunRecord, "texts"> {
  readonly texts?: ShownTexts;
}
export interface RunPlace {
  readonly sessionKey: string;
  readonly runId: string;
  /** The call of another agent's run that handed the task on. */
  readonly parentCall: string | undefined;
  /** Stands for the conversation: its own name has the addresses of people. */
  readonly conversation: string;
}

const runKey = (sessionKey: string, runId: string): string => JSON.stringify(["run", sessionKey, runId]);
const toolKey = (callId: string): string => JSON.stringify(["tool", callId]);
export const traceKey = (rootKey: string, rootRun: string): string => JSON.stringify(["trace", rootKey, rootRun]);

/** Names of providers in the conventions, where they are others than ours. */
const PROVIDERS: Readonly<Record<string, string>> = {
  google: "gcp.gemini",
  "google-vertex": "gcp.vertex_ai",
  "amazon-bedrock": "aws.bedrock",
  "azure-openai-responses": "azure.ai.openai",
  mistral: "mistral_ai",
  xai: "x_ai",
};
const providerName = (provider: string): string => (Object.hasOwn(PROVIDERS, provider) ? (PROVIDERS[provider] ?? provider) : provider);
const LAYERS = ["core", "characteristics", "shared", "delegated", "working", "long_term"] as const;

export function spansOf(record: ShownRun, place: RunPlace): readonly SpanPlan[] {
  const { story, texts } = record;
  const run = runKey(place.sessionKey, place.runId);
  const spans: SpanPlan[] = [runSpan(record, place, run)];
  for (const step of story.steps) {
    spans.push(...failedSpans(step.failed, place, run, `${step.step}`));
    spans.push(modelSpan(step, place, run, texts));
    for (const call of step.calls) spans.push(toolSpan(call, step, place, run, texts));
  }
  spans.push(...failedSpans(story.failed, place, run, "end"));
  return spans;
}

function runSpan({ story, agentId, texts }: ShownRun, place: RunPlace, key: string): SpanPlan {
  const { startedAt, endedAt, end, error, usage, left } = story;
  const lost = [...story.steps.flatMap(({ failed = [] }) => failed), ...(story.failed ?? [])].filter(({ sent }) => sent === undefined);
  const answer = story.steps.at(-1);
  return {
    key,
    ...(place.parentCall === undefined ? {} : { parent: toolKey(place.parentCall) }),
    name: `invoke_agent ${agentId}`,
    kind: KIND.internal,
    startMs: startedAt,
    endMs: endedAt ?? startedAt,
    attributes: {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.id": agentId,
      "gen_ai.agent.name": agentId,
      "gen_ai.conversation.id": place.conversation,
      ...(answer === undefined
        ? {}
        : { "gen_ai.provider.name": providerName(answer.provider), "gen_ai.request.model": answer.sent?.model ?? answer.model }),
      ...usageOf(usage),
      "gsv.run.id": place.runId,
      "gsv.run.end": end,
      // The rest of the origin may name a person or a conversation.
      "gsv.run.origin": story.origin?.split(" ", 1)[0],
      ...(left > 0 ? { "gsv.run.steps_left_out": left } : {}),
      ...(texts === undefined
        ? {}
        : {
            "gsv.session.key": place.sessionKey,
            "gen_ai.input.messages": messages("user", texts.input),
            ...(end === "final" && answer !== undefined
              ? { "gen_ai.output.messages": messages("assistant", texts.answers[String(answer.step)] ?? "") }
              : {}),
          }),
      ...(end === "error" ? { "error.type": story.failed?.at(-1)?.reason ?? "_OTHER" } : {}),
    },
    events: lost.map(lostEvent),
    ...(end === "error" ? { failed: { message: texts === undefined ? "" : (error ?? "") } } : {}),
  };
}
const lostEvent = ({ at, reason }: StoryFailed): SpanEvent => ({
  name: "gsv.model_call_lost",
  at,
  attributes: { "error.type": reason },
});

function modelSpan(step: StoryStep, place: RunPlace, parent: string, texts: ShownTexts | undefined): SpanPlan {
  const { sent, provider, model, at, ms } = step;
  const asked = sent?.model ?? model;
  return {
    key: JSON.stringify(["model", place.sessionKey, place.runId, step.step]),
    parent,
    name: `chat ${asked}`,
    kind: KIND.client,
    startMs: sent?.at ?? at - ms,
    endMs: at,
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": providerName(sent?.provider ?? provider),
      "gen_ai.request.model": asked,
      "gen_ai.response.model": model,
      "gen_ai.conversation.id": place.conversation,
      "gsv.step": step.step,
      ...usageOf(step.usage),
      ...sentAttributes(sent),
      ...(texts === undefined ? {} : { "gen_ai.output.messages": messages("assistant", texts.answers[String(step.step)] ?? "") }),
    },
  };
}
/** Calls of the model without an answer. Of those that were lost, no beginning is known: they are events of the run. */
function failedSpans(failed: readonly StoryFailed[] = [], place: RunPlace, parent: string, step: string): readonly SpanPlan[] {
  return failed.flatMap(({ at, reason, usage, sent }, index) =>
    sent === undefined
      ? []
      : [
          {
            key: JSON.stringify(["model", place.sessionKey, place.runId, step, index]),
            parent,
            name: `chat ${sent.model}`,
            kind: KIND.client,
            startMs: sent.at,
            endMs: at,
            attributes: {
              "gen_ai.operation.name": "chat",
              "gen_ai.provider.name": providerName(sent.provider),
              "gen_ai.request.model": sent.model,
              "gen_ai.conversation.id": place.conversation,
              "error.type": reason,
              ...(usage === undefined ? {} : usageOf(usage)),
              ...sentAttributes(sent),
            },
            failed: { message: "" },
          },
        ],
  );
}

function toolSpan(call: StoryCall, step: StoryStep, place: RunPlace, parent: string, texts: ShownTexts | undefined): SpanPlan {
  const { callId, tool, outcome, reason, durationMs = 0, endedAt = step.at } = call;
  const isBad = outcome !== "ok";
  const said = texts?.calls[callId];
  return {
    key: toolKey(callId),
    parent,
    name: `execute_tool ${tool}`,
    kind: KIND.internal,
    startMs: endedAt - durationMs,
    endMs: endedAt,
    attributes: {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": tool,
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": callId,
      "gen_ai.conversation.id": place.conversation,
      "gsv.tool.outcome": outcome ?? "open",
      "gsv.policy.decision": call.decision,
      "gsv.policy.rule": call.rule,
      ...(call.exitCode === undefined ? {} : { "process.exit.code": call.exitCode }),
      ...(call.handedTo === undefined ? {} : { "gsv.delegation": true }),
      ...(isBad ? { "error.type": reason ?? outcome ?? "_OTHER" } : {}),
      ...(said?.args === undefined ? {} : { "gen_ai.tool.call.arguments": said.args }),
      ...(said?.result === undefined ? {} : { "gen_ai.tool.call.result": said.result }),
    },
    ...(isBad ? { failed: { message: "" } } : {}),
  };
}

/** By the conventions, the input's count has the tokens of the cache in it. */
function usageOf({ input, output, cacheRead, cacheWrite, costUsd }: Usage): Attributes {
  return {
    "gen_ai.usage.input_tokens": input + (cacheRead ?? 0) + (cacheWrite ?? 0),
    "gen_ai.usage.output_tokens": output,
    ...(cacheRead === undefined ? {} : { "gen_ai.usage.cache_read.input_tokens": cacheRead }),
    ...(cacheWrite === undefined ? {} : { "gen_ai.usage.cache_creation.input_tokens": cacheWrite }),
    ...(costUsd === undefined ? {} : { "gsv.usage.cost_usd": costUsd }),
  };
}
const sentAttributes = (sent: StorySent | undefined): Attributes =>
  sent === undefined
    ? {}
    : {
        ...Object.fromEntries(LAYERS.map((layer, index) => [`gsv.context.${layer}_tokens`, sent.layers[index] ?? 0])),
        "gsv.context.tool_tokens": sent.tools,
      };
const messages = (role: "user" | "assistant", content: string): string =>
  JSON.stringify([{ role, parts: [{ type: "text", content }], ...(role === "assistant" ? { finish_reason: "stop" } : {}) }]);
