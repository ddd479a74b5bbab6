/**
 * Waits for news of a run: it has ended or paused, or questions came or ended, which may be those of the tasks that it has handed on. In memory
 * only, so its user must also look from time to time.
 */
import { type After, within } from "../../../../protocol/runtime/within.ts";
import type { NewEvent, Sink, Subscriptions } from "../../kernel/subscriptions.ts";
import type { ApprovalsPort } from "../../ports/approvals.ts";

const REPORTED_STATES: ReadonlySet<string> = new Set(["final", "error", "aborted", "paused"]);

export interface NewsPorts extends Pick<ApprovalsPort, "approvals"> {
  readonly subscriptions: Pick<Subscriptions, "add" | "remove">;
  readonly after: After;
}

export class News implements Sink {
  readonly #subscriptions: NewsPorts["subscriptions"];
  readonly #questions: { readonly stop: () => void };
  readonly #after: After;
  readonly #sessionKey: string;
  readonly #runId: string;
  #next = Promise.withResolvers<void>();

  constructor({ subscriptions, approvals, after }: NewsPorts, sessionKey: string, runId: string) {
    this.#subscriptions = subscriptions;
    this.#after = after;
    this.#sessionKey = sessionKey;
    this.#runId = runId;
    subscriptions.add(sessionKey, this);
    this.#questions = approvals.onChange(() => this.#next.resolve());
  }

  deliver(_sessionKey: string, events: readonly NewEvent[]): void {
    const isNews = events.some(({ event, payload }) => {
      const { runId, state } = payload as { readonly runId?: string; readonly state?: string };
      return event === "chat" && runId === this.#runId && REPORTED_STATES.has(state ?? "");
    });
    if (isNews) this.#next.resolve();
  }

  /** Resolves with news since the last call, or after this time. */
  async next(timeoutMs: number): Promise<void> {
    await within(this.#after, timeoutMs, this.#next.promise, () => undefined);
    this.#next = Promise.withResolvers<void>();
  }

  end(): void {
    this.#subscriptions.remove(this.#sessionKey, this);
    this.#questions.stop();
  }
}
