/** A tool call on its way to a node. */
import type { SandboxProfile } from "../../../protocol/gen/types.ts";
import type { Origin } from "./origin.ts";
import type { Taint } from "./taint.ts";

export interface ToolDispatch {
  readonly callId: string;
  readonly sessionKey: string;
  readonly nodeId: string;
  /** Bare name, without the node's prefix. */
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number;
  /** What the machine's commands ran in when the call was decided. Absent: the decision did not depend on it. */
  readonly sandbox?: SandboxProfile;
  /** What allowed the call, for the audit. */
  readonly rule?: string;
  /** The run that made the call. */
  readonly runId?: string;
  /** Who caused the run, for the audit. */
  readonly origin?: Origin;
  /** What the conversation had read, for the audit. Absent: nothing of others. */
  readonly taint?: Taint;
}

/** `sent` says the frame was handed to the node's socket, not that it arrived. `refused`: this conversation may not use the tool. `changed`: the machine has another sandbox now. */
export type DispatchOutcome = "sent" | "offline" | "refused" | "changed";
