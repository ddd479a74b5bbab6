/**
 * Runs of jobs that wait for machines (rules OM6 to OM8): the owner is told once of a wait, and once of a machine that a job needs and that
 * has been away for a day. It decides nothing about a call: the session does.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { MachineWait } from "../../../../protocol/gen/types.ts";
import { durationText } from "../../calls/wait.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import { localDay, localTime } from "../../prompt/dates.ts";
import type { Delivery, Final } from "./delivery.ts";
import { type Job, type JobRun, nounOf, type RunBody } from "./job.ts";
import type { JobStore } from "./job-store.ts";
import type { NeedStore } from "./need-store.ts";
import { reportAt } from "./needs.ts";

/** A run that waits for machines, and whose owner knows, is looked at this often. */
const WAITING_LOOK_MS = 300_000;

export interface MissingPorts extends NodesPort, NotifyPort, Pick<KernelPorts, "config" | "now"> {
  readonly store: JobStore;
  readonly needs: NeedStore;
}
export class Missing {
  readonly #ports: MissingPorts;
  readonly #delivery: Delivery;

  constructor(ports: MissingPorts, delivery: Delivery) {
    this.#ports = ports;
    this.#delivery = delivery;
  }

  /** What a look at a run that goes on has found. `machines`: the calls that wait. Answers what is kept of it, and the time of the next look. */
  looked(job: Job, run: JobRun, machines: readonly MachineWait[]): { readonly body: Partial<RunBody>; readonly nextMs?: number } {
    const { nodes, needs, now } = this.#ports;
    if (machines.length === 0) {
      this.over(job.id, run);
      return { body: (run.body.waiting ?? []).length === 0 ? {} : { waiting: [] } };
    }
    const waiting = [...new Set(machines.map(({ nodeId }) => String(nodeId)))];
    const known = nodes.list();
    for (const nodeId of waiting) {
      const connectedAt = known.find((node) => node.nodeId === nodeId)?.lastConnectedAt ?? 0;
      needs.note(nodeId, job.id, connectedAt, now());
    }
    // Its calls are about to go on.
    if (known.some(({ nodeId, online }) => online && waiting.includes(nodeId))) return { body: { waiting } };
    const first = Math.min(...machines.map(({ since }) => since));
    const tellAt = first + LIMITS.nodeWaitToldMs;
    // The word of its end may be lost, and a wait that is over is the end of most runs.
    const over = Math.min(...machines.map(({ until }) => until)) - now();
    const nextMs = Math.min(WAITING_LOOK_MS, Math.max(1_000, over + 1_000));
    if (run.body.toldWaiting) return { body: { waiting }, nextMs };
    if (now() < tellAt) return { body: { waiting }, nextMs: Math.min(nextMs, Math.max(1_000, tellAt - now())) };
    const until = Math.max(...machines.map((machine) => machine.until));
    const text = waitText(job, run, machines, timeText(until, this.#ports.config.effective().userTimezone));
    this.#delivery.tellAway(job, waitKey(job.id, run), `wait:${job.id}`, text, until);
    return { body: { waiting, toldWaiting: true }, nextMs };
  }
  /** The run waits no more: what was not told of its wait is not told. */
  over(jobId: string, run: JobRun): void {
    if (run.body.toldWaiting) this.#ports.notify.over(waitKey(jobId, run));
  }
  /** The run has ended, and something that its machines were to do was not done, or may not have been. */
  inVain(job: Job, run: JobRun, text: string): void {
    const look = nounOf(job) === "job" ? ` Look at what it has done, and run it again if it is needed: \`gsv cron run ${job.id}\`.` : "";
    this.#delivery.tellAway(
      job,
      `cron/${job.id}/${run.id}/away`,
      `wait:${job.id}`,
      `The ${nounOf(job)} "${job.body.name}" is incomplete. ${text}${look}`,
    );
  }

  /** Reports the machines that have been away for a day. */
  report(): void {
    const { needs, nodes, now, store } = this.#ports;
    const known = nodes.list();
    for (const need of needs.open()) {
      const at = reportAt(need, known);
      const job = store.find(need.jobId);
      if (at === undefined || job?.enabled !== true) needs.forget(need.nodeId);
      else if (at <= now()) {
        // A crash before the mark tells the same again under the same key, which is once.
        this.#delivery.tellAway(
          job,
          `cron/missing/${need.nodeId}/${need.neededAt}`,
          `missing:${need.nodeId}`,
          missingText(job, need.nodeId),
        );
        needs.reported(need.nodeId);
      }
    }
  }
}
const waitKey = (jobId: string, { id }: JobRun): string => `cron/${jobId}/${id}/waits`;
/** Calls that were not run, or may not have been, as the end of their run. Undefined: the run has left nothing undone. */
export function undoneText({ away = [], unknown = [] }: Pick<Final, "away" | "unknown">): string | undefined {
  if (away.length + unknown.length === 0) return undefined;
  // Calls with an unknown outcome come first: they may have changed something.
  const toldUnknown = unknown.slice(0, MAX_NAMED);
  const toldAway = away.slice(0, MAX_NAMED - toldUnknown.length);
  const [moreAway, moreUnknown] = [away.length - toldAway.length, unknown.length - toldUnknown.length];
  return [
    ...toldUnknown.map((tool) => `${tool} gave no result, so it is not known whether it took effect.`),
    ...(moreUnknown === 0 ? [] : [`And ${calls(moreUnknown)} gave no result.`]),
    ...toldAway.map(
      ({ nodeId, tool, waitedMs }) => `The machine ${nodeId} did not connect within ${durationText(waitedMs)}, so ${tool} was not run.`,
    ),
    ...(moreAway === 0 ? [] : [`And ${calls(moreAway)} ${moreAway === 1 ? "was" : "were"} not run.`]),
  ].join(" ");
}
const calls = (count: number): string => `${count} more ${count === 1 ? "call" : "calls"}`;
const MAX_NAMED = 4;
function timeText(at: number, zone: string): string {
  const { today, timeZone } = localDay(at, zone);
  return `${today} ${localTime(at, zone)} (${timeZone})`;
}
function waitText(job: Job, { body: { sessionKey } }: JobRun, machines: readonly MachineWait[], until: string): string {
  const names = [...new Set(machines.map(({ nodeId }) => nodeId))];
  const start = names.map((name) => `\`gsv node\` on ${name}`).join(" and ");
  const end = sessionKey === undefined ? "" : ` To end the run: \`gsv stop ${sessionKey}\`.`;
  return `The ${nounOf(job)} "${job.body.name}" waits for ${names.join(" and ")}, which ${names.length === 1 ? "is" : "are"} not connected, until ${until}. Start ${start}.${end}`;
}
function missingText(job: Job, nodeId: string): string {
  const pause = nounOf(job) === "job" ? `, or let the job pause: \`gsv cron pause ${job.id}\`` : "";
  return `${nodeId} has not been connected for a day, and the ${nounOf(job)} "${job.body.name}" needs it. Start \`gsv node\` on ${nodeId}${pause}.`;
}
