/** Tells at once when runs end. In memory only, so its user must also look from time to time. */
import type { NewEvent, Sink, Subscriptions } from "../../kernel/subscriptions.ts";

const ENDS: ReadonlySet<unknown> = new Set(["final", "error", "aborted"]);

export class RunEnds {
  readonly #subscriptions: Pick<Subscriptions, "add" | "remove">;
  /** By conversation and run. */
  readonly #followed = new Map<string, { readonly sessionKey: string; readonly sink: Sink }>();

  constructor(subscriptions: Pick<Subscriptions, "add" | "remove">) {
    this.#subscriptions = subscriptions;
  }

  /** Calls `ended` once, when the run ends. A run that is followed already is not followed again. */
  follow(sessionKey: string, runId: string, ended: () => void): void {
    const key = keyOf(sessionKey, runId);
    if (this.#followed.has(key)) return;
    const sink: Sink = {
      deliver: (_sessionKey: string, events: readonly NewEvent[]) => {
        if (!events.some(({ event, payload }) => event === "chat" && isEnd(payload, runId))) return;
        this.unfollow(sessionKey, runId);
        ended();
      },
    };
    if (this.#subscriptions.add(sessionKey, sink)) this.#followed.set(key, { sessionKey, sink });
  }
  unfollow(sessionKey: string, runId: string): void {
    const key = keyOf(sessionKey, runId);
    const followed = this.#followed.get(key);
    if (followed === undefined) return;
    this.#subscriptions.remove(sessionKey, followed.sink);
    this.#followed.delete(key);
  }
  /** The conversation was deleted. */
  forget(sessionKey: string): void {
    for (const [key, followed] of this.#followed) {
      if (followed.sessionKey !== sessionKey) continue;
      this.#subscriptions.remove(sessionKey, followed.sink);
      this.#followed.delete(key);
    }
  }
}
const keyOf = (sessionKey: string, runId: string): string => `${sessionKey} ${runId}`;
function isEnd(payload: unknown, runId: string): boolean {
  const { runId: of, state } = payload as { readonly runId?: string; readonly state?: string };
  return of === runId && ENDS.has(state);
}
