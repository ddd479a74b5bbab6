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
  type Directives,
  type NodeExecEventParams,
  type SessionCompactResult,
  type SessionGetResult,
  type SessionHistoryResult,
  type SessionMessagesResult,
  type SessionPatchParams,
  type SessionPreviewResult,
  type SessionPromptResult,
  type SessionResetResult,
  type SessionStatsResult,
  type SessionSubscribeResult,
  type ToolResultParams,
} from "../../../protocol/gen/types.ts";
import type { ContentBlock } from "../ports/messages.ts";
import { failure, type GsvError, type Result, succeed } from "../ports/result.ts";
import type { SearchRows } from "../ports/search.ts";
import type {
  ExecEventTaken,
  NodeChange,
  RunEnd,
  SessionIdentity,
  SessionNote,
  SessionPort,
  SessionSend,
  ToolResultTaken,
} from "../ports/session.ts";
import { nodeOf, sameTarget } from "../calls/open-call.ts";
import { isProcessId } from "../calls/processes.ts";
import { mayReport } from "../calls/rules.ts";
import type { Applied } from "./apply.ts";
import { CommandRunner, repeated } from "./command-runner.ts";
import { directiveOnlyText } from "./commands.ts";
import { patchedModel } from "../models/choose.ts";
import type { SessionDriver } from "./driver.ts";
import { describePatch, execMessage, type IntakeMessage, type SettingsChange, takeIn, withFiles } from "./intake.ts";
import type { ArchiveEnd, EventBody } from "./machine/event.ts";
import { isOwnCallId, type State } from "./machine/state.ts";
import { jsonBytes } from "./machine/text.ts";
import { effectivePolicy, resetDue } from "./reset-policy.ts";
import { runEnd, searchRows } from "./search-view.ts";
import { fromNode } from "./tool-content.ts";
import { eventsView, getView, historyView, messagesView, previewView, statsView } from "./views.ts";

/** The reset policy of a session that was active this recently is not fetched again. */
const POLICY_FRESH_MS = 60_000;
/** A gateway that does not answer must not keep a message from being accepted. */
const POLICY_WAIT_MS = 2_000;
/** Commands that must not overtake an earlier message whose files are being stored. */
const AFTER_FILES: ReadonlySet<string> = new Set(["new", "reset", "compact"]);
/** How long the requester of a reset waits for the count of deleted files; they are deleted in any case. */
const MEDIA_WAIT_MS = 2_000;
const NOT_FOUND: Result<never> = {
  ok: false,
  error: { reason: "session.not_found", message: "There is no such session: it has no messages yet." },
};
const fail = (error: GsvError): Result<never> => ({ ok: false, error });
const bug = (what: string): Error => new Error(`the session answered ${what} with something else`);

export interface ServicePorts {
  readonly after: (ms: number, work: () => void) => () => void;
  readonly freshId: () => string;
  readonly sha256: (text: string) => Promise<string>;
}

export class SessionService implements SessionPort {
  readonly #driver: SessionDriver;
  readonly #ports: ServicePorts;
  readonly #commands: CommandRunner;
  /** Messages whose files are being stored, and those behind them. */
  #accepting = 0;
  #lastAccepted: Promise<void> = Promise.resolve();

  constructor(driver: SessionDriver, ports: ServicePorts) {
    this.#driver = driver;
    this.#ports = ports;
    this.#commands = new CommandRunner(driver);
  }

  // ---------------------------------------------------------------- talking

  async send(input: SessionSend): Promise<Result<ChatSendResult>> {
    const taken = takeIn(input, this.#driver.wall(), this.#driver.state?.settings.model ?? this.#driver.contexts.known?.config.model);
    if (!taken.ok) return taken;
    const intake = taken.value;
    switch (intake.kind) {
      case "bad-command":
        return succeed({ status: "command", command: intake.name, error: intake.message });
      case "directive-only": {
        const refused = await this.#badModel(intake.directives, input.identity);
        if (refused !== undefined) return refused;
        return succeed({
          status: "directive-only",
          response: intake.status ? this.#commands.statusText(input) : directiveOnlyText(intake.directives),
          directives: intake.directives,
        });
      }
      case "command":
        if (this.#accepting > 0 && AFTER_FILES.has(intake.command.name)) await this.#lastAccepted;
        return this.#commands.run(input, intake.command);
      case "message": {
        const hasFiles = (input.attachments?.length ?? 0) > 0;
        const take = (): Promise<Result<ChatSendResult>> => this.#message(input, intake);
        return this.#acceptInOrder(hasFiles || intake.incoming.directives.model !== undefined, async () => {
          const { directives } = intake.incoming;
          const refused = directives.model && (await this.#badModel(directives, input.identity));
          return refused ?? (hasFiles ? this.#driver.waits.withFiles(take) : take());
        });
      }
    }
  }
  async #badModel({ model }: Directives, identity: SessionIdentity): Promise<Result<never> | undefined> {
    const problem = model && (await this.#driver.modelProblem(model, identity));
    return problem === undefined ? undefined : failure("chat.bad_directive", `${problem} Nothing was sent.`);
  }

  /** Files are stored before their message is accepted. Later messages wait meanwhile, so that order is kept (promise P3). */
  async #acceptInOrder<T>(slow: boolean, work: () => Promise<T>): Promise<T> {
    if (!slow && this.#accepting === 0) return work();
    const before = this.#lastAccepted;
    let done = (): void => {};
    this.#lastAccepted = new Promise((resolve) => {
      done = resolve;
    });
    this.#accepting += 1;
    await before;
    try {
      return await work();
    } finally {
      this.#accepting -= 1;
      done();
    }
  }
  async #message(input: SessionSend, given: IntakeMessage): Promise<Result<ChatSendResult>> {
    const whole = (input.attachments?.length ?? 0) === 0 ? succeed(given) : await this.#stored(input, given);
    if (!whole.ok) return whole;
    const intake = whole.value;
    await this.#refreshPolicy();
    const phase = this.#driver.state?.run.phase ?? "idle";
    if (input.contextVersion !== undefined && phase === "idle") this.#driver.contexts.confirm(input.contextVersion, this.#driver.wall());
    const state = this.#driver.state;
    const due = state && this.#resetDue(state);
    const applied = this.#driver.apply(
      { type: "UserMessage", identity: input.identity, incoming: intake.incoming, bytes: intake.bytes, ...(due ? { resetDue: due } : {}) },
      { key: `m:${input.messageId}`, birth: { identity: input.identity } },
    );
    if (intake.status && applied.step) this.#driver.tell(input.runId, this.#commands.statusText(input));
    return this.#sent(applied, intake);
  }
  /** The message with its files in the bucket. Stores nothing for a message that is known already or will be refused. */
  async #stored(input: SessionSend, intake: IntakeMessage): Promise<Result<IntakeMessage>> {
    const { identity, messageId, attachments = [], badFilesAsNotes } = input;
    const state = this.#driver.state;
    const isFull = state !== undefined && state.run.phase !== "idle" && state.queue.count >= LIMITS.queueMessages;
    if (isFull || this.#driver.store.seen(`m:${messageId}`)) return succeed(intake);
    const taken = await this.#driver.media.takeAttachments({
      sessionKey: identity.key,
      messageId,
      attachments,
      ...(badFilesAsNotes === undefined ? {} : { badFilesAsNotes }),
      now: this.#driver.wall(),
    });
    return taken.ok ? withFiles(intake, taken.value) : taken;
  }
  #sent({ answer, duplicate }: Applied, intake?: IntakeMessage): Result<ChatSendResult> {
    if (answer?.type === "refused") return fail(answer.error);
    if (answer?.type !== "accepted") return repeated(answer);
    const directives = intake?.incoming.directives ?? {};
    return succeed({
      status: "started",
      runId: asRunId(answer.runId),
      queued: answer.queued,
      ...(duplicate ? { duplicate } : {}),
      ...(answer.seq === undefined ? {} : { seq: answer.seq }),
      ...(Object.keys(directives).length > 0 ? { directives } : {}),
    });
  }
  /** Before the first message after a pause, fetches the reset policy: the present one decides, not the one from before the pause. */
  async #refreshPolicy(): Promise<void> {
    const state = this.#driver.state;
    if (state?.run.phase !== "idle" || state.messageCount === 0) return;
    const { contexts } = this.#driver;
    if (contexts.known && this.#driver.wall() - state.updatedAt < POLICY_FRESH_MS) return;
    let stop: () => void = () => {};
    const late = new Promise<void>((resolve) => {
      stop = this.#ports.after(POLICY_WAIT_MS, resolve);
    });
    await Promise.race([contexts.current().then(noop, noop), late]);
    stop();
  }
  #resetDue(state: State): "daily" | "idle" | undefined {
    const config = this.#driver.contexts.known?.config;
    // Without a configuration the policy is unknown. The next message checks again.
    if (!config) return undefined;
    return resetDue(
      effectivePolicy(state.resetPolicy, config.session.defaultResetPolicy),
      config.userTimezone,
      state.updatedAt,
      this.#driver.wall(),
    );
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
      }),
    );
  }

  // ---------------------------------------------------------------- nodes

  async toolResult(nodeId: string, result: ToolResultParams): Promise<ToolResultTaken> {
    const { callId, durationMs } = result;
    const report = fromNode(result);
    const content = report.content.every((block) => block.type === "text")
      ? report.content
      : await this.#images(nodeId, callId, report.content);
    const { answer } = this.#driver.apply({
      type: "ToolResult",
      callId,
      from: { kind: "node", nodeId },
      ...report,
      content,
      ...(durationMs === undefined ? {} : { durationMs }),
    });
    const type = answer?.type;
    return type === "taken" || type === "duplicate" || type === "late" ? type : "unknown";
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
    const open = run?.phase === "acting" ? run.calls.filter((call) => nodeOf(call) === nodeId) : [];
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

  // ---------------------------------------------------------------- looking

  get(): Promise<Result<SessionGetResult>> {
    return this.#look((state) => getView(state, this.#driver.contexts.known?.config.session.defaultResetPolicy, this.#driver.contextSize));
  }
  stats(): Promise<Result<SessionStatsResult>> {
    return this.#look((state) => statsView(state, this.#driver.wall()));
  }
  history(): Promise<Result<SessionHistoryResult>> {
    return this.#look(historyView);
  }
  preview(limit: number | undefined): Promise<Result<SessionPreviewResult>> {
    const most = Math.max(1, Math.min(limit ?? LIMITS.pageItems, LIMITS.pageItems));
    return this.#look((state) => previewView(state, [...this.#driver.history.messageRows()], most));
  }
  messages(offset: number | undefined, limit: number | undefined): Promise<Result<SessionMessagesResult>> {
    return this.#look((state) => messagesView(state, [...this.#driver.history.messageRows()], offset ?? 0, limit ?? LIMITS.rowBytes));
  }
  prompt(identity: SessionIdentity): Promise<Result<SessionPromptResult>> {
    return this.#driver.prompt(identity, this.#ports.sha256);
  }
  events(afterSeq: number | undefined): Promise<Result<SessionSubscribeResult>> {
    const state = this.#driver.state;
    if (!state)
      return Promise.resolve(
        afterSeq !== undefined && afterSeq > 0
          ? fail({ reason: "session.snapshot_required", message: "There is nothing to replay here. Follow from the beginning." })
          : succeed({ sessionKey: asSessionKey(""), seq: 0, events: [], state: "idle" }),
      );
    return Promise.resolve(eventsView(state, this.#driver.store, afterSeq, this.#driver.live));
  }
  #look<T>(view: (state: State) => T): Promise<Result<T>> {
    const state = this.#driver.state;
    return Promise.resolve(state ? succeed(view(state)) : NOT_FOUND);
  }

  // ---------------------------------------------------------------- changing

  async patch(patch: Omit<SessionPatchParams, "sessionKey">): Promise<Result<{ ok: boolean }>> {
    if (!this.#driver.state) return NOT_FOUND;
    const change = await this.#withWholeModel(patch);
    if (!change.ok) return change;
    const text = describePatch(change.value);
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
    return succeed({ ok: true });
  }
  /** Half a model's name gets the other half from the present model. */
  async #withWholeModel({ settings, ...patch }: Omit<SessionPatchParams, "sessionKey">): Promise<Result<SettingsChange>> {
    if (settings === undefined) return succeed(patch);
    const { model: half, ...others } = settings;
    if (half === undefined) return succeed({ ...patch, settings: others });
    const isWhole = half.provider !== undefined && half.id !== undefined;
    const model = patchedModel(half, isWhole ? undefined : await this.#driver.presentModel());
    if (model === undefined)
      return fail({ reason: "protocol.invalid_params", message: "The present model is not known. Name `model.provider` and `model.id`." });
    const problem = await this.#driver.modelProblem(model);
    if (problem !== undefined) return failure("model.unknown", problem);
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
  runEnd(runId: string): Promise<RunEnd> {
    const state = this.#driver.state;
    return Promise.resolve(state ? runEnd(state, this.#driver.store, runId) : { state: "unknown" });
  }

  note({ identity, key, text, forModel }: SessionNote): Promise<void> {
    this.#driver.apply({ type: "Noted", text, ...(forModel ? { forModel } : {}) }, { key: `n:${key}`, birth: { identity } });
    return Promise.resolve();
  }

  resume(): Promise<{ busy: boolean }> {
    const state = this.#driver.state;
    return Promise.resolve({ busy: state !== undefined && (state.run.phase !== "idle" || state.outbox.length > 0) });
  }
}
const noop = (): void => {};
/** The node has the call, and its result is not here yet. */
function mayStillReport({ run, closed }: State, nodeId: string, callId: string): boolean {
  const from = { kind: "node", nodeId } as const;
  const isOpen = run.phase === "acting" && run.calls.some((call) => call.callId === callId && mayReport(call, from));
  return isOpen || closed.some((call) => call.callId === callId && sameTarget(call.target, from));
}
