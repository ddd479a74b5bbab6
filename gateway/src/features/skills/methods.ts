/** `skills.*`. Rules are in `gateway/skills.ts`. */
import { fail, succeed } from "../../kernel/outcome.ts";
import type { Caller, Handler, Handlers, Services } from "../../app/services.ts";
import { unknownAgent } from "../sessions/session-key.ts";

const agentOf = (services: Services, agentId: string | undefined): string => agentId ?? services.config.defaultAgentId();
const actor = ({ connection }: Caller): string => `client:${connection.principal.id}`;

const status: Handler<"skills.status"> = (services, _caller, params) => services.skills.report(agentOf(services, params.agentId), false);
const update: Handler<"skills.update"> = (services, _caller, params) => services.skills.report(agentOf(services, params.agentId), true);
const show: Handler<"skills.show"> = (services, _caller, { agentId, name }) => services.skills.show(agentOf(services, agentId), name);

const install: Handler<"skills.install"> = async (services, caller, { agentId, name, scope, files, replace }) => {
  if (scope === "builtin")
    return fail(
      "skill.builtin",
      "Built-in skills cannot be installed or replaced.",
      "Install a skill with this name for one agent or for all agents.",
    );
  const agent = agentOf(services, agentId);
  if (scope !== "global" && !services.config.hasAgent(agent)) return unknownAgent(services, agent);
  return services.skills.install(agent, scope ?? "agent", name, files, replace ?? false, actor(caller));
};
const remove: Handler<"skills.remove"> = async (services, _caller, { agentId, name, scope }) => {
  const removed = await services.skills.remove(agentOf(services, agentId), name, scope);
  return removed.ok ? succeed(removed.value) : removed;
};
const approve: Handler<"skills.approve"> = (services, caller, { agentId, name, sha256 }) =>
  services.skills.approve(agentOf(services, agentId), name, sha256, actor(caller));

export const skillMethods = {
  "skills.status": status,
  "skills.update": update,
  "skills.show": show,
  "skills.install": install,
  "skills.remove": remove,
  "skills.approve": approve,
} as const satisfies Handlers;
