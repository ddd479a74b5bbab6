/** Adding, changing and running jobs by hand. What a caller gives is read against the current time and zone (rule SC9). */
import type {
  CronAddParams,
  CronJob,
  CronPatch,
  CronPreviewParams,
  CronPreviewResult,
  CronRun,
  CronSchedule,
  CronSpec,
  CronUpdateParams,
} from "../../../../protocol/gen/types.ts";
import { namedSession, unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ChannelsOutPort } from "../../ports/channels.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { SessionsPort, StopPort } from "../../ports/sessions.ts";
import { higher, type Taint } from "../../ports/taint.ts";
import { nextTimes, readSchedule } from "../../schedule/read.ts";
import { type CronEngine, type CronLine, lineOf, nextTime, type Schedule } from "../../schedule/schedule.ts";
import { parseTarget } from "../../tools/message-target.ts";
import { type Job, type JobBody, slugOf } from "./job.ts";
import { type JobStore, MAX_JOBS } from "./job-store.ts";
import { shownJob, shownRun } from "./shown.ts";

export interface JobsPorts
  extends ChannelsOutPort,
    Pick<KernelPorts, "arm" | "config" | "ids" | "now">,
    Pick<SessionsPort, "sessions">,
    Pick<StopPort, "stopped"> {
  readonly store: JobStore;
  readonly engine: CronEngine;
  /** What is wrong with the model that a job names; undefined: it can be used. */
  readonly modelProblem: (text: string) => string | undefined;
}
/** The conversation that makes or changes a job. */
export interface Maker {
  readonly taint?: Taint | undefined;
  /** How far its chain has come. */
  readonly hops?: number;
}
export interface JobAnswer {
  readonly ok: true;
  readonly job: CronJob;
  readonly times: number[];
  /** Why its place can't be reached now. */
  readonly warning?: string;
}
const PREVIEWED = 5;

export class Jobs {
  readonly #ports: JobsPorts;

  constructor(ports: JobsPorts) {
    this.#ports = ports;
  }

  preview({ schedule, count }: CronPreviewParams): Result<CronPreviewResult> {
    const read = this.#read(schedule);
    if (!read.ok) return read;
    const { stored, line } = read.value;
    const tz = stored.kind === "cron" ? stored.tz : this.#ports.config.effective().userTimezone;
    return succeed({ schedule: stored, times: nextTimes(stored, this.#ports.now(), count ?? PREVIEWED, line), tz });
  }

  /** The same job again, under the same id, is answered and not added. */
  add(params: CronAddParams, { taint, hops = 0 }: Maker = {}): Result<JobAnswer> {
    const { store, config, ids, now, arm } = this.#ports;
    const agentId = params.agentId ?? config.defaultAgentId();
    if (!config.hasAgent(agentId)) return unknownAgent(config, agentId);
    const problem = this.specProblem(params.spec, agentId);
    if (problem !== undefined) return problem;
    const read = this.#read(params.schedule);
    const known = params.id === undefined ? undefined : store.find(params.id);
    if (known !== undefined)
      return known.body.name === params.name && JSON.stringify(known.body.spec) === JSON.stringify(params.spec)
        ? succeed(this.#answer(known))
        : fail("cron.exists");
    if (!read.ok) return read;
    const at = now();
    const { stored, line } = read.value;
    const nextAt = nextTime(stored, at, line);
    const job: Job = {
      id: params.id ?? `${slugOf(params.name)}-${ids.name(5)}`,
      agentId,
      body: {
        name: params.name,
        ...(params.description === undefined ? {} : { description: params.description }),
        ...(params.deleteAfterRun === undefined ? {} : { deleteAfterRun: params.deleteAfterRun }),
        createdAt: at,
        updatedAt: at,
        schedule: stored,
        spec: params.spec,
        ...(taint === undefined ? {} : { taint }),
        ...(hops === 0 ? {} : { hops }),
      },
      enabled: params.enabled ?? true,
      ...(nextAt === undefined ? {} : { nextAt }),
      lookedAt: at,
      failures: 0,
    };
    if (!store.add(job)) return fail("cron.too_many", `There are ${MAX_JOBS} jobs, which is the limit.`);
    arm();
    return succeed(this.#answer(job));
  }

  /** A job that was paused is let go by `enabled`, and its failures count from zero. */
  update({ id, patch }: CronUpdateParams, { taint, hops: own = 0 }: Maker = {}): Result<JobAnswer> {
    const { store, now, arm, engine } = this.#ports;
    const read = patch.schedule === undefined ? undefined : this.#read(patch.schedule);
    if (read?.ok === false) return read;
    const job = store.find(id);
    if (job === undefined) return fail("cron.not_found");
    const problem = patch.spec === undefined ? undefined : this.specProblem(patch.spec, job.agentId);
    if (problem !== undefined) return problem;
    const stored = read?.value.stored ?? job.body.schedule;
    const line = read === undefined ? lineOf(stored, engine) : read.value.line;
    const at = now();
    const enabled = patch.enabled ?? job.enabled;
    const isFresh = read !== undefined || (enabled && !job.enabled);
    const nextAt = isFresh ? nextTime(stored, at, line) : job.nextAt;
    if (enabled && !job.enabled && nextAt === undefined)
      return fail("cron.bad_schedule", "The job's time is over.", `Give it another one: \`gsv cron edit ${id} --at TIME\`.`);
    const { taint: earlier, hops: before = 0, ...body } = job.body;
    const label = labelAfter(earlier, taint, patch, job.body);
    // A change of both what it does and when makes it a job of its own.
    const hops = patch.spec !== undefined && patch.schedule !== undefined ? own : Math.max(own, before);
    const next: Job = {
      id,
      agentId: job.agentId,
      body: {
        ...body,
        ...(patch.name === undefined ? {} : { name: patch.name }),
        ...(patch.description === undefined ? {} : { description: patch.description }),
        ...(patch.deleteAfterRun === undefined ? {} : { deleteAfterRun: patch.deleteAfterRun }),
        ...(patch.spec === undefined ? {} : { spec: patch.spec }),
        schedule: stored,
        updatedAt: at,
        ...(label === undefined ? {} : { taint: label }),
        ...(hops === 0 ? {} : { hops }),
      },
      enabled,
      ...(nextAt === undefined ? {} : { nextAt }),
      lookedAt: at,
      failures: enabled && !job.enabled ? 0 : job.failures,
      ...(enabled || job.paused === undefined ? {} : { paused: job.paused }),
    };
    store.update(next);
    arm();
    return succeed(this.#answer(next));
  }

  runNow(id: string, hops = 0): Result<{ readonly ok: true; readonly run: CronRun }> {
    const { store, now, arm, stopped } = this.#ports;
    if (store.find(id) === undefined) return fail("cron.not_found");
    if (stopped() !== undefined) return fail("gateway.stopped", "GSV is stopped, so the job was not started.");
    const run = store.takeByHand(id, now(), hops === 0 ? {} : { hops });
    if (run === undefined) return fail("cron.running");
    arm();
    return succeed({ ok: true, run: shownRun(run, false) });
  }
  shown(job: Job): CronJob {
    const { store } = this.#ports;
    return shownJob(job, store.open(job.id), store.lastEnded(job.id));
  }

  #answer(job: Job): JobAnswer {
    const line = lineOf(job.body.schedule, this.#ports.engine);
    const warning = this.#warning(job.body.spec);
    return {
      ok: true,
      job: this.shown(job),
      times: nextTimes(job.body.schedule, this.#ports.now(), PREVIEWED, line),
      ...(warning === undefined ? {} : { warning }),
    };
  }
  /** Its place may be reachable when the job's time comes, so the job is accepted. */
  #warning(spec: CronSpec): string | undefined {
    const to = spec.mode === "systemEvent" || (spec.mode === "task" && spec.deliver === false) ? undefined : spec.to;
    const target = to === undefined ? undefined : parseTarget(to);
    const why = target && this.#ports.channelsOut.refusalOf(target);
    return why && `A message to ${to?.slice(0, 100)} would not arrive now. ${why}`;
  }
  #read(given: CronSchedule): Result<{ readonly stored: Schedule; readonly line: CronLine | undefined }> {
    const { config, now, engine } = this.#ports;
    const read = readSchedule(given, { now: now(), tz: config.effective().userTimezone, engine });
    return read.ok ? succeed({ stored: read.value, line: lineOf(read.value, engine) }) : read;
  }
  /** A note or a message of a job is for the owner only. */
  #conversationProblem(sessionKey: string, agentId: string): Result<never> | undefined {
    const { config, sessions } = this.#ports;
    const found = namedSession(config, sessionKey);
    if (!found.ok) return found;
    if (found.value.address.agentId !== agentId) return fail("session.bad_key", `The conversation is not one of the agent ${agentId}.`);
    return sessions.isOwners(found.value) ? undefined : fail("auth.forbidden", "A job writes to the owner's own conversations only.");
  }
  /** The problem with a job's task. */
  specProblem(spec: CronSpec, agentId: string): Result<never> | undefined {
    const own = spec.sessionKey === undefined ? undefined : this.#conversationProblem(spec.sessionKey, agentId);
    if (own !== undefined || spec.mode === "systemEvent") return own;
    const wrong = spec.mode === "remind" || spec.model === undefined ? undefined : this.#ports.modelProblem(spec.model);
    if (wrong !== undefined)
      return fail("protocol.invalid_params", wrong, "Name the model as provider/id. `gsv model list PROVIDER` lists them.");
    if (spec.to === undefined || parseTarget(spec.to) !== undefined) return undefined;
    return fail(
      "channel.unknown",
      `\`${spec.to.slice(0, 100)}\` is not a place.`,
      "Places are such as `whatsapp/default/dm/ID`: a channel, an account, a kind and an id.",
    );
  }
}
/** A change of a part keeps the higher label (rule SC11). When every text is new, the label is that of their writer. */
function labelAfter(
  earlier: Taint | undefined,
  taint: Taint | undefined,
  { name, description, spec }: CronPatch,
  body: Pick<JobBody, "description">,
): Taint | undefined {
  const isNew = name !== undefined && spec !== undefined && (description !== undefined || body.description === undefined);
  if (earlier === undefined || isNew) return taint;
  return taint === undefined ? earlier : higher(earlier, taint);
}
