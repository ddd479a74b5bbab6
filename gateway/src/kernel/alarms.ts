/**
 * Serves many deadlines with the one alarm of a Durable Object. Each participant computes its next deadline from its own rows; the alarm
 * is set to the nearest, and only when it is not early enough already. A failing participant stops neither the others nor the next
 * alarm; it is retried with growing pauses.
 */
import { backoffMs } from "../../../protocol/runtime/backoff.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";

export interface Participant {
  readonly name: string;
  /** The next deadline; undefined: there is none. */
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
  /** The time that this instance has set. Unknown after a wake; then it is set again, from the rows. */
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

  /** Does the same after a change whose only new deadline this is: what is armed already is mostly early enough, and no one else is asked. */
  armFor(deadline: number | undefined): void {
    if (deadline === undefined || (this.#armedAt !== undefined && this.#armedAt <= deadline)) return;
    this.arm();
  }

  /** Handles the alarm. Never throws: the platform stops retrying an alarm that throws. */
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
