/**
 * PURE. Maps the kit's messages to requests to Discord, and Discord's answers to outcomes (promises P9). The agent's text never pings
 * anyone: mentions are sent as plain text.
 */
import {
  type APIActionRowComponent,
  type APIAllowedMentions,
  type APIButtonComponentWithCustomId,
  ButtonStyle,
  ComponentType,
  MessageFlags,
} from "discord-api-types/v10";
import type { OutboundPart, SendOutcome } from "../../kit/src/platform.ts";

/** Discord's file limit for bots in a server without boosts. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;
export const MAX_CHARS = 2_000;
const MAX_BUTTONS = 5;
const MAX_LABEL = 80;

/** In the shape of discord-api-types, as the library expects it. */
export interface MessageBody {
  content: string;
  allowed_mentions: APIAllowedMentions;
  flags: MessageFlags;
  nonce?: string;
  enforce_nonce?: boolean;
  message_reference?: { message_id: string; fail_if_not_exists: boolean };
  components?: APIActionRowComponent<APIButtonComponentWithCustomId>[];
  attachments?: { id: number; filename: string }[];
}
const QUIET: APIAllowedMentions = { parse: [], replied_user: false };

/** The Discord message of one of our ids; `undefined` when there is none to refer to. */
export const referenceOf = (id: string | undefined): string | undefined =>
  id === undefined ? undefined : /^([1-9]\d{4,19})(?:\.|$)/.exec(id)?.[1];
/** The interaction that a message id belongs to. */
export const interactionOf = (id: string | undefined): string | undefined =>
  id === undefined ? undefined : /^i:([1-9]\d{4,19})$/.exec(id)?.[1];

/** `filename`: the name of the attached file. */
export function toMessage(part: OutboundPart, filename: string | undefined): MessageBody {
  const reference = referenceOf(part.replyToId);
  return {
    ...toEdit(part, filename),
    nonce: part.nonce,
    enforce_nonce: true,
    ...(reference === undefined ? {} : { message_reference: { message_id: reference, fail_if_not_exists: false } }),
  };
}
/** An edit of an existing message; repeating it is harmless, so it needs no nonce. */
export function toEdit(part: Pick<OutboundPart, "text" | "actions">, filename: string | undefined): MessageBody {
  const buttons = (part.actions ?? []).slice(0, MAX_BUTTONS).map(
    ({ id, label }, index): APIButtonComponentWithCustomId => ({
      type: ComponentType.Button,
      style: index === 0 ? ButtonStyle.Primary : ButtonStyle.Secondary,
      label: [...label].slice(0, MAX_LABEL).join(""),
      custom_id: id.slice(0, 100),
    }),
  );
  return {
    content: part.text.slice(0, MAX_CHARS),
    allowed_mentions: QUIET,
    // Without a preview Discord fetches no address that the agent wrote: an address can hold private data (rule TA11).
    flags: MessageFlags.SuppressEmbeds,
    ...(buttons.length === 0 ? {} : { components: [{ type: ComponentType.ActionRow, components: buttons }] }),
    ...(filename === undefined ? {} : { attachments: [{ id: 0, filename }] }),
  };
}
/** A question that has been answered: its text with the outcome, and no buttons any more. */
export function toOutcome(question: string, outcome: string): MessageBody {
  const end = `\n\n${outcome}`.slice(0, MAX_CHARS);
  return { ...toEdit({ text: question.slice(0, MAX_CHARS - end.length) + end }, undefined), components: [] };
}
/** The first live text of an answer. */
export function toLive(text: string, replyToId: string | undefined): MessageBody {
  const reference = referenceOf(replyToId);
  return {
    ...toEdit({ text }, undefined),
    ...(reference === undefined ? {} : { message_reference: { message_id: reference, fail_if_not_exists: false } }),
  };
}

/** A file name that is valid on Discord and on disks. */
export function fileNameOf(name: string | undefined, mimeType: string): string {
  const clean = (name ?? "")
    .toWellFormed()
    .replaceAll(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\\/:*?"<>|]/g, "_")
    .replaceAll(/^[.\s]+/g, "")
    .slice(-120)
    .trim();
  if (clean !== "") return clean;
  const ending = (mimeType.split("/")[1] ?? "").replaceAll(/[^a-z0-9]/g, "").slice(0, 8);
  return ending === "" || ending.startsWith("octet") ? "file" : `file.${ending}`;
}
const inMegabytes = (bytes: number): string => `${(bytes / (1024 * 1024)).toFixed(1)} MB`;
/** The note for a file that exceeds Discord's limit. */
export const tooLargeNote = (filename: string, sizeBytes: number): string =>
  `[The file ${JSON.stringify(filename)} has ${inMegabytes(sizeBytes)}. Discord takes at most ${inMegabytes(MAX_FILE_BYTES)} here, so it was not sent.]`;

// ---------------------------------------------------------------- answers

/** A failed request. */
export interface RestFailure {
  readonly status?: number;
  /** Discord's own error code. */
  readonly code?: number;
  readonly retryAfterMs?: number;
  readonly message: string;
}
/** Texts for the sender of a message. */
const REFUSALS: ReadonlyMap<number, string> = new Map([
  [10003, "The channel is gone from Discord."],
  [10004, "The server is gone, or the bot was removed from it."],
  [10008, "The message to edit is gone."],
  [10013, "Discord does not know this person."],
  [50001, "The bot may not see this channel. Give it the permission View Channel."],
  [50007, "This person does not accept direct messages from the bot."],
  [50013, "The bot may not write here. Give it the permissions Send Messages, Attach Files and Read Message History in this channel."],
  [50024, "This kind of channel does not allow this."],
  [50083, "The thread is archived."],
  [40005, "The file is too large for Discord."],
  [20028, "Discord accepts no more messages in this channel now."],
  [160005, "The thread is locked."],
  [200000, "The server's own rules (AutoMod) have blocked the message."],
  [200001, "The server's own rules (AutoMod) have blocked the message."],
]);
/** Temporary refusals. */
const LATER: ReadonlySet<number> = new Set([20028]);

export function outcomeOf(failure: RestFailure): SendOutcome {
  const { status, code, retryAfterMs } = failure;
  const words = code === undefined ? undefined : REFUSALS.get(code);
  if (retryAfterMs !== undefined) return { kind: "retry", afterMs: Math.max(0, retryAfterMs), error: "Discord's rate limit" };
  if (code !== undefined && LATER.has(code)) return { kind: "retry", afterMs: 30_000, error: words ?? failure.message };
  if (status === 401) return { kind: "retry", error: "Discord does not accept the bot's token" };
  if (status === 429) return { kind: "retry", error: "Discord's rate limit" };
  if (status !== undefined && status >= 400 && status < 500)
    return { kind: "failed", error: words ?? `Discord refused the message (${status}${code === undefined ? "" : `, ${code}`}).` };
  return { kind: "unsure", error: status === undefined ? `Discord did not answer: ${failure.message}` : `Discord failed (${status})` };
}
