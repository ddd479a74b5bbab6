/**
 * Takes tasks for agents and answers with reports (rules RT1 to RT6). A task is a message to a conversation of its own, so that it goes on
 * when the caller, this object or the machine goes away: the same request finds it again.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { AgentReport } from "../../../../protocol/gen/types.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import type { Admission } from "../../kernel/admission.ts";
import { scopesOf } from "../../kernel/authorise.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { buildKey } from "../../kernel/routing/session-keys.ts";
import type { Sink } from "../../kernel/subscriptions.ts";
import type { AgentNamesPort } from "../../ports/agents.ts";
import type { ApprovalsPort } from "../../ports/approvals.ts";
import type { HttpCaller, TaskRequest } from "../../ports/http.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { RunEnd } from "../../ports/session.ts";
import type { DeletionPort, SessionsPort, StopPort } from "../../ports/sessions.ts";
import { overrideIn, taskText } from "../../prompt/task.ts";
import { reportOf } from "./report.ts";
import type { Task, TaskStore } from "./task-store.ts";

export interface TaskPorts
  extends SessionsPort,
    StopPort,
    DeletionPort,
    ApprovalsPort,
    AgentNamesPort,
    Pick<KernelPorts, "arm" | "config" | "contextVersion" | "ids" | "now" | "subscriptions"> {
  readonly admission: Pick<Admission, "grant">;
  readonly store: TaskStore;
}
/** A run that sends no news is looked at this often. */
const LOOK_MS = 15_000;
const NAME_CHARS = 26;
const DAY_MS = 86_400_000;
const STANDS: ReadonlySet<string> = new Set(["final", "error", "aborted", "paused"]);

export class Tasks {
  readonly #ports: TaskPorts;
  #open = 0;

  constructor(ports: TaskPorts) {
    this.#ports = ports;
  }

  async run(caller: HttpCaller, request: TaskRequest): Promise<Result<AgentReport>> {
    const granted = await this.#ports.admission.grant(caller);
    if (!granted.ok) return granted;
    const { kind, tokenId } = granted.value;
    if (!scopesOf({ kind, mode: kind === "node" || kind === "channel" ? kind : "client" }).includes("chat"))
      return fail("auth.forbidden", "This needs a client or admin token.");
    if (this.#ports.stopped() !== undefined) return fail("gateway.stopped");
    if (this.#open >= LIMITS.tasksAtOnce) return fail("limit.rate", `${LIMITS.tasksAtOnce} tasks are open at once, which is the limit.`);
    this.#open++;
    try {
      const task = await this.#taken(tokenId, request);
      return task.ok ? await this.#begun(task.value, request) : task;
    } finally {
      this.#open--;
    }
  }

  /** The task of this request: a new one, or the one that the same key has made. */
  async #taken(tokenId: string, { task, key }: TaskRequest): Promise<Result<Task>> {
    const { store, ids, now, config, agentNames, arm } = this.#ports;
    const agentId = agentNames.byName(task.agent_name);
    if (agentId === undefined) return unknownAgent(config, task.agent_name);
    const higher = overrideIn(task.payload);
    if (higher !== undefined)
      return fail("context.override", `\`${higher}\` is a key of a higher layer of the prompt, so nothing was run.`);
    // Before it is stored: the fences and their escapes make it longer than the request was.
    const bytes = utf8Bytes(taskText(task.instructions, task.payload));
    if (bytes > LIMITS.messageBytes)
      return fail("protocol.too_large", `As a message the task has ${bytes} bytes; at most ${LIMITS.messageBytes} are accepted.`);
    const bodySha256 = await ids.sha256(JSON.stringify(task));
    // Of the token too: no one meets another's task by its key.
    const id = key === undefined ? ids.name(NAME_CHARS) : (await ids.sha256(JSON.stringify([tokenId, key]))).slice(0, NAME_CHARS);
    const known = store.find(id);
    if (known !== undefined) return known.bodySha256 === bodySha256 ? succeed(known) : fail("task.key_reused");
    const built = buildKey({ form: "task", agentId, taskId: id }, config.mainKey());
    if (!built.ok) return fail("internal");
    const made: Task = { id, agentId, sessionKey: built.key, bodySha256, createdAt: now() };
    store.add(made);
    arm();
    return succeed(made);
  }

  async #begun(task: Task, { task: { instructions, payload }, key }: TaskRequest): Promise<Result<AgentReport>> {
    const { sessions, ask, config, contextVersion, now } = this.#ports;
    const built = buildKey({ form: "task", agentId: task.agentId, taskId: task.id }, config.mainKey());
    if (!built.ok) return fail("internal");
    const identity = sessions.takeUp(built, now(), true);
    const runId = `task-${task.id}`;
    const sent = await ask(task.sessionKey, (session) =>
      session.send({
        identity,
        messageId: runId,
        runId,
        text: taskText(instructions, payload),
        verbatim: true,
        origin: { kind: "task", taskId: task.id },
        // The data of a task may be of anyone: a customer's letter, a page.
        ...(payload === undefined ? {} : { taint: { label: "world", source: "the data of a task" } as const }),
        contextVersion: contextVersion(),
      }),
    );
    if (!sent.ok) return sent;
    const { end, approvals } = await this.#stood(task.sessionKey, runId);
    const story = await ask(task.sessionKey, (session) => session.story({ runId }));
    if (!story.ok) return story;
    return succeed(reportOf({ taskId: task.id, agentId: task.agentId, story: story.value, end, approvals, hasKey: key !== undefined }));
  }

  /** Waits until the run has ended, or waits for the owner. */
  async #stood(sessionKey: string, runId: string): Promise<{ readonly end: RunEnd; readonly approvals: readonly string[] }> {
    const { ask, subscriptions, approvals } = this.#ports;
    let news = Promise.withResolvers<void>();
    const sink: Sink = {
      deliver: (_key, events) => {
        const isNews = events.some(({ event, payload }) => {
          const chat = payload as { readonly runId?: string; readonly state?: string };
          return event === "chat" && chat.runId === runId && STANDS.has(chat.state ?? "");
        });
        if (isNews) news.resolve();
      },
    };
    subscriptions.add(sessionKey, sink);
    try {
      for (;;) {
        const end = await ask(sessionKey, (session) => session.runEnd(runId));
        const waiting = approvals.waiting(sessionKey).flatMap((entry) => (entry.runId === runId ? [entry.code] : []));
        if ((end.state !== "running" && end.state !== "queued") || waiting.length > 0) return { end, approvals: waiting };
        await within(afterTimeout, LOOK_MS, news.promise, () => undefined);
        news = Promise.withResolvers<void>();
      }
    } finally {
      subscriptions.remove(sessionKey, sink);
    }
  }

  /** Old tasks are deleted with their conversations (rule RT6). */
  removeOld(): void {
    const { store, now, deleteSessions, sessions } = this.#ports;
    const old = store.before(now() - LIMITS.taskDays * DAY_MS);
    const keys = old.flatMap(({ sessionKey }) => (sessions.find(sessionKey) === undefined ? [] : [sessionKey]));
    deleteSessions(keys, () => {
      for (const { sessionKey } of old) store.remove(sessionKey);
    });
  }
}
