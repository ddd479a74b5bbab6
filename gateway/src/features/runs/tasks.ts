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

export class Tasks {
  readonly #ports: TaskPorts;
  #open = 0;

  constructor(ports: TaskPorts) {
    this.#ports = ports;
  }

  async run(caller: HttpCaller, request: TaskRequest): Promise<Result<AgentReport>> {
    const { admission, stopped, runs } = this.#ports;
    const granted = await admission.grantTask(caller);
    if (!granted.ok) return granted;
    if (stopped() !== undefined) return fail("gateway.stopped");
    if (this.#open >= LIMITS.tasksAtOnce) return fail("limit.rate", `${LIMITS.tasksAtOnce} tasks are open at once, which is the limit.`);
    this.#open++;
    try {
      const task = await this.#taken(granted.value.tokenId, request);
      if (!task.ok) return task;
      const { isNew, ...named } = task.value;
      return await runs.run(named, request.task, request.key === undefined ? "none" : "key", isNew);
    } finally {
      this.#open--;
    }
  }

  /** The task of this request: a new one, or the one that the same key has made. */
  async #taken(tokenId: string, { task, key }: TaskRequest): Promise<Result<NamedTask & { readonly isNew: boolean }>> {
    const { store, ids, runs } = this.#ports;
    const checked = await runs.check(task);
    if (!checked.ok) return checked;
    // Of the token too: no one meets another's task by its key.
    const id = key === undefined ? ids.name(NAME_CHARS) : (await ids.sha256(JSON.stringify([tokenId, key]))).slice(0, NAME_CHARS);
    const known = store.find(id);
    if (known !== undefined)
      return known.bodySha256 === checked.value.bodySha256 ? succeed({ ...known, isNew: false }) : fail("task.key_reused");
    const made = { ...checked.value, id };
    const stored = runs.store(made);
    return stored.ok ? succeed({ ...made, isNew: true }) : stored;
  }

  /** Old tasks are deleted with their conversations (rule RT6). */
  removeOld(): void {
    const { store, now, deleteSessions, sessions } = this.#ports;
    const old = store.old(now());
    const keys = old.flatMap(({ sessionKey }) => (sessions.find(sessionKey) === undefined ? [] : [sessionKey]));
    deleteSessions(keys, () => {
      for (const { sessionKey } of old) store.remove(sessionKey);
    });
  }
}
