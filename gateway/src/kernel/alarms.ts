/**
 * Many deadlines over the one alarm that a Durable Object has. Each participant knows its own next deadline from its own rows; the
 * alarm is set to the nearest and only when none is set that is early enough. A participant that fails neither stops the others nor
 * the next alarm: it is tried again later and later.
 */
import { backoffMs } from "../../../protocol/runtime/backoff.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";

export interface Participant {
  readonly name: string;
  /** When it next has something to do; undefined: not at all. */
  next(): number | undefined;
  run(now: number): void | Promise<void>;
}
export type AlarmStorage = Pick<DurableObjectStorage, "setAlarm">;

const RETRY_MIN_MS = 1000;
const RETRY_MAX_MS = 300_000;

export class Alarms {
  readonly #storage: AlarmStorage;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #participants: readonly Participant[];
  readonly #failures = new Map<string, { readonly count: number; readonly notBefore: number }>();
  /** What is known to be set. Unknown after a wake: setting it again is right, because the deadline comes from the rows. */
  #armedAt: number | undefined;

  constructor(storage: AlarmStorage, clock: Clock, log: Logger, participants: readonly Participant[]) {
    this.#storage = storage;
    this.#clock = clock;
    this.#log = log;
    this.#participants = participants;
  }

  /** Sets the alarm if a deadline is nearer than the one that is set. */
  arm(): void {
    const wanted = this.#nearest();
    if (wanted === undefined || (this.#armedAt !== undefined && this.#armedAt <= wanted)) return;
    this.#armedAt = wanted;
    this.#storage.setAlarm(wanted).catch((error: unknown) => {
      this.#armedAt = undefined;
      this.#log.error("alarm_not_set", { error });
    });
  }

  /** The alarm went off. Never throws: the platform gives up on an alarm that does. */
  async fire(): Promise<void> {
    this.#armedAt = undefined;
    try {
      const now = this.#clock.now();
      const due = this.#participants.filter((participant) => (this.#deadline(participant) ?? Number.POSITIVE_INFINITY) <= now);
      await Promise.all(due.map((participant) => this.#runOne(participant, now)));
    } finally {
      this.arm();
    }
  }

  async #runOne(participant: Participant, now: number): Promise<void> {
    try {
      await participant.run(now);
      this.#failures.delete(participant.name);
    } catch (error) {
      this.#failed(participant, error);
    }
  }

  #failed(participant: Participant, error: unknown): void {
    const count = (this.#failures.get(participant.name)?.count ?? 0) + 1;
    const wait = backoffMs(count, RETRY_MIN_MS, RETRY_MAX_MS);
    this.#failures.set(participant.name, { count, notBefore: this.#clock.now() + wait });
    this.#log.error("alarm_participant_failed", { participant: participant.name, count, error });
  }

  #deadline(participant: Participant): number | undefined {
    try {
      const next = participant.next();
      return next === undefined ? undefined : Math.max(next, this.#failures.get(participant.name)?.notBefore ?? 0);
    } catch (error) {
      this.#failed(participant, error);
      return this.#failures.get(participant.name)?.notBefore;
    }
  }

  #nearest(): number | undefined {
    const deadlines = this.#participants.flatMap((participant) => this.#deadline(participant) ?? []);
    return deadlines.length === 0 ? undefined : Math.min(...deadlines);
  }
}
