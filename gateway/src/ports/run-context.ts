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
  /** For another person's session: only the machines that it may use, and of each only what it may use. */
  readonly nodes: readonly NodeEntry[];
  /** The approvals of the agent's skills and of the shared ones. Built-in skills need none. */
  readonly skillPins: readonly SkillPin[];
}

/** The keys for model calls. Kept in memory only, never stored, never logged. */
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
