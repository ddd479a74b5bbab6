/** Makes an agent: its files, and its entry in the configuration (rule AG3). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { AgentConfig } from "../../../../protocol/gen/types.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { withAgent } from "../../kernel/routing/agents.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { AgentFilesStore } from "./files.ts";

interface CreatePorts extends Pick<KernelPorts, "config"> {
  readonly files: Pick<AgentFilesStore, "make">;
}
interface HowToCreate {
  /** `defined`: no default files, because the definition says what the agent is. */
  readonly kind: "with_first_meeting" | "without_first_meeting" | "defined";
  /** An agent that exists stays as it is; else it is a failure. */
  readonly mayExist?: boolean;
}

/** True: the agent was made. */
export async function createAgent(
  { config, files }: CreatePorts,
  agent: AgentConfig,
  { kind, mayExist = false }: HowToCreate,
): Promise<Result<boolean>> {
  const found = present(config, agent.id, mayExist);
  if (found !== undefined) return found;
  // Files first: a folder without an entry has no effect, and creating the files again changes nothing.
  if (kind !== "defined") {
    const made = await files.make(agent.id, kind === "with_first_meeting");
    if (!made.ok) return made;
  }
  // A concurrent request may have created this agent, or reached the limit.
  const late = present(config, agent.id, mayExist);
  if (late !== undefined) return late;
  const set = config.set("agents.list", withAgent(config.effective().agents?.list, agent));
  return set.ok ? succeed(true) : set;
}
/** The answer when no agent has to be made, or none can be. */
function present(config: CreatePorts["config"], agentId: string, mayExist: boolean): Result<boolean> | undefined {
  if (config.hasAgent(agentId))
    return mayExist
      ? succeed(false)
      : fail("agent.exists", `The agent ${agentId} already exists.`, `Show it: \`gsv agent show ${agentId}\`.`);
  if (config.agents().length >= LIMITS.agents) return fail("agent.limit", `There are already ${LIMITS.agents} agents, which is the limit.`);
  return undefined;
}
