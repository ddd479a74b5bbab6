/** What a run gets from the gateway before it starts. */
import type {
  AgentConfig,
  GsvConfig,
  LimitsConfig,
  ModelConfig,
  NodeEntry,
  SessionConfig,
  TimeoutsConfig,
} from "../../../protocol/gen/types.ts";
import type { DefinedAgent } from "./agents.ts";
import type { Grant } from "./grants.ts";
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
  /** Tools of the packs that are on. They run in the gateway. Absent: none. */
  readonly packTools?: readonly ToolEntry[];
  /** For another person's session: only the machines that it may use, and of each only what it may use. */
  readonly nodes: readonly NodeEntry[];
  /** The approvals of the agent's skills and of the shared ones. Built-in skills need none. */
  readonly skillPins: readonly SkillPin[];
  /** The agent's definition in force. Absent: the agent has the defaults. */
  readonly defined?: DefinedAgent;
  /** There is no such agent any more: its pack was turned off, or it was taken out of the configuration. */
  readonly isGone?: true;
  /** What the owner has allowed by earlier answers: for this agent, or for this conversation of it. Absent: nothing. */
  readonly grants?: readonly Grant[];
  /** The owner's own direct conversations on channels, as gsv__Message names them. Absent: none. */
  readonly ownPlaces?: readonly string[];
  /** The runs in which the agent has made or changed jobs in the last 24 hours, once for each job. Absent: none. */
  readonly jobsMadeBy?: readonly string[];
}

/** The keys for model calls. Kept in memory only, never stored, never logged. */
export interface ModelAccess {
  readonly apiKeys: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** GsvConfig with every default filled in (config/effective.ts) and every secret removed. */
export interface EffectiveConfig extends GsvConfig {
  readonly model: ModelConfig & Required<Pick<ModelConfig, "provider" | "id">>;
  readonly timeouts: Required<TimeoutsConfig>;
  readonly limits: LimitsConfig & Required<Pick<LimitsConfig, "stepsPerRun" | "runMs" | "runCostUsd">>;
  readonly session: SessionConfig & Required<Pick<SessionConfig, "mainKey">>;
  readonly userTimezone: string;
}
