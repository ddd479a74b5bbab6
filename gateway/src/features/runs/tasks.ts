/**
 * Takes tasks for agents and answers with reports (rules RT1 to RT6). `TaskRuns` runs them; this file is about who may ask, how many at once,
 * and which task a request means.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { AgentReport } from "../../../../protocol/gen/types.ts";
import type { Admission } from "../../kernel/admission.ts";
import { fail } from "../../kernel/outcome.ts";
import type { HttpCaller, TaskRequest } from "../../ports/http.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { DeletionPort, StopPort } from "../../ports/sessions.ts";
import type { NamedTask } from "../../ports/tasks.ts";
import type { TaskRunPorts, TaskRuns } from "./task-runs.ts";

export interface TaskPorts extends StopPort, DeletionPort, Pick<TaskRunPorts, "ids" | "now" | "sessions" | "store"> {
  readonly admission: Pick<Admission, "grantTask">;
  readonly runs: TaskRuns;
}
const NAME_CHARS = 26;
interface Taken {
  readonly task: NamedTask;
  /** The task was given before. */
  readonly isKnown: boolean;
}
const GONE = "The conversation of this task was deleted, and its report with it.";

export class Tasks {
  readonly #ports: TaskPorts;
  /** Requests that wait, by their tasks. A caller that sends one again and again uses one permit. */
  readonly #waiting = new Map<string, number>();

  constructor(ports: TaskPorts) {
    this.#ports = ports;
  }

  async run(caller: HttpCaller, request: TaskRequest): Promise<Result<AgentReport>> {
    const { admission, ids, runs, stopped } = this.#ports;
    const granted = await admission.grantTask(caller);
    if (!granted.ok) return granted;
    // The digest includes the token: no one finds another's task by its key.
    const name = request.key === undefined ? undefined : await ids.sha256(JSON.stringify([granted.value.tokenId, request.key]));
    const id = name?.slice(0, NAME_CHARS) ?? ids.name(NAME_CHARS);
    const most = LIMITS.tasksAtOnce;
    const waiting = this.#waiting.get(id) ?? 0;
    if (waiting === 0 && this.#waiting.size >= most) return fail("limit.rate", `${most} tasks are open at once, which is the limit.`);
    if (waiting >= most) return fail("limit.rate", `${most} requests wait for this task at once, which is the limit.`);
    this.#waiting.set(id, waiting + 1);
    try {
      const taken = await this.#taken(id, request);
      if (!taken.ok) return taken;
      const { task, isKnown } = taken.value;
      const mode = !isKnown ? "begin" : stopped() === undefined ? "resume" : "observe";
      return await runs.run(task, request.task, request.key === undefined ? "none" : "key", mode);
    } finally {
      this.#leave(id);
    }
  }
  #leave(id: string): void {
    const left = (this.#waiting.get(id) ?? 0) - 1;
    if (left > 0) this.#waiting.set(id, left);
    else this.#waiting.delete(id);
  }

  /** The task that the same key has made, also when its agent is gone or everything is stopped; else a new one. */
  async #taken(id: string, { task, key }: TaskRequest): Promise<Result<Taken>> {
    const { runs, stopped } = this.#ports;
    const known = key === undefined ? undefined : this.#known(id, await runs.bodySha256(task));
    if (known !== undefined) return known;
    if (stopped() !== undefined) return fail("gateway.stopped");
    const checked = await runs.check(task);
    if (!checked.ok) return checked;
    // Another request with the key may have come meanwhile.
    const meanwhile = this.#known(id, checked.value.bodySha256);
    if (meanwhile !== undefined) return meanwhile;
    const made: NamedTask = { ...checked.value, id, ...(key === undefined ? {} : { keyed: true }) };
    const stored = runs.store(made);
    return stored.ok ? succeed({ task: made, isKnown: false }) : stored;
  }
  #known(id: string, bodySha256: string): Result<Taken> | undefined {
    const task = this.#ports.store.find(id);
    if (task === undefined) return undefined;
    if (task.bodySha256 !== bodySha256) return fail("task.key_reused");
    if (task.sessionKey === undefined) return fail("run.not_found", GONE, "To do it again, send it with another Idempotency-Key.");
    return succeed({ task: { id, agentId: task.agentId, bodySha256, keyed: true }, isKnown: true });
  }

  /** Old tasks are deleted with their conversations (rule RT6). */
  removeOld(): void {
    const { store, now, deleteSessions, sessions } = this.#ports;
    const old = store.old(now());
    const keys = old.flatMap(({ sessionKey: key }) => (key === undefined || sessions.find(key) === undefined ? [] : [key]));
    deleteSessions(keys, () => {
      for (const { id } of old) store.remove(id);
    });
  }
}
