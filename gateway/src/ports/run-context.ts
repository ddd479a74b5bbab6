/** What a run gets from the gateway before it starts. */
import type { AgentConfig, GsvConfig, NodeEntry } from "../../../protocol/gen/types.ts";
import type { SkillPin } from "./skills.ts";
import type { ToolEntry } from "./tool-entry.ts";

/** Everything a run needs from the gateway, except secrets. `version` changes when any of it does. */
export interface RunContext {
  readonly version: string;
  /** Effective configuration (defaults merged), secrets removed. */
  readonly config: EffectiveConfig;
  readonly agent: AgentConfig;
  /** Tools of connected machines that the session may use. The session has the native tools itself. */
  readonly tools: readonly ToolEntry[];
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
