/** The assembled system prompt and its source. */
import type { AgentConfig, ModelRef, NodeEntry, ToolDefinition } from "../../../protocol/gen/types.ts";
import type { DefinedAgent } from "./agents.ts";
import type { Result } from "./result.ts";
import type { EffectiveConfig } from "./run-context.ts";
import type { SessionIdentity } from "./session.ts";
import type { SkillPin } from "./skills.ts";

export interface PromptInput {
  readonly identity: SessionIdentity;
  readonly config: EffectiveConfig;
  readonly agent: AgentConfig;
  /** From the run context. Absent: the agent has the defaults. */
  readonly defined?: DefinedAgent | undefined;
  readonly nodes: readonly NodeEntry[];
  readonly tools: readonly ToolDefinition[];
  /** From the run context. Absent: the gateway is asked. */
  readonly skillPins?: readonly SkillPin[];
  readonly model: ModelRef;
  readonly systemPromptOverride: string | undefined;
  readonly now: number;
}

/** `layer` is the context layer of P9.2. `system` is the sections joined; byte-identical while nothing changed. */
export interface AssembledPrompt {
  readonly system: string;
  readonly sections: readonly {
    readonly id: string;
    readonly title: string;
    readonly layer: 1 | 2 | 3 | 4 | 5 | 6;
    readonly text: string;
  }[];
}

export interface PromptSource {
  /** No R2 operation when the cache is fresh. */
  assemble(input: PromptInput): Promise<Result<AssembledPrompt>>;
}
