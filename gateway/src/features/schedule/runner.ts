/**
 * Takes the times of jobs that have come, begins their runs, and looks at them until they have ended (rules SC1-SC8). Everything that it does has a row
 * first, and every step can be made again: messages, notes and deliveries have ids that are made from the row. Only what is subscribed to
 * is in memory, and the next look subscribes again.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { Directives } from "../../../../protocol/gen/types.ts";
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { Sink } from "../../kernel/subscriptions.ts";
import { parseModel } from "../../models/choose.ts";
import { DEMO, isDemo } from "../../models/resolve.ts";
import type { Origin } from "../../ports/origin.ts";
import type { PacksPort } from "../../ports/packs.ts";
import { sentence } from "../../ports/result.ts";
import type { StopPort } from "../../ports/sessions.ts";
import { higher, type Taint } from "../../ports/taint.ts";
import { hookLine } from "../../prompt/hook.ts";
import { type CronEngine, due, nextTime } from "../../schedule/schedule.ts";
import type { Answers } from "../../schedule/failing.ts";
import { readFile } from "./beat-look.ts";
import { BeatWake, beatText, type WakePorts } from "./beat-wake.ts";
import { Delivery, type DeliveryPorts } from "./delivery.ts";
import { type Job, type JobRun, lineOfJob, nounOf } from "./job.ts";
import { type JobStore, STOPPED } from "./job-store.ts";
import { Missing, type MissingPorts } from "./missing.ts";
import { RunEnds } from "./run-ends.ts";
import { lateText } from "./shown.ts";

/** Runs of jobs that go on at once. */
const AT_ONCE = 4;
/** Those of them that hooks have caused: a busy sender delays no job. */
const WOKEN_AT_ONCE = 2;
/** A run that sends no news is looked at this often. */
const LOOK_MS = 15_000;
/** A begin or a delivery that failed is tried again this often, with growing pauses. */
const MAX_TRIES = 6;
const RETRY_MIN_MS = 2_000;
const RETRY_MAX_MS = 300_000;
const DEFAULT_TIMEOUT_S = 600;
/** A run may wait for the owner's word beside its time; then it is ended. */
const WAITS_MS = 35 * 60_000;
/** While GSV is stopped, jobs are looked at this often. */
const STOPPED_MS = 30_000;
/** While the pack of its agent is off, a job with one time is looked at this often. */
const PACK_OFF_MS = 300_000;
/** What an unattended run may use, beside the other limits. */
const BUDGET = { steps: 12, costUsd: 0.25 } as const;

export interface RunnerPorts
  extends StopPort,
    PacksPort,
    DeliveryPorts,
    Omit<WakePorts, "store">,
    Pick<MissingPorts, "needs" | "nodes">,
    Pick<KernelPorts, "arm" | "background" | "config" | "contextVersion" | "log" | "now" | "scrub" | "subscriptions"> {
  readonly store: JobStore;
  readonly engine: CronEngine;
}
const ENDS: ReadonlySet<string> = new Set(["final", "error", "aborted"]);

export class Runner {
  readonly #ports: RunnerPorts;
  readonly #delivery: Delivery;
  readonly #missing: Missing;
  readonly #ends: RunEnds;
  readonly #wake: BeatWake;
  /** Runs whose end is noticed at once. */
  readonly #followed = new Map<string, Sink>();
  /** Runs that have ended since the last look at them. */
  readonly #ended = new Set<string>();

  constructor(ports: RunnerPorts) {
    this.#ports = ports;
    this.#delivery = new Delivery(ports);
    this.#missing = new Missing(ports, this.#delivery);
    this.#ends = new RunEnds(ports, this.#delivery, this.#missing);
    this.#wake = new BeatWake(ports, {
      skip: (run, why) => this.#ends.end(run, "skipped", why),
      goOn: (run, answers) => this.#goOn(run, answers),
    });
  }

  /** Never fails for one job's sake. */
  async run(): Promise<void> {
    this.#takeDue();
    await this.#advance();
    this.#ports.arm();
  }

  /** Reports the machines that jobs need and that have been away for a day. */
  reportMissing(): void {
    this.#missing.report();
  }

  // ---------------------------------------------------------------- times that came

  #takeDue(): void {
    const { store, now, log, stopped } = this.#ports;
    // A reminder waits for the owner to let GSV go on.
    for (const job of store.due(now(), stopped() !== undefined)) {
      try {
        this.#take(job);
      } catch (error) {
        log.error("job_not_taken", { job: job.id, error });
      }
    }
  }
  #take(job: Job): void {
    const { store, now, stopped } = this.#ports;
    const { schedule } = job.body;
    const line = lineOfJob(job, this.#ports.engine);
    const at = now();
    if (job.lookedAt > at) {
      // The clock was set back: times that have a row are not taken again.
      const next = schedule.kind === "at" ? job.nextAt : nextTime(schedule, at, line);
      store.take(job, { missed: [], missedCount: 0 }, next, at, false);
      return;
    }
    const came = due(schedule, job.nextAt ?? at, at, line);
    const next = nextTime(schedule, Math.max(at, job.nextAt ?? at), line);
    store.take(job, came, next, at, stopped() !== undefined);
  }

  // ---------------------------------------------------------------- runs

  async #advance(): Promise<void> {
    const { store, now } = this.#ports;
    const open = store.allOpen();
    // A run that waits for a machine or for the owner takes no slot.
    const begun = open.filter(({ status, body }) => status === "running" && (body.waiting ?? []).length === 0 && body.asking !== true);
    let slots = AT_ONCE - begun.length;
    let woken = WOKEN_AT_ONCE - begun.filter(({ body }) => body.given !== undefined).length;
    const work: Promise<void>[] = [];
    for (const run of open) {
      if ((run.checkAt ?? 0) > now()) continue;
      const mayBegin = slots > 0 && (run.body.given === undefined || woken > 0);
      if (run.status !== "running" && mayBegin) {
        slots--;
        if (run.body.given !== undefined) woken--;
      }
      const step = run.status === "running" ? this.#look(run) : mayBegin ? this.#begin(run) : this.#wait(run);
      work.push(step.catch((error: unknown) => this.#failed(run, error)));
    }
    await Promise.all(work);
  }
  async #wait(run: JobRun): Promise<void> {
    this.#ports.store.change(run.id, { checkAt: this.#ports.now() + LOOK_MS });
  }
  #failed(run: JobRun, error: unknown): void {
    const { store, now, log } = this.#ports;
    const message = error instanceof Error ? error.message : String(error);
    const tries = run.tries + 1;
    log.error("job_step_failed", { job: run.jobId, run: run.id, tries, error: message });
    if (tries >= MAX_TRIES) this.#ends.end(run, "error", { error: `It failed ${tries} times: ${message}` });
    else store.change(run.id, { checkAt: now() + backoffMs(tries, RETRY_MIN_MS, RETRY_MAX_MS), tries });
  }

  /** Begins a run that the owner waits for. What fails is tried again by the alarm. */
  async beginNow(run: JobRun): Promise<void> {
    await this.#begin(run).catch((error: unknown) => this.#failed(run, error));
  }
  /** Pages and machines have answered. */
  async #goOn({ id }: JobRun, answers: Answers): Promise<void> {
    const { store, arm } = this.#ports;
    const run = store.runById(id);
    if (run?.checkAt === undefined || run.status === "running") return;
    await this.#begin(run, answers).catch((error: unknown) => this.#failed(run, error));
    arm();
  }
  async #begin(run: JobRun, answers?: Answers): Promise<void> {
    const { store, stopped, now, ask, contextVersion } = this.#ports;
    const job = store.find(run.jobId);
    if (job === undefined) return this.#ends.end(run, "skipped", { error: "The job was removed before the run began." });
    if (stopped() !== undefined) {
      if (comesOnce(job, run)) store.change(run.id, { checkAt: now() + STOPPED_MS });
      else this.#ends.end(run, "skipped", STOPPED);
      return;
    }
    const named = this.#delivery.sessionOf(job);
    if (named === undefined) return this.#withoutAgent(job, run);
    if (job.body.spec.mode === "remind") {
      const reminded = reminderOf(job, run, now(), this.#ports.config.effective().userTimezone);
      return this.#ends.remind(job, run, reminded);
    }
    const woken = await this.#wake.woken(job, run, named.key, answers);
    if (woken === undefined) return;
    const { spec } = job.body;
    const { sessions } = this.#ports;
    const isNew = sessions.find(named.key) === undefined;
    // A task is the owner's own conversation: they have written it.
    const identity = sessions.takeUp(named, now(), spec.mode === "task");
    const runId = `cron-${job.id}-${run.id}`;
    if (spec.mode === "task") {
      const before = isNew ? undefined : await ask(named.key, (session) => session.runEnd(runId));
      if (before?.state === "unknown") {
        // Each run begins with nothing of the one before.
        const reset = await ask(named.key, (session) => session.reset());
        if (!reset.ok && reset.error.reason !== "session.not_found") throw new Error(sentence(reset.error));
      }
    }
    // The file of a heartbeat may be of a conversation that has read others.
    const { given } = run.body;
    const own = job.body.beat === undefined ? job.body.taint : (await readFile(this.#ports, job.agentId)).taint;
    const taint = given === undefined ? own : higher(given.taint, own);
    const hops = Math.max(job.body.hops ?? 0, run.body.hops ?? 0);
    const origin: Origin = {
      kind: "schedule",
      jobId: job.id,
      ...(job.body.beat === undefined ? {} : { heartbeat: true as const }),
      ...(given === undefined ? {} : { hook: given.hook }),
      budget: { ...BUDGET, ms: 1000 * ((spec.mode === "task" ? spec.timeoutSeconds : undefined) ?? DEFAULT_TIMEOUT_S) },
      ...(spec.mode === "task" ? { waitMs: spec.waitSeconds === undefined ? LIMITS.nodeWaitJobMs : 1000 * spec.waitSeconds } : {}),
      ...(hops === 0 ? {} : { hops }),
    };
    const sent = await ask(named.key, (session) =>
      session.send({
        identity,
        messageId: runId,
        runId,
        text: job.body.beat === undefined ? textFor(job, run, now(), this.#ports.config.effective().userTimezone) : beatText(job, woken),
        verbatim: true,
        directives: directivesOf(job),
        origin,
        ...(taint === undefined ? {} : { taint }),
        contextVersion: contextVersion(),
      }),
    );
    // The name is free again when the conversation is deleted.
    if (!sent.ok && sent.error.reason === "session.deleting") throw new Error(sentence(sent.error));
    if (!sent.ok) return this.#ends.end(run, "error", { error: sentence(sent.error) });
    store.change(run.id, {
      status: "running",
      body: { startedAt: now(), sessionKey: named.key, runId },
      checkAt: now() + LOOK_MS,
      tries: 0,
    });
    this.#follow(named.key, runId, run.id);
  }
  /** An agent whose pack is off comes back with it, so that its job is not to blame and no time of it that comes only once is lost (rule SC17). */
  async #withoutAgent(job: Job, run: JobRun): Promise<void> {
    const { store, now, packs } = this.#ports;
    const off = await packs.offPackOfAgent(job.agentId);
    if (off === undefined) return this.#ends.end(run, "error", { error: `There is no agent ${job.agentId}.` });
    const why = `The agent ${job.agentId} is not there. ${off}`;
    if (comesOnce(job, run)) store.change(run.id, { checkAt: now() + PACK_OFF_MS, body: { off: why } });
    else this.#ends.end(run, "skipped", { error: why });
  }
  /** The end of the run is noticed at once; without the event, the next look finds it. */
  #follow(sessionKey: string, runId: string, id: number): void {
    if (this.#followed.has(runId)) return;
    const { subscriptions, store, now, arm } = this.#ports;
    const sink: Sink = {
      deliver: (_key, events) => {
        const states = events.flatMap(({ event, payload }) => {
          const news = payload as { readonly runId?: string; readonly state?: string };
          return event === "chat" && news.runId === runId ? [String(news.state)] : [];
        });
        const ended = states.some((state) => ENDS.has(state));
        if (!ended && !states.includes("paused")) return;
        if (ended) {
          subscriptions.remove(sessionKey, sink);
          this.#followed.delete(runId);
          this.#ended.add(runId);
        }
        if (store.change(id, { checkAt: now() })) arm();
      },
    };
    if (subscriptions.add(sessionKey, sink)) this.#followed.set(runId, sink);
  }

  async #look(run: JobRun): Promise<void> {
    const { store, now, ask } = this.#ports;
    const { sessionKey, runId, startedAt = now() } = run.body;
    if (sessionKey === undefined || runId === undefined) return this.#ends.end(run, "error", { error: "The run was lost." });
    this.#ended.delete(runId);
    const end = await ask(sessionKey, (session) => session.runEnd(runId));
    switch (end.state) {
      case "running":
      case "queued": {
        const job = store.find(run.jobId);
        const seconds = (job?.body.spec.mode === "task" ? job.body.spec.timeoutSeconds : undefined) ?? DEFAULT_TIMEOUT_S;
        const waitedMs = end.state === "running" ? end.waitedMs : 0;
        if (now() - startedAt - waitedMs > 1000 * seconds + WAITS_MS) {
          await ask(sessionKey, (session) => session.abort(runId));
          return this.#ends.end(run, "error", {
            error: `The run had not ended ${Math.round((now() - startedAt) / 60_000)} minutes after it began, so it was ended.`,
          });
        }
        this.#follow(sessionKey, runId, run.id);
        const questions = job === undefined ? {} : await this.#delivery.tellQuestions(job, run, sessionKey, runId);
        const machines = end.state === "running" ? (end.machines ?? []) : [];
        const { body, nextMs = LOOK_MS } = job === undefined ? { body: {} } : this.#missing.looked(job, run, machines);
        store.change(run.id, {
          checkAt: now() + (this.#ended.delete(runId) ? 0 : nextMs),
          body: { ...body, ...questions },
        });
        return;
      }
      case "unknown":
        return this.#ends.end(run, "error", { error: "The end of the run is not known: the conversation was removed." });
      default:
        return this.#ends.finish(run, end);
    }
  }
}
/** A run that would never come again if it did not begin now. */
const comesOnce = ({ body: { schedule } }: Job, { body: { given, byHand } }: JobRun): boolean =>
  given !== undefined || (schedule.kind === "at" && byHand !== true);
function directivesOf({ body: { spec } }: Job): Directives {
  if (spec.mode !== "task") return {};
  const model = spec.model === undefined ? undefined : parseModel(spec.model);
  return {
    // A job of an earlier version may name another model of the demo, which has one.
    ...(model === undefined ? {} : { model: isDemo(model) ? { ...model, id: DEMO } : model }),
    ...(spec.thinking === undefined ? {} : { thinkLevel: spec.thinking }),
  };
}
function reminderOf(job: Job, run: JobRun, now: number, tz: string): { readonly text: string; readonly taint?: Taint } {
  const { spec } = job.body;
  const { given, byHand } = run.body;
  const taint = given === undefined ? job.body.taint : higher(given.taint, job.body.taint);
  const label = taint === undefined ? {} : { taint };
  const own = spec.mode === "remind" ? spec.text : "";
  if (given !== undefined && nounOf(job) === "hook") return { text: `Reminder by the hook "${job.body.name}": ${given.text}`, ...label };
  const late = byHand === true ? "" : lateText(run.ts, now, tz);
  const parts = [`Reminder: ${own}`, ...(given === undefined ? [] : [given.text]), ...(late === "" ? [] : [`(${late.slice(2)})`])];
  return { text: parts.join("\n\n"), ...label };
}
function textFor(job: Job, run: JobRun, now: number, tz: string): string {
  const { spec, name } = job.body;
  const { given } = run.body;
  if (given !== undefined && nounOf(job) === "hook") return `${hookLine(name)}\n${given.text}`;
  const late = run.body.byHand === true ? "" : lateText(run.ts, now, tz);
  const said = spec.mode === "task" ? spec.message : spec.text;
  if (given !== undefined) return `${hookLine(given.hook, { name, late })}\n${said}\n\n${given.text}`;
  return `[The job "${name}" runs now${late}. No person has written this just now.]\n${said}`;
}
