/**
 * Summarize: plans the cut of a requested compaction, or asks the model to summarise the next chunk, or to pick memories from it before a
 * reset. Makes at most one model call and reports one event. Never retries and removes nothing: the machine does.
 */
import { textOf } from "../../ports/messages.ts";
import type { ModelClient } from "../../ports/model.ts";
import type { GsvError } from "../../ports/result.ts";
import type { EffectiveConfig, RunContext } from "../../ports/run-context.ts";
import type { ModelRef } from "../../../../protocol/gen/types.ts";
import { localDay, localTime } from "../../prompt/dates.ts";
import { tokensOfText } from "../../models/estimate.ts";
import type { History, Item } from "../history.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import { LIMITS } from "../machine/limits.ts";
import { seqSpan } from "../machine/log.ts";
import { archiveEffectId } from "../machine/ids.ts";
import type { Archiving, CutPlan, MemoryDay, State } from "../machine/state.ts";
import { keepBeside, planCut, planTrim, contextBudget, summaryChars } from "../pressure.ts";
import type { Flight } from "../pump.ts";
import type { RunContexts } from "../run-context.ts";
import type { SpendGate } from "../spend-gate.ts";
import { modelAt, modelsFor } from "../run-settings.ts";
import { asMemories, nextChunk, readAnswer, SUMMARY_SYSTEM, summaryPrompt } from "../summary.ts";
import type { After } from "../../../../protocol/runtime/within.ts";
import { guardedCall } from "./guarded-call.ts";

export interface SummarizePorts {
  readonly state: () => State | undefined;
  readonly history: () => History;
  readonly contexts: RunContexts;
  readonly model: ModelClient;
  readonly spend: Pick<SpendGate, "begin">;
  readonly contextWindow: (model: ModelRef, config: EffectiveConfig) => number;
  readonly wall: () => number;
  readonly after: After;
  readonly failed: (what: string, error: unknown) => void;
}
const SUMMARY_TOKENS = 8_000;
/** A conversation with less text of the user than this has no memories. */
const LEAST_SAID_CHARS = 8;
/** Assumed tokens of the prompt where they are not known; only for requested compactions. */
const USUAL_PROMPT_TOKENS = 2_000;

/** Undefined: it is not wanted any more. */
export async function summarize(effect: EffectOf<"Summarize">, flight: Flight, ports: SummarizePorts): Promise<EventBody | undefined> {
  const state = ports.state();
  const run = state?.run;
  if (!state || run?.phase !== "archiving" || run.stage === "archive" || archiveEffectId(run) !== effect.id) return undefined;
  if (run.stage === "plan" && run.keep !== undefined) return planned(effect.id, planTrim(ports.history().items, run.keep));
  const failed = (error: GsvError, retryable: boolean): EventBody =>
    run.stage === "plan"
      ? planned(effect.id, planCut(ports.history().items, 0))
      : { type: "SummarizeFailed", effectId: effect.id, error, retryable };
  const context = await ports.contexts.current().catch((error: unknown) => {
    ports.failed("asking for what a summary needs", error);
    return undefined;
  });
  if (!context) return failed({ reason: "internal", message: "The gateway did not provide the settings of the model call." }, true);
  const model = modelFor(run, state, context);
  const window = ports.contextWindow(model, context.config);
  if (run.stage === "plan") return planned(effect.id, forced(ports.history(), window, context.config));
  try {
    return await chunk(effect, run, state, { ports, context, model, window, flight });
  } catch (error) {
    ports.failed("summarising", error);
    return failed({ reason: "internal", message: "Summarising failed inside GSV. The log has the details." }, true);
  }
}
const planned = (effectId: string, plan: CutPlan | undefined): EventBody => ({ type: "Planned", effectId, ...(plan ? { plan } : {}) });

/** The cut of a requested compaction that nothing forces: all but about the last quarter. */
function forced(history: History, window: number, config: EffectiveConfig): CutPlan | undefined {
  const budget = keepBeside(contextBudget(window, config.compaction), USUAL_PROMPT_TOKENS);
  return planCut(history.items, Math.min(budget, Math.floor(history.tokens / 4)));
}
function modelFor(run: Archiving, state: State, context: RunContext): ModelRef {
  const { compaction } = context.config;
  if (compaction?.model) return compaction.model;
  const models = modelsFor(run.resume ?? { directives: {} }, state.settings, context);
  return modelAt(models, run.resume?.modelIndex ?? 0);
}

interface Turn {
  readonly ports: SummarizePorts;
  readonly context: RunContext;
  readonly model: ModelRef;
  readonly window: number;
  readonly flight: Flight;
}
async function chunk(effect: EffectOf<"Summarize">, run: Archiving, state: State, turn: Turn): Promise<EventBody | undefined> {
  const { ports, context, model, window, flight } = turn;
  const { config } = context;
  const work = state.work ?? { summary: "", memories: "" };
  const items = ports.history().items.filter(({ row, hidden }) => hidden !== true && row.seq >= run.cursor && row.seq <= run.upto);
  const purpose = run.kind === "reset" ? "memories" : "summary";
  const memories = state.identity.isOwnersSession && config.compaction?.extractMemories !== false;
  const all: EventBody = { type: "Summarized", effectId: effect.id, cursor: run.upto + 1, summary: work.summary, memories: work.memories };
  if (items.length === 0 || (purpose === "memories" && (!memories || !worthIt(items)))) return all;
  // The demo model follows phrases; it can't read.
  if (model.provider === "demo")
    return purpose === "memories"
      ? all
      : {
          type: "SummarizeFailed",
          effectId: effect.id,
          error: { reason: "model.not_configured", message: "The demo model can't summarise." },
          retryable: false,
        };
  const part = nextChunk(
    items.map(({ message }) => message),
    Math.max(64, Math.floor(window / 4)),
  );
  const next = items[part.taken - 1]?.row;
  const most = summaryChars(window);
  const access = await ports.contexts.access(context, model.provider);
  const prompt = summaryPrompt({
    purpose,
    memories,
    transcript: part.transcript,
    summary: work.summary,
    found: work.memories,
    summaryChars: most,
    memoriesChars: LIMITS.memoriesChars,
  });
  const maxTokens = Math.min(SUMMARY_TOKENS, Math.max(256, Math.floor(window / 4)));
  const allowed = await ports.spend.begin({
    model,
    config,
    inputTokens: tokensOfText(prompt) + tokensOfText(SUMMARY_SYSTEM),
    cachedTokens: 0,
    maxTokens,
    thinkLevel: undefined,
    run: run.resume,
    ownBudget: undefined,
  });
  if (!allowed.ok) return { type: "SummarizeFailed", effectId: effect.id, error: allowed.error, retryable: allowed.retryable };
  const guard = {
    timeoutMs: LIMITS.summarizeMs,
    signal: turn.flight.signal,
    after: turn.ports.after,
    late: { message: "The model did not finish the summary in time." },
    stopped: "The summary is not wanted any more.",
  };
  let received = 0;
  let isAccepted = false;
  const counted = await guardedCall(guard, (signal) =>
    ports.model.call({
      model,
      config,
      access,
      systemPrompt: SUMMARY_SYSTEM,
      messages: [{ role: "user", content: prompt, timestamp: ports.wall() }],
      tools: [],
      thinkLevel: undefined,
      maxTokens: allowed.call.maxTokens,
      cacheKey: `${state.sessionId}-summary`,
      timeoutMs: LIMITS.summarizeMs,
      signal,
      now: ports.wall,
      onText: (text) => {
        received += text.length;
      },
      onThought: (text) => {
        received += text.length;
      },
      onArguments: (length) => {
        received += length;
      },
      onAccepted: () => {
        isAccepted = true;
      },
    }),
  );
  const { outcome, spent: sum } = allowed.call.end(counted, { chars: received, isAccepted, isStopped: flight.signal.aborted });
  if (flight.signal.aborted) return sum && { type: "Spent", spent: sum };
  const spent = sum ? { spent: sum } : {};
  if (outcome.kind === "failed") {
    const { error, retryable, usage } = outcome;
    return { type: "SummarizeFailed", effectId: effect.id, error, retryable, ...(usage ? { usage } : {}), ...spent };
  }
  const answer = readAnswer(textOf(outcome.message.content), purpose);
  if (purpose === "summary" && answer.summary === "")
    return {
      type: "SummarizeFailed",
      effectId: effect.id,
      error: { reason: "model.bad_answer", message: "The model's summary was empty." },
      retryable: true,
      usage: outcome.usage,
      ...spent,
    };
  const found = memories ? asMemories(answer.memories, LIMITS.memoriesChars) : "";
  return {
    type: "Summarized",
    effectId: effect.id,
    cursor: next ? next.seq + seqSpan(next) : run.upto + 1,
    summary: answer.summary.slice(0, most).toWellFormed(),
    memories: [work.memories, found].filter((text) => text !== "").join("\n"),
    usage: outcome.usage,
    ...spent,
    day: dayOf(run.kind === "reset" ? state.updatedAt : ports.wall(), config.userTimezone),
  };
}
const worthIt = (items: readonly Item[]): boolean =>
  items.reduce((sum, { row }) => {
    if (row.kind !== "user") return sum;
    const { content } = row.message;
    return sum + textOf(content).length;
  }, 0) >= LEAST_SAID_CHARS;
const dayOf = (at: number, timezone: string): MemoryDay => ({ date: localDay(at, timezone).today, time: localTime(at, timezone) });
