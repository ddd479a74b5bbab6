/**
 * Looks at tasks until they end, and tells of those that failed (rule EV13). Rows, not promises: the caller of the
 * task may be gone, and this object may be killed.
 */
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { FailedTask } from "../../ports/tasks.ts";
import { statusOf } from "./report.ts";
import { runIdOf } from "./run-id.ts";
import type { TaskWatch, WatchStore } from "./watch-store.ts";

export interface WatchPorts extends Pick<SessionsPort, "ask">, Pick<KernelPorts, "log" | "now"> {
  readonly watches: Pick<WatchStore, "due" | "again" | "remove">;
  readonly failed: (task: FailedTask) => Promise<boolean>;
}
export const LOOK_MS = 15_000;
const LOOK_MAX_MS = 600_000;
/** The message of a task comes right after its row. */
const UNKNOWN_LOOKS = 20;

export class TaskWatches {
  readonly #ports: WatchPorts;

  constructor(ports: WatchPorts) {
    this.#ports = ports;
  }

  async sweep(): Promise<void> {
    const { watches, now, log } = this.#ports;
    for (const watch of watches.due(now())) {
      try {
        if (await this.#isOver(watch)) watches.remove(watch.id);
        else watches.again(watch.id, now() + LOOK_MS, 0);
      } catch (error) {
        log.warn("task_end_not_told", { task: watch.id, error });
        watches.again(watch.id, now() + backoffMs(watch.tries + 1, LOOK_MS, LOOK_MAX_MS), watch.tries + 1);
      }
    }
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
