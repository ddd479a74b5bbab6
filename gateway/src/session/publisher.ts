/**
 * Publishes events to clients: one publish at a time, in order, with text deltas joined. The model's stream never waits for it. Log events
 * are delivered at least once; deltas may be lost, because the log has the whole text, and so may thoughts.
 */
import { asRunId, asSessionKey } from "../../../protocol/gen/types.ts";
import type { SessionNews } from "../ports/gateway.ts";
import type { After } from "../../../protocol/runtime/within.ts";

/** Deltas are sent at once when this much text has gathered... */
export const DELTA_CHARS = 1_024;
/** ...or this long after the last one. The first delta of an attempt is sent at once. */
export const DELTA_MS = 40;
/** A frame costs about 190 bytes beside its text, so after its beginning an answer is sent in larger steps. */
const LATER_DELTA_MS = 125;
const BEGINNING_CHARS = 160;
/** Deltas that wait while a publish hangs; more are dropped, the answer itself comes with the log. */
export const DELTA_BACKLOG_CHARS = 1_048_576;

export interface PublisherPorts {
  readonly sessionKey: string;
  readonly publish: (news: readonly SessionNews[]) => Promise<void>;
  readonly now: () => number;
  readonly after: After;
}
export interface Delta {
  readonly runId: string;
  readonly step: number;
  readonly attempt: number;
  /** UTF-16 units of this attempt that came before. */
  readonly offset: number;
  readonly text: string;
  /** The text is a thought and not a part of the answer. */
  readonly isThought?: true;
}
type Item =
  | { readonly kind: "delta"; delta: Delta }
  | { readonly kind: "news"; readonly news: readonly SessionNews[]; readonly done: (ok: boolean) => void };

export class Publisher {
  readonly #ports: PublisherPorts;
  #items: Item[] = [];
  #waitingChars = 0;
  #busy = false;
  #cancelTimer: (() => void) | undefined;
  #lastDeltaAt = Number.NEGATIVE_INFINITY;
  #lastAttempt = "";
  #sentChars = 0;

  constructor(ports: PublisherPorts) {
    this.#ports = ports;
  }

  /** Never waits, never throws. */
  delta(delta: Delta): void {
    const last = this.#items.at(-1);
    if (last?.kind === "delta" && continues(last.delta, delta)) last.delta = { ...last.delta, text: last.delta.text + delta.text };
    else this.#items.push({ kind: "delta", delta });
    this.#waitingChars += delta.text.length;
    if (this.#waitingChars > DELTA_BACKLOG_CHARS) this.#dropDeltas();
    this.#wake();
  }
  /** Characters of this attempt's text that were sent: the next delta begins right after them. */
  sentChars(of: Omit<Delta, "offset" | "text">): number {
    return attemptOf(of) === this.#lastAttempt ? this.#sentChars : 0;
  }
  /** Publishes after everything that was given before. True: the clients have it. */
  news(news: readonly SessionNews[]): Promise<boolean> {
    if (news.length === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      this.#items.push({ kind: "news", news, done: resolve });
      this.#wake();
    });
  }

  #wake(): void {
    if (this.#busy || this.#items.length === 0) return;
    const first = this.#items.find((item) => item.kind === "delta");
    const urgent =
      this.#items.some((item) => item.kind === "news") ||
      this.#waitingChars >= DELTA_CHARS ||
      (first?.kind === "delta" && attemptOf(first.delta) !== this.#lastAttempt);
    const interval = this.#sentChars < BEGINNING_CHARS ? DELTA_MS : LATER_DELTA_MS;
    const waitMs = urgent ? 0 : this.#lastDeltaAt + interval - this.#ports.now();
    if (waitMs > 0) {
      this.#cancelTimer ??= this.#ports.after(waitMs, () => {
        this.#cancelTimer = undefined;
        this.#send();
      });
      return;
    }
    this.#send();
  }
  #send(): void {
    if (this.#busy || this.#items.length === 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const items = this.#items;
    this.#items = [];
    this.#waitingChars = 0;
    this.#busy = true;
    for (const item of items) if (item.kind === "delta") this.#sentDelta(item.delta);
    void this.#publish(items);
  }
  #sentDelta(delta: Delta): void {
    if (attemptOf(delta) !== this.#lastAttempt) this.#sentChars = 0;
    this.#lastAttempt = attemptOf(delta);
    if (delta.isThought !== true) this.#sentChars = delta.offset + delta.text.length;
    this.#lastDeltaAt = this.#ports.now();
  }
  async #publish(items: readonly Item[]): Promise<void> {
    let ok = true;
    try {
      await this.#ports.publish(items.flatMap((item) => (item.kind === "delta" ? [this.#event(item.delta)] : item.news)));
    } catch {
      ok = false;
    }
    this.#busy = false;
    for (const item of items) if (item.kind === "news") item.done(ok);
    this.#wake();
  }
  #event({ runId, step, attempt, offset, text, isThought }: Delta): SessionNews {
    const state = isThought === true ? "thinking" : "delta";
    return {
      event: "chat",
      payload: { runId: asRunId(runId), sessionKey: asSessionKey(this.#ports.sessionKey), state, text, step, attempt, offset },
    };
  }
  #dropDeltas(): void {
    this.#items = this.#items.filter((item) => item.kind !== "delta");
    this.#waitingChars = 0;
  }
}

const attemptOf = ({ runId, step, attempt }: Omit<Delta, "offset" | "text">): string => `${runId}/${step}/${attempt}`;
const continues = (left: Delta, right: Delta): boolean =>
  attemptOf(left) === attemptOf(right) && left.isThought === right.isThought && left.offset + left.text.length === right.offset;
