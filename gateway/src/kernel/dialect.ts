/**
 * Events as each kind of client reads them (wire rule C7). PURE. A client that sends no `fingerprint` in `connect` may be the published
 * client of the reference implementation, which does not know the state `aborted` and prints the text of each delta and of the final.
 */
import type { NewEvent } from "./subscriptions.ts";

export type Dialect = "current" | "reference";

const STOPPED = "Stopped.";

/** The event in the dialect of its reader. The event itself is not changed. */
export function inDialect(dialect: Dialect, event: NewEvent): NewEvent {
  const { payload } = event;
  if (dialect === "current" || event.event !== "chat" || typeof payload !== "object" || payload === null || !("state" in payload))
    return event;
  switch (payload.state) {
    case "delta":
      return { ...event, payload: { ...payload, text: "" } };
    case "aborted":
      return { ...event, payload: { error: STOPPED, ...payload, state: "error" } };
    default:
      return event;
  }
}
