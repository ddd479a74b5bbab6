/** The tools that the gateway runs itself (native tools): what a session needs of them, and what each call gets. */
import type { PolicyMode } from "../../../protocol/gen/types.ts";
import type { GatewayPort } from "./gateway.ts";
import type { MediaBlock } from "./messages.ts";
import type { DelegatedBudget, Origin } from "./origin.ts";
import type { OthersUse } from "./others-use.ts";
import type { GsvError, Result } from "./result.ts";
import type { SessionIdentity } from "./session.ts";
import type { Taint } from "./taint.ts";
import type { ToolEntry } from "./tool-entry.ts";

export interface NativeToolContext {
  readonly identity: SessionIdentity;
  readonly callId: string;
  /** The run that made the call; absent when a client called the tool itself. */
  readonly runId?: string;
  /** Who caused the run; absent when a client called the tool itself. */
  readonly origin?: Origin;
  /** What the conversation has read. Absent: nothing but the owner's words and the agent's own. */
  readonly taint?: Taint;
  /** The state of the file that the owner has seen when they allowed the call: an etag, or `absent`. */
  readonly expect?: string;
  readonly now: number;
  readonly userTimezone: string;
  readonly gateway: GatewayPort;
  /** For the tool that hands a task to another agent. */
  readonly delegating?: Delegating;
  /** The key of the session's file with this number (`media:3`). Absent when a client called the tool itself. */
  readonly mediaKey?: (number: number) => string | undefined;
}

export interface Delegating {
  /** The tool as the model has called it. */
  readonly tool: string;
  /** What the run has left for this call. */
  readonly budget: DelegatedBudget;
  /** The mode that was chosen for the run or its conversation. `full` holds for these alone. */
  readonly mode?: Exclude<PolicyMode, "full">;
  /** Fires when the run waits no more. */
  readonly signal: AbortSignal;
}
export type NativeOutcome =
  | {
      readonly ok: true;
      readonly result: unknown;
      /** Files that go out with the run's answer. */
      readonly files?: readonly MediaBlock[];
      /** Who may have written the result, where the tool knows it better than its name tells (rule TA4). */
      readonly taint?: Taint;
      /** A sentence for the people who follow the conversation. */
      readonly note?: string;
      /** What runs of other agents used for it. */
      readonly used?: OthersUse;
    }
  | { readonly ok: false; readonly error: GsvError };

/** The change of a file that a call would make. */
export interface FilePreview {
  readonly path: string;
  /** Undefined: there is no such file. */
  readonly before: string | undefined;
  /** Undefined: it is deleted. */
  readonly after: string | undefined;
  /** The etag of the current file; `absent`: there is none. */
  readonly etag: string;
}

export interface NativeTools {
  readonly entries: readonly ToolEntry[];
  /** Why a call of the agent is refused in any case, by its arguments alone. Undefined: nothing tells. Pure. */
  problem?(name: string, args: Readonly<Record<string, unknown>>, agentId: string): GsvError | undefined;
  /** What a call would change, for tools that change one file. Undefined: the tool says nothing. Changes nothing. */
  preview?(name: string, args: Readonly<Record<string, unknown>>, identity: SessionIdentity): Promise<Result<FilePreview> | undefined>;
  /** Safe to run again with the same callId (promises P8). Never throws. */
  run(name: string, args: Readonly<Record<string, unknown>>, context: NativeToolContext): Promise<NativeOutcome>;
}
