/** The system prompt of a run, which is assembled once and checked before each model call (rules P9.2, AD10). */
import type { NativeTools } from "../../ports/native-tools.ts";
import type { PromptSource } from "../../ports/prompt.ts";
import { failure, type Result } from "../../ports/result.ts";
import type { RunContext } from "../../ports/run-context.ts";
import { type DefinedLayers, layersOf, overridden } from "../defined-layers.ts";
import type { State, Thinking } from "../machine/state.ts";
import { modelAt, modelsFor } from "../run-settings.ts";
import { systemLayers } from "../sent-call.ts";
import { runTools } from "../tools.ts";

export interface RunPromptPorts {
  readonly prompts: PromptSource;
  readonly native: Pick<NativeTools, "entries">;
  readonly sha256: (text: string) => Promise<string>;
  readonly wall: () => number;
  readonly failed: (what: string, error: unknown) => void;
}
/** The part that is the same for all model calls of one run. */
interface AssembledRun {
  readonly ordinal: number;
  readonly system: string;
  readonly layers: DefinedLayers;
  /** Tokens of the system prompt by context layer. */
  readonly tokens: readonly number[];
}
const NO_LAYERS = [0, 0, 0, 0, 0, 0] as const;

export class RunPrompt {
  readonly #ports: RunPromptPorts;
  #assembled: AssembledRun | undefined;

  constructor(ports: RunPromptPorts) {
    this.#ports = ports;
  }
  /** Tokens of the prompt that was given last, by context layer. */
  get tokens(): readonly number[] {
    return this.#assembled?.tokens ?? NO_LAYERS;
  }
  /** Once for a run, so that all its calls have the same bytes before the conversation (P9.2). */
  async of(run: Thinking, context: RunContext, state: State): Promise<Result<string>> {
    if (this.#assembled?.ordinal === run.ordinal) return this.#unchanged(this.#assembled);
    const assembled = await this.#ports.prompts
      .assemble({
        identity: state.identity,
        config: context.config,
        agent: context.agent,
        defined: context.defined,
        nodes: context.nodes,
        skillPins: context.skillPins,
        tools: runTools(state.identity, this.#ports.native, context).definitions,
        model: modelAt(modelsFor(run, state.settings, context), run.modelIndex),
        systemPromptOverride: state.settings.systemPrompt,
        now: this.#ports.wall(),
      })
      .catch((error: unknown) => {
        this.#ports.failed("assembling the prompt", error);
        return {
          ok: false as const,
          error: { reason: "internal" as const, message: "The prompt could not be assembled. The log has the details." },
        };
      });
    if (!assembled.ok) return assembled;
    const { system, sections } = assembled.value;
    const layers = layersOf(assembled.value, context.defined);
    this.#assembled = { ordinal: run.ordinal, system, layers, tokens: systemLayers(system, sections) };
    return this.#unchanged(this.#assembled);
  }
  /** Before each call (rule AD10). */
  async #unchanged({ system, layers }: AssembledRun): Promise<Result<string>> {
    const broken = await overridden(system, layers, this.#ports.sha256);
    if (broken === undefined) return { ok: true, value: system };
    this.#assembled = undefined;
    return failure("prompt.overridden", `The prompt was not used: its section \`${broken}\` is not the one of the agent's definition.`);
  }
}
