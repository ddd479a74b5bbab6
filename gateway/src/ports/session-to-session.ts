/** A message from one session to another. */
import type { Origin } from "./origin.ts";
import type { SessionIdentity } from "./session.ts";
import type { Taint } from "./taint.ts";

export interface SessionToSession {
  readonly from: SessionIdentity;
  /** The id of the tool call. The message is accepted once per call, also when the call runs again. */
  readonly callId: string;
  /** Who caused the run in which the tool was called; undefined when a client called it. */
  readonly origin: Origin | undefined;
  /** What the writing conversation has read. Absent: nothing of others. */
  readonly taint?: Taint | undefined;
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
  | { readonly status: "answered"; readonly runId: string; readonly answer: string; readonly taint: Taint }
  | { readonly status: "failed"; readonly runId: string; readonly error: string };
