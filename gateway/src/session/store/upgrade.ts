/**
 * PURE. State rows of earlier versions become the current `State`. Reads every version up to STATE_VERSION and refuses newer ones;
 * writes nothing: the converted state is stored with the session's next commit.
 *
 *   1 -> 2  `identity.isMain` is `identity.isOwnersSession`; open calls are a union by `status` with a `target` in the place of an
 *           absent `nodeId`; `sealed` is `closed`; a run's `roomMade` is `compactionTried`; the origin of a message is data instead of
 *           a text, and is kept with the run.
 *   2 -> 3  Nothing is converted. Open calls may wait for an approval, which earlier programs would hand over again or close wrongly.
 *   3 -> 4  The conversation has a label, which earlier programs would not raise. It is read from the log as far as the log tells.
 *   4 -> 5  Nothing is converted. A run may be paused, which earlier programs do not know.
 *   5 -> 6  Nothing is converted. Open calls may wait for their machine, which earlier programs would take for handed over.
 */
import type { ToolTarget } from "../../ports/tool-target.ts";
import { NewerStateError } from "../../ports/newer-state.ts";
import type { ChannelOrigin, Origin } from "../../ports/origin.ts";
import type { ReplyRoute, SessionIdentity } from "../../ports/session.ts";
import { isRepeatable, type OpenCall } from "../../calls/open-call.ts";
import { runningProcess } from "../../calls/processes.ts";
import { messageTaint, resultTaint, unknownResult } from "../../policy/taint.ts";
import { higher, OWNER, type Taint } from "../../ports/taint.ts";
import type { LogRow, UserRow } from "../machine/log.ts";
import { PROCESSES } from "../machine/limits.ts";
import { textOf } from "../../ports/messages.ts";
import { NATIVE_PREFIX } from "../../tools/registry.ts";
import type { DispatchTool, Effect } from "../machine/effect.ts";
import { archiveEffectId } from "../machine/ids.ts";
import {
  type Acting,
  type Archiving,
  type ClosedCall,
  type Idle,
  type IncomingMessage,
  type RunningProcess,
  type State,
  STATE_VERSION,
  type Thinking,
  type WaitingRun,
} from "../machine/state.ts";

interface CallV1 extends Pick<OpenCall, "index" | "callId" | "name" | "ledger" | "idempotent" | "dispatch" | "startedAt" | "deadline"> {
  /** Absent: a native tool. */
  readonly nodeId?: string;
  /** Handed over; only for calls that may be handed over once. */
  readonly sent: boolean;
  readonly restarts: number;
  readonly graceUntil?: number;
}
type ThinkingV1<R> = Omit<R, "compactionTried" | "origin"> & { readonly roomMade?: true };
/** The stages of an archive are younger than version 1. */
type ArchivingV1 = Omit<Archiving, "resume" | "stage"> & {
  readonly resume?: ThinkingV1<WaitingRun>;
  readonly stage?: Archiving["stage"];
};
type RunV1 = Idle | ThinkingV1<Thinking> | (Omit<Acting, "calls" | "origin"> & { readonly calls: readonly CallV1[] }) | ArchivingV1;
type EffectV1 = Exclude<Effect, DispatchTool> | (Omit<DispatchTool, "target"> & { readonly nodeId?: string });
export interface StateV1 extends Omit<State, "v" | "identity" | "run" | "outbox" | "closed" | "compactions"> {
  readonly v: 1;
  readonly identity: Omit<SessionIdentity, "isOwnersSession"> & { readonly isMain: boolean };
  readonly run: RunV1;
  readonly outbox: readonly EffectV1[];
  readonly sealed: readonly (Omit<ClosedCall, "target"> & { readonly nodeId?: string })[];
  readonly compactions?: number;
}

type StateV2 = Omit<State, "v" | "taint"> & { readonly v: 2 };
type StateV3 = Omit<State, "v" | "taint"> & { readonly v: 3 };
type StateV4 = Omit<State, "v"> & { readonly v: 4 };
type StateV5 = Omit<State, "v"> & { readonly v: 5 };

/** The origin of the message that a run began with, as its log row has it. */
export type OriginOfRun = (runId: string) => Origin | undefined;

/** Throws NewerStateError for a state that a newer program has written. */
export function upgradeState(stored: StateV1 | StateV2 | StateV3 | StateV4 | StateV5 | State, originOfRun: OriginOfRun): State {
  switch (stored.v) {
    case 1:
      return labelled(fromV1(stored, originOfRun));
    case 2:
    case 3:
      return labelled({ ...stored, v: STATE_VERSION });
    case 4:
    case 5:
      return { ...stored, v: STATE_VERSION };
    case STATE_VERSION:
      return stored;
    default:
      return refuse(stored);
  }
}
/** Until the log was read (`labelOf`), a conversation of an earlier version may have read anything. */
const labelled = (state: State): State => (state.messageCount === 0 && state.summary === undefined ? state : { ...state, taint: UNREAD });
export const UNREAD: Taint = { label: "world", source: "messages of an earlier version of GSV" };
/** A state that was stored without a label, with the label of its conversation's rows. */
export function withLabel({ taint: _unread, ...state }: State, rows: readonly LogRow[]): State {
  const taint = labelOf(rows, state.summary !== undefined);
  return taint.label === "owner" ? state : { ...state, taint };
}
function labelOf(rows: readonly LogRow[], hasSummary: boolean): Taint {
  let taint = hasSummary ? UNREAD : OWNER;
  for (const row of rows) {
    if (row.kind === "user") taint = higher(taint, messageTaint(row.origin, isFramed(row) ? UNREAD : undefined));
    if (row.kind === "toolResult" && row.durationMs !== 0) taint = higher(taint, resultOf(row.message.toolName));
    if (row.kind === "notice" && row.notice === "late") taint = higher(taint, UNREAD);
  }
  return taint;
}
/** The arguments are in another row, so a result whose label depends on them is `world`. */
const resultOf = (name: string): Taint =>
  name.startsWith(NATIVE_PREFIX) ? resultTaint({ name, tool: name, target: { kind: "native" }, args: {} }) : unknownResult(name);
/** Text with a head line may quote or forward others; a file may be a document. */
const isFramed = ({ message: { content } }: UserRow): boolean =>
  textOf(content).startsWith("[message]") || (typeof content !== "string" && content.some(({ type }) => type === "document"));

function refuse(stored: { readonly v?: unknown }): never {
  throw new NewerStateError("the rows of this conversation", Number(stored.v), STATE_VERSION);
}

function fromV1(
  { identity: { isMain, ...identity }, run, outbox, sealed, compactions = 0, ...rest }: StateV1,
  originOfRun: OriginOfRun,
): State {
  const state: State = {
    ...rest,
    v: STATE_VERSION,
    identity: { ...identity, isOwnersSession: isMain },
    compactions,
    run: { phase: "idle" },
    outbox: outbox.map(effectFromV1),
    closed: sealed.map(({ nodeId, ...call }) => ({ ...call, target: targetOf(nodeId) })),
  };
  return run.phase === "archiving" && run.stage === undefined ? restarted(state, run) : { ...state, run: runFromV1(run, originOfRun) };
}
const targetOf = (nodeId: string | undefined): ToolTarget => (nodeId === undefined ? { kind: "native" } : { kind: "node", nodeId });

function effectFromV1(effect: EffectV1): Effect {
  if (effect.type !== "DispatchTool") return effect;
  const { nodeId, ...rest } = effect;
  return { ...rest, target: targetOf(nodeId) };
}
function runFromV1(run: RunV1, originOfRun: OriginOfRun): State["run"] {
  switch (run.phase) {
    case "idle":
      return run;
    case "thinking":
      return thinkingFromV1(run, originOfRun);
    case "acting":
      return { ...run, origin: originFor(run, originOfRun), calls: run.calls.map(callFromV1) };
    case "archiving": {
      const { resume, stage = "plan", ...rest } = run;
      return { ...rest, stage, ...(resume === undefined ? {} : { resume: thinkingFromV1(resume, originOfRun) }) };
    }
  }
}
function thinkingFromV1<R extends Pick<Thinking, "runId" | "reply">>(
  stored: R & { readonly roomMade?: true },
  originOfRun: OriginOfRun,
): Omit<R, "roomMade"> & { readonly origin: Origin; readonly compactionTried?: true } {
  const { roomMade, ...run } = stored;
  return { ...run, origin: originFor(stored, originOfRun), ...(roomMade === undefined ? {} : { compactionTried: roomMade }) };
}
/** A run's message is in the log, so the origin that is made up here is never seen unless the log was damaged. */
function originFor({ runId, reply }: Pick<Thinking, "runId" | "reply">, originOfRun: OriginOfRun): Origin {
  const origin = originOfRun(runId) ?? { kind: "client", clientId: "unknown" };
  return origin.kind === "channel" ? withRoute(origin, reply) : origin;
}

function callFromV1({ nodeId, sent, restarts, graceUntil, ...rest }: CallV1): OpenCall {
  const call = { ...rest, target: targetOf(nodeId) };
  if (graceUntil !== undefined) return { ...call, status: "in_grace", graceUntil };
  return sent || isRepeatable(call) ? { ...call, status: "dispatched", restarts } : { ...call, status: "planned" };
}

/** An archive of a program that knew no stages. Nothing had been removed, so it begins again. */
function restarted(state: State, { resume: _none, ...run }: ArchivingV1): State {
  const { from, archivedAt, kind } = run;
  const began = { restarts: 0, kept: 0, firstAt: archivedAt, lastAt: archivedAt, cursor: from, chunks: 0, plain: false };
  const again: Archiving = { ...run, ...began, stage: kind === "reset" ? "archive" : "plan" };
  const effect = { type: kind === "reset" ? "Archive" : "Summarize", id: archiveEffectId(again), notBefore: 0 } as const;
  const outbox = [...state.outbox.filter(({ type }) => type !== "Archive"), effect];
  return { ...state, run: again, outbox, work: { summary: "", memories: "" } };
}

// ---------------------------------------------------------------- processes

/** Background processes by the results of their calls, for a state that was stored without them. */
export function processesIn(rows: readonly LogRow[]): readonly RunningProcess[] {
  const found = rows.flatMap((row): readonly RunningProcess[] => {
    if (row.kind !== "toolResult" || row.outcome !== "ok") return [];
    const nodeId = row.message.toolName.slice(0, Math.max(0, row.message.toolName.lastIndexOf("__")));
    const processId = runningProcess(parsed(textOf(row.message.content)));
    return nodeId === "" || processId === undefined ? [] : [{ nodeId, processId, callId: row.callId }];
  });
  const ofId = new Map(found.map((entry) => [`${entry.nodeId}/${entry.processId}`, entry]));
  return [...ofId.values()].slice(-PROCESSES);
}
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// ---------------------------------------------------------------- origins

/** A waiting message as it is stored: now, and by version 1. */
export type StoredMessage = Omit<IncomingMessage, "origin"> & { readonly origin: Origin | string };

export function upgradeMessage({ origin, ...message }: StoredMessage): IncomingMessage {
  const read = upgradeOrigin(origin);
  return { ...message, origin: read.kind === "channel" ? withRoute(read, message.reply) : read };
}
/** The only place that reads the texts of version 1: `client:ID`, `channel:NAME:ACCOUNT:SENDER`, `session:KEY;hops=N`, `node:ID`. */
export function upgradeOrigin(origin: Origin | string): Origin {
  if (typeof origin !== "string") return origin;
  const channel = /^channel:([^:]*):([^:]*):([\s\S]*)$/.exec(origin);
  if (channel) {
    const [, name = "", accountId = "", senderId = ""] = channel;
    return { kind: "channel", channel: name, accountId, ...(senderId === "" ? {} : { senderId }), role: "guest" };
  }
  const session = /^session:([^;]*)(?:;hops=([0-9]+))?$/.exec(origin);
  if (session) return { kind: "session", sessionKey: session[1] ?? "", hops: Number(session[2] ?? 1) };
  if (origin.startsWith("node:")) return { kind: "node_event", nodeId: origin.slice("node:".length) };
  return { kind: "client", clientId: origin.startsWith("client:") ? origin.slice("client:".length) : origin };
}
/** Version 1 kept the platform's conversation only where an answer had to be sent there. */
const withRoute = (origin: ChannelOrigin, reply: ReplyRoute | undefined): ChannelOrigin =>
  reply === undefined || origin.peer !== undefined ? origin : { ...origin, peer: reply.peer };
