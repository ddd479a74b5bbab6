/**
 * Hands tasks of runs to other agents (rules DG1 to DG7). A task is named after the call that hands it on, so that a call that is made
 * again after a kill finds it. The run above waits by asking again and again; nothing waits in memory.
 */
import { DEFAULT_DEPTH } from "../../agents/delegation.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import { askedText } from "../../notify/asked-text.ts";
import type { AgentDefinitionsPort } from "../../ports/agents.ts";
import type { DelegationAsk, DelegationStand } from "../../ports/delegation.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import { type Delegation, hopsOf } from "../../ports/origin.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { DelegatedTask, DelegationStore } from "./delegation-store.ts";
import { questionKey, runIdOf } from "./run-id.ts";
import { RunEnds } from "./run-ends.ts";
import type { TaskRunPorts, TaskRuns } from "./task-runs.ts";

export interface DelegationPorts
  extends StopPort,
    NotifyPort,
    AgentDefinitionsPort,
    Pick<TaskRunPorts, "approvals" | "ask" | "config" | "ids" | "sessions">,
    Pick<KernelPorts, "arm" | "log" | "subscriptions"> {
  readonly runs: TaskRuns;
  readonly delegations: DelegationStore;
  /** Runs `endOrphans` now. */
  readonly lookNow: () => void;
}
/** Tasks that runs wait for at once, in the whole gateway. */
const MAX_OPEN = 64;
const ID_CHARS = 26;
const NOT_DELEGATED = "Do the task yourself, or tell the user that the agent's definition does not allow it.";

export class Delegations {
  readonly #ports: DelegationPorts;
  readonly #ends: RunEnds;

  constructor(ports: DelegationPorts) {
    this.#ports = ports;
    this.#ends = new RunEnds(ports.subscriptions);
  }

  async delegate(asked: DelegationAsk): Promise<Result<DelegationStand>> {
    const { ids, delegations, lookNow } = this.#ports;
    this.#ends.follow(asked.from.key, asked.runId, lookNow);
    const id = (await ids.sha256(JSON.stringify(["delegation", asked.from.key, asked.callId]))).slice(0, ID_CHARS);
    const known = delegations.find(id);
    // The definition is checked only once: a later change of it ends no task that has begun.
    if (known !== undefined && (await this.#hasBegun(known))) return this.#status(known);
    const begun = await this.#begun(asked, id);
    return begun.ok ? this.#status(begun.value) : begun;
  }
  async #hasBegun({ id, sessionKey }: DelegatedTask): Promise<boolean> {
    return (await this.#ports.ask(sessionKey, (session) => session.runEnd(runIdOf({ id })))).state !== "unknown";
  }
  async #begun(asked: DelegationAsk, id: string): Promise<Result<DelegatedTask>> {
    const { runs, delegations, stopped, arm } = this.#ports;
    if (stopped() !== undefined) return fail("gateway.stopped");
    const request = {
      agent_name: asked.to,
      instructions: asked.instructions,
      ...(asked.payload === undefined ? {} : { payload: asked.payload }),
    };
    const checked = await runs.check(request);
    if (!checked.ok) return checked;
    const task = { ...checked.value, id };
    const given = this.#given(asked, task.agentId);
    if (!given.ok) return given;
    if (delegations.find(id) === undefined && delegations.countOpen() >= MAX_OPEN)
      return fail("limit.rate", `${MAX_OPEN} delegated tasks are open, which is the limit.`);
    const stored = runs.store(task, hopsOf(asked.origin));
    if (!stored.ok) return stored;
    const { from, runId: parentRun, callId, to: name, mode, taint } = asked;
    const row = { id, agentId: task.agentId, name, parentKey: from.key, parentRun, callId, sessionKey: stored.value.key };
    // Before the message: everyone who looks for the run's tasks finds one that has begun.
    delegations.add(row);
    arm();
    const begun = await runs.begin(task, request, {
      origin: {
        kind: "task",
        taskId: id,
        delegation: given.value,
        // The chain of events goes on below it (rule EV11).
        ...(asked.origin.kind === "task" && asked.origin.event !== undefined ? { event: asked.origin.event } : {}),
      },
      ...(mode === undefined ? {} : { directives: { mode } }),
      ...(taint === undefined ? {} : { taint }),
    });
    if (begun.ok) return succeed(row);
    delegations.close(id);
    return begun;
  }

  /** What the task's run gets from the one above it; or why there is no such task (rules DG2, DG3). */
  #given({ from, runId, origin, to, budget }: DelegationAsk, agentId: string): Result<Delegation> {
    const definition = this.#ports.definitionOf(from.agentId);
    if (definition?.sub_agents?.includes(to) !== true)
      return fail("autonomy.boundary", `The definition of ${from.agentId} does not let it delegate tasks to ${to}.`, NOT_DELEGATED);
    // Without a definition the task would have every tool.
    if (this.#ports.definitionOf(agentId) === undefined)
      return fail(
        "autonomy.boundary",
        `The agent ${to} has no current definition, so no task can be delegated to it.`,
        `Do the task yourself, or tell the user to define the agent: \`gsv agent edit ${agentId}\`.`,
      );
    // Such a run does not know what stands above it.
    if (origin.kind === "session" || (origin.kind === "node_event" && this.#isOfTask(from.key)))
      return fail(
        "autonomy.boundary",
        "A run that another conversation or the end of a task's command has caused cannot delegate.",
        NOT_DELEGATED,
      );
    const above = origin.kind === "task" ? origin.delegation : undefined;
    const agents = [...(above?.agents ?? []), from.agentId];
    if (agents.includes(agentId))
      return fail("autonomy.boundary", `${to} is already above this task in the chain, so it cannot receive it.`, NOT_DELEGATED);
    const own = definition.autonomy?.max_delegation_depth ?? DEFAULT_DEPTH;
    const depth = (above?.depth ?? 0) + 1;
    const maxDepth = Math.min(above?.maxDepth ?? own, own);
    if (depth > maxDepth)
      return fail(
        "autonomy.boundary",
        `This delegation would have depth ${depth}; the limit is ${maxDepth} (autonomy.max_delegation_depth).`,
        NOT_DELEGATED,
      );
    return succeed({ sessionKey: from.key, runId, depth, maxDepth, agents, budget });
  }

  #isOfTask(sessionKey: string): boolean {
    const named = canonicalKey(sessionKey, this.#ports.config.mainKey());
    return named.ok && named.address.form === "task";
  }
  async #status(task: DelegatedTask): Promise<Result<DelegationStand>> {
    const { runs, delegations, ask } = this.#ports;
    this.#tellQuestions(task);
    const looked = await runs.look(task, runs.questions(task.sessionKey, runIdOf(task)));
    if (!looked.ok) return looked;
    const end = await ask(task.sessionKey, (session) => session.runEnd(runIdOf(task)));
    if (end.state === "running") delegations.waited(task.id, end.waitedMs);
    if (looked.value.state !== "ended") {
      this.#tellQuestions(task);
      return succeed({ state: "running" });
    }
    delegations.close(task.id);
    const taint = end.state === "final" || end.state === "error" || end.state === "aborted" ? end.taint : undefined;
    const used = { ...(await runs.used(task.sessionKey, runIdOf(task))), waitedMs: delegations.waitedMs(task.id) };
    return succeed({ state: "ended", report: looked.value.report, used, ...(taint === undefined ? {} : { taint }) });
  }
  /** The owner is told once of each question of the task, because no one follows its conversation (rule DG6). */
  #tellQuestions({ id, agentId, name, sessionKey }: DelegatedTask): void {
    for (const entry of this.#ports.approvals.waiting(sessionKey)) {
      const key = questionKey(id, entry.code);
      const text = askedText(`A task of the agent ${name}`, entry);
      this.#ports.notify.tell({ kind: "approval", key, cause: key, text, agentId, question: entry.code });
    }
  }

  /** The conversation was deleted. */
  forget(sessionKey: string): void {
    this.#ends.forget(sessionKey);
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
