/** `skills.*`. The rules are in `service.ts`. */
import { actorOf } from "../../kernel/authorise.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { Caller, Handlers } from "../../kernel/feature.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SkillService } from "./service.ts";

const actor = ({ connection }: Caller): string => actorOf(connection.principal);

export function skillMethods({ config, skills }: Pick<KernelPorts, "config"> & { readonly skills: SkillService }): Handlers {
  const agentOf = (agentId: string | undefined): string => agentId ?? config.defaultAgentId();
  const ofAgent = <T>(agentId: string | undefined, work: (agent: string) => Promise<Result<T>>): Promise<Result<T>> | Result<never> => {
    const agent = agentOf(agentId);
    return config.hasAgent(agent) ? work(agent) : unknownAgent(config, agent);
  };
  return {
    "skills.status": (_caller, params) => ofAgent(params.agentId, (agent) => skills.report(agent, false)),
    "skills.update": (_caller, params) => ofAgent(params.agentId, (agent) => skills.report(agent, true)),
    "skills.show": (_caller, { agentId, name }) => ofAgent(agentId, (agent) => skills.show(agent, name)),
    "skills.upload": (_caller, { uploadId, index, content }) => skills.upload(uploadId, index, content),
    "skills.install": async (caller, { agentId, name, scope, files, replace, uploadId, uploaded }) => {
      if (scope === "builtin")
        return fail(
          "skill.builtin",
          "Built-in skills cannot be installed or replaced.",
          "Install a skill with this name for one agent or for all agents.",
        );
      const agent = agentOf(agentId);
      if (scope !== "global" && !config.hasAgent(agent)) return unknownAgent(config, agent);
      const given = { files, uploaded: uploaded ?? [], replace: replace ?? false, ...(uploadId === undefined ? {} : { uploadId }) };
      return skills.install(agent, scope ?? "agent", name, given, actor(caller));
    },
    "skills.remove": async (_caller, { agentId, name, scope }) => {
      const removed = await skills.remove(agentOf(agentId), name, scope);
      return removed.ok ? succeed(removed.value) : removed;
    },
    "skills.approve": (caller, { agentId, name, sha256 }) => skills.approve(agentOf(agentId), name, sha256, actor(caller)),
  };
}
