/** `workspace.*`: the agent's files. Paths are checked where they are used, in `workspace/`. */
import { succeed } from "../outcome.ts";
import type { Handler, Handlers, Services } from "../services.ts";

const agentOf = (services: Services, agentId: string | undefined): string => agentId ?? services.config.defaultAgentId();

const list: Handler<"workspace.list"> = async (services, _caller, params) => {
  const listed = await services.workspace.list(agentOf(services, params.agentId), params.path);
  if (!listed.ok) return listed;
  const { path, files, directories } = listed.value;
  return succeed({ path, files: [...files], directories: [...directories] });
};

const read: Handler<"workspace.read"> = async (services, _caller, params) =>
  services.workspace.read(agentOf(services, params.agentId), params.path);

const write: Handler<"workspace.write"> = async (services, _caller, { agentId, path, content, ifMatch }) => {
  const written = await services.workspace.write(agentOf(services, agentId), path, content, ifMatch === undefined ? {} : { ifMatch });
  return written.ok ? succeed({ ...written.value, written: true }) : written;
};

const remove: Handler<"workspace.delete"> = async (services, _caller, params) => {
  const removed = await services.workspace.delete(agentOf(services, params.agentId), params.path);
  return removed.ok ? succeed({ path: removed.value.path, deleted: true }) : removed;
};

export const workspaceMethods = {
  "workspace.list": list,
  "workspace.read": read,
  "workspace.write": write,
  "workspace.delete": remove,
} as const satisfies Handlers;
