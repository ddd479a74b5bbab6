/**
 * What a session is, between two events. Pure data, JSON-safe; stored as one row (settings and earlier incarnations, which are
 * large and change seldom, in rows of their own).
 *
 *   idle      -- UserMessage -->                 thinking     (or archiving first, when the reset policy says so)
 *   thinking  -- ModelReplied, no calls -->      idle | thinking (the next in the queue)
 *   thinking  -- ModelReplied, calls -->         acting       (thinking again when every call failed at once)
 *   thinking  -- ModelFailed, lost, retryable--> thinking     (attempt + 1)
 *   thinking, acting -- error, abort, budget --> idle | thinking | archiving (a compaction that waited)
 *   acting    -- last ToolResult or deadline --> thinking     (step + 1)
 *   idle      -- Reset, Compact -->              archiving
 *   archiving -- Archived, ArchiveFailed -->     idle | thinking
 *
 * Durations run on the session's own clock (`now`, see ../clock.ts), which no jump of the wall clock moves; `wall` is for people.
 */
import type { Directives, ResetPolicyPatch, SessionSettings, TokenUsage, ToolOutcome, Usage } from "../../../../protocol/gen/types.ts";
import type { SessionIdentity, UserMessage } from "../../ports.ts";
import type { Effect } from "./effect.ts";

/** What one run may use, as the configuration said when it last called the model. */
export interface Budget {
  readonly steps: number;
  readonly ms: number;
  readonly costUsd: number;
}

interface RunCore {
  /** Rises by one with each run of the session's whole life; `r12` in ids. */
  readonly ordinal: number;
  readonly runId: string;
  readonly messageId: string;
  readonly directives: Directives;
  readonly startedAt: number;
  /** When the run last got further: a step was committed, a result came in, another model was chosen. */
  readonly progressAt: number;
  /** Counts model answers, from 1. */
  readonly step: number;
  /** Into [chosen model, ...fallbacks]. Kept over steps, so that a model that is down is not asked at every step. */
  readonly modelIndex: number;
  readonly spent: Usage;
  /** Absent until the first model call has ended. */
  readonly budget?: Budget;
}
export interface Idle {
  readonly phase: "idle";
}
export interface Thinking extends RunCore {
  readonly phase: "thinking";
  /** Every start of this step's model call has its own number; a completion of another one drops itself. */
  readonly attempt: number;
  /** Failures of this step at the present model. */
  readonly tries: number;
  /** Times that this step's call was lost and started again. */
  readonly restarts: number;
  readonly deadline: number;
}
/** One call whose result the model waits for. */
export interface OpenCall {
  readonly index: number;
  readonly callId: string;
  /** As the model sees it. */
  readonly name: string;
  /** Absent: a native tool, run by the session. */
  readonly nodeId?: string;
  /** Safe to hand to the node again: it keeps a ledger. */
  readonly ledger: boolean;
  /** Safe to run again: it changes nothing. */
  readonly idempotent: boolean;
  /** The commit that had to come before the only dispatch to a node without a ledger is done. */
  readonly sent: boolean;
  /** Part of the effect's id; rises when the call is handed over again. */
  readonly dispatch: number;
  /** Native calls only: times that the object died while it ran. */
  readonly restarts: number;
  readonly startedAt: number;
  readonly deadline: number;
  /** The node dropped off (or can't account for the call): its outcome is unknown from here on. */
  readonly graceUntil?: number;
}
export interface Acting extends RunCore {
  readonly phase: "acting";
  /** The log row with the calls' arguments. */
  readonly assistantSeq: number;
  /** Never empty. */
  readonly calls: readonly OpenCall[];
  readonly deadline: number;
}
export type ArchiveKind = "reset" | "compact";
export interface ArchiveIntent {
  readonly kind: ArchiveKind;
  /** Who waits for the end. */
  readonly requestId: string;
  readonly cause: "asked" | "daily" | "idle";
  /** Compaction: messages to keep at least. */
  readonly keep: number;
}
export interface Archiving extends ArchiveIntent {
  readonly phase: "archiving";
  /** Names the effects of this archive; rises with each one of the session's life. */
  readonly ordinal: number;
  readonly attempt: number;
  /** Failures so far. */
  readonly failures: number;
  /** Rows that the archive is made from: seq in [from, upto]. */
  readonly from: number;
  readonly upto: number;
  /** Messages among them. */
  readonly count: number;
  /** Wall time, part of the key of a compaction's archive; fixed here, so that doing it again writes the same object. */
  readonly archivedAt: number;
  readonly newSessionId: string;
  readonly deadline: number;
}
export type Run = Idle | Thinking | Acting | Archiving;
export type ActiveRun = Thinking | Acting;

/** A call that was answered for a node; a real result that comes later becomes a late note. */
export interface SealedCall {
  readonly callId: string;
  readonly nodeId?: string;
  readonly name: string;
  readonly runId: string;
  readonly outcome: ToolOutcome;
}

export interface State {
  readonly v: 1;
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
  /** Clients have been handed every event up to here at least once. */
  readonly deliveredSeq: number;
  readonly queue: { readonly count: number; readonly bytes: number };
  readonly usage: TokenUsage;
  readonly run: Run;
  /** Effects that have been decided on and have not ended. */
  readonly outbox: readonly Effect[];
  readonly sealed: readonly SealedCall[];
  /** A compaction that waits for the end of the run. */
  readonly afterRun?: ArchiveIntent;
  /** No reset by policy before this (wall time). */
  readonly autoResetAfter: number;
}

/** A message on its way into the log; in the queue it is exactly this. */
export interface IncomingMessage {
  readonly messageId: string;
  readonly runId: string;
  readonly origin: string;
  readonly message: UserMessage;
  readonly directives: Directives;
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

/** A session that nobody has said anything to. */
export const newborn = ({ identity, sessionId, wall }: Birth): State => ({
  v: 1,
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
  sealed: [],
  autoResetAfter: 0,
});

// ---------------------------------------------------------------- names that derive from the state

export const runName = (ordinal: number): string => `r${ordinal}`;
export const modelEffectId = (run: Pick<Thinking, "ordinal" | "step" | "attempt">): string =>
  `r${run.ordinal}/t${run.step}/m${run.attempt}`;
export const dispatchEffectId = (run: Pick<RunCore, "ordinal" | "step">, call: Pick<OpenCall, "index" | "dispatch">): string =>
  `r${run.ordinal}/t${run.step}/d${call.index}.${call.dispatch}`;
export const archiveEffectId = (run: Pick<Archiving, "ordinal" | "attempt">): string => `a${run.ordinal}/${run.attempt}`;
export const deliverEffectId = (upto: number): string => `deliver/${upto}`;
export const cancelEffectId = (count: number): string => `cancel/${count}`;
export const storeEffectId = (callId: string): string => `store/${callId}`;
/** Rule G1. Unique over sessions and lives of the gateway, because `ref` is. */
export const callIdOf = (ref: string, run: Pick<RunCore, "ordinal" | "step">, index: number): string =>
  `${ref}/r${run.ordinal}/${run.step}/${index}`;
/** The id that providers see; every one of them takes these characters. */
export const providerCallId = (run: Pick<RunCore, "ordinal" | "step">, index: number): string => `call_${run.ordinal}_${run.step}_${index}`;
/** Where the full text of a long result is kept, under the agent's folder (G4). */
export const resultPath = (callId: string): string => `results/${callId.replaceAll("/", "-")}.txt`;

/** True for a call id that this session made at some time. */
export function isOwnCallId(state: Pick<State, "identity" | "runCount">, callId: string): boolean {
  const parts = callId.split("/");
  if (parts.length !== 4 || parts[0] !== state.identity.ref) return false;
  const ordinal = /^r([1-9][0-9]{0,14})$/.exec(parts[1] ?? "");
  return (
    ordinal !== null && Number(ordinal[1]) <= state.runCount && /^[0-9]{1,9}$/.test(parts[2] ?? "") && /^[0-9]{1,9}$/.test(parts[3] ?? "")
  );
}
