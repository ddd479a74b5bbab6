/**
 * Every transition of the session machine, as data: from which phase, on which event, to which phase. A step records the names of its
 * transitions (Step.transitions, never stored). The simulator fails when a step's state and event do not allow its transition, and
 * when no history takes one of the list. PURE.
 *
 * `next` is the moment after a run or an archive has ended: the same step continues with the work that waits, down to `nothingWaits`.
 */
import type { EventBody } from "./event.ts";
import type { Run } from "./state.ts";

type Phase = Run["phase"];
type Position = Phase | "next";
type Cause = EventBody["type"];
interface Transition {
  readonly from: readonly Position[];
  /** Absent: any event. */
  readonly on?: readonly Cause[];
  /** Absent: the phase stays as it is. */
  readonly to?: Position;
}
const BUSY = ["thinking", "acting", "paused", "archiving"] as const;
const RUNNING = ["thinking", "acting", "paused"] as const;
const ANY = ["idle", ...BUSY] as const;

export const TRANSITIONS = {
  // Messages.
  quietMessageEnters: { from: ["idle"], on: ["UserMessage"] },
  messageStartsRun: { from: ["idle", "next"], on: ["UserMessage"], to: "thinking" },
  messageWaits: { from: ANY, on: ["UserMessage"] },
  messageSteers: { from: ["thinking", "acting", "archiving"], on: ["UserMessage"] },
  steeringMessagesEnter: { from: ["thinking", "acting"] },
  runInterrupted: { from: ["thinking", "acting"], on: ["UserMessage"], to: "next" },
  messageBringsReset: { from: ["idle"], on: ["UserMessage"], to: "archiving" },
  processEndStartsRun: { from: ["idle"], on: ["ExecEnded"], to: "thinking" },
  processEndWaits: { from: ANY, on: ["ExecEnded"] },
  processEndNoted: { from: ANY, on: ["ExecEnded"] },

  // Model calls.
  answered: { from: ["thinking"], on: ["ModelReplied"], to: "next" },
  callsMade: { from: ["thinking"], on: ["ModelReplied"], to: "acting" },
  allCallsRefused: { from: ["thinking"], on: ["ModelReplied"], to: "thinking" },
  modelRetried: { from: ["thinking"], on: ["ModelFailed", "ModelReplied"], to: "thinking" },
  nextModelTried: { from: ["thinking"], on: ["ModelFailed"], to: "thinking" },
  modelGaveUp: { from: ["thinking"], on: ["ModelFailed", "ModelReplied"], to: "next" },
  modelCallRestarted: { from: ["thinking"], on: ["Tick", "Woke"], to: "thinking" },
  noProgress: { from: ["thinking"], on: ["ModelFailed", "ModelReplied", "Tick", "Woke"], to: "next" },
  recordingTranscribed: { from: ["thinking"], on: ["Transcribed"] },
  callRepeatedTooOften: { from: ["thinking"], on: ["ModelReplied"], to: "next" },
  budgetUsedUp: { from: ["thinking", "acting", "next"], to: "next" },

  // Questions about limits.
  runPaused: { from: ["thinking", "acting", "next"], to: "paused" },
  limitNotReached: { from: ["thinking"], on: ["LimitsKnown"], to: "thinking" },
  limitRaised: { from: ["paused"], on: ["ApprovalAnswered"], to: "thinking" },
  limitNoLongerReached: { from: ["paused"], on: ["LimitNoLongerReached"], to: "thinking" },
  limitKept: { from: ["paused"], on: ["ApprovalAnswered"], to: "next" },
  limitQuestionExpired: { from: ["paused"], on: ["Tick"], to: "next" },
  pausedRunGivesWay: { from: ["paused"], on: ["UserMessage", "Compact"], to: "next" },

  // Context budget.
  contextCompacts: { from: ["thinking"], on: ["ContextFull", "ModelFailed"], to: "archiving" },
  contextShortened: { from: ["thinking"], on: ["ContextFull", "ModelFailed"], to: "thinking" },
  contextTooLarge: { from: ["thinking"], on: ["ModelFailed"], to: "next" },

  // Tool calls.
  callHandedOver: { from: ["acting"], on: ["ToolSent"] },
  handOverOffline: { from: ["acting"], on: ["ToolOffline"] },
  handOverUncertain: { from: ["acting"], on: ["ToolUncertain"] },
  nodeDisconnected: { from: ["acting"], on: ["NodeChanged"] },
  nodeConnected: { from: ["acting"], on: ["NodeChanged"] },
  callsExpired: { from: ["acting"], on: ["Tick"] },
  nativeCallsInterrupted: { from: ["acting"], on: ["Woke"] },
  resultTaken: { from: ["acting"], on: ["ToolResult"] },
  lastCallClosed: { from: ["acting"], to: "thinking" },
  lateResultNoted: { from: ANY, on: ["ToolResult"] },
  lateResultDropped: { from: ANY, on: ["ToolResult"] },
  callsCancelledOnNode: { from: ANY, on: ["NodeChanged"] },

  // Calls that wait for machines.
  callsWait: { from: ["acting"], on: ["ModelReplied"] },
  handOverWaits: { from: ["acting"], on: ["ToolOffline"] },
  machineLooked: { from: ["acting"], on: ["NodeChanged"] },
  waitTold: { from: ["acting"], on: ["Tick"] },
  waitEndsInCall: { from: ["acting"], on: ["NodesLooked"] },
  waitEndsInQuestion: { from: ["acting"], on: ["NodesLooked"] },
  waitEndsInDenial: { from: ["acting"], on: ["NodesLooked"] },
  waitNotKept: { from: ["acting"], on: ["NodesLooked"] },

  // Approvals.
  approvalAsked: { from: ["acting"], on: ["ModelReplied"] },
  approvalAllowed: { from: ["acting"], on: ["ApprovalAnswered"] },
  approvalDenied: { from: ["acting"], on: ["ApprovalAnswered"] },
  approvalVoid: { from: ["acting"], on: ["ApprovalAnswered"] },
  approvalAskedAgain: { from: ["acting"], on: ["ApprovalAnswered"] },
  tooManyQuestions: { from: ["thinking"], on: ["ModelReplied"], to: "next" },
  deniedTooOften: { from: ["acting"], on: ["ApprovalAnswered", "Tick"], to: "next" },

  // Stopping.
  runStopped: { from: RUNNING, on: ["Abort", "Reset", "Held"], to: "next" },
  compactionStopped: { from: ["archiving"], on: ["Abort", "Reset", "Held", "UserMessage"], to: "next" },
  waitingMessageStopped: { from: ANY, on: ["Abort"] },
  waitingCompactionStopped: { from: ANY, on: ["Abort"] },
  holdBegins: { from: ANY, on: ["Held"] },
  holdEnds: { from: ANY, on: ["Held"] },
  heldWorkGoesOn: { from: ["idle"], on: ["Held"], to: "next" },

  // Reset and compaction.
  resetBegins: { from: ["idle", "next"], on: ["Reset"], to: "archiving" },
  nothingToArchive: { from: ["idle", "next"], on: ["Reset"], to: "next" },
  compactionBegins: { from: ["idle", "next"], on: ["Compact"], to: "archiving" },
  compactionWaits: { from: ["thinking", "acting"], on: ["Compact"] },
  cutPlanned: { from: ["archiving"], on: ["Planned"], to: "archiving" },
  nothingToCut: { from: ["archiving"], on: ["Planned"], to: "next" },
  chunkSummarized: { from: ["archiving"], on: ["Summarized"], to: "archiving" },
  summaryDone: { from: ["archiving"], to: "archiving" },
  summaryRetried: { from: ["archiving"], on: ["SummarizeFailed"], to: "archiving" },
  resetArchived: { from: ["archiving"], on: ["Archived"], to: "archiving" },
  resetDone: { from: ["archiving"], to: "next" },
  compactionDone: { from: ["archiving"], on: ["Archived"], to: "next" },
  archiveRetried: { from: ["archiving"], on: ["Archived", "ArchiveFailed"], to: "archiving" },
  archiveRestarted: { from: ["archiving"], on: ["Tick", "Woke"], to: "archiving" },
  archiveGivenUp: { from: ["archiving"], on: ["Archived", "ArchiveFailed", "Tick", "Woke"], to: "next" },

  // Work that waited.
  runResumes: { from: ["next"], to: "thinking" },
  waitingCompactionBegins: { from: ["next"], to: "archiving" },
  waitingCompactionDropped: { from: ["next"] },
  waitingQuietMessagesEnter: { from: ["next"] },
  waitingMessageStartsRun: { from: ["next"], to: "thinking" },
  steeringMessageStartsRun: { from: ["next"], to: "thinking" },
  nothingWaits: { from: ["next"], to: "idle" },

  // In any phase.
  delivered: { from: ANY, on: ["Delivered"] },
  effectDone: { from: ANY, on: ["EffectDone"] },
  effectParked: { from: ANY, on: ["Parked"] },
  stoppedCallCounted: { from: ANY, on: ["Spent"] },
  noted: { from: ANY, on: ["Noted"] },
  settingsPatched: { from: ANY, on: ["SettingsPatched"] },
  trusted: { from: ANY, on: ["Trusted"] },
} as const satisfies Readonly<Record<string, Transition>>;

export type TransitionName = keyof typeof TRANSITIONS;
export const transitionOf = (name: TransitionName): Transition => TRANSITIONS[name];

/** The problem of the transitions of a step; undefined when they lead from its first phase to its last. */
export function transitionProblem(before: Phase, cause: Cause, names: readonly TransitionName[], after: Phase): string | undefined {
  if (names.length === 0) return `${cause} changed a session in ${before} without a transition`;
  let at: Position = before;
  for (const name of names) {
    const { from, on, to } = transitionOf(name);
    if (!from.includes(at)) return `${name} was taken from ${at}`;
    if (on && !on.includes(cause)) return `${name} was taken on ${cause}`;
    at = to ?? at;
  }
  return at === after ? undefined : `${names.join(", ")} lead to ${at}, and the session is ${after}`;
}
