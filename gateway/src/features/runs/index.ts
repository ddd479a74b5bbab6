/** Tasks for agents over HTTP (gateway/spec/tasks.md). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { TaskPort } from "../../ports/http.ts";
import { RUN_MIGRATIONS } from "./migrations.ts";
import { TaskStore } from "./task-store.ts";
import type { TaskPorts, Tasks } from "./tasks.ts";

export type RunsPorts = Omit<TaskPorts, "store"> & Pick<KernelPorts, "database">;
const DAY_MS = 86_400_000;

export const runsFeature: FeatureDefinition<RunsPorts, { readonly tasksRpc: TaskPort }> = {
  name: "runs",
  migrations: RUN_MIGRATIONS,
  create(ports) {
    const store = new TaskStore(ports.database);
    let loaded: Promise<Tasks> | undefined;
    const load = (): Promise<Tasks> => {
      loaded ??= import("./runs.lazy.ts").then(({ Tasks }) => new Tasks({ ...ports, store }));
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
        tasksRpc: {
          runTask: async (caller, request) => {
            const done = await (await load()).run(caller, request);
            if (done.ok) return done;
            const { reason, message, hint } = done.error;
            return { ok: false, error: { reason, message, ...(hint === undefined ? {} : { hint }) } };
          },
        },
      },
      alarms: [{ name: "tasks", next, run: async () => (await load()).removeOld() }],
      sessionGone: ({ key }) => store.remove(key),
    };
  },
};
