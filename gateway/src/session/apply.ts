/**
 * The only writer of a session: one synchronous transaction that dedupes the event, reduces it, checks the invariants and stores the
 * step. Memory is a cache and changes only after the commit, so that a crash loses no effect of an event.
 */
import type { SessionClock } from "./clock.ts";
import type { Step } from "./machine/draft.ts";
import type { Answer, EventBody, Stamp } from "./machine/event.ts";
import { checkStep } from "./machine/invariants.ts";
import { type Birth, newborn, type State } from "./machine/state.ts";
import { reduce } from "./machine/reduce.ts";
import type { SessionStore } from "./store/session-store.ts";

export interface ApplyPorts {
  readonly store: SessionStore;
  readonly clock: SessionClock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly freshId: () => string;
  /** Clients have received every event up to here, in this incarnation. */
  readonly published: () => number;
  /** The spend ledger has confirmed the session's model calls up to this number. */
  readonly settled: () => number;
  /** After the commit, before `apply` returns. */
  readonly committed: (before: State | undefined, step: Step) => void;
}
export interface ApplyOptions {
  /** Idempotency key: a second event with it gets the first one's answer and changes nothing. */
  readonly key?: string;
  /** The identity of the session, for its first event. Without it, an event for a session that does not exist is dropped. */
  readonly birth?: Omit<Birth, "sessionId" | "wall">;
}
export interface Applied {
  readonly answer: Answer | undefined;
  /** The answer is that of an earlier event with the same key. */
  readonly duplicate: boolean;
  /** Absent: a duplicate, or there is no session. */
  readonly step?: Step;
}

export class Applier {
  readonly #ports: ApplyPorts;
  #state: State | undefined;
  #loaded = false;

  constructor(ports: ApplyPorts) {
    this.#ports = ports;
  }

  /** What is stored; undefined before the first message. */
  get state(): State | undefined {
    if (!this.#loaded) {
      this.#state = this.#ports.store.load();
      this.#loaded = true;
    }
    return this.#state;
  }

  apply(body: EventBody, { key, birth }: ApplyOptions = {}): Applied {
    const { store, clock, random, freshId, published, settled, committed } = this.#ports;
    const before = this.state;
    if (!before && !birth) return { answer: undefined, duplicate: false };
    let stored: State | undefined = before;
    const applied = store.transaction((): Applied => {
      const earlier = key === undefined ? undefined : store.seen(key);
      if (earlier) return { answer: earlier, duplicate: true };
      const { wall, now } = clock.read();
      const id = freshId();
      const state = before ?? newborn({ identity: birthOf(birth), sessionId: freshId(), wall });
      const front = state.queue.count > 0 ? store.queueFront((state.queue.steered ?? 0) > 0) : { quiet: [], head: undefined };
      const stamp: Stamp = {
        now,
        wall,
        jitter: random(),
        freshId: id,
        published: published(),
        settled: settled(),
        ...front,
        named: body.type === "Abort" && body.runId !== undefined && state.queue.count > 0 ? store.queuedRun(body.runId) : undefined,
      };
      const step = reduce(state, { ...body, ...stamp });
      const { answer } = step;
      const seen =
        key === undefined || answer === undefined || answer.type === "refused" || answer.type === "unknown"
          ? undefined
          : { key, answer, at: wall };
      if (step.state !== state) {
        checkStep(state, step);
        store.write(before, step, seen);
        stored = step.state;
      } else if (before && seen) {
        // The event had no effect. Its key is stored all the same, so that a repetition has no effect later.
        store.write(before, step, seen);
      }
      return { answer, duplicate: false, step };
    });
    // Not reached when the transaction failed: then memory stays as it was, too.
    this.#state = stored;
    const { step } = applied;
    if (step && (stored !== before || step.ended.length > 0 || step.status.length > 0)) committed(before, step);
    return applied;
  }
}
function birthOf(birth: ApplyOptions["birth"]): Birth["identity"] {
  if (!birth) throw new Error("a session can't begin without knowing who it is");
  return birth.identity;
}
