/** Waits for what a run tells: that it has ended, or waits for the owner. In memory only, so its user must also look from time to time. */
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import type { NewEvent, Sink, Subscriptions } from "../../kernel/subscriptions.ts";

const TOLD: ReadonlySet<string> = new Set(["final", "error", "aborted", "paused"]);

export class News implements Sink {
  readonly #subscriptions: Pick<Subscriptions, "add" | "remove">;
  readonly #sessionKey: string;
  readonly #runId: string;
  #next = Promise.withResolvers<void>();

  constructor(subscriptions: Pick<Subscriptions, "add" | "remove">, sessionKey: string, runId: string) {
    this.#subscriptions = subscriptions;
    this.#sessionKey = sessionKey;
    this.#runId = runId;
    subscriptions.add(sessionKey, this);
  }

  deliver(_sessionKey: string, events: readonly NewEvent[]): void {
    const isNews = events.some(({ event, payload }) => {
      const { runId, state } = payload as { readonly runId?: string; readonly state?: string };
      return event === "chat" && runId === this.#runId && TOLD.has(state ?? "");
    });
    if (isNews) this.#next.resolve();
  }

  /** Resolves with news since the last call, or after this time. */
  async next(timeoutMs: number): Promise<void> {
    await within(afterTimeout, timeoutMs, this.#next.promise, () => undefined);
    this.#next = Promise.withResolvers<void>();
  }

  end(): void {
    this.#subscriptions.remove(this.#sessionKey, this);
  }
}
