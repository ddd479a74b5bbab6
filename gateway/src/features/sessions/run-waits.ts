/**
 * Waits for the end of a run: a subscription that ends with the event of that very run. In memory only: a caller also looks into the
 * session, before and after, because the object may be evicted in between. Has no clock.
 */
import { textOf } from "../../ports/messages.ts";
import type { NewEvent, Sink, Subscriptions } from "../../kernel/subscriptions.ts";
import type { RunEnd } from "../../ports/session.ts";
import type { ChatEvent } from "../../../../protocol/gen/types.ts";

type Ended = Extract<RunEnd, { readonly state: "final" | "error" | "aborted" }>;
export interface RunWait {
  /** Never settles when the session has too many subscribers. */
  readonly end: Promise<Ended>;
  readonly stop: () => void;
}

export class RunWaits {
  readonly #subscriptions: Subscriptions;

  constructor(subscriptions: Subscriptions) {
    this.#subscriptions = subscriptions;
  }

  /** Begin before the run does. `stop` ends the subscription; a caller must always call it. */
  begin(sessionKey: string, runId: string): RunWait {
    const { promise: end, resolve } = Promise.withResolvers<Ended>();
    const sink: Sink = {
      deliver: (_key, events) => {
        for (const event of events) {
          const ended = endOf(event, runId);
          if (ended !== undefined) resolve(ended);
        }
      },
    };
    this.#subscriptions.add(sessionKey, sink);
    return { end, stop: () => this.#subscriptions.remove(sessionKey, sink) };
  }
}

function endOf({ event, payload }: NewEvent, runId: string): Ended | undefined {
  if (event !== "chat") return undefined;
  const chat = payload as ChatEvent;
  if (chat.runId !== runId) return undefined;
  switch (chat.state) {
    case "final":
      return { state: chat.state, text: textOf(chat.message.content) };
    case "error":
    case "aborted":
      return { state: chat.state, error: chat.error ?? "" };
    default:
      return undefined;
  }
}
