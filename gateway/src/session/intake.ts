/** Turns what callers send into messages for the machine, and checks their sizes. PURE. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Directives, ModelRef, NodeExecEventParams, SessionPatchParams, SessionSettings } from "../../../protocol/gen/types.ts";
import { utf8Bytes } from "../../../protocol/runtime/utf8.ts";
import { type MediaBlock, type TextBlock, textOf } from "../ports/messages.ts";
import { failure, type Result } from "../ports/result.ts";
import type { SessionSend } from "../ports/session.ts";
import { filesTaint } from "../policy/taint.ts";
import { higher } from "../ports/taint.ts";
import { type Command, type Parsed, parseMessage, unknownCommand } from "./commands.ts";
import { MESSAGE_ROW_BYTES } from "./machine/limits.ts";
import type { IncomingMessage } from "./machine/state.ts";
import { jsonBytes, tail } from "./machine/text.ts";
import { messageMode, modeText } from "./mode.ts";

export interface IntakeMessage {
  readonly kind: "message";
  readonly incoming: IncomingMessage;
  readonly bytes: number;
  readonly status: boolean;
  /** It was written as `/steer TEXT`. */
  readonly steer?: true;
}
export type Intake =
  | { readonly kind: "command"; readonly command: Command }
  | { readonly kind: "bad-command"; readonly name: string; readonly message: string }
  | { readonly kind: "directive-only"; readonly directives: Directives; readonly status: boolean }
  | IntakeMessage;

/** `current` is the current model, as far as it is known. */
export function takeIn(input: SessionSend, wall: number, current?: ModelRef): Result<Intake> {
  const bytes = utf8Bytes(input.text);
  if (bytes > LIMITS.messageBytes)
    return failure(
      "chat.too_long",
      `The message has ${bytes} bytes; at most ${LIMITS.messageBytes} are accepted.`,
      "Put it into a file and name the file.",
    );
  const attachments = input.attachments ?? [];
  if (input.text.trim() === "" && attachments.length === 0) return failure("chat.empty", "The message is empty.");
  const parsed = parsedOf(input, current);
  if (parsed.kind === "bad-directive") return failure("chat.bad_directive", parsed.message);
  if (parsed.kind === "command" || parsed.kind === "bad-command") return { ok: true, value: parsed };
  if (parsed.kind === "directive-only" && attachments.length === 0) return { ok: true, value: parsed };
  const text = parsed.kind === "message" ? parsed.text : "";
  const incoming: IncomingMessage = {
    messageId: input.messageId,
    runId: input.runId,
    origin: input.origin,
    message: { role: "user", content: text, timestamp: wall },
    directives: parsed.directives,
    ...(input.reply ? { reply: input.reply } : {}),
    ...(input.quiet ? { quiet: true } : {}),
    ...(input.taint ? { taint: input.taint } : {}),
  };
  const steer = parsed.kind === "message" && parsed.steer ? { steer: parsed.steer } : {};
  return sized({ kind: "message", incoming, bytes: 0, status: parsed.status, ...steer });
}
/** The others are the owner's. */
const GUEST_COMMANDS: ReadonlySet<string> = new Set<Command["name"]>(["help", "status"]);
function parsedOf({ text, verbatim, directives = {}, command, quiet, byGuest }: SessionSend, current: ModelRef | undefined): Parsed {
  if (verbatim !== true && quiet !== true) return parseMessage(text, current);
  if (command === undefined || quiet === true) return { kind: "message", text, directives, status: false };
  const unknown = unknownCommand(command);
  if (unknown !== undefined) return unknown;
  const asked = parseMessage(command, current);
  const name = nameOf(asked);
  if (byGuest === true && name !== undefined && !GUEST_COMMANDS.has(name))
    return { kind: "bad-command", name, message: `Only the owner of this assistant can use /${name}.` };
  if (asked.kind === "command" || asked.kind === "bad-command") return asked;
  const message = { kind: "message", directives: {}, status: false } as const;
  if (asked.kind !== "message" || !asked.steer) return { ...message, text };
  // The head lines stay; the bare text is the end of the message.
  const head = text.endsWith(command) ? text.slice(0, -command.length) : "";
  return { ...message, text: `${head}${asked.text}`, directives: asked.directives, steer: true };
}
/** The command that the text is. */
function nameOf(asked: Parsed): string | undefined {
  if (asked.kind === "command") return asked.command.name;
  if (asked.kind === "message") return asked.steer ? "steer" : undefined;
  return asked.kind === "bad-command" ? asked.name : undefined;
}
function sized(message: IntakeMessage): Result<IntakeMessage> {
  const bytes = jsonBytes(message.incoming);
  if (bytes > MESSAGE_ROW_BYTES)
    return failure(
      "chat.too_long",
      `The message has ${bytes} bytes; at most ${MESSAGE_ROW_BYTES} are accepted.`,
      "Put it into a file and send the file.",
    );
  return { ok: true, value: { ...message, bytes } };
}
/** The message with references to its stored files and notes about those that were not stored. */
export function withFiles(
  message: IntakeMessage,
  { blocks, notes }: { readonly blocks: readonly MediaBlock[]; readonly notes: readonly string[] },
): Result<IntakeMessage> {
  const { incoming } = message;
  const text = [textOf(incoming.message.content), ...notes.map((note) => `[${note}]`)].filter((part) => part !== "").join("\n\n");
  const words: TextBlock[] = text === "" ? [] : [{ type: "text", text }];
  const content = blocks.length === 0 ? text : [...words, ...blocks];
  const document = filesTaint(blocks);
  const taint = document && { taint: higher(document, incoming.taint) };
  return sized({ ...message, incoming: { ...incoming, ...taint, message: { ...incoming.message, content } } });
}

/** The message with its own mode, which holds for its run alone. */
export function withMode({ mode, identity, origin }: SessionSend, intake: Intake, wall: number): Result<Intake> {
  if (mode === undefined) return { ok: true, value: intake };
  if (intake.kind !== "message")
    return failure("chat.bad_directive", "A mode is for the run of a message, and this text starts no run. Nothing was done.");
  const set = messageMode(mode, { isOwners: identity.isOwnersSession, byClient: origin.kind === "client", wall });
  if (!set.ok) return failure("chat.bad_directive", `${set.error.message} Nothing was sent.`, set.error.hint);
  const { incoming } = intake;
  return sized({ ...intake, incoming: { ...incoming, directives: { ...incoming.directives, ...set.value } } });
}

const TAIL_CHARS = 8_000;
/** The message that wakes the agent when a background process has ended. */
export function execMessage(nodeId: string, event: NodeExecEventParams, runId: string, wall: number): IncomingMessage {
  const how = {
    started: "started",
    finished: event.exitCode === undefined ? "ended" : `ended with exit code ${event.exitCode}`,
    failed:
      event.signal === undefined
        ? `failed${event.exitCode === undefined ? "" : ` with exit code ${event.exitCode}`}`
        : `was ended by ${/^[A-Z0-9+-]{1,32}$/.test(event.signal) ? event.signal : "a signal"}`,
    timed_out: "was ended because it took too long",
  }[event.event];
  const took =
    event.startedAt !== undefined && event.endedAt !== undefined && event.endedAt >= event.startedAt
      ? ` after ${Math.round((event.endedAt - event.startedAt) / 1000)} s`
      : "";
  const output =
    event.outputTail === undefined || event.outputTail === ""
      ? "It printed nothing."
      : `The end of what it printed (from the machine, not from the user):\n${codeBlock(tail(event.outputTail, TAIL_CHARS))}`;
  return {
    messageId: `exec:${nodeId}:${event.eventId}`,
    runId,
    origin: { kind: "node_event", nodeId },
    message: {
      role: "user",
      content: `[System message, not from the user] The background process ${event.sessionId} on ${nodeId} ${how}${took}. ${output}\nGo on with what it was started for; if nothing is left to do, say how it ended.`,
      timestamp: wall,
    },
    directives: {},
  };
}
/** A Markdown code block whose marks the text itself does not contain. */
function codeBlock(text: string): string {
  let marks = "```";
  while (text.includes(marks)) marks += "`";
  return `${marks}\n${text}\n${marks}`;
}

const CLEARABLE = ["model", "thinkingLevel", "systemPrompt", "maxTokens", "mode", "label", "resetPolicy"] as const;
/** A change of settings whose model has both of its halves. */
export type SettingsChange = Omit<SessionPatchParams, "sessionKey" | "settings"> & { readonly settings?: SessionSettings };
/** Describes a change of settings to people. Refuses unknown names in `clear`. */
export function describePatch(patch: SettingsChange, zone: string): Result<string> {
  const unknown = (patch.clear ?? []).find((name) => !CLEARABLE.some((known) => known === name));
  if (unknown !== undefined)
    return failure(
      "protocol.invalid_params",
      `There is no setting "${unknown.slice(0, 64)}" to clear.`,
      `Use one of ${CLEARABLE.join(", ")}.`,
    );
  const { settings = {}, label, resetPolicy } = patch;
  const parts = [
    ...(settings.model === undefined ? [] : [`model ${settings.model.provider}/${settings.model.id}`]),
    ...(settings.thinkingLevel === undefined ? [] : [`thinking ${settings.thinkingLevel}`]),
    ...(settings.maxTokens === undefined ? [] : [`at most ${settings.maxTokens} tokens an answer`]),
    ...(settings.mode === undefined ? [] : [`mode ${modeText(settings.mode, settings.modeUntil, zone)}`]),
    ...(settings.systemPrompt === undefined ? [] : ["another system prompt"]),
    ...(label === undefined ? [] : [`label "${label}"`]),
    ...(resetPolicy === undefined ? [] : [`reset ${Object.values(resetPolicy).join(" ")}`]),
    ...(patch.clear ?? []).map((name) => `${name} as configured`),
  ];
  return { ok: true, value: parts.length === 0 ? "Nothing was changed." : `From now on: ${parts.join(", ")}.` };
}
