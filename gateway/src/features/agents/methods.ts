/** `agents.*`: an agent is an entry of the configuration, a folder of files, and its sessions. */
import { actorOf } from "../../kernel/authorise.ts";
import type { AgentConfig, AgentEntry } from "../../../../protocol/gen/types.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { EventQuestionsPort } from "../../ports/approvals.ts";
import { MAIN_AGENT } from "../../kernel/routing/agents.ts";
import type { PacksPort } from "../../ports/packs.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { AgentJobsPort } from "../../ports/schedule.ts";
import type { DeletionPort, SessionDirectory } from "../../ports/sessions.ts";
import { modelWarning, type WarningPorts } from "../../models/warning.ts";
import { createAgent } from "./create.ts";
import type { DefinitionStore } from "./definition-store.ts";
import { type Definitions, OF_PACK, shownIn } from "./definitions.ts";
import type { AgentFilesStore } from "./files.ts";

/** Number of folders that are read in parallel. */
const AT_ONCE = 16;

export interface AgentMethodPorts
  extends Pick<KernelPorts, "config">,
    AgentJobsPort,
    PacksPort,
    Pick<EventQuestionsPort, "eventQuestions"> {
  readonly model: WarningPorts["model"];
  readonly sessions: Pick<SessionDirectory, "byAgent" | "keysOf">;
  readonly deleteSessions: DeletionPort["deleteSessions"];
  readonly files: AgentFilesStore;
  readonly definitions: Definitions;
  readonly store: DefinitionStore;
}

export function agentMethods({
  agentJobs,
  config,
  definitions,
  deleteSessions,
  eventQuestions,
  sessions,
  files,
  model,
  packs,
  store,
}: AgentMethodPorts): Handlers {
  const entryOf = (agent: AgentConfig, activity: ReturnType<SessionDirectory["byAgent"]>, commissioned: boolean): AgentEntry => {
    const active = activity.get(agent.id);
    const name = store.find(agent.id)?.definition.metadata.name;
    return {
      agentId: agent.id,
      ...(name === undefined ? {} : { name }),
      ...(agent.description === undefined ? {} : { description: agent.description }),
      isDefault: agent.id === config.defaultAgentId(),
      ...(agent.model === undefined ? {} : { model: agent.model }),
      commissioned: commissioned || config.isBundled(agent.id),
      sessions: active?.sessions ?? 0,
      ...(active === undefined ? {} : { lastActiveAt: active.lastActiveAt }),
    };
  };
  return {
    "agents.list": async () => {
      const waiting = [...config.agents()];
      const activity = sessions.byAgent();
      const agents: AgentEntry[] = [];
      while (waiting.length > 0) {
        const entries = await Promise.all(
          waiting.splice(0, AT_ONCE).map(async (agent): Promise<Result<AgentEntry>> => {
            const folder = await files.look(agent.id);
            return folder.ok ? succeed(entryOf(agent, activity, folder.value.commissioned)) : folder;
          }),
        );
        for (const entry of entries) {
          if (!entry.ok) return entry;
          agents.push(entry.value);
        }
      }
      return succeed({ agents });
    },
    "agents.get": async (_caller, { agentId }) => {
      if (!config.hasAgent(agentId)) return unknownAgent(config, agentId, await packs.offPackOfAgent(agentId));
      const agent = config.agent(agentId);
      const folder = await files.look(agentId);
      if (!folder.ok) return folder;
      const defined = store.find(agentId);
      const changed = defined === undefined ? succeed([]) : await definitions.changedFiles(defined);
      if (!changed.ok) return changed;
      return succeed({
        agent: entryOf(agent, sessions.byAgent(), folder.value.commissioned),
        ...(defined === undefined && folder.value.definition !== undefined ? { notInForce: folder.value.definition } : {}),
        ...(defined === undefined ? {} : { definition: defined.definition, definitionText: defined.text }),
        ...(changed.value.length === 0 ? {} : { changedFiles: [...changed.value] }),
        ...(agent.systemPrompt === undefined ? {} : { systemPrompt: agent.systemPrompt }),
        files: [...folder.value.files],
        bindings: (config.effective().agents?.bindings ?? []).filter((binding) => binding.agentId === agentId),
      });
    },
    "agents.create": async (_caller, params) => {
      const { agentId, bootstrap = true } = params;
      const taken = config.hasAgent(agentId) ? undefined : await packs.packWithAgent([agentId]);
      if (taken !== undefined) return fail("agent.exists", `The pack ${taken.pack} has the agent ${agentId}.`, "Choose another id.");
      const agent: AgentConfig = {
        id: agentId,
        ...(params.default === true ? { default: true } : {}),
        ...(params.model === undefined ? {} : { model: params.model }),
        ...(params.systemPrompt === undefined ? {} : { systemPrompt: params.systemPrompt }),
        ...(params.description === undefined ? {} : { description: params.description }),
      };
      const made = await createAgent({ config, files }, agent, { kind: bootstrap ? "with_first_meeting" : "without_first_meeting" });
      if (!made.ok) return made;
      const folder = await files.look(agentId);
      if (!folder.ok) return folder;
      const warning = modelWarning({ config, model }, params.model);
      return succeed({
        agent: entryOf(agent, sessions.byAgent(), folder.value.commissioned),
        ...(warning === undefined ? {} : { warnings: [warning] }),
      });
    },
    "agents.delete": ({ connection }, { agentId, sessions: withSessions }) => {
      if (!config.hasAgent(agentId)) return unknownAgent(config, agentId);
      if (config.isBundled(agentId)) return OF_PACK;
      const list = config.effective().agents?.list ?? [];
      if (agentId === MAIN_AGENT)
        return fail(
          "agent.kept",
          "`main` is always an agent, so it cannot be deleted.",
          "Delete its conversations: `gsv session delete KEY`.",
        );
      if (agentId === config.defaultAgentId()) return fail("agent.kept", `${agentId} is the default agent, so it was not deleted.`);
      const routes = (config.effective().agents?.bindings ?? []).flatMap((binding, index) =>
        binding.agentId === agentId ? [`agents.bindings[${index}]`] : [],
      );
      if (routes.length > 0)
        return fail(
          "agent.in_use",
          `${routes.slice(0, NAMED).join(", ")}${more(routes.length)} ${routes.length === 1 ? "routes" : "route"} messages to ${agentId}, so it was not deleted.`,
          `Remove the route first: \`gsv config unset ${routes.at(-1)}\`.`,
        );
      const keys = sessions.keysOf(agentId);
      if (keys.length > 0 && withSessions !== true)
        return fail(
          "agent.in_use",
          `${agentId} has ${keys.length === 1 ? "a conversation" : `${keys.length} conversations`}: ${keys.slice(0, NAMED).join(", ")}${more(keys.length)}.`,
          `Delete them with it: \`gsv agent delete ${agentId} --sessions\`.`,
        );
      const jobs = agentJobs.of(agentId);
      if (jobs.length > 0 && withSessions !== true)
        return fail(
          "agent.in_use",
          `${agentId} has ${jobs.length === 1 ? "a job" : `${jobs.length} jobs`}: ${jobs.slice(0, NAMED).join(", ")}${more(jobs.length)}.`,
          `Remove each with \`gsv cron remove JOB\` (a hook with \`gsv hook remove NAME\`), or all with the agent and its conversations: \`gsv agent delete ${agentId} --sessions\`.`,
        );
      const named = definitions.namedBy(agentId);
      // In one transaction: an agent without its entry whose sessions stay could not be deleted again.
      let changed: ReturnType<typeof config.set> | undefined;
      try {
        deleteSessions(keys, () => {
          changed = config.set(
            "agents.list",
            list.filter(({ id }) => id !== agentId),
          );
          if (!changed.ok) throw new Refused();
          agentJobs.remove(agentId);
          store.remove(agentId);
          eventQuestions.agentGone(agentId);
        });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
      }
      if (changed?.ok === true) definitions.noteNamed("agents.delete", agentId, actorOf(connection.principal), named);
      return changed?.ok === true
        ? succeed({ ok: true, agentId, sessions: keys.length, ...shownIn(named) } as const)
        : (changed ?? fail("internal"));
    },
    "agents.validate": async (_caller, params) => {
      const checked = await definitions.validate(params);
      if (!checked.ok) return checked;
      const { problems, definition, files } = checked.value;
      return succeed({ problems: [...problems], files: [...files], ...(definition === undefined ? {} : { definition }) });
    },
    "agents.define": ({ connection }, params) => definitions.define(params, actorOf(connection.principal)),
    "agents.undefine": async ({ connection }, { agentId }) => {
      if (!config.hasAgent(agentId)) return unknownAgent(config, agentId);
      const gone = await definitions.undefine(agentId, actorOf(connection.principal));
      return gone.ok ? succeed({ ok: true, ...gone.value } as const) : gone;
    },
  };
}
/** Names in one message. */
const NAMED = 5;
const more = (count: number): string => (count > NAMED ? ` and ${count - NAMED} more` : "");
/** Undoes the transaction; the answer has the reason. */
class Refused extends Error {}
