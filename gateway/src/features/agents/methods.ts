/** `agents.*`: who there is, and making one. An agent is an entry of the configuration and a folder of files; its sessions are its own. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { AgentConfig, AgentEntry } from "../../../../protocol/gen/types.ts";
import type { Result } from "../../ports/result.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import { withAgent } from "../../kernel/routing/agents.ts";
import type { Handler, Handlers, Services } from "../../app/services.ts";
import { unknownAgent } from "../sessions/session-key.ts";

/** Folders looked at together. */
const AT_ONCE = 16;

type Activity = ReturnType<Services["sessions"]["byAgent"]>;
function entryOf(services: Services, agent: AgentConfig, activity: Activity, commissioned: boolean): AgentEntry {
  const active = activity.get(agent.id);
  return {
    agentId: agent.id,
    ...(agent.description === undefined ? {} : { description: agent.description }),
    isDefault: agent.id === services.config.defaultAgentId(),
    ...(agent.model === undefined ? {} : { model: agent.model }),
    commissioned,
    sessions: active?.sessions ?? 0,
    ...(active === undefined ? {} : { lastActiveAt: active.lastActiveAt }),
  };
}

const list: Handler<"agents.list"> = async (services) => {
  const waiting = [...services.config.agents()];
  const activity = services.sessions.byAgent();
  const agents: AgentEntry[] = [];
  while (waiting.length > 0) {
    const entries = await Promise.all(
      waiting.splice(0, AT_ONCE).map(async (agent): Promise<Result<AgentEntry>> => {
        const folder = await services.agentFiles.look(agent.id);
        return folder.ok ? succeed(entryOf(services, agent, activity, folder.value.commissioned)) : folder;
      }),
    );
    for (const entry of entries) {
      if (!entry.ok) return entry;
      agents.push(entry.value);
    }
  }
  return succeed({ agents });
};

const get: Handler<"agents.get"> = async (services, _caller, { agentId }) => {
  if (!services.config.hasAgent(agentId)) return unknownAgent(services, agentId);
  const agent = services.config.agent(agentId);
  const folder = await services.agentFiles.look(agentId);
  if (!folder.ok) return folder;
  return succeed({
    agent: entryOf(services, agent, services.sessions.byAgent(), folder.value.commissioned),
    ...(agent.systemPrompt === undefined ? {} : { systemPrompt: agent.systemPrompt }),
    files: [...folder.value.files],
    bindings: (services.config.effective().agents?.bindings ?? []).filter((binding) => binding.agentId === agentId),
  });
};

const create: Handler<"agents.create"> = async (services, _caller, params) => {
  const { agentId, bootstrap = true } = params;
  const refused = refusal(services, agentId);
  if (refused !== undefined) return refused;
  // Files first: without its entry a folder is nothing yet, and making them again changes nothing.
  const made = await services.agentFiles.make(agentId, bootstrap);
  if (!made.ok) return made;
  // Meanwhile somebody else may have made it, or the last one that there is room for.
  const late = refusal(services, agentId);
  if (late !== undefined) return late;
  const agent: AgentConfig = {
    id: agentId,
    ...(params.default === true ? { default: true } : {}),
    ...(params.model === undefined ? {} : { model: params.model }),
    ...(params.systemPrompt === undefined ? {} : { systemPrompt: params.systemPrompt }),
    ...(params.description === undefined ? {} : { description: params.description }),
  };
  const set = services.config.set("agents.list", withAgent(services.config.effective().agents?.list, agent));
  if (!set.ok) return set;
  const folder = await services.agentFiles.look(agentId);
  if (!folder.ok) return folder;
  return succeed({ agent: entryOf(services, agent, services.sessions.byAgent(), folder.value.commissioned) });
};

function refusal(services: Services, agentId: string): Result<never> | undefined {
  if (services.config.hasAgent(agentId))
    return fail("agent.exists", `The agent ${agentId} already exists.`, `Show it: \`gsv agent show ${agentId}\`.`);
  if (services.config.agents().length >= LIMITS.agents)
    return fail("agent.limit", `There are ${LIMITS.agents} agents, which is the limit.`);
  return undefined;
}

export const agentMethods = { "agents.list": list, "agents.get": get, "agents.create": create } as const satisfies Handlers;
