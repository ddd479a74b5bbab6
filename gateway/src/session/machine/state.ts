/**
 * The state of a session between two events. PURE data, JSON-safe; stored as one row. Parts that are large and seldom change (settings,
 * earlier session ids, the summary, the work of an archive) have rows of their own.
 *
 *   idle      -- UserMessage -->                 thinking     (or archiving first, when the reset policy says so)
 *   thinking  -- ModelReplied, no calls -->      idle | thinking (the next in the queue)
 *   thinking  -- ModelReplied, calls -->         acting       (thinking again when every call failed at once)
 *   thinking  -- ModelFailed, lost, retryable--> thinking     (attempt + 1)
 *   thinking, acting -- error, abort, budget --> idle | thinking | archiving (a compaction that waited)
 *   thinking, acting -- a limit is reached -->   thinking     (looks at the current limits)
 *   thinking  -- LimitsKnown -->                 thinking | paused (the owner is asked for more) | idle
 *   paused    -- ApprovalAnswered, allowed -->   thinking
 *   paused    -- LimitNoLongerReached -->        thinking     (the limit was raised, or its day is over)
 *   paused    -- denied, deadline, message -->   idle | thinking
 *   acting    -- ApprovalAnswered -->            acting       (the call is handed over, asked again or closed)
 *   acting    -- NodesLooked -->                 acting       (a call that waited for its machine: the same)
 *   acting    -- last ToolResult or deadline --> thinking     (step + 1)
 *   thinking  -- ContextFull, overflow -->       archiving    (the run waits behind it, in `resume`)
 *   idle      -- Reset, Compact -->              archiving
 *   archiving -- Planned, Summarized -->         archiving    (the next stage, or the next chunk)
 *   archiving -- Archived, ArchiveFailed -->     archiving | idle | thinking
 *
 * A compaction goes plan -> summarize -> archive (one with a number of messages: plan -> archive), a reset archive -> summarize.
 * Each ends in one commit that turns the conversation over, after its archive was read back.
 *
 * Durations run on the session's own clock (`now`, see ../clock.ts), which no jump of the wall clock moves; `wall` is for people.
 */
import type { GrantChoice } from "../../ports/grants.ts";
import type { Directives, ResetPolicyPatch, SessionSettings, TokenUsage, ToolOutcome, Usage } from "../../../../protocol/gen/types.ts";
import type { MediaBlock, UserMessage } from "../../ports/messages.ts";
import type { Origin } from "../../ports/origin.ts";
import type { ReplyRoute, SessionIdentity } from "../../ports/session.ts";
import type { DefinedLimit, Amount, MoreOffer, Raise, SpendReport } from "../../ports/spend.ts";
import type { GsvError } from "../../ports/result.ts";
import type { Approval } from "../../calls/approval.ts";
import type { Taint } from "../../ports/taint.ts";
import type { ToolTarget } from "../../ports/tool-target.ts";
import type { OpenCall } from "../../calls/open-call.ts";
import type { Effect } from "./effect.ts";
import type { FailedCall } from "./log.ts";
import type { Repeats } from "./repeats.ts";

/** The limits of one run, from the configuration of its last model call. */
export interface Budget {
  readonly steps: number;
  readonly ms: number;
  readonly costUsd: number;
  /** Tokens of models without a known price. Absent: no limit. */
  readonly tokens?: number;
  /** The limits that the agent's definition sets. Absent: none. */
  readonly defined?: readonly DefinedLimit[];
  /** The agent had a definition at the model call: a run does not go on without it (rule AD6). */
  readonly hasDefinition?: true;
}

/** What the owner has allowed a run beyond its limits. Absent fields: nothing. */
export interface Extra extends Partial<Amount> {
  readonly steps?: number;
  readonly ms?: number;
  /** Beyond limits of a day or a month. */
  readonly raises?: readonly Raise[];
}
/** A limit that a run has used up. */
export interface Shortage {
  /** How the run ends when it gets no more. */
  readonly error: GsvError;
  /** Absent: no answer could help. */
  readonly offer?: MoreOffer;
}

export interface RunCore {
  /** Rises by one with each run of the session; `r12` in ids. */
  readonly ordinal: number;
  readonly runId: string;
  readonly messageId: string;
  /** Who caused the run. */
  readonly origin: Origin;
  readonly directives: Directives;
  /** The platform's conversation that the message came from; the run's end is sent there. */
  readonly reply?: ReplyRoute;
  /** Other conversations that messages for this run came from; its end is sent there too. */
  readonly alsoTo?: readonly ReplyRoute[];
  readonly startedAt: number;
  /** When the run last made progress: a step was committed, a result came in, another model was chosen. */
  readonly progressAt: number;
  /** Counts model answers, from 1. */
  readonly step: number;
  /** Into [chosen model, ...fallbacks]. Kept over steps, so that a model that is down is not asked at every step. */
  readonly modelIndex: number;
  readonly spent: Usage;
  /** Tokens of models without a known price. */
  readonly unpriced?: number;
  /** Absent until the first model call has ended. */
  readonly budget?: Budget;
  readonly extra?: Extra;
  /** Files that go out with the answer. */
  readonly files?: readonly MediaBlock[];
  /** Absent: no call was made yet. */
  readonly repeats?: Repeats;
  /** How long calls of the run waited for the owner or their machines: not counted as the run's time. */
  readonly waitedMs?: number;
  /** How often each call was denied, by its `argsHash`. The newest `DENIED_CALLS` of them. */
  readonly denied?: readonly { readonly argsHash: string; readonly times: number }[];
}
export interface Idle {
  readonly phase: "idle";
}
export interface Thinking extends RunCore {
  readonly phase: "thinking";
  /** Each start of this step's model call has its own number; completions of other attempts are dropped. */
  readonly attempt: number;
  /** Failures of this step at the current model. */
  readonly tries: number;
  /** Times that this step's call was lost and started again. */
  readonly restarts: number;
  readonly deadline: number;
  /** Times that the model said that this step's context is too large for it. */
  readonly overflows?: number;
  /** The newest `FAILED_CALLS` of the step's calls that got no answer. Absent: none. */
  readonly failed?: readonly FailedCall[];
  /** The context was compacted for this step, or could not be: the model is called with it as it is. */
  readonly compactionTried?: true;
  /** By the limits of its last model call the run has used one up: the effect looks at the current limits and calls no model (rule SP10). */
  readonly looksAtLimit?: true;
}
export interface Acting extends RunCore {
  readonly phase: "acting";
  /** The log row with the calls' arguments. */
  readonly assistantSeq: number;
  /** Never empty. */
  readonly calls: readonly OpenCall[];
  /** How often the call at this index was repeated, for calls whose result says so. */
  readonly repeated?: Readonly<Record<number, number>>;
  readonly deadline: number;
  /** Since when at least one call has been waiting for the owner or for its machine. */
  readonly waitingSince?: number;
}
/** The run has used up a limit and waits for the owner's word. Nothing is under way; `waitingSince` is on the session's clock. */
export interface Paused extends WaitingRun {
  readonly phase: "paused";
  readonly question: Approval;
  /** The answer is about this. */
  readonly callId: string;
  readonly offer: MoreOffer;
  readonly error: GsvError;
  readonly waitingSince: number;
  /** The end of the question. */
  readonly deadline: number;
}
export type ArchiveKind = "reset" | "compact";
export interface ArchiveIntent {
  readonly kind: ArchiveKind;
  /** Names the request whose caller waits for the end. */
  readonly requestId: string;
  /** `pressure`, `overflow`: a run needs headroom. */
  readonly cause: "asked" | "daily" | "idle" | "pressure" | "overflow";
  /** Compaction without a summary: messages to keep at least. */
  readonly keep?: number;
  /** The id of the command that asked for it: an abort of that id stops it. */
  readonly askedAs?: string;
}
/** Where a compaction cuts. */
export interface CutPlan {
  /** The conversation continues with this seq. */
  readonly contextFrom: number;
  /** Numbers of the messages that are archived and that stay. */
  readonly count: number;
  readonly kept: number;
  /** Wall times of the first and the last archived message. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** The user's newest message, word for word, when it is archived too (the cut is inside its run). */
  readonly task?: string;
}
/** A run that waits until its next model call can be made. */
export type WaitingRun = Omit<Thinking, "phase" | "deadline">;
export interface Archiving extends ArchiveIntent {
  readonly phase: "archiving";
  /** `plan`: where to cut is not known yet. */
  readonly stage: "plan" | "summarize" | "archive";
  /** Names the effects of this archive; rises with each archive of the session. */
  readonly ordinal: number;
  /** Every start of an effect has its own number. */
  readonly attempt: number;
  /** Failures and restarts of the current stage or chunk. */
  readonly failures: number;
  readonly restarts: number;
  /** Rows that leave the conversation: seq in [from, upto]. */
  readonly from: number;
  readonly upto: number;
  /** Messages among them, and messages that stay. */
  readonly count: number;
  readonly kept: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The summary (or the memories of a reset) covers everything before this seq. */
  readonly cursor: number;
  /** Model calls that came to an end. */
  readonly chunks: number;
  /** The model failed permanently, or there was too much text: a note replaces the rest of the summary. */
  readonly plain: boolean;
  /** Wall time, part of the archive's key; stored here, so that a repetition writes the same object. */
  readonly archivedAt: number;
  readonly newSessionId: string;
  /** A reset's archive, once it has been read back. */
  readonly archivedTo?: string;
  readonly deadline: number;
  readonly resume?: WaitingRun;
  /** A reset: the highest label of what entered the log since it began. */
  readonly heardSince?: Taint;
}
/** The results of an archive so far. Large, so it has a row of its own; it exists only while an archive is made. */
export interface ArchiveWork {
  readonly summary: string;
  readonly memories: string;
  /** Where memories go: the daily file, and the time in their heading. */
  readonly day?: MemoryDay;
  readonly task?: string;
}
export interface MemoryDay {
  /** YYYY-MM-DD and HH:MM, in the user's time zone. */
  readonly date: string;
  readonly time: string;
}
/** The summary that replaces the messages of earlier compactions. */
export interface Summary {
  readonly text: string;
  readonly task?: string;
  /** Messages that it stands for. */
  readonly count: number;
  /** Wall time. */
  readonly at: number;
}
/** The provider's token count of the context at the last answer. */
export interface KnownContext {
  readonly tokens: number;
  /** The answer's row: what came later is estimated. */
  readonly seq: number;
  /** `provider/id`: another model counts differently. */
  readonly model: string;
}
export type Run = Idle | Thinking | Acting | Paused | Archiving;
export type ActiveRun = Thinking | Acting | Paused;

/** A call that the session closed itself; a result of the tool that comes later becomes a late note. */
export interface ClosedCall {
  readonly callId: string;
  readonly target: ToolTarget;
  readonly name: string;
  readonly runId: string;
  readonly outcome: ToolOutcome;
  /** The label of a late result. Absent: not known. */
  readonly taint?: Taint;
}

/** `void`: the policy, or what is connected, changed so that the call cannot be made. `withdrawn`: the run ended first. */
export type ApprovalEnd = "allowed" | "denied" | "expired" | "withdrawn" | "void" | "asked_again";
/** A question that waits no more. */
export interface EndedQuestion {
  readonly code: string;
  readonly callId: string;
  readonly ended: ApprovalEnd;
  /** Who answered. */
  readonly by?: string;
  /** The code of the new question. */
  readonly again?: string;
  /** With `allowed`: what else the owner allowed with the answer. */
  readonly choice?: GrantChoice;
  /** Wall time. */
  readonly at: number;
}

/** A process that a call's result reported as running. Its end is taken once. */
export interface RunningProcess {
  readonly nodeId: string;
  /** As the node names it. */
  readonly processId: string;
  readonly callId: string;
  /** The label of the process's output: that of the call. Absent: not known. */
  readonly taint?: Taint;
  /** It was ended because everything is stopped: its end wakes no one. */
  readonly stopped?: true;
}

/** Raised when earlier programs can no longer read the state. */
export const STATE_VERSION = 6;

export interface State {
  readonly v: typeof STATE_VERSION;
  readonly identity: SessionIdentity;
  readonly sessionId: string;
  readonly previousSessionIds: readonly string[];
  readonly createdAt: number;
  /** Last message, answer or end of a run. */
  readonly updatedAt: number;
  readonly lastResetAt?: number;
  readonly label?: string;
  readonly settings: SessionSettings;
  readonly resetPolicy: ResetPolicyPatch;
  /** The session's clock at the last commit. */
  readonly clock: { readonly wall: number; readonly now: number };
  readonly runCount: number;
  readonly archiveCount: number;
  readonly cancelCount: number;
  /** The next free number of the log. */
  readonly nextSeq: number;
  /** The conversation begins here; earlier rows are kept only for clients that catch up. */
  readonly contextFrom: number;
  /** Messages of the conversation, those in the queue not counted. */
  readonly messageCount: number;
  /** Clients have received every event up to here at least once. */
  readonly deliveredSeq: number;
  /** `steered`: how many of them are for the run under way, or for one that ended before it was shown them. Absent: none. */
  readonly queue: { readonly count: number; readonly bytes: number; readonly steered?: number };
  readonly usage: TokenUsage;
  /** What model calls used since the spend ledger last confirmed it. Absent: nothing yet. */
  readonly spend?: SpendReport;
  readonly run: Run;
  /** Effects that are decided and have not ended. */
  readonly outbox: readonly Effect[];
  /** The newest `CLOSED_CALLS` of them. */
  readonly closed: readonly ClosedCall[];
  /** The newest `PROCESSES` of them. Absent: stored by a program that did not record them. */
  readonly processes?: readonly RunningProcess[];
  /** Processes that have woken the session since `from`, on its own clock. */
  readonly wakes?: { readonly from: number; readonly count: number };
  /** The newest `ENDED_QUESTIONS` of them. */
  readonly questions?: readonly EndedQuestion[];
  /** The number of the last report of questions to the gateway. */
  readonly approvalRevision?: number;
  /** The number of the last report of calls that wait for machines. */
  readonly waitRevision?: number;
  /** GSV is stopped: messages wait, and nothing starts. */
  readonly held?: true;
  /** A compaction that waits for the end of the run. */
  readonly afterRun?: ArchiveIntent;
  /** The platform's conversation of the last message; the ends of its background processes are sent there too. */
  readonly lastRoute?: ReplyRoute;
  /** No reset by policy, and no compaction for headroom, before this (wall time). */
  readonly autoResetAfter: number;
  /** Compactions of the current conversation. */
  readonly compactions: number;
  readonly context?: KnownContext;
  /** The highest label of everything that the conversation has read since the last reset or the owner's `/trust`. Absent: owner. */
  readonly taint?: Taint;
  readonly summary?: Summary;
  readonly work?: ArchiveWork;
}

/** A message on its way into the log; in the queue it is exactly this. */
export interface IncomingMessage {
  readonly messageId: string;
  readonly runId: string;
  readonly origin: Origin;
  readonly message: UserMessage;
  readonly directives: Directives;
  readonly reply?: ReplyRoute;
  /** No run answers the message; the model sees it with the next one. */
  readonly quiet?: true;
  /** What its sender's side says about the content. Absent: only the origin counts. */
  readonly taint?: Taint;
  /** The run, by its ordinal, whose model is shown the message at its next step. Only in the queue. */
  readonly steers?: number;
}
export interface QueuedMessage {
  /** Rises in the order of arrival. */
  readonly id: number;
  readonly bytes: number;
  readonly incoming: IncomingMessage;
}

export interface Birth {
  readonly identity: SessionIdentity;
  readonly sessionId: string;
  readonly wall: number;
}
export const NO_USAGE: TokenUsage = { input: 0, output: 0, total: 0, costUsd: 0 };

/** A session before its first message. */
export const newborn = ({ identity, sessionId, wall }: Birth): State => ({
  v: STATE_VERSION,
  identity,
  sessionId,
  previousSessionIds: [],
  createdAt: wall,
  updatedAt: wall,
  settings: {},
  resetPolicy: {},
  clock: { wall, now: 0 },
  runCount: 0,
  archiveCount: 0,
  cancelCount: 0,
  nextSeq: 1,
  contextFrom: 1,
  messageCount: 0,
  deliveredSeq: 0,
  queue: { count: 0, bytes: 0 },
  usage: NO_USAGE,
  run: { phase: "idle" },
  outbox: [],
  closed: [],
  processes: [],
  autoResetAfter: 0,
  compactions: 0,
});

/** The phase for clients, which know neither archives with a waiting run nor paused runs; a run with a question is `acting` for them. */
export const shownState = (run: Run): "idle" | "thinking" | "acting" | "archiving" => {
  if (run.phase === "paused") return "acting";
  return run.phase === "archiving" && run.resume ? "thinking" : run.phase;
};
export const isRunning = (run: Run): run is ActiveRun => run.phase === "thinking" || run.phase === "acting" || run.phase === "paused";
/** All other calls of the model's answer have their results. */
export const isLastOpenCall = (run: Run | undefined, callId: string): boolean =>
  run?.phase === "acting" && run.calls.length === 1 && run.calls[0]?.callId === callId;
/** A call whose result is not here yet. `name`: with its machine's. */
export function callOf({ run, closed }: State, callId: string): { readonly name: string; readonly runId: string } | undefined {
  const isIt = (call: { readonly callId: string }): boolean => call.callId === callId;
  const open = run.phase === "acting" ? run.calls.find(isIt) : undefined;
  if (run.phase === "acting" && open !== undefined) return { name: open.name, runId: run.runId };
  const late = closed.find(isIt);
  return late && { name: late.name, runId: late.runId };
}
/** The run that is under way, or waits. */
export const activeRun = (run: Run): ActiveRun | WaitingRun | undefined => {
  if (isRunning(run)) return run;
  return run.phase === "archiving" ? run.resume : undefined;
};
