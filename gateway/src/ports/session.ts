/** What the gateway may ask of a session. */
import type {
  ChatAbortResult,
  ChatSendResult,
  Directives,
  MachineWait,
  NodeExecEventParams,
  Peer,
  PolicyMode,
  RunWhyResult,
  SessionCompactResult,
  SessionGetResult,
  SessionHistoryResult,
  SessionMessagesResult,
  SessionPatchParams,
  SessionPatchResult,
  SessionPreviewResult,
  SessionPromptResult,
  SessionResetResult,
  SessionResultResult,
  SessionStatsResult,
  SessionSubscribeResult,
  ToolResultParams,
  Attachment,
} from "../../../protocol/gen/types.ts";
import type { ApprovalAnswer, ApprovalTaken } from "./approvals.ts";
import type { Origin } from "./origin.ts";
import type { Result } from "./result.ts";
import type { SearchRows } from "./search.ts";
import type { SpendState } from "./spend.ts";
import type { Taint } from "./taint.ts";

/** The identity of a session. Every `send` carries it, so that a new session can store it. */
export interface SessionIdentity {
  /** Canonical key; also the Durable Object's name. */
  readonly key: string;
  /** Short random name, never used again in this gateway; first segment of every call id. */
  readonly ref: string;
  readonly agentId: string;
  /** Only the owner takes part in the session: private memory may be shown (P5.2, promises S8). */
  readonly isOwnersSession: boolean;
}

export interface SessionSend {
  readonly identity: SessionIdentity;
  /** Idempotency key: the sender's messageId, else its runId, else fresh. */
  readonly messageId: string;
  readonly runId: string;
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  /** The text is only text: nothing in it is a command or a directive. */
  readonly verbatim?: true;
  /** With `verbatim`: settings of this message. */
  readonly directives?: Directives;
  /** With `verbatim`: the bare text of a sender who may use commands. When it is a command, the command runs and the text is not sent. */
  readonly command?: string;
  /** The command is of a guest, who may use `/help` and `/status` only. */
  readonly byGuest?: true;
  /** The sender cannot correct the message: an unusable file becomes a note, and the rest is accepted. */
  readonly badFilesAsNotes?: true;
  /** No run answers the message; the model sees it with the next one. */
  readonly quiet?: true;
  /** The mode of the run of this message. Only a client of the owner gives one. */
  readonly mode?: PolicyMode;
  /** What the message does while a run is under way. Absent: it waits for its turn. */
  readonly whileBusy?: "steer" | "interrupt";
  readonly origin: Origin;
  /** What its sender's side knows about the content: quotes, forwarded text, the label of another conversation. */
  readonly taint?: Taint;
  /** The platform's conversation that the run's end is sent to, beside the clients that follow. */
  readonly reply?: ReplyRoute;
  /** GSV is stopped: the message waits in the session. */
  readonly held?: true;
  /** Stream the model's thoughts in the run of this message. */
  readonly thinking?: true;
  /** The RunContext's version when the message was sent, so that its run need not ask for an unchanged one. */
  readonly contextVersion?: string;
}

/** A conversation on a platform, and the message that is answered. */
export interface ReplyRoute {
  readonly channel: string;
  readonly accountId: string;
  readonly peer: Peer;
  readonly replyToId?: string;
}

export interface ToolResultTaken {
  readonly taken: "taken" | "duplicate" | "late" | "unknown";
  /** The call of this machine whose result the session has. `name`: as in `tools.list`. */
  readonly call?: { readonly name: string; readonly runId: string };
}

/** `early`: the result of the process's call is not here yet, and the event may be sent again. */
export type ExecEventTaken = "taken" | "duplicate" | "early" | "unknown";

export interface NodeChange {
  readonly nodeId: string;
  readonly online: boolean;
  readonly reason?: string;
  /** Calls of this session that the node still answers for; absent when the node has no ledger. */
  readonly calls?: readonly { readonly callId: string; readonly state: "accepted" | "started" | "finished" | "lost" }[];
}

/** What was stopped when a session was told to hold. */
export interface SessionHeld {
  readonly wasRunning: boolean;
  readonly runId?: string;
  readonly cancelled: number;
  /** Messages that wait are taken up when the hold ends. */
  readonly hasWaiting?: true;
}

/** What a reader of the conversation wants: at most so many messages, and notes beside them. */
export interface SessionLook {
  readonly limit?: number;
  readonly notes?: boolean;
}

/** Public methods of the Session Durable Object. Each resolves only when its effects are durable. */
export interface SessionPort {
  send(input: SessionSend): Promise<Result<ChatSendResult>>;
  abort(runId: string | undefined): Promise<Result<ChatAbortResult>>;
  /** `true`: ends the run, and nothing starts until `false` (rule ST2). Null: the session has no messages yet. */
  hold(held: boolean): Promise<SessionHeld | null>;
  /**
   * `nodeId` comes from the authenticated socket: a result from another node than the call's is `unknown`. `contextVersion`: of the gateway
   * now, so that the model call that follows need not ask for it.
   */
  toolResult(nodeId: string, result: ToolResultParams, contextVersion?: string): Promise<ToolResultTaken>;
  /** Answers the ids of the session's open calls on that node. */
  nodeChanged(change: NodeChange): Promise<readonly string[]>;
  execEvent(nodeId: string, event: NodeExecEventParams): Promise<ExecEventTaken>;
  get(): Promise<Result<SessionGetResult>>;
  stats(): Promise<Result<SessionStatsResult>>;
  patch(patch: Omit<SessionPatchParams, "sessionKey">): Promise<Result<SessionPatchResult>>;
  reset(): Promise<Result<SessionResetResult>>;
  compact(keepMessages: number | undefined): Promise<Result<SessionCompactResult>>;
  history(): Promise<Result<SessionHistoryResult>>;
  preview(look: SessionLook): Promise<Result<SessionPreviewResult>>;
  /** What one call of the current conversation gave. */
  result(callId: string): Promise<Result<SessionResultResult>>;
  /** From `offset` on, as many as fit an answer. */
  messages(look: SessionLook & { readonly offset?: number }): Promise<Result<SessionMessagesResult>>;
  /** The prompt of the next model call. `identity` is for a session without messages; calls no model, stores nothing. */
  prompt(identity: SessionIdentity): Promise<Result<SessionPromptResult>>;
  /** Log events after `afterSeq` (absent: none, just the current state). `thinking`: what the model thinks in the current run is streamed. */
  events(afterSeq: number | undefined, thinking?: boolean): Promise<Result<SessionSubscribeResult>>;
  /** Messages of the conversation with a number above `afterSeq`, at most `limit` and as many as fit. */
  searchRows(afterSeq: number, limit: number): Promise<Result<SearchRows>>;
  /** The first answer to a question counts. A failure has changed nothing. */
  answerApproval(answer: ApprovalAnswer): Promise<Result<ApprovalTaken>>;
  /** A limit may have been raised: a run that is paused at it goes on when it fits. Rejects when that could not be found out. */
  recheckLimit(): Promise<void>;
  /** Adds a note for people; with `forModel` also for the model, in the same words or in others, with the next message. Once per key; starts no run. */
  note(input: SessionNote): Promise<void>;
  /** What the session's log has of one run. The gateway adds what the audit has of its calls. */
  story(wanted: StoryWanted): Promise<Result<RunStory>>;
  /** The same for the export of traces, with the texts of the run where they are wanted. */
  record(wanted: RecordWanted): Promise<Result<RunRecord>>;
  /** How a run ended, or that it has not. `unknown`: there is no such run, or its end is no longer in the log. */
  runEnd(runId: string): Promise<RunEnd>;
  /** The same, with the story of a run that has ended. */
  runReport(runId: string): Promise<RunReport>;
  /**
   * Before a deletion: ends the run, starts nothing more, waits a moment for what the end brings (cancelled calls, ended questions), and
   * says what was used. Refused while the session is being archived.
   */
  end(): Promise<Result<SpendState>>;
  /** Deletes everything that the session has stored. Its name can then be used again. */
  erase(): Promise<void>;
  /** What the session's model calls used since the ledger last confirmed it. Ends the session's grant. */
  spent(): Promise<SpendState>;
  /** After a restart of the runtime: starts open effects. Cheap when there are none. */
  resume(): Promise<{ busy: boolean }>;
}

/** A run by its id, or by one of its calls; neither: the last one. */
export interface StoryWanted {
  readonly runId?: string | undefined;
  readonly callId?: string | undefined;
}
export type RunStory = RunWhyResult;

export interface RecordWanted {
  readonly runId: string;
  readonly texts: boolean;
}
export interface RunRecord {
  readonly story: RunStory;
  readonly agentId: string;
  readonly texts?: RunTexts;
}
/** Texts as they are in the log, each of them whole. `[N characters]` stands for one that is too long. */
export interface RunTexts {
  readonly input: string;
  /** By step. */
  readonly answers: Readonly<Record<string, string>>;
  /** By the call's id. */
  readonly calls: Readonly<Record<string, { readonly args?: unknown; readonly result?: string }>>;
}

export interface SessionNote {
  readonly identity: SessionIdentity;
  readonly key: string;
  readonly text: string;
  readonly forModel?: true | string;
  /** The text is an answer of the agent, in Markdown. */
  readonly isAnswer?: true;
}

/** A call that was not run because its machine did not come in time. */
export interface AwayCall {
  readonly nodeId: string;
  readonly tool: string;
  readonly waitedMs: number;
}
export interface RunReport {
  readonly end: RunEnd;
  /** Absent: the run goes on. */
  readonly story?: Result<RunStory>;
}
export type RunEnd =
  /**
   * `taint`: what the conversation has read by now. Absent: nothing but the owner's words and the agent's own. `away`: calls that waited in vain for their machines.
   * `unknown`: tools of calls of which it is not known whether they took effect.
   */
  | {
      readonly state: "final";
      readonly text: string;
      readonly taint?: Taint;
      readonly costUsd?: number;
      readonly away?: readonly AwayCall[];
      readonly unknown?: readonly string[];
    }
  /** `reason`: of the contract's table. Absent: none is known. */
  | { readonly state: "error" | "aborted"; readonly error: string; readonly reason?: string; readonly taint?: Taint }
  /** `waitedMs`: how long it has waited for the owner and for machines. `machines`: the calls that wait for theirs now. Absent: none. */
  | { readonly state: "running"; readonly waitedMs: number; readonly machines?: readonly MachineWait[] }
  | { readonly state: "queued" | "unknown" };
