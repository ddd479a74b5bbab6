/** Jobs: tasks of other programs that wait for their turn (gateway/spec/jobs.md). */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import type { Admitted } from "../../ports/http.ts";
import type { EventJobsPort, JobHostPort, JobsHttpPort } from "../../ports/jobs.ts";
import type { Result } from "../../ports/result.ts";
import type { IntakePorts } from "./intake.ts";
import { JOB_MIGRATIONS } from "./migrations.ts";
import { nextTurn, type QueuePorts } from "./queue.ts";
import { QueueStore } from "./queue-store.ts";

export type JobsPorts = Omit<QueuePorts & IntakePorts, "entries" | "queue"> & Pick<KernelPorts, "database">;

/** Without details, which RPC would lose the type of. */
function admitted<T>(done: Result<T>): Admitted<T> {
  if (done.ok) return done;
  const { reason, message, hint } = done.error;
  return { ok: false, error: { reason, message, ...(hint === undefined ? {} : { hint }) } };
}

export const jobsFeature: FeatureDefinition<JobsPorts, EventJobsPort & { readonly jobsHttp: JobsHttpPort; readonly jobsRpc: JobHostPort }> =
  {
    name: "jobs",
    migrations: JOB_MIGRATIONS,
    create(ports) {
      const entries = new QueueStore(ports.database);
      const load = once(() =>
        import("./jobs.lazy.ts").then(({ JobIntake, JobQueue }) => {
          const queue = new JobQueue({ ...ports, entries });
          return { queue, intake: new JobIntake({ ...ports, entries, queue }) };
        }),
      );
      return {
        offers: {
          jobsHttp: {
            submitJob: async (caller, request) => admitted(await (await load()).intake.submitOver(caller, request)),
            listJobs: async (params) => admitted(await (await load()).intake.list(params)),
            getJob: async (id) => admitted(await (await load()).intake.get(id)),
            cancelJob: async (id) => admitted(await (await load()).intake.cancel(id)),
          },
          eventJobs: { start: async (id, request, event) => (await load()).intake.start(id, request, event) },
          jobsRpc: {
            claimJob: async (turn) => (await load()).queue.claim(turn),
            updateQueue: async (id, status) => (await load()).queue.setStatus(id, status),
            beginJob: async (task, request) => {
              // The agent may have been deleted or renamed while the job waited.
              const checked = await ports.taskRuns.check(request);
              if (!checked.ok) return checked;
              if (checked.value.agentId !== task.agentId)
                return fail("agent.unknown", `${request.agent_name} is another agent now, so the job did not begin.`);
              return ports.taskRuns.begin(task, request);
            },
            lookAtJob: async (task, seen) => {
              (await load()).queue.seen(task.id);
              return ports.taskRuns.look(task, seen);
            },
            stopJob: (task) => ports.taskRuns.stop(task),
          },
        },
        methods: {
          "job.submit": async ({ connection }, { task, key }) =>
            (await load()).intake.submit(connection.principal.tokenId, { task, ...(key === undefined ? {} : { key }) }),
          "job.list": async (_caller, params) => (await load()).intake.list(params),
          "job.get": async (_caller, { job_id }) => (await load()).intake.get(job_id),
          "job.cancel": async (_caller, { job_id }) => (await load()).intake.cancel(job_id),
        },
        alarms: [{ name: "jobs", next: () => nextTurn({ ...ports, entries }), run: async () => (await load()).queue.sweep() }],
      };
    },
  };
