/**
 * The events of a session, and its answers. PURE data. The stamp of an event has everything that a pure function can't know: the time, a
 * fresh id, a random number, and the parts of the store that are not in the state.
 */
import type { ResetPolicyPatch, SandboxProfile, SessionSettings, ToolOutcome, Usage } from "../../../../protocol/gen/types.ts";
import type { Ask, Binding } from "../../calls/approval.ts";
import type { Closing } from "../../calls/open-call.ts";
import type { LedgerEntry } from "../../calls/rules.ts";
import type { GrantChoice } from "../../ports/grants.ts";
import type { AssistantMessage, ContentBlock, MediaBlock } from "../../ports/messages.ts";
import type { OthersUse } from "../../ports/others-use.ts";
import type { GsvError } from "../../ports/result.ts";
import type { SessionIdentity } from "../../ports/session.ts";
import type { MoreOffer, SpendSum } from "../../ports/spend.ts";
import type { Taint } from "../../ports/taint.ts";
import type { ToolTarget } from "../../ports/tool-target.ts";
import type { SentCall, UserRow } from "./log.ts";
import type { ApprovalEnd, Budget, CutPlan, IncomingMessage, MemoryDay, QueuedMessage } from "./state.ts";

export interface Stamp {
  /** The session's clock, ms. */
  readonly now: number;
  /** Wall clock, epoch ms. */
  readonly wall: number;
  /** In [0, 1). */
  readonly jitter: number;
  /** Never used before. */
  readonly freshId: string;
  /** Clients have received every event up to here. */
  readonly published: number;
  /** The spend ledger has the session's model calls up to this number. */
  readonly settled: number;
  /** The quiet messages at the front of the queue, and the first message after them, which a run answers. */
  readonly quiet: readonly QueuedMessage[];
  readonly head: QueuedMessage | undefined;
  /** The waiting messages that are for a run, in order. They are neither quiet nor the head. Absent: none. */
  readonly steered?: readonly QueuedMessage[];
  /** With an Abort that names a run: the message in the queue that would start it. */
  readonly named: QueuedMessage | undefined;
}

/** The target of a call that the model asked for, or why there is none. `ask`: the owner must allow the call first. */
export type CallTarget =
  | {
      readonly kind: "native";
      readonly ask?: Ask;
      /** The etag of the file that the call changes; `absent`: there is none. Another state of the file is a conflict. */
      readonly expect?: string;
      /** The label of the result. Absent: not known. */
      readonly taint?: Taint;
      /** The rule of the policy that allows the call, without `ask`. */
      readonly rule?: string;
      readonly tool: string;
      readonly idempotent: boolean;
      readonly isWait?: true;
      readonly timeoutMs: number;
      readonly deadlineMs: number;
    }
  | {
      readonly kind: "node";
      readonly ask?: Ask;
      /** The label of the result. Absent: not known. */
      readonly taint?: Taint;
      readonly rule?: string;
      /** What the decision about a program depends on: the machine's sandbox. */
      readonly sandbox?: SandboxProfile;
      readonly nodeId: string;
      readonly tool: string;
      readonly ledger: boolean;
      readonly idempotent: boolean;
      readonly timeoutMs: number;
      readonly deadlineMs: number;
      /** How long the call may wait for the machine. Absent: not at all. */
      readonly waitMs?: number;
      /** The arguments have `wait`, which the machine does not get. */
      readonly withoutWait?: true;
      /** The machine is not connected: the call waits, and is decided when it is back. */
      readonly isAway?: true;
      /** A machine's own tool for files (TA17). */
      readonly isFileTool?: true;
    }
  | {
      readonly kind: "none";
      readonly reason: Closing["reason"];
      readonly message: string;
      /** The rule of the policy that denied the call. */
      readonly rule?: string;
    };
export interface ReplyCall {
  readonly providerId: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly target: CallTarget;
  /** With `ask`: what the owner's answer is bound to. Without it such a call is refused. */
  readonly binding?: Binding;
}
/** What the policy says about a waiting call when its answer comes. */
export interface CurrentDecision {
  readonly target: CallTarget;
  readonly binding: Binding;
  readonly args: Readonly<Record<string, unknown>>;
}
/** A call that waits for its machine, and what becomes of it. `current` absent: the gateway keeps no more calls that wait. */
export interface LookedCall {
  readonly callId: string;
  readonly current?: CurrentDecision;
}
export type EventBody =
  /** A message arrives. `bytes` is its size in the queue. */
  | {
      readonly type: "UserMessage";
      readonly identity: SessionIdentity;
      readonly incoming: IncomingMessage;
      readonly bytes: number;
      readonly resetDue?: "daily" | "idle";
      /** What the sender wants while a run is under way. Absent: the message waits for its turn. */
      readonly whileBusy?: "steer" | "interrupt";
    }
  /** A background process ended; the agent is woken with a message. A full queue, or too many of them, turns it into a note. */
  | {
      readonly type: "ExecEnded";
      readonly nodeId: string;
      readonly processId: string;
      readonly incoming: IncomingMessage;
      readonly bytes: number;
    }
  | {
      readonly type: "ModelReplied";
      readonly effectId: string;
      readonly message: AssistantMessage;
      readonly calls: readonly ReplyCall[];
      readonly usage: Usage;
      readonly budget: Budget;
      /** `provider/id` as it was asked for; the message may name it otherwise. */
      readonly asked?: string;
      readonly sent?: SentCall;
      readonly spent?: SpendSum;
    }
  | {
      readonly type: "ModelFailed";
      readonly effectId: string;
      readonly error: GsvError;
      readonly retryable: boolean;
      readonly retryAfterMs?: number;
      readonly usage?: Usage;
      readonly spent?: SpendSum;
      /** Absent: the model was not called. */
      readonly sent?: SentCall;
      readonly budget?: Budget;
      /** With a limit that is used up: what the owner could allow. */
      readonly offer?: MoreOffer;
      /** Length of [chosen model, ...fallbacks]. */
      readonly models: number;
      /** The model had sent text, so the run was making progress. */
      readonly streamed: boolean;
      /** The context is too large for the model; this is what could be archived. */
      readonly plan?: CutPlan;
    }
  /** A run that seems to have used up a limit has looked (rule SP10): the model was not called. `budget`: the run's limits now. */
  | { readonly type: "LimitsKnown"; readonly effectId: string; readonly budget: Budget }
  /** The model was not called: there would be too little headroom for an answer. */
  | { readonly type: "ContextFull"; readonly effectId: string; readonly plan: CutPlan; readonly budget: Budget }
  /** The cut of a requested compaction. No plan: nothing can be archived. */
  | { readonly type: "Planned"; readonly effectId: string; readonly plan?: CutPlan }
  /** One chunk is in the summary, or its memories are found. `cursor`: where the next one begins. */
  | {
      readonly type: "Summarized";
      readonly effectId: string;
      readonly cursor: number;
      readonly summary: string;
      /** All memories so far, those of earlier chunks included. */
      readonly memories: string;
      readonly day?: MemoryDay;
      readonly usage?: Usage;
      readonly spent?: SpendSum;
    }
  | {
      readonly type: "SummarizeFailed";
      readonly effectId: string;
      readonly error: GsvError;
      readonly retryable: boolean;
      readonly usage?: Usage;
      readonly spent?: SpendSum;
    }
  /** A model call was stopped after it had begun: what it may have cost. */
  | { readonly type: "Spent"; readonly spent: SpendSum }
  | {
      readonly type: "ToolResult";
      readonly callId: string;
      /** The target that reports the result. */
      readonly from: ToolTarget;
      readonly content: readonly ContentBlock[];
      readonly outcome: ToolOutcome;
      readonly reason?: string;
      readonly durationMs?: number;
      /** Files that the tool attaches to the run's answer. */
      readonly files?: readonly MediaBlock[];
      /** The call ended, and a process that it started goes on under this name. */
      readonly processId?: string;
      /** A native tool's own word about its result, in the place of the call's label. */
      readonly taint?: Taint;
      /** If a machine's own tool for files gave it, nothing of a file is in it (TA17). */
      readonly gaveNothing?: true;
      /** For the people who follow the conversation. */
      readonly note?: string;
      /** What runs of other agents used for the call. Their sessions have counted it; here it counts for the run's limits alone. */
      readonly used?: OthersUse;
    }
  /** Recordings of a message were turned into text: the message's row, with the transcripts in it. Only before a model call. */
  | { readonly type: "Transcribed"; readonly effectId: string; readonly row: UserRow }
  /** To be committed before the only dispatch of a call to a node without a ledger. */
  | { readonly type: "ToolSent"; readonly effectId: string; readonly callId: string }
  /** The node was not there. `first`: no dispatch of this call can have reached it. */
  | { readonly type: "ToolOffline"; readonly effectId: string; readonly callId: string; readonly first: boolean }
  /** Handing over the call failed in a way that does not tell whether the node got it. */
  | { readonly type: "ToolUncertain"; readonly effectId: string; readonly callId: string }
  /** Calls that waited for machines which are connected now, with the decision of the policy. `full`: the gateway keeps no more of them. */
  | { readonly type: "NodesLooked"; readonly effectId: string; readonly calls: readonly LookedCall[] }
  /** `calls` absent: the node keeps no ledger. */
  | { readonly type: "NodeChanged"; readonly nodeId: string; readonly online: boolean; readonly calls?: readonly LedgerEntry[] }
  | { readonly type: "Delivered"; readonly upto: number }
  /**
   * The owner answered a question. `hash`: what the answer was given to, when the answerer names it. `current`: the decision of the
   * policy now, without which nothing is allowed.
   */
  | {
      readonly type: "ApprovalAnswered";
      readonly code: string;
      readonly answer: "allow" | "deny";
      /** To the model, with a denial. */
      readonly word?: string;
      /** Who answered, for the record. */
      readonly by: string;
      readonly hash?: string;
      /** With an allowance: for how long calls like this one are allowed. Absent: this call only. */
      readonly choice?: GrantChoice;
      readonly current?: CurrentDecision;
    }
  /**
   * The limit of the paused run, asked about under `code`, leaves enough for what its next model call needs now. `budget`: the run's own
   * limits now, which the machine checks.
   */
  | { readonly type: "LimitNoLongerReached"; readonly code: string; readonly budget: Budget }
  /** A CancelTool, StoreResult, AppendMemory or DeleteMedia has ended, or is given up. */
  | { readonly type: "EffectDone"; readonly effectId: string }
  /** An effect has failed so often that people are told. It is still retried. */
  | { readonly type: "Parked"; readonly effectId: string; readonly text: string }
  /** A note from outside, for people and, with `forModel`, for the model with the next message: the same text, or another. `isAnswer`: the agent's, in Markdown. */
  | { readonly type: "Noted"; readonly text: string; readonly forModel?: true | string; readonly isAnswer?: true }
  /** GSV was stopped (`held`) or goes on. `isDeleted`: the conversation is held because it is about to be deleted. */
  | { readonly type: "Held"; readonly held: boolean; readonly isDeleted?: true }
  /** The archive was stored and read back. It has `count` messages. */
  | { readonly type: "Archived"; readonly effectId: string; readonly key: string; readonly count: number }
  | { readonly type: "ArchiveFailed"; readonly effectId: string; readonly error: GsvError }
  | { readonly type: "Abort"; readonly runId?: string }
  | { readonly type: "Reset" }
  /** Without `keep`, a summary takes the place of older messages. `runId`: of the command, with which its client aborts it. */
  | { readonly type: "Compact"; readonly keep?: number; readonly runId?: string }
  | {
      readonly type: "SettingsPatched";
      readonly settings?: SessionSettings;
      readonly label?: string;
      readonly resetPolicy?: ResetPolicyPatch;
      readonly clear?: readonly string[];
      readonly text: string;
    }
  /** The owner vouches for what the conversation has read. */
  | { readonly type: "Trusted"; readonly text: string }
  /** A new incarnation of the object: what was under way in memory is gone. */
  | { readonly type: "Woke" }
  /** A deadline may have passed. `inFlight`: effects that run in this incarnation. */
  | { readonly type: "Tick"; readonly inFlight: readonly string[] };
export type Event = EventBody & Stamp;
export type EventOf<T extends EventBody["type"]> = Extract<EventBody, { readonly type: T }> & Stamp;

/** The answer to the caller, and again to a repetition of the same event. */
export type Answer =
  | {
      readonly type: "accepted";
      readonly runId: string;
      readonly queued: boolean;
      readonly seq?: number;
      /** The run that is to be shown the message. */
      readonly steers?: string;
      /** The run that was stopped for it. */
      readonly interrupted?: string;
    }
  | { readonly type: "refused"; readonly error: GsvError }
  /** `waiting`: messages in the queue, which come next. */
  | {
      readonly type: "aborted";
      readonly wasRunning: boolean;
      readonly runId?: string;
      readonly cancelled: number;
      readonly waiting?: number;
    }
  /** The end of it comes later, under this id. */
  | { readonly type: "archiving"; readonly requestId: string; readonly waits: boolean }
  | { readonly type: "patched" }
  /**
   * How the question ended; for a repeated answer the same as for the first. `code`: with `asked_again` that of the new question. `before`:
   * the question had ended at this wall time, so the answer changed nothing. `why`: with `void`, what the model is told.
   */
  | {
      readonly type: "approval";
      readonly ended: ApprovalEnd;
      readonly by?: string;
      readonly code?: string;
      readonly before?: number;
      readonly why?: string;
    }
  | { readonly type: "taken" }
  | { readonly type: "duplicate" }
  | { readonly type: "late" }
  | { readonly type: "unknown" };

/** How a reset or compaction ended, for callers that wait for it. */
export type ArchiveEnd =
  | {
      readonly ok: true;
      readonly kind: "reset";
      readonly requestId: string;
      readonly oldSessionId: string;
      readonly newSessionId: string;
      readonly archived: number;
      readonly key?: string;
      /** Path of the daily file. */
      readonly memoriesTo?: string;
      /** The effect that deletes the media. */
      readonly mediaEffect: string;
      readonly tokens: { readonly input: number; readonly output: number; readonly total: number; readonly costUsd?: number };
    }
  | {
      readonly ok: true;
      readonly kind: "compact";
      readonly requestId: string;
      readonly trimmed: number;
      readonly kept: number;
      readonly summarized: boolean;
      readonly key?: string;
      readonly memoriesTo?: string;
    }
  | { readonly ok: false; readonly requestId: string; readonly error: GsvError };
