/** A message from one session to another. */
import type { SessionIdentity } from "./session.ts";

export interface SessionToSession {
  readonly from: SessionIdentity;
  /** Of the tool call: the message is taken once, however often the call runs. */
  readonly callId: string;
  /** The run in which the tool was called, if any. */
  readonly runId: string | undefined;
  /** As the model wrote it. */
  readonly to: string;
  readonly message: string;
  /** Wait this long for the end of the run that answers it; 0: don't. */
  readonly waitMs: number;
}

export type SessionToSessionSent =
  | { readonly status: "accepted"; readonly runId: string; readonly queued: boolean }
  /** The run goes on; its answer stays in its own conversation. */
  | { readonly status: "running"; readonly runId: string }
  | { readonly status: "answered"; readonly runId: string; readonly answer: string }
  | { readonly status: "failed"; readonly runId: string; readonly error: string };
