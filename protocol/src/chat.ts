/** Chat: send messages to the agent and follow its runs. */
import { enumOf, event, method, struct, t, tagged } from "./dsl.ts";
import { CallId, MessageId, RunId, SessionKey, ThinkLevel } from "./ids.ts";
import { PolicyMode } from "./policy.ts";
import { ToolOutcome } from "./tool.ts";

export const ModelRef = struct("ModelRef", "A model of a provider.", {
  provider: t.string(64, { minLength: 1 }),
  id: t.string(256, { minLength: 1 }),
});
export const Directives = struct("Directives", "Settings inside a message. They apply to this message only.", {
  thinkLevel: t.optional(ThinkLevel),
  model: t.optional(ModelRef),
  mode: t.optional(PolicyMode),
  /** The end of the mode `full`. Without it the mode holds for the whole run. */
  modeUntil: t.optional(t.time()),
});
export const Attachment = struct("Attachment", "A file of a message.", {
  mimeType: t.string(128),
  filename: t.optional(t.string(256)),
  /** base64 */
  data: t.optional(t.text()),
  /** The key of an uploaded file, from the answer of POST /media. */
  r2Key: t.optional(t.string(1024)),
});

export const WhileBusy = enumOf(
  "WhileBusy",
  "What a message does while a run is under way. `queue`: it waits for its turn. `steer`: the model is shown it at the next step of that run. `interrupt`: the run stops, and this message is answered next.",
  ["queue", "steer", "interrupt"],
);

export const ChatSendResult = tagged(
  "ChatSendResult",
  "How the session handled a message. The message is durable before this answer is sent.",
  "status",
  {
    started: {
      runId: RunId,
      queued: t.optional(t.bool()),
      /** GSV is stopped: the message waits until `gateway.resume`. */
      stopped: t.optional(t.bool()),
      /** The message id was accepted before. The first answer is repeated. */
      duplicate: t.optional(t.bool()),
      /** Sequence number of the message in the session's log. */
      seq: t.optional(t.int()),
      /** With `queued`: the run that is shown the message at its next step. If it ends before, the message is the next turn, under `runId`. */
      steers: t.optional(RunId),
      /** The run that was stopped for this message. */
      interrupted: t.optional(RunId),
      directives: t.optional(Directives),
    },
    command: { command: t.string(64), response: t.optional(t.text()), error: t.optional(t.text()) },
    "directive-only": { response: t.optional(t.text()), directives: t.optional(Directives) },
    paused: { runId: RunId, response: t.text(), approvalId: t.optional(t.string(128)) },
  },
);

method("chat.send", {
  doc: "Sends a message to the agent. `messageId` (else `runId`) makes a retry safe: the answer is the same and one turn runs. The caller is subscribed to the session from then on.",
  params: {
    sessionKey: SessionKey,
    message: t.text(),
    runId: t.optional(RunId),
    messageId: t.optional(MessageId),
    attachments: t.optional(t.array(Attachment, 16)),
    /** Absent: `queue`. Without a run, and for a run of another authority, every value is `queue`. */
    whileBusy: t.optional(WhileBusy),
    /** The mode of the run of this message, also when it waits for its turn. Absent: that of the conversation. */
    mode: t.optional(PolicyMode),
    /** Stream what the model thinks in the run of this message to this connection, as `thinking` events. Absent: it gets none from here on. */
    thinking: t.optional(t.bool()),
  },
  result: ChatSendResult,
  callers: ["client"],
  scope: "chat",
  audit: "none",
  errors: [
    "session.bad_key",
    "agent.unknown",
    "session.queue_full",
    "chat.empty",
    "chat.too_long",
    "chat.bad_directive",
    "media.not_found",
    "media.unsupported",
    "file.too_large",
    "storage.failed",
  ],
  idempotent: true,
});

method("chat.abort", {
  doc: "Stops the session's current run, or the named run. Running tool calls are cancelled. `waiting`: messages in the queue, which are read next.",
  params: { sessionKey: SessionKey, runId: t.optional(RunId) },
  result: {
    ok: t.bool(),
    wasRunning: t.bool(),
    runId: t.optional(RunId),
    pendingToolsCancelled: t.int(0, 100000),
    waiting: t.optional(t.int(0, 100000)),
  },
  callers: ["client"],
  scope: "chat",
  audit: "none",
  errors: ["session.bad_key", "session.not_found"],
  idempotent: true,
});

export const Usage = struct("Usage", "Tokens and their price. `input` excludes tokens from the provider's cache.", {
  input: t.int(),
  output: t.int(),
  cacheRead: t.optional(t.int()),
  cacheWrite: t.optional(t.int()),
  total: t.int(),
  costUsd: t.optional(t.number(0)),
});

export const ChatState = enumOf(
  "ChatState",
  "`delta`: text while the model writes it. `thinking`: what the model thinks, for connections that asked for it. `partial`: the full text of an answer with tool calls. `tool`: a call starts or ends. `status`: the run waits or resumes. `paused`: a call, or the whole run at a limit, waits for the owner's word. Exactly one of `final`, `error`, `aborted` ends a run.",
  ["delta", "thinking", "partial", "tool", "status", "paused", "final", "error", "aborted"],
);
export const ToolOutput = struct("ToolOutput", "What a call gave, as a person reads it: of a command what it printed.", {
  /** The beginning, at most 2,000 characters. */
  head: t.string(4096),
  /** The end, at most 1,000 characters. Absent: `head` is all of it. */
  tail: t.optional(t.string(4096)),
  /** Lines of the whole text. */
  lines: t.int(),
});
export const ChatTool = struct("ChatTool", "A tool call, for display.", {
  callId: CallId,
  name: t.string(192),
  phase: enumOf("ChatToolPhase", "Whether the call starts or has ended.", ["started", "ended"]),
  args: t.optional(t.json()),
  outcome: t.optional(ToolOutcome),
  /** The beginning of the result, at most 2,000 characters. */
  preview: t.optional(t.string(4096)),
  /** The output of a call that has ended. `session.result` has all of it. */
  output: t.optional(ToolOutput),
  durationMs: t.optional(t.int()),
  /** How the command of an ended call ended: `ok` means that it ran, not that it succeeded. */
  exitCode: t.optional(t.int(-2147483648, 2147483647)),
  /** The signal that ended the command. */
  signal: t.optional(t.string(32)),
  /** What the machine says about the end of the command, such as the host that its sandbox did not let it reach. */
  note: t.optional(t.string(4096)),
});
export const SteeredMessage = struct("SteeredMessage", "A message that the model was shown during a run.", {
  messageId: MessageId,
  /** Under which the message waited. It has no run of its own: the end of the event's run answers it. */
  runId: RunId,
});
export const ChatMessage = struct(
  "ChatMessage",
  'A message for clients; `content` is a list of blocks, `{type: "text", text}` and others.',
  {
    role: t.string(32),
    content: t.array(t.object(), 1000),
    timestamp: t.optional(t.time()),
  },
);

const place = { step: t.optional(t.int(0, 100000)), attempt: t.optional(t.int(0, 100000)) };
const about = { runId: t.optional(RunId), sessionKey: SessionKey };
/** Sequence number in the session's log. */
const logged = { sessionSeq: t.optional(t.int()) };

const ChatEvent = tagged("ChatEvent", "Payload of the `chat` event.", "state", {
  delta: {
    ...about,
    text: t.text(),
    ...place,
    /** UTF-16 units of this (step, attempt) that came before `text`. */
    offset: t.optional(t.int()),
  },
  thinking: {
    ...about,
    /** The next part of the thoughts, or of their summary, as the provider gives it. */
    text: t.text(),
    ...place,
    /** UTF-16 units of the thoughts of this (step, attempt) that came before `text`; a part that was not sent counts too. */
    offset: t.optional(t.int()),
  },
  partial: { ...about, message: ChatMessage, usage: t.optional(Usage), ...logged, ...place },
  tool: { ...about, tool: ChatTool, reason: t.optional(t.string(64)), ...logged, ...place },
  status: {
    ...about,
    text: t.text(),
    step: place.step,
    /** Since this step the model has a message that was sent to steer the run. Only such a status has `sessionSeq`. */
    steered: t.optional(SteeredMessage),
    ...logged,
  },
  paused: {
    ...about,
    text: t.optional(t.text()),
    /** The code of the question: `approval.resolve` answers it. */
    approvalId: t.optional(t.string(128)),
    callId: t.optional(CallId),
    /** The question is whether the run may use more than a limit allows; there is no call. */
    limit: t.optional(t.literal(true)),
    ...logged,
    step: place.step,
  },
  final: { ...about, message: ChatMessage, usage: t.optional(Usage), ...logged, ...place },
  error: {
    ...about,
    error: t.optional(t.text()),
    reason: t.optional(t.string(64)),
    /** What to do next, which `error` ends with. Absent: the hint of the reason counts. */
    hint: t.optional(t.text()),
    usage: t.optional(Usage),
    ...logged,
  },
  aborted: { ...about, error: t.optional(t.text()), reason: t.optional(t.string(64)), usage: t.optional(Usage), ...logged },
});

event("chat", {
  doc: "News of a session. Events with `sessionSeq` are the log: they can be replayed and are never lost. `delta` has no `sessionSeq`: a later log event repeats its text in full. `thinking` has none either, is sent only to connections that asked for it with `chat.send` or `session.subscribe`, and is never repeated. A new (step, attempt) replaces the text shown so far.",
  payload: ChatEvent,
  to: ["client"],
});
