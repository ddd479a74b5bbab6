/**
 * Looks at tasks until they end, and tells of those that failed (rule EV13). Rows, not promises: the caller of the
 * task may be gone, and this object may be killed.
 */
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { FailedTask } from "../../ports/tasks.ts";
import { statusOf } from "./report.ts";
import { RunEnds } from "./run-ends.ts";
import { runIdOf } from "./run-id.ts";
import { LOOK_STEP_MS, type TaskWatch, type WatchStore } from "./watch-store.ts";

export interface WatchPorts extends Pick<SessionsPort, "ask">, Pick<KernelPorts, "arm" | "log" | "now" | "subscriptions"> {
  readonly watches: Pick<WatchStore, "due" | "again" | "remove" | "soon">;
  readonly failed: (task: FailedTask) => Promise<boolean>;
}
const LOOK_MAX_MS = 600_000;
/** The message of a task comes right after its row. */
const UNKNOWN_LOOKS = 20;
/** With the longest pause, longer than a task is kept (rule RT6). */
const MOST_LOOKS = Math.ceil((LIMITS.taskDays * 86_400_000) / LOOK_MAX_MS) + LOOK_MAX_MS / LOOK_STEP_MS;
export class TaskWatches {
  readonly #ports: WatchPorts;
  readonly #ends: RunEnds;

  constructor(ports: WatchPorts) {
    this.#ports = ports;
    this.#ends = new RunEnds(ports.subscriptions);
  }

  async sweep(): Promise<void> {
    const { watches, now, log } = this.#ports;
    for (const watch of watches.due(now())) {
      try {
        if (await this.#isOver(watch)) this.#end(watch);
        else this.#goOn(watch);
      } catch (error) {
        log.warn("task_end_not_told", { task: watch.id, error });
        watches.again(watch.id, now() + backoffMs(watch.tries + 1, LOOK_STEP_MS, LOOK_MAX_MS), { ...watch, tries: watch.tries + 1 });
      }
    }
  }
  /** The conversation tells of its end, and a look finds what a kill has lost. After the last one the task is deleted anyway (rule RT6). */
  #goOn(watch: TaskWatch): void {
    const { watches, now } = this.#ports;
    const looks = watch.looks + 1;
    if (looks >= MOST_LOOKS) return this.#end(watch);
    watches.again(watch.id, now() + Math.min(LOOK_MAX_MS, LOOK_STEP_MS * looks), { tries: 0, looks });
    this.follow(watch);
  }
  #end({ id, sessionKey }: TaskWatch): void {
    this.#ports.watches.remove(id);
    this.#ends.unfollow(sessionKey, runIdOf({ id }));
  }
  /** The end of the run is noticed at once. */
  follow({ id, sessionKey }: Pick<TaskWatch, "id" | "sessionKey">): void {
    const { watches, now, arm } = this.#ports;
    this.#ends.follow(sessionKey, runIdOf({ id }), () => {
      watches.soon(id, now());
      arm();
    });
  }
  /** The conversation was deleted. */
  forget(sessionKey: string): void {
    this.#ends.forget(sessionKey);
  }
  async #isOver({ id, agentId, sessionKey, hops, tries }: TaskWatch): Promise<boolean> {
    const { ask, failed } = this.#ports;
    const runId = runIdOf({ id });
    const end = await ask(sessionKey, (session) => session.runEnd(runId));
    if (end.state === "unknown") {
      if (tries + 1 >= UNKNOWN_LOOKS) return true;
      throw new Error("the task has not begun yet");
    }
    if (end.state === "running" || end.state === "queued") return false;
    const cause = statusOf(end);
    if (end.state !== "error" || (cause !== "failed" && cause !== "budget_exceeded")) return true;
    const told = await failed({
      ...{ id, agentId, sessionKey, runId, cause, hops, message: end.error },
      ...(end.taint === undefined ? {} : { taint: end.taint }),
    });
    if (!told) throw new Error("the event could not be stored");
    return true;
  }
}
