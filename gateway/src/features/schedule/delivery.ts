/**
 * The conversations of a job, and what its runs bring to the owner: answers, questions and notes (rules SC8, SC12). Everything is sent
 * under an id that is made from the row of the run, so that it can be sent again. It decides nothing about the rows.
 */
import type { KernelPorts } from "../../kernel/ports.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import type { ApprovalsPort } from "../../ports/approvals.ts";
import type { ChannelsOutPort } from "../../ports/channels.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { Result } from "../../ports/result.ts";
import type { RunEnd, SessionIdentity } from "../../ports/session.ts";
import type { NamedSession, SessionsPort } from "../../ports/sessions.ts";
import { isForeign, type Taint } from "../../ports/taint.ts";
import { parseTarget } from "../../tools/message-target.ts";
import { askedText } from "../../notify/asked-text.ts";
import { type Job, type JobRun, nounOf, type RunBody } from "./job.ts";
import { taskSessionKey } from "./shown.ts";

const NOTE_CHARS = 16_000;

export interface DeliveryPorts
  extends SessionsPort,
    ChannelsOutPort,
    ApprovalsPort,
    NotifyPort,
    Pick<KernelPorts, "config" | "log" | "now"> {}
export type Final = Extract<RunEnd, { readonly state: "final" }>;

const namedJob = (job: Job): string => `The ${nounOf(job)} "${job.body.name}"`;

/** For the model, in place of an answer that others may have written: the label comes with the reading. */
const whereToRead = (job: Job): string =>
  `The ${nounOf(job)} ${job.id} has left an answer here for your human. You have not read it, because others may have written a part of it. When it matters, read it: gsv__Cron with the action runs and the id ${job.id}.`;

export class Delivery {
  readonly #ports: DeliveryPorts;

  constructor(ports: DeliveryPorts) {
    this.#ports = ports;
  }

  /** The conversation that the job's runs are in. */
  sessionOf(job: Job): NamedSession | undefined {
    if (!this.#ports.config.hasAgent(job.agentId)) return undefined;
    return job.body.spec.mode === "task" ? this.#named(taskSessionKey(job.agentId, job.id)) : this.#ownersOf(job);
  }
  /** The conversation that the job writes to: the one that it names, while that is the owner's, or the agent's main conversation. */
  #ownersOf(job: Job): NamedSession | undefined {
    return this.#ownNamedBy(job) ?? this.#named(`agent:${job.agentId}:${this.#ports.config.mainKey()}`);
  }
  #ownNamedBy({ agentId, body: { spec } }: Job): NamedSession | undefined {
    const named = spec.sessionKey === undefined ? undefined : this.#named(spec.sessionKey);
    return named?.address.agentId === agentId && this.#ports.sessions.isOwners(named) ? named : undefined;
  }
  /** What a job that names no conversation has to tell goes where its kind is told: nothing shows the main conversation (rule NT5). */
  #toldIn(job: Job): { readonly inSession?: string } {
    const inSession = this.#ownNamedBy(job)?.key;
    return inSession === undefined ? {} : { inSession };
  }
  #named(key: string): NamedSession | undefined {
    const named = canonicalKey(key, this.#ports.config.mainKey());
    return named.ok ? named : undefined;
  }

  /** The owner sees an answer there that is in the main conversation only. */
  async noteAtCommandLine(job: Job, run: JobRun, sessionKey: string, text: string): Promise<void> {
    const named = this.#named(sessionKey);
    if (named === undefined) return;
    const identity = this.#ports.sessions.takeUp(named, this.#ports.now());
    const note = {
      identity,
      key: `cron:${job.id}:${run.id}`,
      text: `The heartbeat says:\n\n${text}`.slice(0, NOTE_CHARS),
      isAnswer: true,
    } as const;
    await this.#ports.ask(named.key, (session) => session.note(note));
  }
  /** `to`: a full place. Absent: the answer is a note in a conversation of the owner. */
  async sendAnswer(job: Job, run: JobRun, to: string | undefined, { text, taint }: Final): Promise<Result<unknown>> {
    if (to === undefined) {
      const forModel = isForeign(taint) ? whereToRead(job) : true;
      await this.addNote(job, `cron:${job.id}:${run.id}`, `${namedJob(job)} says:\n\n${text}`, forModel, true);
      return { ok: true, value: undefined };
    }
    return this.#sendTo(to, job, run, text, taint);
  }
  async #sendTo(to: string, job: Job, run: JobRun, text: string, taint: Taint | undefined): Promise<Result<unknown>> {
    const from = this.#identityOf(job);
    if (from === undefined) return { ok: false, error: { reason: "agent.unknown", message: `There is no agent ${job.agentId}.` } };
    const target = parseTarget(to);
    if (target === undefined) return { ok: false, error: { reason: "channel.unknown", message: `\`${to}\` is not a place.` } };
    const label = taint ?? { label: "self" as const, source: `the job ${job.id}` };
    const { channelsOut } = this.#ports;
    const sent = await channelsOut.message({ from, callId: `cron/${job.id}/${run.id}`, target, text, media: [], taint: label });
    if (sent.ok || sent.error.reason !== "auth.forbidden") return sent;
    // The owner reads this refusal, and not the agent.
    const { reason, message } = sent.error;
    return { ok: false, error: { reason, message: channelsOut.refusalOf(target) ?? message } };
  }
  /**
   * The text of a reminder, as it is (rule SC16). It is in the conversation of the owner, and where they are reached: at the place that the
   * reminder names, else where reminders are told.
   */
  async remind(job: Job, run: JobRun, { text, taint }: Pick<Final, "text" | "taint">): Promise<Result<unknown>> {
    const { to } = job.body.spec.mode === "remind" ? job.body.spec : {};
    const key = `cron:${job.id}:${run.id}`;
    const sent = to === undefined ? undefined : await this.#sendTo(to, job, run, text, taint);
    // With a place that has it, the note is what the agent knows of it.
    await this.addNote(job, key, text, isForeign(taint) ? whereToRead(job) : true, sent?.ok !== true);
    if (sent?.ok === true) return sent;
    const inSession = this.#ownersOf(job)?.key;
    const there = inSession === undefined ? {} : { inSession, toldSession: inSession };
    const form = isForeign(taint) ? {} : { isMarkdown: true as const };
    this.#ports.notify.tell({
      kind: "reminder",
      key,
      cause: key,
      text,
      agentId: job.agentId,
      ...there,
      ...form,
    });
    return sent ?? { ok: true, value: undefined };
  }
  /** Tells the owner once of each question of the run (rule SC12). Returns the codes that they were told of, and whether one waits. */
  async tellQuestions(job: Job, run: JobRun, sessionKey: string, runId: string): Promise<Pick<RunBody, "asked" | "asking">> {
    const { approvals, notify } = this.#ports;
    const told = run.body.asked ?? [];
    const waiting = approvals.waiting(sessionKey).filter((entry) => entry.runId === runId);
    const news = waiting.filter(({ code }) => !told.includes(code));
    for (const entry of news) {
      const text = askedText(namedJob(job), entry);
      // The conversation of a reminder shows its questions itself.
      if (job.body.spec.mode === "task") await this.addNote(job, `cron:${job.id}:${run.id}:${entry.code}`, text, false);
      const key = `cron/${job.id}/${run.id}/${entry.code}`;
      const noted = this.#ownersOf(job)?.key;
      const there = noted === undefined ? {} : { inSession: noted, toldSession: noted };
      notify.tell({ kind: "approval", key, cause: key, text, agentId: job.agentId, question: entry.code, ...there });
    }
    return { asking: waiting.length > 0, ...(news.length === 0 ? {} : { asked: [...told, ...news.map(({ code }) => code)] }) };
  }
  /** The owner is told that the job fails. */
  tellFailing(job: Job, key: string, text: string, cause = `job:${job.id}`): void {
    const there = this.#toldIn(job);
    this.#ports.notify.tell({ kind: "job", key, cause, text, agentId: job.agentId, ...there });
  }
  /** The owner is told of a machine that a run of the job waits for, or that the job needs. `until`: it is over then. */
  tellAway(job: Job, key: string, cause: string, text: string, until?: number): void {
    const there = this.#toldIn(job);
    const ends = until === undefined ? {} : { until };
    this.#ports.notify.tell({ kind: "machine", key, cause, text, agentId: job.agentId, ...there, ...ends });
  }
  #identityOf(job: Job): SessionIdentity | undefined {
    const named = this.sessionOf(job);
    return named === undefined ? undefined : this.#ports.sessions.takeUp(named, this.#ports.now(), true);
  }
  /** Adds a note to the conversation that the job writes to. `forModel`: never what others may have written, because a note has no label. */
  async addNote(job: Job, key: string, text: string, forModel: boolean | string, isAnswer = false): Promise<void> {
    const { sessions, ask, now } = this.#ports;
    const named = this.#ownersOf(job);
    if (named === undefined) return;
    const identity = sessions.takeUp(named, now());
    const about = { ...(forModel === false ? {} : { forModel }), ...(isAnswer ? { isAnswer } : {}) };
    const note = { identity, key, text: text.slice(0, NOTE_CHARS), ...about };
    await ask(named.key, (session) => session.note(note));
  }
}
