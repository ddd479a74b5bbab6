/**
 * What a session answers about its models and its context: the size, the model of the next run, the prompt. Reads only; calls no model and
 * changes nothing.
 */
import type { ModelRef, SessionPromptResult } from "../../../protocol/gen/types.ts";
import { modelProblem } from "../models/providers.ts";
import { resolveModelId } from "../models/resolve.ts";
import type { Message } from "../ports/messages.ts";
import { type Problem, type Result, sentence } from "../ports/result.ts";
import type { RunContext } from "../ports/run-context.ts";
import type { SessionIdentity } from "../ports/session.ts";
import type { State } from "./machine/state.ts";
import { promptView } from "./prompt-view.ts";
import type { RunContexts } from "./run-context.ts";
import { modelsFor } from "./run-settings.ts";
import type { SessionParts } from "./session-parts.ts";

export interface ModelViewPorts {
  /** Undefined before the first message. */
  readonly state: () => State | undefined;
  readonly messages: () => readonly Message[];
  readonly contexts: Pick<RunContexts, "current" | "known">;
  /** Undefined: the size of the conversation is not known. */
  readonly tokens: (state: State) => number | undefined;
  readonly parts: Pick<SessionParts, "contextWindow" | "gateway" | "model" | "native" | "prompts">;
  readonly wall: () => number;
}

export interface ContextSize {
  readonly tokens?: number;
  readonly window?: number;
  readonly model?: ModelRef;
}

export class ModelView {
  readonly #ports: ModelViewPorts;

  constructor(ports: ModelViewPorts) {
    this.#ports = ports;
  }

  /** As `size`, with the gateway's current settings when it answers. */
  async currentSize(): Promise<ContextSize> {
    await this.#ports.contexts.current().catch(() => undefined);
    return this.size();
  }
  /** The model of the next run, its window, and the size of the conversation, as far as they are known without asking the gateway. */
  size(): ContextSize {
    const { contexts, parts, tokens: count } = this.#ports;
    const state = this.#ports.state();
    const context = contexts.known;
    if (!state) return {};
    const tokens = count(state);
    const model = context && modelsFor({ directives: {} }, state.settings, context)[0];
    return {
      ...(tokens === undefined ? {} : { tokens }),
      ...(context && model
        ? { window: parts.contextWindow(model, context.config), model: { provider: model.provider, id: resolveModelId(model) } }
        : {}),
    };
  }
  /** The model of the next run. Undefined: the gateway does not say now. `identity` counts before the first message. */
  async current(identity?: SessionIdentity): Promise<ModelRef | undefined> {
    const own = this.#ports.state()?.settings.model;
    if (own !== undefined) return own;
    const context = await this.#context(identity);
    return context && modelsFor({ directives: {} }, {}, context)[0];
  }
  /** The gateway's current settings, or the last known ones. */
  async #context(identity: SessionIdentity | undefined): Promise<RunContext | undefined> {
    const { contexts, parts, state } = this.#ports;
    const isNew = state() === undefined && identity !== undefined;
    const asked = isNew ? parts.gateway.runContext(identity.key, undefined) : contexts.current();
    return (await asked.catch(() => null)) ?? contexts.known;
  }
  /** Why a model cannot be used; undefined: it can, or the gateway does not answer. `identity` counts before the first message. */
  async problem(model: ModelRef, identity?: SessionIdentity): Promise<Problem | undefined> {
    const context = await this.#context(identity);
    return context && modelProblem(model, context.config);
  }
  /** What a model that can be chosen needs before it answers, such as a key; undefined: nothing, or the gateway does not answer. */
  async warning(model: ModelRef, identity?: SessionIdentity): Promise<string | undefined> {
    const { parts } = this.#ports;
    const context = await this.#context(identity);
    const access = context && (await parts.gateway.modelAccess([model.provider]).catch(() => null));
    const refusal = access ? parts.model.refusal(model, context.config, access) : undefined;
    return refusal && sentence(refusal);
  }
  /** `identity` counts before the first message. Rejects when the gateway does not answer. */
  async prompt(identity: SessionIdentity, sha256: (text: string) => Promise<string>): Promise<Result<SessionPromptResult>> {
    const { contexts, messages, parts, wall } = this.#ports;
    const isNew = this.#ports.state() === undefined;
    const context = isNew ? await parts.gateway.runContext(identity.key, undefined) : await contexts.current();
    if (!context) throw new Error("the gateway answered `unchanged` to a first request");
    const state = this.#ports.state();
    const { prompts, native } = parts;
    return promptView({
      identity: state?.identity ?? identity,
      state,
      messages: state ? messages() : [],
      context,
      prompts,
      native,
      now: wall(),
      sha256,
    });
  }
}
