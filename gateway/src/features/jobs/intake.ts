/** Takes jobs and answers about them (rules JB1, JB2, JB3, JB7, JB8), for HTTP and for the gateway's methods alike. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { AgentJob, JobListParams, JobListResult, JobTaken, RunRequest } from "../../../../protocol/gen/types.ts";
import type { Admission } from "../../kernel/admission.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { HttpCaller, TaskRequest } from "../../ports/http.ts";
import type { IndexSpace, JobPort, JobTurn } from "../../ports/jobs.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { TaskRunsPort } from "../../ports/tasks.ts";
import { listJobs } from "./job-index.ts";
import { type JobQueue, STORE_MS } from "./queue.ts";
import { TENANT_ID } from "../../ports/tenant.ts";
import type { QueueEntry, QueueStore } from "./queue-store.ts";

export interface IntakePorts extends TaskRunsPort, Pick<KernelPorts, "arm" | "ids" | "log" | "now"> {
  readonly admission: Pick<Admission, "grantTask">;
  readonly entries: QueueStore;
  readonly queue: JobQueue;
  readonly job: (id: string) => JobPort;
  readonly jobsIndex: () => IndexSpace;
}
const NAME_CHARS = 26;

export class JobIntake {
  readonly #ports: IntakePorts;

  constructor(ports: IntakePorts) {
    this.#ports = ports;
  }

  async submitOver(caller: HttpCaller, request: TaskRequest): Promise<Result<JobTaken>> {
    const granted = await this.#ports.admission.grantTask(caller);
    return granted.ok ? this.submit(granted.value.tokenId, request) : granted;
  }

  async submit(tokenId: string, { task, key }: TaskRequest): Promise<Result<JobTaken>> {
    const { taskRuns, ids, now, entries, job } = this.#ports;
    const request: RunRequest = {
      agent_name: task.agent_name,
      instructions: task.instructions,
      ...(task.payload === undefined ? {} : { payload: task.payload }),
    };
    // The digest includes the token: no one finds another's job by its key.
    const keySha256 = key === undefined ? undefined : await ids.sha256(JSON.stringify([tokenId, key]));
    const sha256 = await ids.sha256(JSON.stringify(request));
    const byKey = () => (keySha256 === undefined ? undefined : entries.byKey(keySha256, now() - LIMITS.jobKeyMs));
    // The job of a repeated request is found also when its agent is gone.
    const first = byKey();
    const checked = first === undefined ? await taskRuns.check(request) : succeed(first);
    if (!checked.ok) return checked;
    // No wait between here and the row, so that two equal requests make one job.
    const createdAt = now();
    entries.dropKeys(createdAt - LIMITS.jobKeyMs);
    const known = byKey();
    if (known !== undefined && known.bodySha256 !== sha256) return fail("task.key_reused");
    const turn: JobTurn = known ?? {
      agentId: checked.value.agentId,
      bodySha256: sha256,
      id: ids.name(NAME_CHARS),
      tenantId: TENANT_ID,
      createdAt,
    };
    const taken = await this.#take(turn, known, keySha256, request);
    if (!taken.ok) return taken;
    const { id } = turn;
    if (known === undefined || known.state === "storing") return succeed({ job_id: id, status: "queued" });
    const shown = await job(id).get();
    return shown === null ? fail("job.not_found") : succeed({ job_id: id, status: shown.status });
  }

  /** A job for an event, once per id. */
  async start(id: string, request: RunRequest, event: NonNullable<JobTurn["event"]>): Promise<Result<void>> {
    const { taskRuns, now, entries } = this.#ports;
    const checked = await taskRuns.check(request);
    if (!checked.ok) return checked;
    const known = entries.find(id);
    return this.#take(
      { ...checked.value, id, event, tenantId: TENANT_ID, createdAt: known?.createdAt ?? now() },
      known,
      undefined,
      request,
    );
  }
  /** Its row, and then the object's: the row of a job whose object may not have it is looked at again. */
  async #take(turn: JobTurn, known: QueueEntry | undefined, keySha256: string | undefined, request: RunRequest): Promise<Result<void>> {
    const { now, entries, queue, arm, job } = this.#ports;
    const { id, tenantId, agentId, bodySha256, createdAt, event } = turn;
    if (known === undefined) {
      if (entries.waiting() >= LIMITS.jobsWaiting) return fail("limit.jobs", `The job queue is full: ${LIMITS.jobsWaiting} jobs wait.`);
      entries.take(turn, keySha256, createdAt + STORE_MS);
      arm();
    } else if (known.state === "storing") entries.lookAgain(id, now() + STORE_MS);
    else return succeed(undefined);
    const cause = { ...(keySha256 === undefined ? {} : { keyed: true as const }), ...(event === undefined ? {} : { event }) };
    await job(id).accept({ id, tenantId, agentId, bodySha256, createdAt, request, ...cause });
    queue.stored(id);
    return succeed(undefined);
  }

  async list(params: JobListParams): Promise<Result<JobListResult>> {
    try {
      return succeed(await listJobs(this.#ports.jobsIndex(), params));
    } catch (error) {
      // Most cursors that can't be read are the caller's mistake.
      this.#ports.log[params.cursor === undefined ? "error" : "warn"]("jobs_not_listed", { error });
      if (params.cursor !== undefined)
        return fail(
          "protocol.invalid_params",
          "The page could not be read. `cursor` must be the one of the page before.",
          "List the jobs again from the first page.",
        );
      return fail("storage.failed", "The index of jobs could not be read.");
    }
  }
  get(id: string): Promise<Result<AgentJob>> {
    return this.#asked(id, (job) => job.get());
  }
  cancel(id: string): Promise<Result<AgentJob>> {
    return this.#asked(id, (job) => job.cancel());
  }
  /** Asks no object of a job that does not exist, which would make one. */
  async #asked(id: string, ask: (job: JobPort) => Promise<AgentJob | null>): Promise<Result<AgentJob>> {
    const { entries, job } = this.#ports;
    if (entries.find(id) === undefined) return fail("job.not_found");
    const shown = await ask(job(id));
    return shown === null ? fail("job.not_found") : succeed(shown);
  }
}
