/** What a run gets from the gateway before it starts. */
import type { AgentConfig, GsvConfig, NodeEntry, ToolDefinition } from "../../../protocol/gen/types.ts";
import type { SkillPin } from "./skills.ts";

/** A tool that a run may call, with what the session must know to call it safely. */
export interface ToolBinding {
  /** What the model sees: `laptop__Bash`, `gsv__ReadFile`. */
  readonly definition: ToolDefinition;
  /** Absent for native tools. */
  readonly nodeId?: string;
  /** The node starts a callId at most once, so dispatching again is always safe. */
  readonly ledger: boolean;
}

/** Everything a run needs from the gateway, except secrets. `version` changes when any of it does. */
export interface RunContext {
  readonly version: string;
  /** Effective configuration (defaults merged), secrets removed. */
  readonly config: EffectiveConfig;
  readonly agent: AgentConfig;
  /** Tools of connected nodes that this conversation may use. Native tools are the session's own. */
  readonly tools: readonly ToolBinding[];
  /** Of other conversations than the owner's: only machines that they may use something of, and only that. */
  readonly nodes: readonly NodeEntry[];
  /** What was approved of the agent's skills and of everyone's. Built-in ones need no approval. */
  readonly skillPins: readonly SkillPin[];
}

/** What a model call may use. Fetched by effects/call-model only, never stored, never logged. */
export interface ModelAccess {
  readonly apiKeys: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** GsvConfig with every default filled in (config/effective.ts) and every secret removed. */
export interface EffectiveConfig extends GsvConfig {
  readonly model: NonNullable<GsvConfig["model"]> & { readonly provider: string; readonly id: string };
  readonly timeouts: { readonly llmMs: number; readonly toolMs: number };
  readonly limits: { readonly stepsPerRun: number; readonly runMs: number; readonly runCostUsd: number };
  readonly session: NonNullable<GsvConfig["session"]> & { readonly mainKey: string };
  readonly userTimezone: string;
}
