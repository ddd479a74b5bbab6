/**
 * Hands tasks of runs to other agents (rules DG1 to DG7). A task is named after the call that hands it on, so that a call that is made
 * again after a kill finds it. The run above waits by asking again and again; nothing waits in memory.
 */
import { DEFAULT_DEPTH } from "../../agents/delegation.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { askedText } from "../../notify/asked-text.ts";
import type { AgentDefinitionsPort } from "../../ports/agents.ts";
import type { DelegationAsk, DelegationStand } from "../../ports/delegation.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { Delegation } from "../../ports/origin.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { DelegatedTask, DelegationStore } from "./delegation-store.ts";
import type { TaskRunPorts, TaskRuns } from "./task-runs.ts";

export interface DelegationPorts
  extends StopPort,
    NotifyPort,
    AgentDefinitionsPort,
    Pick<TaskRunPorts, "approvals" | "ask" | "ids" | "sessions">,
    Pick<KernelPorts, "arm" | "log"> {
  readonly runs: TaskRuns;
  readonly delegations: DelegationStore;
}
/** Tasks that runs wait for at once, in the whole gateway. */
const MAX_OPEN = 64;
const ID_CHARS = 26;

export class Delegations {
  readonly #ports: DelegationPorts;

  constructor(ports: DelegationPorts) {
    this.#ports = ports;
  }

  async delegate(asked: DelegationAsk): Promise<Result<DelegationStand>> {
    const { ids, runs, delegations, stopped, arm } = this.#ports;
    const id = (await ids.sha256(JSON.stringify(["delegation", asked.from.key, asked.callId]))).slice(0, ID_CHARS);
    const request = {
      agent_name: asked.to,
      instructions: asked.instructions,
      ...(asked.payload === undefined ? {} : { payload: asked.payload }),
    };
    const checked = await runs.check(request);
    if (!checked.ok) return checked;
    const task = { ...checked.value, id };
    if (!delegations.has(id)) {
      if (stopped() !== undefined) return fail("gateway.stopped");
      const given = this.#given(asked, task.agentId);
      if (!given.ok) return given;
      if (delegations.countOpen() >= MAX_OPEN)
        return fail("limit.rate", `${MAX_OPEN} tasks of agents for one another are open, which is the limit.`);
      const stored = runs.store(task);
      if (!stored.ok) return stored;
      // Before the message: everyone who looks for the run's tasks finds one that has begun.
      delegations.add({
        id,
        agentId: task.agentId,
        name: asked.to,
        parentKey: asked.from.key,
        parentRun: asked.runId,
        callId: asked.callId,
        sessionKey: stored.value.key,
      });
      arm();
    }
    const given = this.#given(asked, task.agentId);
    if (!given.ok) return given;
    const begun = await runs.begin(task, request, {
      origin: { kind: "task", taskId: id, delegation: given.value },
      ...(asked.mode === undefined ? {} : { directives: { mode: asked.mode } }),
      ...(asked.taint === undefined ? {} : { taint: asked.taint }),
    });
    if (!begun.ok) return begun;
    return this.#stand(task, begun.value, asked);
  }

  /** What the task's run gets from the one above it; or why there is no such task (rules DG2, DG3). */
  #given({ from, runId, origin, to, budget }: DelegationAsk, agentId: string): Result<Delegation> {
    const definition = this.#ports.definitionOf(from.agentId);
    if (definition?.sub_agents?.includes(to) !== true)
      return fail("autonomy.boundary", `The definition of ${from.agentId} does not let it hand tasks to ${to}.`);
    const above = origin.kind === "task" ? origin.delegation : undefined;
    const agents = [...(above?.agents ?? []), from.agentId];
    if (agents.includes(agentId))
      return fail("autonomy.boundary", `${to} waits for this very task, or has handed it on, so it cannot get it.`);
    const own = definition.autonomy?.max_delegation_depth ?? DEFAULT_DEPTH;
    const depth = (above?.depth ?? 0) + 1;
    const maxDepth = Math.min(above?.maxDepth ?? own, own);
    if (depth > maxDepth)
      return fail(
        "autonomy.boundary",
        `This task would stand ${depth} below the first one; at most ${maxDepth} are allowed (autonomy.max_delegation_depth).`,
      );
    return succeed({ sessionKey: from.key, runId, depth, maxDepth, agents, budget });
  }

  async #stand(
    task: { readonly id: string; readonly agentId: string },
    sessionKey: string,
    { to }: DelegationAsk,
  ): Promise<Result<DelegationStand>> {
    const { runs, delegations, ask } = this.#ports;
    this.#tellQuestions(task, sessionKey, to);
    const looked = await runs.look(task, this.#codes(sessionKey));
    if (!looked.ok) return looked;
    if (looked.value.state !== "ended") {
      this.#tellQuestions(task, sessionKey, to);
      return succeed({ state: "running" });
    }
    const { report } = looked.value;
    const end = await ask(sessionKey, (session) => session.runEnd(report.metadata.run_id));
    delegations.close(task.id);
    const taint = end.state === "final" ? end.taint : undefined;
    return succeed({ state: "ended", report, ...(taint === undefined ? {} : { taint }) });
  }
  #codes(sessionKey: string): readonly string[] {
    return this.#ports.approvals.waiting(sessionKey).map(({ code }) => code);
  }
  /** The owner is told once of each question of the task, because no one follows its conversation (rule DG6). */
  #tellQuestions({ id, agentId }: { readonly id: string; readonly agentId: string }, sessionKey: string, name: string): void {
    for (const entry of this.#ports.approvals.waiting(sessionKey)) {
      const key = `delegation/${id}/${entry.code}`;
      const text = askedText(`A task of the agent ${name}`, entry);
      this.#ports.notify.tell({ kind: "approval", key, cause: key, text, agentId, question: entry.code });
    }
  }

  /** Ends the tasks that no run waits for any more (rule DG5). */
  async endOrphans(): Promise<void> {
    for (const task of this.#ports.delegations.open()) {
      try {
        if (await this.#isWaitedFor(task)) continue;
        const stopped = await this.#ports.runs.stop(task);
        if (stopped.ok || stopped.error.reason === "session.not_found") this.#ports.delegations.close(task.id);
      } catch (error) {
        this.#ports.log.warn("delegation_not_looked_at", { task: task.id, error });
      }
    }
  }
  async #isWaitedFor({ parentKey, parentRun }: DelegatedTask): Promise<boolean> {
    const { sessions, ask } = this.#ports;
    if (sessions.find(parentKey) === undefined) return false;
    const { state } = await ask(parentKey, (session) => session.runEnd(parentRun));
    return state === "running" || state === "queued";
  }
}
