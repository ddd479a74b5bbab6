/** Tasks for agents: of programs over HTTP (gateway/spec/tasks.md), and of other agents (gateway/spec/delegation.md). */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import type { DelegationPort, HandedOnPort } from "../../ports/delegation.ts";
import type { TaskPort } from "../../ports/http.ts";
import type { TaskEndsPort, TaskRunsPort } from "../../ports/tasks.ts";
import { DelegationStore } from "./delegation-store.ts";
import type { DelegationPorts } from "./delegations.ts";
import { RUN_MIGRATIONS } from "./migrations.ts";
import { questionKey, runIdOf } from "./run-id.ts";
import type { TaskRunPorts } from "./task-runs.ts";
import { RUN_TOOLS } from "./tools.ts";
import { TaskStore } from "./task-store.ts";
import type { TaskPorts } from "./tasks.ts";
import { LOOK_STEP_MS, WatchStore } from "./watch-store.ts";

export type RunsPorts = Omit<TaskRunPorts & TaskPorts & DelegationPorts, "store" | "stored" | "runs" | "delegations" | "lookNow"> &
  Pick<KernelPorts, "database" | "log">;
/** Tasks that other agents wait for are looked at this often: the run above may have ended. */
const ORPHAN_LOOK_MS = 15_000;

export const runsFeature: FeatureDefinition<
  RunsPorts,
  TaskRunsPort & TaskEndsPort & HandedOnPort & { readonly tasksRpc: TaskPort; readonly delegationRpc: DelegationPort }
> = {
  name: "runs",
  migrations: RUN_MIGRATIONS,
  tools: RUN_TOOLS,
  create(ports) {
    const store = new TaskStore(ports.database);
    const delegations = new DelegationStore(ports.database);
    const watches = new WatchStore(ports.database);
    /** In memory only: after a restart, the first look comes at once. */
    let orphansLookedAt = 0;
    let listener: Parameters<TaskEndsPort["taskEnds"]["toldTo"]>[0] | undefined;
    ports.approvals.onChange(({ sessionKey, ended }) => {
      const task = ended.length === 0 ? undefined : delegations.behind(sessionKey);
      if (task !== undefined) for (const code of ended) ports.notify.over(questionKey(task.id, code));
    });
    /** Tasks are stored by the part that is loaded later. */
    let follow = (_task: { readonly id: string; readonly sessionKey: string }): void => undefined;
    const stored: TaskRunPorts["stored"] = (task) => {
      if (listener?.takes(task.agentId) !== true) return;
      watches.add(task, ports.now() + LOOK_STEP_MS);
      follow(task);
      ports.armFor(watches.next());
    };
    /** Before the part is loaded, no watch listens. */
    let forget = (_sessionKey: string): void => undefined;
    const lookNow = (): void => {
      orphansLookedAt = 0;
      ports.armFor(ports.now());
    };
    const load = once(() =>
      import("./runs.lazy.ts").then(({ Delegations, TaskRuns, Tasks, TaskWatches }) => {
        const runs = new TaskRuns({ ...ports, store, stored, delegations });
        const ends = new TaskWatches({ ...ports, watches, failed: async (task) => (await listener?.failed(task)) ?? true });
        const delegating = new Delegations({ ...ports, runs, delegations, lookNow });
        follow = (task) => ends.follow(task);
        forget = (sessionKey) => {
          ends.forget(sessionKey);
          delegating.forget(sessionKey);
        };
        return { ends, runs, tasks: new Tasks({ ...ports, store, runs }), delegating };
      }),
    );
    return {
      offers: {
        taskEnds: {
          toldTo: (told) => {
            listener = told;
          },
        },
        handedOn: (sessionKey, runId) => delegations.of(sessionKey, runId),
        handedBy: (sessionKey, runId) => {
          const task = delegations.behind(sessionKey);
          // Later runs of the conversation have other causes.
          if (task === undefined || runIdOf(task) !== runId) return undefined;
          return { callId: task.callId, sessionKey: task.parentKey, runId: task.parentRun };
        },
        taskRuns: {
          check: async (request) => (await load()).runs.check(request),
          begin: async (task, request) => (await load()).runs.begin(task, request),
          look: async (task, seen) => (await load()).runs.look(task, seen),
          stop: async (task) => (await load()).runs.stop(task),
        },
        delegationRpc: { delegate: async (asked) => (await load()).delegating.delegate(asked) },
        tasksRpc: {
          runTask: async (caller, request) => {
            const done = await (await load()).tasks.run(caller, request);
            if (done.ok) return done;
            const { reason, message, hint } = done.error;
            return { ok: false, error: { reason, message, ...(hint === undefined ? {} : { hint }) } };
          },
        },
      },
      alarms: [
        { name: "tasks", next: () => store.nextRemoval(), run: async () => (await load()).tasks.removeOld() },
        { name: "task_ends", next: () => watches.next(), run: async () => (await load()).ends.sweep() },
        {
          name: "delegations",
          next: () => (delegations.countOpen() === 0 ? undefined : Math.max(orphansLookedAt + ORPHAN_LOOK_MS, ports.now())),
          run: async () => {
            orphansLookedAt = ports.now();
            await (await load()).delegating.endOrphans();
          },
        },
      ],
      sessionGone: ({ key }) => {
        store.sessionGone(key);
        delegations.remove(key);
        watches.forget(key);
        forget(key);
        if (delegations.isAbove(key)) lookNow();
      },
    };
  },
};
