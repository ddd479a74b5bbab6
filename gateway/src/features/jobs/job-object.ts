/**
 * The driver of one job's object: stores the job, and takes one step after the other in its alarm. What it does next is decided by
 * `machine.ts`, from what is stored.
 */
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import type { AgentJob, AgentReport } from "../../../../protocol/gen/types.ts";
import type { IndexSpace, JobHostPort, JobPort, NewJob } from "../../ports/jobs.ts";
import { type GsvError, sentence } from "../../ports/result.ts";
import { indexKey, summaryOf } from "./job-index.ts";
import { applied, hasEnded, type JobResult, type JobState, NEW_STATE, nextStep, type Pass, retryMs, shown } from "./machine.ts";

/** The synchronous storage of the object: what is put between two waits is stored together. */
export interface JobStorage {
  get<T>(key: string): T | undefined;
  put(key: string, value: unknown): void;
  delete(key: string): void;
}
export interface JobObjectPorts {
  readonly storage: JobStorage;
  readonly host: JobHostPort;
  readonly index: () => IndexSpace;
  readonly now: () => number;
  /** A failure breaks the output gate, so that nothing before it counts as stored. */
  readonly setAlarm: (at: number) => void;
  readonly erase: () => Promise<void>;
  readonly log: { error(event: string, fields: Readonly<Record<string, unknown>>): void };
}
interface JobError {
  readonly reason: string;
  readonly message: string;
}
/** A failed step that may be made again. */
class Later extends Error {
  readonly failure: JobError;

  constructor(failure: JobError) {
    super(failure.message);
    this.failure = failure;
  }
}
/** The retry of a step that has failed. `count`: passes that failed one after another. */
interface Retry {
  readonly count: number;
  readonly error: JobError;
}
const LOGGED_EACH = 10;

export class JobObject implements JobPort {
  readonly #ports: JobObjectPorts;

  constructor(ports: JobObjectPorts) {
    this.#ports = ports;
  }

  async accept(job: NewJob): Promise<void> {
    const { storage, setAlarm, now } = this.#ports;
    if (storage.get("job") !== undefined) return;
    storage.put("job", job);
    storage.put("state", NEW_STATE);
    setAlarm(now());
  }
  async wake(): Promise<boolean> {
    const { storage, setAlarm, now } = this.#ports;
    const isThere = storage.get("state") !== undefined;
    if (isThere) setAlarm(now());
    return isThere;
  }
  async get(): Promise<AgentJob | null> {
    const { storage } = this.#ports;
    const [job, state] = [storage.get<NewJob>("job"), storage.get<JobState>("state")];
    return job === undefined || state === undefined
      ? null
      : shown(job, state, storage.get<AgentReport>("report"), storage.get<Retry>("retry")?.error);
  }
  async cancel(): Promise<AgentJob | null> {
    const { storage, setAlarm, now, host, log } = this.#ports;
    const [job, before] = [storage.get<NewJob>("job"), storage.get<JobState>("state")];
    if (job === undefined || before === undefined) return null;
    if (!hasEnded(before)) {
      const state = this.#apply({ result: "cancel", now: now() });
      setAlarm(now());
      // The alarm waits for the run just now, so it is told from here; when that fails, the alarm tells it.
      if (!hasEnded(state) && state.sessionKey !== undefined) {
        try {
          if ((await host.stopJob(job)).ok) this.#apply({ result: "stopped" });
        } catch (error) {
          log.error("job_not_stopped", { job: job.id, error });
        }
      }
    }
    return this.get();
  }

  /** Never throws: the platform stops retrying an alarm that throws. */
  async alarm(): Promise<void> {
    const { storage, setAlarm, now, log } = this.#ports;
    const job = storage.get<NewJob>("job");
    if (job === undefined) return;
    try {
      await this.#pass(job);
    } catch (error) {
      // It was erased, and nothing may be stored again.
      if (storage.get("job") === undefined) return;
      const count = (storage.get<Retry>("retry")?.count ?? 0) + 1;
      if (count % LOGGED_EACH === 1) log.error("job_step_failed", { job: job.id, count, error });
      const failure: JobError = error instanceof Later ? error.failure : { reason: "internal", message: "A step of the job failed." };
      storage.put("retry", { count, error: failure } satisfies Retry);
      setAlarm(now() + retryMs(count));
    }
  }

  async #pass(job: NewJob): Promise<void> {
    const { storage, host, index, setAlarm, now, erase } = this.#ports;
    let pass: Pass = {};
    for (;;) {
      // Read again after each wait: a cancel may have come meanwhile.
      const state = storage.get<JobState>("state");
      if (state === undefined) return;
      const step = nextStep(state, pass, now());
      switch (step.do) {
        case "claim":
          if (await host.claimJob(turnOf(job))) this.#apply({ result: "granted", now: now() });
          else pass = { ...pass, refused: true };
          break;
        case "begin":
          await this.#begin(job);
          break;
        case "stop":
          await this.#stop(job);
          break;
        case "look":
          await this.#look(job, state);
          pass = { ...pass, looked: true };
          break;
        case "place":
          await host.updateQueue(job.id, step.place);
          this.#apply({ result: "placed", place: step.place });
          break;
        case "index":
          if (!(await this.#index(job, state))) pass = { ...pass, indexFailed: true };
          break;
        case "remove":
          await index().delete(indexKey(job));
          await host.updateQueue(job.id, "gone");
          return erase();
        case "rest":
          if (storage.get("retry") !== undefined) storage.delete("retry");
          if (step.at !== undefined) setAlarm(step.at);
          return;
      }
    }
  }
  async #begin(job: NewJob): Promise<void> {
    const { host } = this.#ports;
    const begun = await host.beginJob(turnOf(job), job.request);
    if (begun.ok) this.#apply({ result: "begun", sessionKey: begun.value });
    else this.#refused(begun.error);
  }
  /** A run that can't be told to end, such as one whose conversation was deleted, is looked at. */
  async #stop(job: NewJob): Promise<void> {
    const stopped = await this.#ports.host.stopJob(job);
    if (!stopped.ok) throwIfRetryable(stopped.error);
    this.#apply({ result: "stopped" });
  }
  async #look(job: NewJob, { approvals = [] }: JobState): Promise<void> {
    const { storage, host, now } = this.#ports;
    const looked = await host.lookAtJob(job, approvals);
    if (!looked.ok) return this.#refused(looked.error);
    const { value: stand } = looked;
    if (stand.state === "running") storage.delete("report");
    else storage.put("report", stand.report);
    this.#apply({ result: "stood", now: now(), stand });
  }
  /** The error ends the job, unless the step may be made again. */
  #refused(error: GsvError): void {
    throwIfRetryable(error);
    this.#apply({ result: "refused", now: this.#ports.now(), error: { reason: error.reason, message: sentence(error) } });
  }
  async #index(job: NewJob, state: JobState): Promise<boolean> {
    const { storage, index, log } = this.#ports;
    try {
      const metadata = summaryOf(job, state, storage.get<AgentReport>("report"));
      await index().put(indexKey(job), "", { metadata });
    } catch (error) {
      log.error("job_not_indexed", { job: job.id, error });
      return false;
    }
    this.#apply({ result: "indexed", revision: state.revision });
    return true;
  }
  #apply(result: JobResult): JobState {
    const { storage } = this.#ports;
    const state = applied(storage.get<JobState>("state") ?? NEW_STATE, result);
    storage.put("state", state);
    return state;
  }
}
const turnOf = ({ request: _, ...turn }: NewJob): Omit<NewJob, "request"> => turn;
function throwIfRetryable({ reason, message }: GsvError): void {
  if (ERRORS[reason].retryable) throw new Later({ reason, message });
}
