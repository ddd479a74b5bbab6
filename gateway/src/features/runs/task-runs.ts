/**
 * Runs tasks: the one way, for `POST /run` and for jobs. A task is a message to a conversation of its own, so that it goes on when the
 * caller, this object or the machine goes away: the same id finds it again.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type AgentReport, asSessionKey, type ReportDelegation, type RunRequest } from "../../../../protocol/gen/types.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { afterTimeout } from "../../../../protocol/runtime/within.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { buildKey } from "../../kernel/routing/session-keys.ts";
import type { AgentNamesPort } from "../../ports/agents.ts";
import type { ApprovalsPort } from "../../ports/approvals.ts";
import type { OthersUse } from "../../ports/others-use.ts";
import type { PacksPort } from "../../ports/packs.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { RunEnd, RunReport, SessionSend } from "../../ports/session.ts";
import type { NamedSession, SessionsPort } from "../../ports/sessions.ts";
import type { CheckedTask, NamedTask, TaskStatus } from "../../ports/tasks.ts";
import { overrideIn, taskText } from "../../prompt/task.ts";
import type { DelegationStore } from "./delegation-store.ts";
import { News } from "./news.ts";
import { type ResultAccess, reportOf, statusOf } from "./report.ts";
import type { TaskStore } from "./task-store.ts";
import { runIdOf } from "./run-id.ts";

export interface TaskRunPorts
  extends SessionsPort,
    ApprovalsPort,
    AgentNamesPort,
    PacksPort,
    Pick<KernelPorts, "armFor" | "config" | "contextVersion" | "ids" | "now" | "subscriptions"> {
  readonly store: TaskStore;
  readonly delegations: Pick<DelegationStore, "of">;
  /** The task has a row now. `hops`: how far its chain has come. */
  readonly stored: (task: { readonly id: string; readonly agentId: string; readonly sessionKey: string; readonly hops: number }) => void;
}
type Task = Pick<NamedTask, "id" | "agentId">;
/** What the message of a task has when the run of another agent has handed it on. */
export type HandedOn = Pick<SessionSend, "origin" | "taint" | "directives">;
interface RunStatus extends RunReport {
  readonly approvals: readonly string[];
}
/** A run that sends no news is looked at this often. */
const LOOK_MS = 15_000;
/** A job's call waits for so many of them: it must not take as long as a run may. */
const JOB_LOOKS = 2;

export class TaskRuns {
  readonly #ports: TaskRunPorts;

  constructor(ports: TaskRunPorts) {
    this.#ports = ports;
  }

  async check(request: RunRequest): Promise<Result<CheckedTask>> {
    const { agent_name, instructions, payload } = request;
    const { agentNames, config, packs } = this.#ports;
    const agentId = agentNames.byName(agent_name);
    if (agentId === undefined) return unknownAgent(config, agent_name, await packs.offPackOfAgent(agent_name));
    if (instructions.trim() === "") return fail("protocol.invalid_params", "The instructions are empty.", "Say what the agent is to do.");
    const higher = overrideIn(payload);
    if (higher !== undefined)
      return fail("context.override", `\`${higher}\` is a key of a higher layer of the prompt, so nothing was run.`);
    // Before it is stored: the fences and their escapes make it longer than the request was.
    const bytes = utf8Bytes(taskText(instructions, payload));
    if (bytes > LIMITS.messageBytes)
      return fail("protocol.too_large", `As a message the task has ${bytes} bytes; at most ${LIMITS.messageBytes} are accepted.`);
    return succeed({ agentId, bodySha256: await this.bodySha256(request) });
  }
  /** By it a request is known again. */
  bodySha256({ agent_name, instructions, payload }: RunRequest): Promise<string> {
    return this.#ports.ids.sha256(JSON.stringify({ agent_name, instructions, ...(payload === undefined ? {} : { payload }) }));
  }

  /** Stores the task. Waits for nothing, so that a caller can look for the task in the same turn. */
  store({ id, agentId, bodySha256, event }: NamedTask, hops = event?.hops ?? 0): Result<NamedSession> {
    const { store, stored, now, armFor } = this.#ports;
    const session = this.#sessionOf({ id, agentId });
    if (!session.ok) return session;
    store.add({ id, agentId, sessionKey: session.value.key, bodySha256, createdAt: now() });
    armFor(store.nextRemoval());
    stored({ id, agentId, sessionKey: session.value.key, hops });
    return session;
  }

  async begin(task: NamedTask, { instructions, payload }: RunRequest, handedOn?: HandedOn): Promise<Result<string>> {
    const { sessions, ask, contextVersion, now } = this.#ports;
    const session = this.store(task);
    if (!session.ok) return session;
    const identity = sessions.takeUp(session.value, now(), true);
    const runId = runIdOf(task);
    const sent = await ask(session.value.key, (object) =>
      object.send({
        identity,
        messageId: runId,
        runId,
        text: taskText(instructions, payload),
        verbatim: true,
        ...(handedOn ?? causeOf(task, payload)),
        contextVersion: contextVersion(),
      }),
    );
    return sent.ok ? succeed(session.value.key) : sent;
  }

  /**
   * The report, when the run has ended or waits for the owner. `begin`: no run exists yet, so the first look waits for news. `resume`: the task
   * is begun again, which changes nothing when it has begun. `observe`: everything is stopped, so nothing is begun.
   */
  async run(
    task: NamedTask,
    request: RunRequest,
    resultAccess: ResultAccess,
    mode: "begin" | "resume" | "observe",
  ): Promise<Result<AgentReport>> {
    const session = this.#sessionOf(task);
    if (!session.ok) return session;
    const { key } = session.value;
    const news = this.#newsOf(key, task);
    try {
      const begun = mode === "observe" ? succeed(key) : await this.begin(task, request);
      if (!begun.ok) return begun;
      // The end of a run that begins now is yet to come, and a look would only delay it.
      if (mode === "begin") await news.next(LOOK_MS);
      const status = await this.#waitForRun(task, key, [], Number.POSITIVE_INFINITY, news);
      if (mode === "observe" && status.end.state === "unknown") return fail("gateway.stopped");
      return await this.#reported(task, key, status, resultAccess);
    } finally {
      news.end();
    }
  }

  async look(task: Task, seen: readonly string[]): Promise<Result<TaskStatus>> {
    const session = this.#sessionOf(task);
    if (!session.ok) return session;
    const news = this.#newsOf(session.value.key, task);
    const status = await this.#waitForRun(task, session.value.key, seen, JOB_LOOKS, news).finally(() => news.end());
    if (isRunning(status.end) && status.approvals.length === 0) return succeed({ state: "running" });
    const report = await this.#reported(task, session.value.key, status, "job");
    if (!report.ok) return report;
    return succeed(
      isRunning(status.end)
        ? { state: "awaiting", report: report.value, approvals: status.approvals }
        : { state: "ended", report: report.value },
    );
  }

  async stop(task: Task): Promise<Result<void>> {
    const session = this.#sessionOf(task);
    if (!session.ok) return session;
    const stopped = await this.#ports.ask(session.value.key, (object) => object.abort(runIdOf(task)));
    return stopped.ok ? succeed(undefined) : stopped;
  }

  #newsOf(sessionKey: string, task: Task): News {
    return new News({ ...this.#ports, after: afterTimeout }, sessionKey, runIdOf(task));
  }
  #sessionOf({ id, agentId }: Task): Result<NamedSession> {
    const built = buildKey({ form: "task", agentId, taskId: id }, this.#ports.config.mainKey());
    return built.ok ? succeed({ key: built.key, address: built.address }) : fail("internal");
  }

  async #reported(task: Task, sessionKey: string, status: RunStatus, resultAccess: ResultAccess): Promise<Result<AgentReport>> {
    const { end, approvals } = status;
    const story = status.story ?? (await this.#ports.ask(sessionKey, (session) => session.story({ runId: runIdOf(task) })));
    if (!story.ok) return story;
    if (!isRunning(end)) await this.#stopBelow(sessionKey, runIdOf(task));
    const delegations = await this.#below(sessionKey, runIdOf(task), 1);
    return succeed(reportOf({ taskId: task.id, agentId: task.agentId, story: story.value, end, approvals, resultAccess, delegations }));
  }
  /** Codes of the questions of a run that wait for the owner, and of those of the tasks that it has handed on. */
  questions(sessionKey: string, runId: string): readonly string[] {
    const { approvals, delegations } = this.#ports;
    const own = approvals.waiting(sessionKey).flatMap((entry) => (entry.runId === runId ? [entry.code] : []));
    return [...own, ...delegations.of(sessionKey, runId).flatMap((task) => this.questions(task.sessionKey, runIdOf(task)))];
  }
  /** What a run and the tasks that it has handed on have used. */
  async used(sessionKey: string, runId: string): Promise<Pick<OthersUse, "costUsd" | "unpriced">> {
    const story = await this.#ports.ask(sessionKey, (session) => session.story({ runId }));
    const { costUsd, total = 0 } = story.ok ? story.value.usage : {};
    const below = await Promise.all(this.#ports.delegations.of(sessionKey, runId).map((task) => this.used(task.sessionKey, runIdOf(task))));
    return below.reduce((sum, each) => ({ costUsd: sum.costUsd + each.costUsd, unpriced: sum.unpriced + each.unpriced }), {
      costUsd: costUsd ?? 0,
      unpriced: costUsd === undefined ? total : 0,
    });
  }
  /** A run that has ended waits for no task (rule DG5): its report says how each of them ended. */
  async #stopBelow(sessionKey: string, runId: string): Promise<void> {
    const { ask, delegations } = this.#ports;
    for (const { id, agentId, sessionKey: key } of delegations.of(sessionKey, runId)) {
      const own = runIdOf({ id });
      if (isRunning(await ask(key, (session) => session.runEnd(own)))) await this.stop({ id, agentId });
      await this.#stopBelow(key, own);
    }
  }
  /** What the run has handed to others, each followed by what it has handed on itself. */
  async #below(sessionKey: string, runId: string, depth: number): Promise<readonly ReportDelegation[]> {
    const { ask, delegations } = this.#ports;
    const found: ReportDelegation[] = [];
    for (const { id, name, sessionKey: key } of delegations.of(sessionKey, runId)) {
      const own = runIdOf({ id });
      const [story, end] = await Promise.all([
        ask(key, (session) => session.story({ runId: own })),
        ask(key, (session) => session.runEnd(own)),
      ]);
      const status = isRunning(end) ? undefined : statusOf(end);
      found.push({
        agent_name: name,
        task_id: id,
        session_key: asSessionKey(key),
        depth,
        ...(status === undefined ? {} : { status }),
        cost_usd: story.ok ? (story.value.usage.costUsd ?? 0) : 0,
      });
      found.push(...(await this.#below(key, own, depth + 1)));
    }
    return found;
  }

  /** Waits until the run has ended or asks the owner what is not `seen` yet, for at most `looks` times. */
  async #waitForRun(task: Task, sessionKey: string, seen: readonly string[], looks: number, news: News): Promise<RunStatus> {
    const runId = runIdOf(task);
    for (let look = 0; ; look++) {
      const report = await this.#ports.ask(sessionKey, (session) => session.runReport(runId));
      const waiting = this.questions(sessionKey, runId);
      const isNew = waiting.length !== seen.length || waiting.some((code) => !seen.includes(code));
      if (!isRunning(report.end) || isNew || look >= looks) return { ...report, approvals: waiting };
      await news.next(LOOK_MS);
    }
  }
}
function causeOf({ id, keyed, event }: NamedTask, payload: unknown): HandedOn {
  if (event !== undefined) return { origin: { kind: "task", taskId: id, event: { id: event.id, hops: event.hops } }, taint: event.taint };
  return {
    origin: { kind: "task", taskId: id, ...(keyed ? { keyed } : {}) },
    // The data of a task may be of anyone: a customer's letter, a page.
    ...(payload === undefined ? {} : { taint: { label: "world", source: "the data of a task" } }),
  };
}
const isRunning = ({ state }: RunEnd): boolean => state === "running" || state === "queued";
