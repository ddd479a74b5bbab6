/** Turns rows of the log into `chat` and `session` events for clients, the same ones each time. PURE. */
import { textOf } from "../ports/messages.ts";
import {
  asCallId,
  asMessageId,
  asRunId,
  asSessionKey,
  type ChatEvent,
  type ChatMessage,
  type SessionEventKind,
} from "../../../protocol/gen/types.ts";
import type { SessionNews } from "../ports/gateway.ts";
import { EVENT_ARGS_CHARS, PREVIEW_CHARS } from "./machine/limits.ts";
import type { AssistantRow, LogRow, NoticeKind, NoticeRow, ToolResultRow, UserRow } from "./machine/log.ts";
import { head } from "./machine/text.ts";
import { shownOutput } from "./shown-output.ts";

/** In order; each with a `sessionSeq` of its own. */
export function rowEvents(sessionKey: string, row: LogRow): readonly SessionNews[] {
  switch (row.kind) {
    case "user":
      return row.steered === undefined ? [] : [shown(sessionKey, row, row.steered)];
    case "assistant":
      return assistantEvents(sessionKey, row);
    case "toolResult":
      return [chat(sessionKey, row, toolEnded(row))];
    case "notice":
      return [notice(sessionKey, row)];
  }
}
/** A variant of the event without the fields that every variant has. */
type FieldsOf<Event> = Event extends ChatEvent ? Omit<Event, "sessionKey" | "runId"> : never;
type ChatFields = FieldsOf<ChatEvent>;
function chat(sessionKey: string, row: Pick<LogRow, "runId">, fields: ChatFields): SessionNews {
  return {
    event: "chat",
    payload: { sessionKey: asSessionKey(sessionKey), ...(row.runId === "" ? {} : { runId: asRunId(row.runId) }), ...fields },
  };
}

/** The model has the message from here on. Clients that do not know such messages show the text. */
const shown = (sessionKey: string, row: UserRow, { runId, step }: NonNullable<UserRow["steered"]>): SessionNews =>
  chat(sessionKey, row, {
    state: "status",
    text: `The model now has your message: ${head(textOf(row.message.content), PREVIEW_CHARS)}`,
    step,
    steered: { messageId: asMessageId(row.messageId), runId: asRunId(runId) },
    sessionSeq: row.seq,
  });

function assistantEvents(sessionKey: string, row: AssistantRow): readonly SessionNews[] {
  const text = row.swallowed === true ? "" : textOf(row.message.content);
  // Clients fetch a file by its key: GET /media/{session}/{name}.
  const content = [...(text === "" ? [] : [{ type: "text", text }]), ...(row.files ?? []).map((file) => ({ ...file }))];
  const said: ChatMessage = { role: "assistant", content, timestamp: row.at };
  const place = { step: row.step, attempt: row.attempt };
  if (row.calls.length === 0)
    return [
      chat(sessionKey, row, { state: "final", message: said, sessionSeq: row.seq, ...place, usage: row.runUsage ?? row.message.usage }),
    ];
  const blocks = row.message.content.filter((block) => block.type === "toolCall");
  const started = row.calls.map((call, index) =>
    chat(sessionKey, row, {
      state: "tool",
      tool: {
        callId: asCallId(call.callId),
        name: head(call.name, 192),
        phase: "started",
        args: shownArgs(blocks[index]?.arguments ?? {}),
      },
      sessionSeq: row.seq + 1 + index,
      ...place,
    }),
  );
  const partial =
    text.trim() === ""
      ? []
      : [chat(sessionKey, row, { state: "partial", message: said, sessionSeq: row.seq, ...place, usage: row.message.usage })];
  return [...partial, ...started];
}
/** Large arguments (a file to write) are shown as their beginning; the log has them in full. */
function shownArgs(args: Readonly<Record<string, unknown>>): unknown {
  const text = JSON.stringify(args);
  return text.length <= EVENT_ARGS_CHARS ? args : { truncated: true, beginning: head(text, PREVIEW_CHARS) };
}
const COMMAND_TOOL = /__(?:Bash|Process)$/;
const EXIT_CODE = /"exitCode":(-?\d{1,10})[,}]/;
const SIGNAL = /"signal":"([A-Z0-9+-]{1,32})"/;
/**
 * How the command of a call ended. A long result is cut in the middle and no longer JSON, so this reads the fields themselves: inside a
 * JSON string every quote has a backslash, so a command's output can't look like them.
 */
export function commandEnd(row: ToolResultRow): { readonly exitCode?: number; readonly signal?: string } {
  const text = textOf(row.message.content);
  if (row.outcome !== "ok" || !COMMAND_TOOL.test(row.message.toolName) || !text.startsWith("{")) return {};
  const [code, signal] = [EXIT_CODE.exec(text)?.[1], SIGNAL.exec(text)?.[1]];
  return { ...(code === undefined ? {} : { exitCode: Number(code) }), ...(signal === undefined ? {} : { signal }) };
}
const NOTE = /"note":("(?:[^"\\]|\\.)+")/;
const NOTE_CHARS = 1_000;
/** What the machine says about the end of a command, such as the host that its sandbox did not let it reach. Read as in `commandEnd`. */
export function commandNote(row: ToolResultRow): { readonly note?: string } {
  const text = textOf(row.message.content);
  if (row.outcome !== "ok" || !COMMAND_TOOL.test(row.message.toolName) || !text.startsWith("{")) return {};
  const literal = NOTE.exec(text)?.[1];
  if (literal === undefined) return {};
  try {
    return { note: head(String(JSON.parse(literal)), NOTE_CHARS) };
  } catch {
    return {};
  }
}
const toolEnded = (row: ToolResultRow): ChatFields => ({
  state: "tool",
  tool: {
    callId: asCallId(row.callId),
    name: head(row.message.toolName, 192),
    phase: "ended",
    outcome: row.outcome,
    preview: head(textOf(row.message.content), PREVIEW_CHARS),
    output: shownOutput(row.message.toolName, textOf(row.message.content)),
    ...(row.durationMs === undefined ? {} : { durationMs: Math.round(row.durationMs) }),
    ...commandEnd(row),
    ...commandNote(row),
  },
  sessionSeq: row.seq,
  step: row.step,
  ...(row.reason === undefined ? {} : { reason: row.reason }),
});

const SESSION_KINDS = {
  late: "note",
  note: "note",
  reset: "reset",
  compacted: "compacted",
  settings: "settings",
} as const satisfies Record<Exclude<NoticeKind, "error" | "aborted" | "paused">, SessionEventKind>;
function notice(sessionKey: string, row: NoticeRow): SessionNews {
  const usage = row.usage === undefined ? {} : { usage: row.usage };
  const reason = row.reason === undefined ? {} : { reason: row.reason };
  const hint = row.hint === undefined ? {} : { hint: row.hint };
  if (row.notice === "error")
    return chat(sessionKey, row, { state: "error", error: row.text, sessionSeq: row.seq, ...reason, ...hint, ...usage });
  if (row.notice === "aborted")
    return chat(sessionKey, row, { state: "aborted", error: row.text, sessionSeq: row.seq, ...reason, ...usage });
  if (row.notice === "paused") {
    const { question } = row;
    const about = question
      ? {
          approvalId: question.code,
          callId: asCallId(question.callId),
          step: question.step,
          ...(question.limit ? { limit: true as const } : {}),
        }
      : {};
    return chat(sessionKey, row, { state: "paused", text: row.text, sessionSeq: row.seq, ...about });
  }
  // Clients show a message as they show the agent's other answers.
  const said: ChatMessage = { role: "assistant", content: [{ type: "text", text: row.text }], timestamp: row.at };
  return {
    event: "session",
    payload: {
      sessionKey: asSessionKey(sessionKey),
      kind: SESSION_KINDS[row.notice],
      text: row.text,
      sessionSeq: row.seq,
      ...(row.isAnswer ? { message: said } : {}),
    },
  };
}
