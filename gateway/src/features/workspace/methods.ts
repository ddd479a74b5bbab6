/** `workspace.*`: the agent's files. Paths are checked where they are used, in `workspace/`. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { ANSWER_BYTES, answerBytes, textPage } from "../../storage/text-page.ts";
import { MAX_RESULT_BYTES } from "../../storage/results.ts";
import { sha256Of } from "../skills/folder.ts";
import type { ChangeOptions } from "./store.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import type { Caller, Handler, Handlers, Services } from "../../app/services.ts";
import { unknownAgent } from "../sessions/session-key.ts";

const agentOf = (services: Services, agentId: string | undefined): string => agentId ?? services.config.defaultAgentId();
/** Who writes is kept with the file, so that its versions say it; and what the owner makes of a skill is approved (gateway rule SK4). */
function writer(services: Services, { connection }: Caller, agentId: string): Required<ChangeOptions> {
  const by = `client:${connection.principal.id}`;
  return {
    by,
    before: async (path, content) =>
      path.startsWith("skills/")
        ? services.skills.writing({ agentId, path, by, ...(content === undefined ? {} : { sha256: await sha256Of(content) }) })
        : { ok: true, value: undefined },
  };
}

const list: Handler<"workspace.list"> = async (services, _caller, params) => {
  const listed = await services.workspace.list(agentOf(services, params.agentId), params.path);
  if (!listed.ok) return listed;
  const { path, files, directories } = listed.value;
  return succeed({ path, files: [...files], directories: [...directories] });
};

const read: Handler<"workspace.read"> = async (services, _caller, { agentId, path, version, offset }) => {
  const agent = agentOf(services, agentId);
  const most = offset === undefined ? LIMITS.workspaceFileBytes : MAX_RESULT_BYTES;
  const file =
    version === undefined
      ? await services.workspace.read(agent, path, most)
      : await services.workspace.readVersion(agent, path, version, most);
  if (!file.ok) return file;
  if (offset === undefined) {
    if (answerBytes(file.value) <= ANSWER_BYTES) return succeed(file.value);
    return fail(
      "file.too_large",
      `\`${file.value.path}\` has ${file.value.size} bytes and does not fit one answer.`,
      "Read the file in parts, with `offset`.",
    );
  }
  const page = textPage(file.value.content, offset);
  if (!page)
    return fail(
      "protocol.invalid_params",
      `No character begins at offset ${offset}.`,
      "Continue at the `nextOffset` of the answer before.",
    );
  const { content, nextOffset } = page;
  return succeed({ ...file.value, content, ...(nextOffset === undefined ? {} : { nextOffset }) });
};

const write: Handler<"workspace.write"> = async (services, caller, { agentId, path, content, ifMatch }) => {
  const agent = agentOf(services, agentId);
  if (!services.config.hasAgent(agent)) return unknownAgent(services, agent);
  const options = { ...writer(services, caller, agent), ...(ifMatch === undefined ? {} : { ifMatch }) };
  const written = await services.skills.whileWriting(agent, path, () => services.workspace.write(agent, path, content, options));
  return written.ok ? succeed({ ...written.value, written: true }) : written;
};

const remove: Handler<"workspace.delete"> = async (services, caller, { agentId, path }) => {
  const agent = agentOf(services, agentId);
  const options = writer(services, caller, agent);
  const removed = await services.skills.whileWriting(agent, path, () => services.workspace.delete(agent, path, options));
  return removed.ok ? succeed({ path: removed.value.path, deleted: true }) : removed;
};

const log: Handler<"workspace.log"> = async (services, _caller, params) => {
  const found = await services.workspace.log(agentOf(services, params.agentId), params.path);
  if (!found.ok) return found;
  const { path, current, versions } = found.value;
  return succeed({ path, ...(current === undefined ? {} : { current }), versions: [...versions] });
};

const restore: Handler<"workspace.restore"> = async (services, caller, { agentId, path, version, ifMatch }) => {
  const agent = agentOf(services, agentId);
  if (!services.config.hasAgent(agent)) return unknownAgent(services, agent);
  const options = { ...writer(services, caller, agent), ...(ifMatch === undefined ? {} : { ifMatch }) };
  return services.skills.whileWriting(agent, path, () => services.workspace.restore(agent, path, version, options));
};

export const workspaceMethods = {
  "workspace.list": list,
  "workspace.read": read,
  "workspace.write": write,
  "workspace.delete": remove,
  "workspace.log": log,
  "workspace.restore": restore,
} as const satisfies Handlers;
