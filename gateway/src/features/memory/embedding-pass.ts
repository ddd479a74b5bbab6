/**
 * Gives memories their vectors of the chosen embedding service, a bounded step each time (rules LM13 to LM18). What waits is in the rows and the
 * time of the next step in the gateway's tables, so that a step can be cut anywhere. Must not decide who may remember.
 */
import type { EmbeddingsConfig, WaitingEmbeddings } from "../../../../protocol/gen/types.ts";
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { type ChosenEmbeddings, chosenEmbeddings, targetOf } from "../../embeddings/choose.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { EMBEDDED_AT_ONCE, type EmbedAnswer, type Embeddings, modelKey, type Vector } from "../../ports/embeddings.ts";
import type { MemoryVectors, WaitingText } from "../../ports/long-term-memory.ts";
import { failure, type GsvError, type Result, sentence } from "../../ports/result.ts";
import type { OwnCallAnswer, SpendPort } from "../../ports/spend.ts";
import { TENANT_ID } from "../../ports/tenant.ts";
import { beginsAgain, type EmbeddingStateStore } from "./embedding-state-store.ts";

export interface PassPorts extends Pick<SpendPort, "ownCall">, Pick<KernelPorts, "log" | "now" | "scrub"> {
  readonly rows: MemoryVectors;
  readonly state: EmbeddingStateStore;
  /** As it is at this moment. */
  readonly settings: () => EmbeddingsConfig | undefined;
  /** Changes with every change of the settings. */
  readonly settingsVersion: () => number;
  readonly service: (chosen: ChosenEmbeddings) => Result<Embeddings>;
}
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 3_600_000;
/** Failures in a row, over half a day. The next memory or a change of the settings begins again. */
const MOST_TRIES = 20;
/** Agents whose limits of money are used up are passed over, up to so many in one step; the next step goes on. */
const MOST_AGENTS = 16;
const LIMIT_PAUSE_MS = 3_600_000;
/** Requests of one step. More than it takes to find one refused text among 64 by halves: each step gets further. */
const MOST_REQUESTS = 16;
/** Whether the service takes any text. */
const PROBE = "memory";
const MOST_PROBLEM_CHARS = 1_000;

type Step = { readonly kind: "finished" } | { readonly kind: "more" } | { readonly kind: "full" | "failed"; readonly problem: string };
/** What one step may still do. */
interface Rest {
  requests: number;
  /** The service takes texts: what it refuses is the text's fault. */
  takesTexts: boolean;
}
const failed = (error: GsvError): Step => ({ kind: "failed", problem: sentence(error) });

export class EmbeddingPass {
  readonly #ports: PassPorts;
  /** Agents whose limits are used up. A pass that begins again asks for them again. */
  #passedOver: string[] = [];
  #full: GsvError | undefined;

  constructor(ports: PassPorts) {
    this.#ports = ports;
  }

  /** One step, when it is due. */
  async run(): Promise<void> {
    const { state, now, log, settingsVersion } = this.#ports;
    const target = targetOf(this.#ports.settings());
    const version = settingsVersion();
    if (state.read().model !== target) state.begin(target, target === "" ? undefined : now());
    else if (beginsAgain(state.read(), target, version)) state.worked(now());
    const seen = state.read();
    if (target === "" || seen.dueAt === undefined || seen.dueAt > now()) return;
    const step = await this.#step();
    if (step.kind !== "more") [this.#passedOver, this.#full] = [[], undefined];
    // Another model was chosen meanwhile.
    if (state.read().model !== target) return;
    if (step.kind === "finished") return state.finished(seen.serial);
    if (step.kind === "more") return state.worked(now());
    const problem = this.#ports.scrub(step.problem).slice(0, MOST_PROBLEM_CHARS);
    if (step.kind === "full") return state.failed(problem, 0, now() + LIMIT_PAUSE_MS, version);
    const tries = seen.tries + 1;
    log.warn("memories_not_embedded", { tries, problem: step.problem });
    if (tries >= MOST_TRIES) return state.gaveUp(problem, tries, version, seen.serial);
    state.failed(problem, tries, now() + backoffMs(tries, FIRST_PAUSE_MS, LONGEST_PAUSE_MS), version);
  }

  async #step(): Promise<Step> {
    const { rows, state, service } = this.#ports;
    const choice = chosenEmbeddings(this.#ports.settings());
    if (!choice.ok || choice.chosen === undefined) return { kind: "finished" };
    const { chosen } = choice;
    if (!state.read().marked) {
      const marked = await rows.awaitVectors(TENANT_ID, chosen.of);
      if (!marked.ok) return failed(marked.error);
      if (!this.#isStill(chosen)) return { kind: "more" };
      state.marked();
    }
    const rest: Rest = { requests: MOST_REQUESTS, takesTexts: false };
    for (let agents = 0; agents < MOST_AGENTS; agents++) {
      const waiting = await rows.waiting(TENANT_ID, { withoutAgents: this.#passedOver, limit: EMBEDDED_AT_ONCE });
      if (!waiting.ok) return failed(waiting.error);
      if (waiting.value === undefined)
        return this.#full === undefined ? { kind: "finished" } : { kind: "full", problem: sentence(this.#full) };
      const embeddings = service(chosen);
      if (!embeddings.ok) return failed(embeddings.error);
      const { agentId, texts } = waiting.value;
      const kept = await this.#embed(agentId, texts, chosen, embeddings.value, rest);
      // While everything is stopped no step is due: the next one is after the resume.
      if (kept.ok || kept.error.reason === "gateway.stopped") return { kind: "more" };
      if (!kept.error.reason.startsWith("budget.")) return failed(kept.error);
      this.#full = kept.error;
      this.#passedOver.push(agentId);
    }
    return { kind: "more" };
  }
  #isStill({ of }: ChosenEmbeddings): boolean {
    return targetOf(this.#ports.settings()) === modelKey(of);
  }

  async #embed(
    agentId: string,
    texts: readonly WaitingText[],
    chosen: ChosenEmbeddings,
    service: Embeddings,
    rest: Rest,
  ): Promise<Result<void>> {
    // The next step goes on.
    if (rest.requests <= 0) return { ok: true, value: undefined };
    const { rows } = this.#ports;
    const scope = { tenantId: TENANT_ID, agentId };
    const got = await this.#ask(
      agentId,
      texts.map(({ content }) => content),
      chosen,
      service,
      rest,
    );
    if (got.ok) {
      rest.takesTexts = true;
      if (!this.#isStill(chosen)) return { ok: true, value: undefined };
      const vectors = texts.flatMap(({ id }, index) => {
        const vector = got.value.vectors[index];
        return vector === undefined ? [] : [{ id, vector }];
      });
      return rows.keepVectors(scope, chosen.of, vectors);
    }
    if (got.error.reason !== "embeddings.text_refused") return got;
    const [first, ...others] = texts;
    if (first !== undefined && others.length > 0) {
      // One of them is refused: find it by halves.
      const middle = Math.ceil(texts.length / 2);
      const left = await this.#embed(agentId, texts.slice(0, middle), chosen, service, rest);
      return left.ok ? this.#embed(agentId, texts.slice(middle), chosen, service, rest) : left;
    }
    if (!rest.takesTexts) {
      const probe = await this.#ask(agentId, [PROBE], chosen, service, rest);
      if (!probe.ok)
        return probe.error.reason === "embeddings.text_refused"
          ? failure(
              "embeddings.refused",
              "The embedding service refuses every text.",
              "Check the settings: `gsv config get memory.embeddings`.",
            )
          : probe;
      rest.takesTexts = true;
    }
    if (first === undefined || !this.#isStill(chosen)) return { ok: true, value: undefined };
    return rows.noVector(scope, chosen.of, first.id);
  }
  #ask(agentId: string, texts: readonly string[], chosen: ChosenEmbeddings, service: Embeddings, rest: Rest): Promise<EmbedAnswer> {
    rest.requests--;
    return countedEmbedding(this.#ports, agentId, texts, chosen, service);
  }

  /** What waits, for the owner. Undefined: the built-in table is used, or every memory has its vector. */
  async waiting(): Promise<WaitingEmbeddings | undefined> {
    const { rows, state, scrub } = this.#ports;
    const choice = chosenEmbeddings(this.#ports.settings());
    if (!choice.ok || choice.chosen === undefined) return undefined;
    const counted = await rows.countVectors(TENANT_ID);
    if (!counted.ok || counted.value.waiting + counted.value.refused === 0) return undefined;
    const { provider, model } = choice.chosen.of;
    const { problem, dueAt } = state.read();
    return {
      model: `${provider}/${model}`.slice(0, 512),
      ...counted.value,
      ...(problem === undefined ? {} : { problem: scrub(problem) }),
      ...(dueAt === undefined ? {} : { nextAt: dueAt }),
    };
  }

  /** The vector of a question. Undefined: no memory of the agent has a vector of the chosen model, so that nothing is sent. */
  async question(
    agentId: string,
    text: string,
    signal: AbortSignal,
  ): Promise<Result<{ readonly model: string; readonly vector: Vector } | undefined>> {
    const choice = chosenEmbeddings(this.#ports.settings());
    if (!choice.ok || choice.chosen === undefined) return { ok: true, value: undefined };
    const { chosen } = choice;
    const has = await this.#ports.rows.hasVectors({ tenantId: TENANT_ID, agentId }, chosen.of);
    if (!has.ok || !has.value) return has.ok ? { ok: true, value: undefined } : has;
    const service = this.#ports.service(chosen);
    if (!service.ok) return service;
    const got = await countedEmbedding(this.#ports, agentId, [text], chosen, service.value, signal);
    if (!got.ok) return got;
    const vector = got.value.vectors[0];
    return { ok: true, value: vector && { model: modelKey(chosen.of), vector } };
  }
}

/** Asks the service, and counts what that costs. Stored secrets are masked first. */
async function countedEmbedding(
  { ownCall, scrub }: Pick<PassPorts, "ownCall" | "scrub">,
  agentId: string,
  texts: readonly string[],
  { of, price }: ChosenEmbeddings,
  service: Embeddings,
  signal?: AbortSignal,
): Promise<EmbedAnswer> {
  const amount = (tokens: number) => (price === undefined ? { costUsd: 0, tokens } : { costUsd: (tokens * price) / 1e6, tokens: 0 });
  const sent = texts.map(scrub);
  // A token is a byte at least.
  const most = sent.reduce((sum, text) => sum + utf8Bytes(text), 0);
  const reserved: OwnCallAnswer = ownCall({ agentId, model: `${of.provider}/${of.model}`.slice(0, 256), need: amount(most) });
  if (!reserved.ok) return { ok: false, error: reserved.error };
  const got = await service.embed(sent, signal);
  const used = got.ok ? got.value.tokens : (got.used ?? 0);
  // A service that did not answer may have counted the call.
  if (used !== "unknown") reserved.settle({ ...amount(used), input: used });
  return got;
}
