/**
 * Implements SessionPort on a driver: requests become events of the machine, its answers become results. Answers only what is
 * committed. Knows no platform; the Durable Object around it is in session-do.ts.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import {
  asRunId,
  asSessionKey,
  type ChatAbortResult,
  type ChatSendResult,
  type ModelRef,
  type NodeExecEventParams,
  type SessionCompactResult,
  type SessionGetResult,
  type SessionHistoryResult,
  type SessionMessagesResult,
  type SessionPatchParams,
  type SessionPatchResult,
  type SessionPreviewResult,
  type SessionPromptResult,
  type SessionResetResult,
  type SessionResultResult,
  type SessionSettingsPatch,
  type SessionStatsResult,
  type SessionSubscribeResult,
  type ToolResultParams,
} from "../../../protocol/gen/types.ts";
import type { ApprovalAnswer, ApprovalTaken } from "../ports/approvals.ts";
import type { ContentBlock } from "../ports/messages.ts";
import { failure, type GsvError, type Result, succeed } from "../ports/result.ts";
import type { SearchRows } from "../ports/search.ts";
import type {
  ExecEventTaken,
  NodeChange,
  RunEnd,
  RunReport,
  SessionHeld,
  SessionIdentity,
  RunStory,
  SessionLook,
  SessionNote,
  StoryWanted,
  RecordWanted,
  RunRecord,
  SessionPort,
  SessionSend,
  ToolResultTaken,
} from "../ports/session.ts";
import { NO_REPORT, NOTHING, type SpendState } from "../ports/spend.ts";
import { isHeldBack, nodeOf, sameTarget } from "../calls/open-call.ts";
import { isProcessId } from "../calls/processes.ts";
import { mayReport } from "../calls/rules.ts";
import { MessageAcceptor } from "./accept-message.ts";
import { patchedModel } from "../models/choose.ts";
import type { SessionDriver } from "./driver.ts";
import { recheckLimit } from "./recheck-limit.ts";
import { describePatch, execMessage, type SettingsChange } from "./intake.ts";
import { gaveNothing } from "../policy/taint.ts";
import type { ArchiveEnd, EventBody } from "./machine/event.ts";
import { isAwaiting } from "./machine/phase/questions.ts";
import { isOwnCallId } from "./machine/ids.ts";
import type { LogRow } from "./machine/log.ts";
import { machineToolName } from "../tools/registry.ts";
import { activeRun, callOf, isLastOpenCall, type State } from "./machine/state.ts";
import { head, jsonBytes } from "./machine/text.ts";
import { changedMode } from "./mode.ts";
import { runEnd, searchRows } from "./search-view.ts";
import { recordOf } from "./record-view.ts";
import { storyOf } from "./story-view.ts";
import { fromNode } from "./tool-content.ts";
import { eventsView, getView, historyView, messagesView, previewView, resultView, statsView } from "./views.ts";
import type { After } from "../../../protocol/runtime/within.ts";

/** How long the requester of a reset waits for the count of deleted files; they are deleted in any case. */
const MEDIA_WAIT_MS = 2_000;
/** How long a deletion waits for cancelled calls and for events about the end of the run. */
const END_WAIT_MS = 3_000;
/** Characters of the reason of an answer that came too late. */
const WHY_CHARS = 2_048;
const NOT_FOUND: Result<never> = {
  ok: false,
  error: { reason: "session.not_found", message: "There is no such conversation: it has no messages yet." },
};
const fail = (error: GsvError): Result<never> => ({ ok: false, error });
const bug = (what: string): Error => new Error(`the session answered ${what} with something else`);

/** A change of settings whose model has both of its halves, and whose mode has no end yet. */
type WithWholeModel = Omit<SettingsChange, "settings"> & {
  readonly settings?: Omit<SessionSettingsPatch, "model"> & { readonly model?: ModelRef };
};

export interface ServicePorts {
  readonly after: After;
  readonly freshId: () => string;
  readonly sha256: (text: string) => Promise<string>;
}

export class SessionService implements Omit<SessionPort, "erase"> {
  readonly #driver: SessionDriver;
  readonly #ports: ServicePorts;
  readonly #acceptor: MessageAcceptor;

  constructor(driver: SessionDriver, ports: ServicePorts) {
    this.#driver = driver;
    this.#ports = ports;
    this.#acceptor = new MessageAcceptor(driver, ports.after);
  }

  async send(input: SessionSend): Promise<Result<ChatSendResult>> {
    if (input.thinking !== true) return this.#acceptor.send(input);
    const { thoughts } = this.#driver;
    // Before the model is called.
    thoughts.add(input.runId);
    const sent = await this.#acceptor.send(input);
    // The message may be for the run under way, or was accepted before under another run.
    if (sent.ok && sent.value.status === "started")
      for (const runId of [sent.value.runId, sent.value.steers]) if (runId !== undefined) thoughts.add(runId);
    return sent;
  }
  abort(runId: string | undefined): Promise<Result<ChatAbortResult>> {
    const { answer } = this.#driver.apply({ type: "Abort", ...(runId === undefined ? {} : { runId }) });
    if (answer !== undefined && answer.type !== "aborted") throw bug("an abort");
    return Promise.resolve(
      succeed({
        ok: true,
        wasRunning: answer?.wasRunning ?? false,
        ...(answer?.runId === undefined ? {} : { runId: asRunId(answer.runId) }),
        pendingToolsCancelled: answer?.cancelled ?? 0,
        ...(answer?.waiting === undefined ? {} : { waiting: answer.waiting }),
      }),
    );
  }
  hold(held: boolean): Promise<SessionHeld | null> {
    return Promise.resolve(this.#held({ type: "Held", held }));
  }
  #held(event: Extract<EventBody, { readonly type: "Held" }>): SessionHeld | null {
    if (!this.#driver.state) return null;
    const { answer } = this.#driver.apply(event);
    if (answer?.type !== "aborted") throw bug("a hold");
    const { wasRunning, runId, cancelled, waiting = 0 } = answer;
    const more = { ...(runId === undefined ? {} : { runId }), ...(waiting === 0 ? {} : { hasWaiting: true as const }) };
    return { wasRunning, cancelled, ...more };
  }

  async end(): Promise<Result<SpendState>> {
    if (!this.#driver.state) return succeed({ report: NO_REPORT, open: NOTHING });
    if (this.#driver.state.run.phase === "archiving") return failure("session.busy", "The conversation is being archived.");
    this.#held({ type: "Held", held: true, isDeleted: true });
    await this.#driver.quiet(END_WAIT_MS);
    return succeed(this.#driver.spend.spent());
  }

  // ---------------------------------------------------------------- nodes

  async toolResult(nodeId: string, result: ToolResultParams, contextVersion?: string): Promise<ToolResultTaken> {
    const { callId, durationMs } = result;
    const at = this.#driver.wall();
    const report = fromNode(result);
    const content = report.content.every((block) => block.type === "text")
      ? report.content
      : await this.#images(nodeId, callId, report.content);
    // Another call that is still open may change what the next model call needs.
    if (contextVersion !== undefined && isLastOpenCall(this.#driver.state?.run, callId)) this.#driver.contexts.confirm(contextVersion, at);
    const call = this.#driver.state && callOf(this.#driver.state, callId);
    const { answer } = this.#driver.apply({
      type: "ToolResult",
      callId,
      from: { kind: "node", nodeId },
      ...report,
      content,
      ...(gaveNothing(result) ? { gaveNothing: true } : {}),
      ...(durationMs === undefined ? {} : { durationMs }),
    });
    const type = answer?.type;
    if (type !== "taken" && type !== "late" && type !== "duplicate") return { taken: "unknown" };
    const made = type === "duplicate" ? this.#madeBefore(nodeId, callId) : call;
    return { taken: type, ...(made === undefined ? {} : { call: made }) };
  }
  /** The call of an earlier result of this machine: the gateway may have ended before it had the answer to it. */
  #madeBefore(nodeId: string, callId: string): ToolResultTaken["call"] {
    for (const row of this.#driver.history.messageRows())
      if (row.kind === "toolResult" && row.callId === callId && row.message.toolName.startsWith(machineToolName(nodeId, "")))
        return { name: row.message.toolName, runId: row.runId };
    return undefined;
  }
  /** Stores images only for a call that is open on this node: the result of any other call is not shown. */
  async #images(nodeId: string, callId: string, content: readonly ContentBlock[]): Promise<readonly ContentBlock[]> {
    const state = this.#driver.state;
    const isOpen = state?.run.phase === "acting" && state.run.calls.some((call) => call.callId === callId && nodeOf(call) === nodeId);
    if (!state || !isOpen) return content.filter((block) => block.type === "text");
    return this.#driver.media.takeResult({
      sessionKey: state.identity.key,
      callId,
      target: { kind: "node", nodeId },
      content,
      now: this.#driver.wall(),
    });
  }
  nodeChanged({ nodeId, online, calls }: NodeChange): Promise<readonly string[]> {
    this.#driver.apply({ type: "NodeChanged", nodeId, online, ...(calls === undefined ? {} : { calls }) });
    const run = this.#driver.state?.run;
    const open = run?.phase === "acting" ? run.calls.filter((call) => nodeOf(call) === nodeId && !isHeldBack(call)) : [];
    return Promise.resolve(open.map(({ callId }) => callId));
  }
  execEvent(nodeId: string, event: NodeExecEventParams): Promise<ExecEventTaken> {
    const state = this.#driver.state;
    if (!state || !isProcessId(event.sessionId) || (event.callId !== undefined && !isOwnCallId(state, event.callId)))
      return Promise.resolve("unknown");
    // The call's own result has already told of the start.
    if (event.event === "started") return Promise.resolve("taken");
    const incoming = execMessage(nodeId, event, `exec-${this.#ports.freshId()}`, this.#driver.wall());
    const { answer, duplicate } = this.#driver.apply(
      { type: "ExecEnded", nodeId, processId: event.sessionId, incoming, bytes: jsonBytes(incoming) },
      { key: `e:${nodeId}:${event.eventId}` },
    );
    if (duplicate) return Promise.resolve("duplicate");
    if (answer?.type !== "unknown") return Promise.resolve("taken");
    return Promise.resolve(event.callId !== undefined && mayStillReport(state, nodeId, event.callId) ? "early" : "unknown");
  }

  // ---------------------------------------------------------------- approvals

  /** The first answer to a question counts. Changes nothing when the policy can't be asked now. */
  async answerApproval({ code, answer, word, by, hash, choice }: ApprovalAnswer): Promise<Result<ApprovalTaken>> {
    const run = this.#driver.state?.run;
    const call = run?.phase === "acting" ? run.calls.filter(isAwaiting).find(({ approval }) => approval.code === code) : undefined;
    const current = call && answer === "allow" ? await this.#driver.currentDecision(call).catch(() => "unknown" as const) : undefined;
    if (current === "unknown")
      return failure("internal", "The policy could not be asked, so the question still waits.", "Answer it again in a moment.");
    const taken = this.#driver.apply({
      type: "ApprovalAnswered",
      code,
      answer,
      by,
      ...(word === undefined ? {} : { word }),
      ...(hash === undefined ? {} : { hash }),
      ...(choice === undefined ? {} : { choice }),
      ...(current === undefined ? {} : { current }),
    }).answer;
    if (taken?.type !== "approval") return failure("approval.not_found", `No question of this conversation has the code ${code}.`);
    const { ended: outcome, code: again, by: first, before: endedAt, why } = taken;
    return succeed({
      outcome,
      ...(first === undefined ? {} : { by: first }),
      ...(again === undefined ? {} : { again }),
      ...(why === undefined ? {} : { why: head(why, WHY_CHARS) }),
      ...(endedAt === undefined ? {} : { endedAt }),
    });
  }

  recheckLimit(): Promise<void> {
    return recheckLimit(this.#driver);
  }

  // ---------------------------------------------------------------- looking

  async get(): Promise<Result<SessionGetResult>> {
    if (!this.#driver.state) return NOT_FOUND;
    const size = await this.#driver.models.currentSize();
    return this.#look((state) => getView(state, this.#driver.contexts.known?.config.session.defaultResetPolicy, size));
  }
  stats(): Promise<Result<SessionStatsResult>> {
    return this.#look((state) => statsView(state, this.#driver.wall()));
  }
  history(): Promise<Result<SessionHistoryResult>> {
    return this.#look(historyView);
  }
  preview({ limit, notes }: SessionLook): Promise<Result<SessionPreviewResult>> {
    const most = Math.max(1, Math.min(limit ?? LIMITS.pageItems, LIMITS.pageItems));
    return this.#look((state) => previewView(state, this.#rows(notes), most));
  }
  async result(callId: string): Promise<Result<SessionResultResult>> {
    const state = this.#driver.state;
    return state ? resultView(state, this.#driver.history.messageRows(), callId) : NOT_FOUND;
  }
  messages({ offset, limit, notes }: SessionLook & { readonly offset?: number }): Promise<Result<SessionMessagesResult>> {
    return this.#look((state) => messagesView(state, this.#rows(notes), offset ?? 0, limit ?? LIMITS.rowBytes));
  }
  /** The rows of the current conversation. Only the log has all notes. */
  #rows(notes: boolean | undefined): readonly LogRow[] {
    return [...(notes ? this.#driver.contextRows() : this.#driver.history.messageRows())];
  }
  prompt(identity: SessionIdentity): Promise<Result<SessionPromptResult>> {
    return this.#driver.models.prompt(identity, this.#ports.sha256);
  }
  events(afterSeq: number | undefined, thinking = false): Promise<Result<SessionSubscribeResult>> {
    const state = this.#driver.state;
    const run = thinking && state ? activeRun(state.run) : undefined;
    if (run !== undefined) this.#driver.thoughts.add(run.runId);
    if (!state)
      return Promise.resolve(
        afterSeq !== undefined && afterSeq > 0
          ? failure("session.snapshot_required", "There is nothing to replay here.", "Follow from the beginning.")
          : succeed({ sessionKey: asSessionKey(""), seq: 0, events: [], state: "idle" }),
      );
    return Promise.resolve(eventsView(state, this.#driver.store, afterSeq, this.#driver.live));
  }
  #look<T>(view: (state: State) => T): Promise<Result<T>> {
    const state = this.#driver.state;
    return Promise.resolve(state ? succeed(view(state)) : NOT_FOUND);
  }

  // ---------------------------------------------------------------- changing

  async patch(patch: Omit<SessionPatchParams, "sessionKey">): Promise<Result<SessionPatchResult>> {
    if (!this.#driver.state) return NOT_FOUND;
    const change = this.#withMode(await this.#withWholeModel(patch));
    if (!change.ok) return change;
    const text = describePatch(change.value, this.#driver.contexts.known?.config.userTimezone ?? "UTC");
    if (!text.ok) return text;
    const { settings, label, resetPolicy, clear } = change.value;
    this.#driver.apply({
      type: "SettingsPatched",
      text: text.value,
      ...(settings ? { settings } : {}),
      ...(label === undefined ? {} : { label }),
      ...(resetPolicy ? { resetPolicy } : {}),
      ...(clear ? { clear } : {}),
    });
    const warning = settings?.model && (await this.#driver.models.warning(settings.model));
    return succeed({ ok: true, ...(warning === undefined ? {} : { warnings: [warning] }) });
  }
  /** A mode with the time of its end. Only clients can change settings this way. */
  #withMode(change: Result<WithWholeModel>): Result<SettingsChange> {
    if (!change.ok) return change;
    const { settings = {}, ...patch } = change.value;
    const { mode, modeMs, ...others } = settings;
    const given = change.value.settings === undefined ? {} : { settings: others };
    if (mode === undefined)
      return modeMs === undefined
        ? succeed({ ...patch, ...given })
        : failure("protocol.invalid_params", "`modeMs` is the time of a mode: give `mode` too.");
    const isOwners = this.#driver.state?.identity.isOwnersSession === true;
    const changed = changedMode({ mode, modeMs }, { isOwners, byClient: true, wall: this.#driver.wall() });
    return changed.ok ? succeed({ ...patch, settings: { ...others, ...changed.value } }) : changed;
  }
  /** Half a model's name gets the other half from the current model. */
  async #withWholeModel({ settings, ...patch }: Omit<SessionPatchParams, "sessionKey">): Promise<Result<WithWholeModel>> {
    if (settings === undefined) return succeed(patch);
    const { model: half, ...others } = settings;
    if (half === undefined) return succeed({ ...patch, settings: others });
    const isWhole = half.provider !== undefined && half.id !== undefined;
    const model = patchedModel(half, isWhole ? undefined : await this.#driver.models.current());
    if (model === undefined)
      return failure("protocol.invalid_params", "The current model is not known.", "Name `model.provider` and `model.id`.");
    const problem = await this.#driver.models.problem(model);
    if (problem !== undefined) return failure("model.unknown", problem.message, problem.hint);
    return succeed({ ...patch, settings: { ...others, model } });
  }
  async reset(): Promise<Result<SessionResetResult>> {
    const end = await this.#archived({ type: "Reset" });
    if (!end.ok) return end;
    if (end.value.kind !== "reset") throw bug("a reset");
    const { oldSessionId, newSessionId, archived, key, tokens, memoriesTo, mediaEffect } = end.value;
    const mediaDeleted = await this.#driver.waits.filesDeleted(mediaEffect, MEDIA_WAIT_MS);
    return succeed({
      ok: true,
      sessionKey: asSessionKey(this.#driver.state?.identity.key ?? ""),
      oldSessionId,
      newSessionId,
      archivedMessages: archived,
      ...(key === undefined ? {} : { archivedTo: key }),
      tokensCleared: tokens,
      ...(memoriesTo === undefined ? {} : { memoriesTo }),
      ...(mediaDeleted === undefined ? {} : { mediaDeleted }),
    });
  }
  async compact(keepMessages: number | undefined): Promise<Result<SessionCompactResult>> {
    const end = await this.#archived({ type: "Compact", ...(keepMessages === undefined ? {} : { keep: keepMessages }) });
    if (!end.ok) return end;
    if (end.value.kind !== "compact") throw bug("a compaction");
    const { trimmed, kept, key, summarized, memoriesTo } = end.value;
    return succeed({
      ok: true,
      trimmedMessages: trimmed,
      keptMessages: kept,
      summarized,
      ...(key === undefined ? {} : { archivedTo: key }),
      ...(memoriesTo === undefined ? {} : { memoriesTo }),
    });
  }
  async #archived(event: EventBody): Promise<Result<Extract<ArchiveEnd, { ok: true }>>> {
    const { answer } = this.#driver.apply(event);
    if (!answer) return NOT_FOUND;
    if (answer.type === "refused") return fail(answer.error);
    if (answer.type !== "archiving") throw bug("an archive");
    const end = await this.#driver.waits.archiveEnd(answer.requestId);
    return end.ok ? succeed(end) : fail(end.error);
  }

  searchRows(afterSeq: number, limit: number): Promise<Result<SearchRows>> {
    const most = Math.max(1, Math.min(limit, LIMITS.pageItems));
    return this.#look((state) => searchRows(state, this.#driver.store, afterSeq, most));
  }
  story(wanted: StoryWanted): Promise<Result<RunStory>> {
    const state = this.#driver.state;
    return Promise.resolve(state ? storyOf(state, this.#driver.store, wanted) : NOT_FOUND);
  }
  record(wanted: RecordWanted): Promise<Result<RunRecord>> {
    const { state } = this.#driver;
    return Promise.resolve(state ? recordOf(state, this.#driver.store, wanted) : NOT_FOUND);
  }
  runEnd(runId: string): Promise<RunEnd> {
    const state = this.#driver.state;
    return Promise.resolve(state ? runEnd(state, this.#driver.store, runId, this.#driver.wall()) : { state: "unknown" });
  }

  async runReport(runId: string): Promise<RunReport> {
    const end = await this.runEnd(runId);
    return end.state === "running" || end.state === "queued" ? { end } : { end, story: await this.story({ runId }) };
  }

  note({ identity, key, text, forModel, isAnswer }: SessionNote): Promise<void> {
    const note = { text, ...(forModel === undefined ? {} : { forModel }), ...(isAnswer ? { isAnswer } : {}) };
    this.#driver.apply({ type: "Noted", ...note }, { key: `n:${key}`, birth: { identity } });
    return Promise.resolve();
  }

  spent(): Promise<SpendState> {
    // Loads the state, and starts what an earlier incarnation has left.
    void this.#driver.state;
    return Promise.resolve(this.#driver.spend.spent());
  }
  resume(): Promise<{ busy: boolean }> {
    const state = this.#driver.state;
    return Promise.resolve({ busy: state !== undefined && (state.run.phase !== "idle" || state.outbox.length > 0) });
  }
}
/** The node has the call, and its result is not here yet. */
function mayStillReport({ run, closed }: State, nodeId: string, callId: string): boolean {
  const from = { kind: "node", nodeId } as const;
  const isOpen = run.phase === "acting" && run.calls.some((call) => call.callId === callId && mayReport(call, from));
  return isOpen || closed.some((call) => call.callId === callId && sameTarget(call.target, from));
}
