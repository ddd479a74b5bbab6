/**
 * CallModel: makes one call of a model for a step of a run, within the limits of spend, and reports its end as one event. Reports instead
 * that a conversation must be compacted first, or the current limits of a run that asks for them. Never retries and runs no tool: the
 * machine decides what follows.
 */
import { withAlternative } from "../../models/choice.ts";
import type { SessionMedia } from "../../ports/media.ts";
import type { ModelClient, ModelOutcome } from "../../ports/model.ts";
import type { NativeTools } from "../../ports/native-tools.ts";
import type { PromptSource } from "../../ports/prompt.ts";
import { AGAIN } from "../../calls/task-advice.ts";
import type { GsvError } from "../../ports/result.ts";
import type { MoreOffer, SpendSum } from "../../ports/spend.ts";
import type { ModelAccess, RunContext } from "../../ports/run-context.ts";
import type { History } from "../history.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { SentCall, UserRow } from "../machine/log.ts";
import { modelEffectId } from "../machine/ids.ts";
import type { CutPlan, State, Thinking } from "../machine/state.ts";
import type { Delta } from "../publisher.ts";
import type { Flight } from "../pump.ts";
import type { Allowed, SpendGate } from "../spend-gate.ts";
import type { RunContexts } from "../run-context.ts";
import { budgetOf, choiceAt, modelAt, modelsFor, thinkLevelFor } from "../run-settings.ts";
import { boundary, decideCalls, type DecidePorts } from "../decided-calls.ts";
import { sentCall } from "../sent-call.ts";
import { runTools } from "../tools.ts";
import { fitView } from "../view.ts";
import type { After } from "../../../../protocol/runtime/within.ts";
import { type ContextSize, nameOf, type Sized } from "./context-size.ts";
import { guardedCall } from "./guarded-call.ts";
import { RunPrompt } from "./run-prompt.ts";
import { transcribeRecordings } from "./transcribe-recordings.ts";

export interface CallModelPorts {
  readonly state: () => State | undefined;
  readonly history: () => History;
  readonly size: ContextSize;
  readonly contexts: RunContexts;
  readonly prompts: PromptSource;
  readonly model: ModelClient;
  readonly spend: Pick<SpendGate, "begin">;
  readonly native: Pick<NativeTools, "entries">;
  readonly decide: DecidePorts;
  readonly media: SessionMedia;
  /** The numbers of files by which the model names them (`media:3`). */
  readonly mediaNumbers: (keys: readonly string[]) => ReadonlyMap<string, number>;
  /** Messages with recordings that have no transcript yet. */
  readonly untranscribed: () => readonly UserRow[];
  readonly commit: (event: EventBody) => void;
  readonly wall: () => number;
  /** The session's clock. */
  readonly now: () => number;
  readonly delta: (delta: Delta) => void;
  /** Whether a client has asked for what the model thinks in this run. */
  readonly wantsThoughts: (runId: string) => boolean;
  readonly after: After;
  readonly failed: (what: string, error: unknown) => void;
}

export class ModelCaller {
  readonly #ports: CallModelPorts;
  readonly #prompt: RunPrompt;
  #live: Delta | undefined;

  constructor(ports: CallModelPorts) {
    this.#ports = ports;
    this.#prompt = new RunPrompt({ ...ports, sha256: ports.decide.sha256 });
  }
  /** The text so far of the call that is under way, for clients that begin to follow. */
  get live(): Delta | undefined {
    return this.#live;
  }

  /** Undefined: the call is not wanted any more, or its completion would be dropped. */
  async call(effect: EffectOf<"CallModel">, flight: Flight): Promise<EventBody | undefined> {
    const run = this.#ports.state()?.run;
    if (run?.phase !== "thinking" || modelEffectId(run) !== effect.id) return undefined;
    const live = { runId: run.runId, step: run.step, attempt: run.attempt, offset: 0, text: "" };
    this.#live = live;
    try {
      return await this.#call(effect, run, flight);
    } finally {
      if (this.#live?.runId === live.runId && this.#live.step === live.step && this.#live.attempt === live.attempt) this.#live = undefined;
    }
  }

  async #call(effect: EffectOf<"CallModel">, run: Thinking, flight: Flight): Promise<EventBody | undefined> {
    const failed = (
      error: GsvError,
      retryable: boolean,
      more: {
        readonly context?: RunContext;
        readonly models?: number;
        readonly streamed?: boolean;
        readonly outcome?: Pick<ModelOutcome & { kind: "failed" }, "retryAfterMs" | "usage">;
        readonly plan?: CutPlan | undefined;
        readonly spent?: SpendSum | undefined;
        readonly sent?: SentCall;
        readonly offer?: MoreOffer | undefined;
      } = {},
    ): EventBody => ({
      type: "ModelFailed",
      effectId: effect.id,
      error,
      retryable,
      models: more.models ?? run.modelIndex + 1,
      streamed: more.streamed ?? false,
      ...(more.context ? { budget: budgetOf(more.context, run.origin) } : {}),
      ...(more.outcome?.retryAfterMs === undefined ? {} : { retryAfterMs: more.outcome.retryAfterMs }),
      ...(more.outcome?.usage === undefined ? {} : { usage: more.outcome.usage }),
      ...(more.plan ? { plan: more.plan } : {}),
      ...(more.spent ? { spent: more.spent } : {}),
      ...(more.sent ? { sent: more.sent } : {}),
      ...(more.offer ? { offer: more.offer } : {}),
    });
    const gathered = await this.#gather(run).catch((error: unknown) => {
      this.#ports.failed("gathering what a model call needs", error);
      return undefined;
    });
    if (!gathered)
      return failed(
        { reason: "internal", message: "The gateway did not provide the settings of the model call. The log has the details." },
        true,
      );
    const { context, access, models, state } = gathered;
    if (lostDefinition(run, context)) return failed(DEFINITION_GONE, false);
    if (run.looksAtLimit) return { type: "LimitsKnown", effectId: effect.id, budget: budgetOf(context, run.origin) };
    const system = await this.#prompt.of(run, context, state);
    if (!system.ok)
      return failed(system.error, system.error.reason === "storage.failed" || system.error.reason === "internal", {
        context,
        models: models.length,
      });
    const { config } = context;
    const model = modelAt(models, run.modelIndex);
    // Before anything is compacted: a summary by a model that cannot be called would only lose the conversation's context.
    const refusal = this.#ports.model.refusal(model, config, access);
    if (refusal)
      return failed(withAlternative(refusal, choiceAt(run.modelIndex, run, state.settings, context)), false, {
        context,
        models: models.length,
      });
    const registry = runTools(state.identity, this.#ports.native, context);
    const tools = registry.definitions;
    const thinkLevel = thinkLevelFor(run, state.settings, config);
    const fixedTokens = this.#ports.size.fixedTokens(system.value, context.version, tools);
    const begin = (sized: Sized): Promise<Allowed> =>
      this.#ports.spend.begin({
        model,
        config,
        inputTokens: sized.tokens,
        // What an earlier step has sent is in the provider's cache, where there is one.
        cachedTokens: (run.spent.cacheRead ?? 0) + (run.spent.cacheWrite ?? 0) > 0 ? (state.context?.tokens ?? 0) : 0,
        maxTokens: state.settings.maxTokens,
        thinkLevel,
        run,
        ownBudget: budgetOf(context, run.origin),
      });
    const notAllowed = ({ error, retryable, offer }: Allowed & { ok: false }): EventBody =>
      failed(error, retryable, { context, models: models.length, offer });
    if (this.#ports.untranscribed().length > 0) {
      // No service is paid for recordings of a message that no model may answer.
      const first = await begin(this.#ports.size.measure(run, state, context, model, fixedTokens));
      if (!first.ok) return notAllowed(first);
      first.call.cancel();
      await this.#transcribe(effect, context, flight.signal);
    }
    if (flight.signal.aborted) return undefined;
    const sized = this.#ports.size.measure(run, state, context, model, fixedTokens);
    const allowed = await begin(sized);
    if (!allowed.ok) return notAllowed(allowed);
    const { call } = allowed;
    if (sized.plan) {
      call.cancel();
      return { type: "ContextFull", effectId: effect.id, plan: sized.plan, budget: budgetOf(context, run.origin) };
    }
    let offset = 0;
    let thought = 0;
    let written = 0;
    let isAccepted = false;
    // The answer of a heartbeat may turn out to be for no one (rule HB5), so it is shown when it is whole.
    const isSilent = run.origin.kind === "schedule" && run.origin.heartbeat === true;
    // A copy: the history grows in place, and an aborted call may continue for a while.
    const history = this.#ports.history();
    const given = [...history.messages];
    const view = { images: this.#ports.model.takesImages(model, config), numbers: this.#ports.mediaNumbers };
    const whole = history.hasMedia ? await this.#ports.media.hydrate(given, view) : given;
    // Hydrated files may be larger than their estimate.
    const messages = sized.exceeds || whole !== given ? fitView(whole, sized.budget) : whole;
    if (flight.signal.aborted) {
      call.cancel();
      return undefined;
    }
    const { wall } = this.#ports;
    const { toolTokens } = this.#ports.size;
    const { items } = history;
    const sent = sentCall({ at: wall(), model, system: this.#prompt.tokens, toolTokens, items, messages });
    const timeoutMs = this.#timeoutOf(run, context);
    const counted = await this.#guarded(timeoutMs, flight.signal, (signal) =>
      this.#ports.model.call({
        model,
        config,
        access,
        systemPrompt: system.value,
        messages,
        tools,
        thinkLevel,
        maxTokens: call.maxTokens,
        cacheKey: state.sessionId,
        timeoutMs,
        signal,
        now: wall,
        onText: (text) => {
          if (signal.aborted || text === "") return;
          const delta: Delta = { runId: run.runId, step: run.step, attempt: run.attempt, offset, text };
          offset += text.length;
          if (isSilent) return;
          if (this.#live?.attempt === run.attempt && this.#live.step === run.step)
            this.#live = { ...this.#live, text: this.#live.text + text };
          this.#ports.delta(delta);
        },
        onArguments: (length) => {
          written += length;
        },
        onAccepted: () => {
          isAccepted = true;
        },
        onThought: (text) => {
          if (signal.aborted) return;
          const before = thought;
          thought += text.length;
          if (isSilent || !this.#ports.wantsThoughts(run.runId)) return;
          this.#ports.delta({ runId: run.runId, step: run.step, attempt: run.attempt, offset: before, text, isThought: true });
        },
      }),
    );
    const received = { chars: offset + thought + written, isAccepted, isStopped: flight.signal.aborted };
    const { outcome, spent } = call.end(counted, received);
    const stopped = (): EventBody | undefined => spent && { type: "Spent", spent };
    if (flight.signal.aborted) return stopped();
    if (outcome.kind === "failed")
      return failed(outcome.error, outcome.retryable, {
        spent,
        sent,
        context,
        models: models.length,
        streamed: offset > 0,
        outcome,
        ...(outcome.error.reason === "model.context_overflow" ? { plan: sized.halved() } : {}),
      });
    const outside = await boundary(this.#ports.decide, state, context, run, outcome.calls);
    if (outside !== undefined)
      return failed(outside, false, { spent, sent, context, models: models.length, streamed: offset > 0, outcome });
    // The settings of this moment: the owner may have changed the mode while the model wrote.
    const calls = await decideCalls(this.#ports.decide, this.#ports.state() ?? state, context, run, outcome.calls);
    if (flight.signal.aborted) return stopped();
    return {
      type: "ModelReplied",
      effectId: effect.id,
      message: outcome.message,
      calls,
      usage: outcome.usage,
      budget: budgetOf(context, run.origin),
      asked: nameOf(model),
      sent,
      ...(spent ? { spent } : {}),
    };
  }

  async #gather(
    run: Thinking,
  ): Promise<{ context: RunContext; access: ModelAccess; models: ReturnType<typeof modelsFor>; state: State } | undefined> {
    const { contexts } = this.#ports;
    const context = await contexts.current(this.#ports.wall());
    const state = this.#ports.state();
    if (!state) return undefined;
    const models = modelsFor(run, state.settings, context);
    const access = await contexts.access(context, modelAt(models, run.modelIndex).provider);
    return { context, access, models, state };
  }

  /** Transcribes recordings into the log before a model call, because files are deleted and the log stays. */
  async #transcribe(effect: EffectOf<"CallModel">, context: RunContext, signal: AbortSignal): Promise<void> {
    const { untranscribed, contexts, media, commit } = this.#ports;
    const rows = untranscribed();
    if (rows.length === 0) return;
    const access = await contexts.access(context, "openai").catch((error: unknown) => {
      this.#ports.failed("asking for the key of the transcription", error);
      return undefined;
    });
    for (const row of rows) {
      const transcribed = await transcribeRecordings(row, context.config, access, media, signal);
      if (transcribed === undefined || signal.aborted) return;
      commit({ type: "Transcribed", effectId: effect.id, row: transcribed });
    }
  }
  /** A call takes no longer than the run may (rules AD8, DG4): when it ends by this time, the run has used it up. */
  #timeoutOf(run: Thinking, context: RunContext): number {
    const mostMs = budgetOf(context, run.origin).ms + (run.extra?.ms ?? 0);
    const leftMs = mostMs - (this.#ports.now() - run.startedAt - (run.waitedMs ?? 0));
    return Math.max(1, Math.min(context.config.timeouts.llmMs, leftMs + 1));
  }

  /** Ends in time and never throws, whatever the client does. */
  async #guarded(timeoutMs: number, signal: AbortSignal, call: (signal: AbortSignal) => Promise<ModelOutcome>): Promise<ModelOutcome> {
    const late = {
      message: `The model did not finish within ${Math.round(timeoutMs / 1000)} s.`,
      hint: "Send the message again, or raise `timeouts.llmMs`.",
      taskHint: `${AGAIN}, or raise \`timeouts.llmMs\`.`,
    };
    const guard = { timeoutMs, signal, after: this.#ports.after, late, stopped: "The run was stopped." };
    return guardedCall(guard, call).catch((error: unknown) => {
      this.#ports.failed("calling the model", error);
      return {
        kind: "failed",
        error: { reason: "internal", message: "Calling the model failed inside GSV. The log has the details." },
        retryable: true,
      };
    });
  }
}
const DEFINITION_GONE: GsvError = {
  reason: "agent.unknown",
  message: "The definition of the agent was taken away while the run was under way, so the run was ended.",
  hint: "Define the agent again, or turn its pack on, and send the message again.",
  taskHint: `Define the agent again, or turn its pack on. ${AGAIN} then.`,
};
/** Without its definition a run would have every tool and no limits of its own. */
const lostDefinition = ({ budget }: Thinking, { defined, isGone }: RunContext): boolean =>
  isGone === true || (budget?.hasDefinition === true && defined === undefined);
