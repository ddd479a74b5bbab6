/** What the gateway tells a session of its settings, its policy and its machines. */
import { asAgentId } from "../../../protocol/gen/types.ts";
import type { RunContext } from "../../src/ports/run-context.ts";
import type { ToolEntry } from "../../src/ports/tool-entry.ts";
import { machineEntry } from "../support/tool-entries.ts";
import type { FakeNode } from "./nodes.ts";

export interface SettingsOptions {
  readonly agentId: string;
  readonly nodes: readonly FakeNode[];
  readonly stepsPerRun: number;
  /** Reset policy of the configuration; manual by default. */
  readonly idleMinutes?: number | undefined;
  /** Which calls need the owner's word. */
  readonly asks?: "some" | "all" | undefined;
  /** Calls may wait for machines that are away. */
  readonly waits: boolean;
}
export const LIMITS_OF_RUN = { stepsPerRun: 5, runMs: 1_800_000, runCostUsd: 1 };
const TOOL_MS = 20_000;
const LLM_MS = 15_000;

export class Settings {
  /** How often the policy has changed. The version of the settings also names the machines that are away. */
  policy = 0;
  /** By how many steps the limit of a run was raised. */
  moreSteps = 0;
  readonly #options: SettingsOptions;

  constructor(options: SettingsOptions) {
    this.#options = options;
  }
  /** Each third call, or each. Every fourth policy allows what others ask about. */
  needsApproval(args: Readonly<Record<string, unknown>>): boolean {
    return this.#options.asks === "all" || (this.#options.asks === "some" && Number(args["n"]) % 3 === 0);
  }
  /** Rules that ask as `asks` says. Each policy has a version of its own. */
  #toolApproval(): NonNullable<RunContext["config"]["toolApproval"]> {
    const id = `p${this.policy}`;
    if (this.policy % 4 === 3) return { rules: [{ id, tool: "none__*", decision: "deny" }] };
    if (this.#options.asks === "all") return { rules: [{ id, tool: "*", decision: "ask" }] };
    const thirds = Array.from({ length: 8 }, (_, index) => index * 3);
    return { rules: thirds.map((value) => ({ id, tool: "*", decision: "ask", when: [{ path: "n", op: "equals", value }] })) };
  }
  changePolicy(): void {
    this.policy += 1;
  }
  context(): RunContext {
    const { idleMinutes } = this.#options;
    const isAway = (nodeId: string): boolean =>
      this.#options.waits && this.#options.nodes.some(({ id, online }) => id === nodeId && !online);
    const entry = (nodeId: string, tool: string, ledger: boolean, idempotent: boolean): ToolEntry => ({
      ...machineEntry(nodeId, tool, idempotent ? { idempotent } : {}, ledger),
      ...(isAway(nodeId) ? { isAway: true as const } : {}),
    });
    const config: RunContext["config"] = {
      model: { provider: "sim", id: "sim", fallbacks: [] },
      timeouts: { llmMs: LLM_MS, toolMs: TOOL_MS },
      limits: { ...LIMITS_OF_RUN, stepsPerRun: this.#options.stepsPerRun + this.moreSteps },
      session: { mainKey: "main", defaultResetPolicy: idleMinutes === undefined ? { mode: "manual" } : { mode: "idle", idleMinutes } },
      userTimezone: "UTC",
      // What no rule asks about runs: the mode of a gateway without a setting asks about each command.
      toolApproval: { defaultDecision: "allow", ...(this.#options.asks === undefined ? {} : this.#toolApproval()) },
    };
    return {
      version: `v${this.policy}${this.moreSteps === 0 ? "" : `+${this.moreSteps}`}${this.#options.nodes.map(({ id }) => (isAway(id) ? `-${id}` : "")).join("")}`,
      config: { ...config, model: { ...config.model, fallbacks: [{ provider: "sim", id: "second" }] } },
      agent: { id: asAgentId(this.#options.agentId) },
      tools: [
        // The third policy takes a tool away.
        ...(this.policy % 3 === 2 ? [] : [entry("lap", "Bash", true, false)]),
        entry("lap", "Read", true, true),
        entry("old", "Bash", false, false),
        entry("old", "Read", false, true),
      ],
      nodes: [],
      skillPins: [],
    };
  }
}
