/** Undo of what the agent changed through GSV's tools: files on machines, and the agent's own files. */
import { enumOf, event, method, struct, t } from "./dsl.ts";
import { AgentId, CallId, NodeId, SessionKey, ToolName } from "./ids.ts";

export const UndoAction = enumOf(
  "UndoAction",
  "What an undo does to a file. `rewrite`: restores its earlier content. `bring_back`: restores a deleted file. `remove`: removes a file that the calls made.",
  ["rewrite", "bring_back", "remove"],
);
export const UndoOutcome = enumOf(
  "UndoOutcome",
  "What became of a file in an undo. `planned`: it would be undone. `unchanged`: it has its earlier content already. `conflict`: it was changed since, and is left alone. `no_copy`: its earlier content was not kept, or not for so long.",
  ["planned", "undone", "unchanged", "conflict", "no_copy", "failed"],
);
export const UndoFile = struct("UndoFile", "A file of an undo.", {
  path: t.string(8192),
  action: UndoAction,
  outcome: UndoOutcome,
  problem: t.optional(t.string(8192)),
});
export const UndoPlace = struct("UndoPlace", "What an undo does, or did, on one machine or in one agent's files.", {
  /** The machine; absent for the files of an agent. */
  nodeId: t.optional(NodeId),
  agentId: t.optional(AgentId),
  /** Why the rest here was not undone, for example because the machine is offline. */
  problem: t.optional(t.string(8192)),
  files: t.array(UndoFile),
  /** Further files, which are counted and not listed. */
  unlisted: t.int(),
  /** All files here, by outcome. */
  counts: t.map(t.int()),
});
const UndoCommand = struct("UndoCommand", "A command, whose changes an undo does not know.", {
  callId: CallId,
  nodeId: NodeId,
  tool: ToolName,
});
const UndoneTarget = enumOf("UndoTargetKind", "What is undone: all calls of a run, one call, or an earlier undo.", ["run", "call", "undo"]);
export const UndoResult = struct("UndoResult", "What an undo does, or did.", {
  kind: UndoneTarget,
  /** The run, call or undo. */
  target: t.string(256),
  /** The conversation; absent for calls of clients. */
  sessionKey: t.optional(SessionKey),
  /** The conversation was deleted since. Another one may have its name now. */
  deleted: t.optional(t.literal(true)),
  /** When its last change was asked for. */
  at: t.optional(t.time()),
  /** Names this undo: it can be undone itself. Absent in a plan. */
  undoId: t.optional(t.string(256)),
  places: t.array(UndoPlace, 1000),
  /** Commands of the run. What they changed is not undone. */
  commands: t.array(UndoCommand, 1000),
  /** Commands of later runs, where the last run that changed files was looked for: that one may not be the run that is meant. */
  laterCommands: t.optional(t.array(UndoCommand, 1000)),
});

/** A run, call or undo. Absent: the last run of the conversation that changed files. */
const target = t.optional(t.string(256, { minLength: 1 }));
const errors = ["undo.nothing", "session.bad_key", "session.not_found", "storage.failed"] as const;
method("undo.plan", {
  doc: "Says what undoing a run, a call or an earlier undo would do, file by file. Changes nothing.",
  params: { target, sessionKey: t.optional(SessionKey), force: t.optional(t.bool()) },
  result: UndoResult,
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors,
  deferred: true,
  idempotent: true,
});
method("undo.apply", {
  doc: "Undoes what a run, a call or an earlier undo changed through file tools. A file that was changed since is left alone unless `force`. Repeat an interrupted undo: files that are done are left alone.",
  params: { target, sessionKey: t.optional(SessionKey), force: t.optional(t.bool()) },
  result: UndoResult,
  callers: ["client"],
  scope: "operate",
  audit: "own",
  errors,
  deferred: true,
  idempotent: true,
});

event("undo.request", {
  doc: "The gateway asks a node to undo calls of its file tools, or to say what an undo would do.",
  payload: {
    callId: CallId,
    /** A call's id, or the beginning of several up to a `/`. */
    calls: t.string(256),
    undoId: t.string(256),
    dryRun: t.bool(),
    force: t.bool(),
    /** Goes on after an answer with `next`. */
    beforeSeq: t.optional(t.int()),
  },
  to: ["node"],
});
method("undo.report", {
  doc: "A node reports an undo.",
  params: {
    callId: CallId,
    files: t.optional(t.array(UndoFile, 1000)),
    /** There is more: the gateway asks again with this as `beforeSeq`. */
    next: t.optional(t.int()),
    /** Why nothing, or not everything, could be undone. */
    error: t.optional(t.text()),
  },
  result: { ok: t.literal(true), dropped: t.optional(t.bool()) },
  callers: ["node"],
  scope: "node",
  audit: "none",
  idempotent: true,
});
