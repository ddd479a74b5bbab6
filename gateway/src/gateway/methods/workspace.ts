/** `workspace.*`: the agent's files. Paths are checked where they are used, in `workspace/`. */
import type { Handler, Handlers } from "../services.ts";

const list: Handler<"workspace.list"> = (services, _caller, params) =>
  services.workspace.list(params.agentId ?? services.config.defaultAgentId(), params.path ?? "");
const read: Handler<"workspace.read"> = (services, _caller, params) =>
  services.workspace.read(params.agentId ?? services.config.defaultAgentId(), params.path);
const write: Handler<"workspace.write"> = (services, _caller, params) =>
  services.workspace.write(params.agentId ?? services.config.defaultAgentId(), params.path, params.content, params.ifMatch);
const remove: Handler<"workspace.delete"> = (services, _caller, params) =>
  services.workspace.delete(params.agentId ?? services.config.defaultAgentId(), params.path);

export const workspaceMethods = {
  "workspace.list": list,
  "workspace.read": read,
  "workspace.write": write,
  "workspace.delete": remove,
} as const satisfies Handlers;
