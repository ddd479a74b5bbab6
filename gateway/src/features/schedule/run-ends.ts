/** What becomes of runs of jobs that have ended (rules SC7, SC8, HB5, HB6): the answer is delivered, then the row ends. */
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ChannelsOutPort } from "../../ports/channels.ts";
import { sentence } from "../../ports/result.ts";
import type { RunEnd } from "../../ports/session.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import { isForeign } from "../../ports/taint.ts";
import { saysNothing, withoutWord } from "../../prompt/heartbeat.ts";
import { LAST, NONE } from "../../schedule/beat.ts";
import type { Delivery, Final } from "./delivery.ts";
import { type Job, type JobRun, nounOf, type RunBody } from "./job.ts";
import type { JobStore } from "./job-store.ts";
import { type Missing, undoneText } from "./missing.ts";

/** A job that fails this often in a row is paused. */
const PAUSE_AFTER = 5;
const SUMMARY_CHARS = 2_000;
type Ended = Extract<RunEnd, { readonly state: "final" | "error" | "aborted" }>;

export interface RunEndPorts extends ChannelsOutPort, Pick<SessionsPort, "sessions">, Pick<KernelPorts, "now" | "scrub"> {
  readonly store: JobStore;
}
export class RunEnds {
  readonly #ports: RunEndPorts;
  readonly #delivery: Delivery;
  readonly #missing: Pick<Missing, "inVain" | "over">;

  constructor(ports: RunEndPorts, delivery: Delivery, missing: Pick<Missing, "inVain" | "over">) {
    this.#ports = ports;
    this.#delivery = delivery;
    this.#missing = missing;
  }

  /** A reminder is told, and with that its run is over: no model is called (rule SC16). */
  async remind(job: Job, run: JobRun, said: Pick<Final, "text" | "taint">): Promise<void> {
    const told = await this.#delivery.remind(job, run, said);
    const label = isForeign(said.taint) ? { taint: said.taint } : {};
    const body = { summary: said.text, ...label };
    if (told.ok) return this.end(run, "ok", body);
    const error = `It could not be sent to its place, so it is in your conversation. ${sentence(told.error)}`;
    return this.end(run, "error", { ...body, error }, { isTold: true });
  }
  /** The answer is delivered before the row ends, so that a crash between the two delivers again under the same id, which is once. */
  async finish(run: JobRun, end: Ended): Promise<void> {
    const job = this.#ports.store.find(run.jobId);
    if (end.state !== "final") {
      const error = end.error === "" ? "The run was stopped." : end.error;
      // The owner has stopped it.
      return this.end(run, "error", { error }, end.state === "aborted" ? { isUncounted: true } : {});
    }
    const summary = end.text.trim();
    // Files that the owner keeps do not label what a job tells them.
    const { taint, ...own } = end;
    const label = isForeign(taint) ? { taint } : {};
    const told: Final = { ...own, ...label };
    // Calls that its machines did not make, or may not have made, count as not done, whatever the model says about them.
    const undone = undoneText(end);
    if (job !== undefined && undone !== undefined) this.#missing.inVain(job, run, undone);
    const cost = end.costUsd === undefined ? {} : { costUsd: end.costUsd };
    if (job?.body.beat !== undefined) return this.#finishBeat(job, job.body.beat.settings.target, run, told, { ...label, ...cost }, undone);
    const spec = job?.body.spec;
    if (job === undefined || spec?.mode !== "task" || spec.deliver === false || end.text.trim() === "")
      return this.#endAs(run, undone, { summary, ...label });
    const delivered = await this.#delivery.sendAnswer(job, run, spec.to, told);
    if (delivered.ok || spec.bestEffortDeliver === true)
      return this.#endAs(run, undone, {
        summary,
        ...label,
        ...(delivered.ok ? {} : { error: sentence(delivered.error) }),
      });
    const error = `The answer was not delivered. ${sentence(delivered.error)}`;
    this.#endAs(run, undone, { summary, ...label, error }, "error");
  }
  /** `undone`: what the run could not do. Without it, the run ends as `otherwise`. */
  #endAs(run: JobRun, undone: string | undefined, body: Omit<RunBody, "startedAt" | "endedAt">, otherwise: "ok" | "error" = "ok"): void {
    if (undone === undefined) return this.end(run, otherwise, body);
    const error = `It is incomplete. ${undone}${body.error === undefined ? "" : ` ${body.error}`}`;
    // With what its machines left undone.
    this.end(run, "error", { ...body, error }, { isTold: true });
  }
  /** The answer is in the main conversation already; `target` is where it goes beside. */
  async #finishBeat(
    job: Job,
    target: string,
    run: JobRun,
    end: Final,
    more: Pick<RunBody, "taint" | "costUsd">,
    undone: string | undefined,
  ): Promise<void> {
    if (saysNothing(end.text)) return this.#endAs(run, undone, { ...more, summary: "HEARTBEAT_OK" });
    const text = withoutWord(end.text);
    const body = { ...more, summary: text };
    const { place, session } = text === "" ? {} : this.#goesTo(job, target, run);
    if (session !== undefined) await this.#delivery.noteAtCommandLine(job, run, session, text);
    const delivered = place === undefined ? undefined : await this.#delivery.sendAnswer(job, run, place, { ...end, text });
    if (delivered?.ok !== false) return this.#endAs(run, undone, body);
    const error = `The answer was not delivered. ${sentence(delivered.error)}`;
    this.#endAs(run, undone, { ...body, error }, "error");
  }
  /** `last` may be another place when the answer is sent again after a kill, so the first choice is kept. */
  #goesTo({ agentId }: Job, target: string, run: JobRun): NonNullable<RunBody["goesTo"]> {
    const { channelsOut, now, sessions, store } = this.#ports;
    if (run.body.goesTo !== undefined) return run.body.goesTo;
    const place = target === LAST ? channelsOut.lastOwn() : target === NONE ? undefined : target;
    const session = place === undefined && target === LAST ? sessions.atCommandLine(agentId) : undefined;
    const goesTo = { ...(place === undefined ? {} : { place }), ...(session === undefined ? {} : { session }) };
    store.change(run.id, { body: { goesTo }, checkAt: run.checkAt ?? now() });
    return goesTo;
  }
  /** `isUncounted`: the job is not to blame. `isTold`: the owner knows of the failure. */
  end(
    run: JobRun,
    status: "ok" | "error" | "skipped",
    said: Omit<RunBody, "startedAt" | "endedAt">,
    { isUncounted = false, isTold = false }: { readonly isUncounted?: boolean; readonly isTold?: boolean } = {},
  ): void {
    const { store, now, scrub } = this.#ports;
    this.#missing.over(run.jobId, run);
    // An error of a provider may have the key in it, and a part of a key would not be found.
    const clean = (text: string): string => scrub(text).slice(0, SUMMARY_CHARS);
    const body = {
      ...said,
      ...(said.error === undefined ? {} : { error: clean(said.error) }),
      ...(said.summary === undefined ? {} : { summary: clean(said.summary) }),
    };
    const pause = {
      failures: PAUSE_AFTER,
      reason: (error: string) => `It failed ${PAUSE_AFTER} times in a row. The last time: ${error}`,
    };
    const ended = store.end(run.id, status, body, now(), pause, isUncounted);
    if (ended?.job === undefined) return;
    const { given } = run.body;
    const isHooks = nounOf(ended.job) === "hook";
    const failed = isHooks ? ended.job.failures + 1 : given === undefined ? 0 : store.wokenFailures(run.jobId, PAUSE_AFTER + 1);
    if (status === "error" && !isUncounted && failed === PAUSE_AFTER) {
      const text = failingText(given?.hook ?? ended.job.body.name, body.error);
      this.#delivery.tellFailing(ended.job, `cron:${ended.job.id}:failing:${run.id}`, text);
    }
    if (status === "error" && !isUncounted && !isTold && !ended.pausedNow) this.#tellFirst(ended.job, run, body.error);
    if (!ended.pausedNow) return;
    const { id, body: about } = ended.job;
    this.#delivery.tellFailing(
      ended.job,
      `cron:${id}:paused:${run.id}`,
      about.beat === undefined
        ? `The job "${about.name}" is paused: it failed ${PAUSE_AFTER} times in a row. The last time: ${body.error ?? ""}\nLook: \`gsv cron runs ${id}\`. Let it go on: \`gsv cron resume ${id}\`.`
        : `The heartbeat is paused: it failed ${PAUSE_AFTER} times in a row. The last time: ${body.error ?? ""}\nLook: \`gsv heartbeat status\`. Let it go on: \`gsv heartbeat on --agent ${ended.job.agentId}\`.`,
    );
  }
  /** A job with one time has no second failure to be told of; of a repeating one the first in a row is told (rule SC7). */
  #tellFirst(job: Job, run: JobRun, error: string | undefined): void {
    const isOwn = nounOf(job) === "job" && job.body.beat === undefined && run.body.given === undefined;
    if (!isOwn || (job.body.schedule.kind !== "at" && job.failures > 0)) return;
    const isKept = this.#ports.store.find(job.id) !== undefined;
    // Another cause than the pause: that is told at once, however soon after this it comes (rule NT3).
    this.#delivery.tellFailing(job, `cron:${job.id}:failed:${run.id}`, firstText(job, isKept, error), `job-failed:${job.id}`);
  }
}
function firstText({ id, enabled, nextAt, body: { name } }: Job, isKept: boolean, error = ""): string {
  const look = `Look: \`gsv cron runs ${id}\`.`;
  if (nextAt !== undefined && enabled)
    return `The job "${name}" failed: ${error}\n${look} Its next time comes as planned; after ${PAUSE_AFTER} failures in a row it is paused.`;
  const again = isKept ? ` Run it again: \`gsv cron run ${id}\`.` : "";
  return `The job "${name}" failed, and no further time of it comes: ${error}\n${look}${again}`;
}
function failingText(name: string, error = ""): string {
  return `The hook "${name}" failed ${PAUSE_AFTER} times in a row. The last time: ${error}\nLook: \`gsv hook show ${name}\`. It goes on; \`gsv hook remove ${name}\` ends it.`;
}
