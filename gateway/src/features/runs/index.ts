/** Tasks for agents over HTTP (gateway/spec/tasks.md). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { TaskPort } from "../../ports/http.ts";
import type { TaskRunsPort } from "../../ports/tasks.ts";
import { RUN_MIGRATIONS } from "./migrations.ts";
import type { TaskRunPorts, TaskRuns } from "./task-runs.ts";
import { TaskStore } from "./task-store.ts";
import type { TaskPorts, Tasks } from "./tasks.ts";

export type RunsPorts = Omit<TaskRunPorts & TaskPorts, "store" | "runs"> & Pick<KernelPorts, "database">;
const DAY_MS = 86_400_000;

export const runsFeature: FeatureDefinition<RunsPorts, TaskRunsPort & { readonly tasksRpc: TaskPort }> = {
  name: "runs",
  migrations: RUN_MIGRATIONS,
  create(ports) {
    const store = new TaskStore(ports.database);
    let loaded: Promise<{ readonly runs: TaskRuns; readonly tasks: Tasks }> | undefined;
    const load = () => {
      loaded ??= import("./runs.lazy.ts").then(({ TaskRuns, Tasks }) => {
        const runs = new TaskRuns({ ...ports, store });
        return { runs, tasks: new Tasks({ ...ports, store, runs }) };
      });
      // A part that could not be loaded is tried again with the next call.
      loaded.catch(() => {
        loaded = undefined;
      });
      return loaded;
    };
    const next = (): number | undefined => {
      const oldest = store.oldest();
      return oldest === undefined ? undefined : oldest + LIMITS.taskDays * DAY_MS;
    };
    return {
      offers: {
        taskRuns: {
          check: async (request) => (await load()).runs.check(request),
          begin: async (task, request) => (await load()).runs.begin(task, request),
          look: async (task, seen) => (await load()).runs.look(task, seen),
          stop: async (task) => (await load()).runs.stop(task),
        },
        tasksRpc: {
          runTask: async (caller, request) => {
            const done = await (await load()).tasks.run(caller, request);
            if (done.ok) return done;
            const { reason, message, hint } = done.error;
            return { ok: false, error: { reason, message, ...(hint === undefined ? {} : { hint }) } };
          },
        },
      },
      alarms: [{ name: "tasks", next, run: async () => (await load()).tasks.removeOld() }],
      sessionGone: ({ key }) => store.remove(key),
    };
  },
};
