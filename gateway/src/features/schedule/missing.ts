/**
 * Runs of jobs that wait for machines (rules OM6 to OM8): the owner is told once of a wait, and once of a machine that a job needs and that
 * has been away for a day. It decides nothing about a call: the session does.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { MachineWait } from "../../../../protocol/gen/types.ts";
import { durationText } from "../../calls/wait.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { Delivery } from "./delivery.ts";
import { type Job, type JobRun, nounOf, type RunBody } from "./job.ts";
import type { JobStore } from "./job-store.ts";
import type { NeedStore } from "./need-store.ts";
import { reportAt } from "./needs.ts";

/** A run that waits for machines, and whose owner knows, is looked at this often. */
const WAITING_LOOK_MS = 300_000;

export interface MissingPorts extends NodesPort, Pick<KernelPorts, "now"> {
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
    if (machines.length === 0) return { body: (run.body.waiting ?? []).length === 0 ? {} : { waiting: [] } };
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
    this.#delivery.tellAway(job, `cron/${job.id}/${run.id}/waits`, `wait:${job.id}`, waitText(job, run, machines, now()));
    return { body: { waiting, toldWaiting: true }, nextMs };
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
function waitText(job: Job, { body: { sessionKey } }: JobRun, machines: readonly MachineWait[], now: number): string {
  const names = [...new Set(machines.map(({ nodeId }) => nodeId))];
  const left = durationText(Math.max(...machines.map(({ until }) => until)) - now);
  const start = names.map((name) => `\`gsv node\` on ${name}`).join(" and ");
  const end = sessionKey === undefined ? "" : ` To end the run: \`gsv stop ${sessionKey}\`.`;
  return `The ${nounOf(job)} "${job.body.name}" waits for ${names.join(" and ")}, which ${names.length === 1 ? "is" : "are"} not connected, for ${left} more. Start ${start}.${end}`;
}
function missingText(job: Job, nodeId: string): string {
  const pause = nounOf(job) === "job" ? `, or let the job pause: \`gsv cron pause ${job.id}\`` : "";
  return `${nodeId} has not been connected for a day, and the ${nounOf(job)} "${job.body.name}" needs it. Start \`gsv node\` on ${nodeId}${pause}.`;
}
