/** `workspace.*`: the agent's files. Paths are checked by the store. */
import { type Result, succeed } from "../../ports/result.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { actorOf, scopesOf } from "../../kernel/authorise.ts";
import type { Caller, Handlers } from "../../kernel/feature.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SkillApprovals } from "../../ports/skill-approvals.ts";
import { MAX_RESULT_BYTES } from "../../storage/results.ts";
import { ANSWER_BYTES, answerBytes, textPage } from "../../storage/text-page.ts";
import { sha256Of } from "../../storage/skills/folder.ts";
import type { ChangeOptions, WorkspaceStore } from "../../storage/workspace/store.ts";

export interface WorkspaceMethodPorts extends SkillApprovals, Pick<KernelPorts, "config"> {
  readonly store: WorkspaceStore;
}

export function workspaceMethods({ config, store, skillApprovals }: WorkspaceMethodPorts): Handlers {
  const agentOf = (agentId: string | undefined): string => agentId ?? config.defaultAgentId();
  /** The files of an agent that was removed stay readable; a name that never had any is a mistake. */
  const ofAgent = async <T>(agentId: string | undefined, work: (agent: string) => Promise<Result<T>>): Promise<Result<T>> => {
    const agent = agentOf(agentId);
    if (!config.hasAgent(agent)) {
      const all = await store.list(agent, undefined);
      if (!all.ok) return all;
      if (all.value.files.length === 0 && all.value.directories.length === 0) return unknownAgent(config, agent);
    }
    return work(agent);
  };
  /** The writer is kept with the file, so that its versions name it; a change of a skill is approved first (gateway rule SK4). */
  const options = ({ connection }: Caller, agentId: string, ifMatch?: string): ChangeOptions => {
    const by = actorOf(connection.principal);
    return {
      by,
      before: async (path, content) => {
        if (!path.startsWith("skills/")) return succeed(undefined);
        // As skills.install: a change by a client is approved with the change itself.
        if (!scopesOf(connection.principal).includes("admin"))
          return fail("auth.forbidden", "Changing skills needs an admin token.", "Make one: `gsv token create --scope admin`.");
        return skillApprovals.writing({ agentId, path, by, ...(content === undefined ? {} : { sha256: await sha256Of(content) }) });
      },
      ...(ifMatch === undefined ? {} : { ifMatch }),
    };
  };

  return {
    "workspace.list": (_caller, params) =>
      ofAgent(params.agentId, async (agent) => {
        const listed = await store.list(agent, params.path);
        if (!listed.ok) return listed;
        const { path, files, directories, etags, truncated } = listed.value;
        const names = { path, files: [...files], directories: [...directories], ...(truncated ? { truncated } : {}) };
        const whole = { ...names, etags: files.map((file) => etags.get(file) ?? "") };
        return succeed(answerBytes(whole) <= ANSWER_BYTES ? whole : names);
      }),
    "workspace.read": (_caller, { agentId, path, version, offset }) =>
      ofAgent(agentId, async (agent) => {
        const maxBytes = offset === undefined ? LIMITS.workspaceFileBytes : MAX_RESULT_BYTES;
        const file =
          version === undefined ? await store.read(agent, path, maxBytes) : await store.readVersion(agent, path, version, maxBytes);
        if (!file.ok) return file;
        const { taint: _label, ...shown } = file.value;
        if (offset === undefined) {
          if (answerBytes(shown) <= ANSWER_BYTES) return succeed(shown);
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
        return succeed({ ...shown, content, ...(nextOffset === undefined ? {} : { nextOffset }) });
      }),
    "workspace.write": async (caller, { agentId, path, content, ifMatch }) => {
      const agent = agentOf(agentId);
      if (!config.hasAgent(agent)) return unknownAgent(config, agent);
      const written = await skillApprovals.whileWriting(agent, path, () =>
        store.write(agent, path, content, options(caller, agent, ifMatch)),
      );
      return written.ok ? succeed({ ...written.value, written: true }) : written;
    },
    "workspace.delete": (caller, { agentId, path, permanently = false }) =>
      ofAgent(agentId, async (agent) => {
        const removed = await skillApprovals.whileWriting(agent, path, () =>
          store.delete(agent, path, { ...options(caller, agent), permanently }),
        );
        if (!removed.ok) return removed;
        const { path: name, kept } = removed.value;
        return succeed({ path: name, deleted: true, kept });
      }),
    "workspace.log": (_caller, params) =>
      ofAgent(params.agentId, async (agent) => {
        const found = await store.log(agent, params.path);
        if (!found.ok) return found;
        const { path, current, versions } = found.value;
        return succeed({ path, ...(current === undefined ? {} : { current }), versions: [...versions] });
      }),
    "workspace.restore": async (caller, { agentId, path, version, ifMatch }) => {
      const agent = agentOf(agentId);
      if (!config.hasAgent(agent)) return unknownAgent(config, agent);
      return skillApprovals.whileWriting(agent, path, () => store.restore(agent, path, version, options(caller, agent, ifMatch)));
    },
  };
}
