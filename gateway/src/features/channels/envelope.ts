/**
 * Formats a platform's message for the model (X16, TH1, TH17). The sender's text stays text; names, quotes and other facts are JSON on
 * a head line. No message can forge a head line, because a line of the text that looks like one is quoted. PURE.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ChannelInbound } from "../../../../protocol/gen/types.ts";
import { cleanName, DECEPTIVE } from "../../../../protocol/runtime/clean-name.ts";

/** The time of writing is told only for messages that are older than this. */
const LATE_MS = 600_000;
/** Less than a session accepts: the rest is for the head line and for notes about files. */
const MAX_TEXT_BYTES = LIMITS.messageBytes - 32_768;
const MAX_QUOTE = 1000;
const HEAD = "[message]";
/** Removed from texts: controls except tab and line end, changes of direction, and characters that only programs see. */
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

export interface EnvelopeInput {
  readonly channel: string;
  readonly inbound: ChannelInbound;
  /** The owner's own conversation: its messages have a head only when there is something to add. */
  readonly isOwner: boolean;
  /** Epoch ms. */
  readonly now: number;
}
export function envelope({ channel, inbound, isOwner, now }: EnvelopeInput): string {
  const { peer, sender, message } = inbound;
  const about: Record<string, unknown> = {};
  if (!isOwner) {
    about["channel"] = channel;
    about["from"] = drop({ id: sender?.id ?? peer.id, name: cleanName(sender?.name ?? (peer.kind === "dm" ? peer.name : undefined)) });
    // `channel` is the platform, so a conversation of that kind has another name.
    if (peer.kind !== "dm") about[peer.kind === "channel" ? "conversation" : peer.kind] = drop({ id: peer.id, name: cleanName(peer.name) });
  }
  if (message.replyToText !== undefined && message.replyToText.trim() !== "")
    about["quotes"] = drop({ text: quoteOf(message.replyToText), from: message.replyToSenderId });
  if (message.location) about["location"] = drop({ ...message.location, name: cleanName(message.location.name) });
  if (message.editOf !== undefined)
    about["replaces"] = message.deleted === true ? "an earlier message, which was deleted" : "an earlier message";
  if (message.reaction !== undefined) about["reaction"] = cleanName(message.reaction, 16) ?? "removed";
  if (message.forwarded === true) about["forwarded"] = true;
  if (message.timestamp !== undefined && now - message.timestamp > LATE_MS) about["sentAt"] = new Date(message.timestamp).toISOString();
  const whole = withoutHeads(message.text);
  const text = beginning(whole, MAX_TEXT_BYTES);
  if (text.length < whole.length) about["cut"] = `the text was too long: its last ${whole.length - text.length} characters are left out`;
  if (Object.keys(about).length === 0) return text;
  const head = `${HEAD} ${visible(JSON.stringify(about))}`;
  return text === "" ? head : `${head}\n${text}`;
}
/** True only for texts with a head: no message's own text begins like this. */
export const hasHead = (text: string): boolean => text.startsWith(HEAD);
/** JSON.stringify does not escape direction marks and the line ends of Unicode. */
const visible = (json: string): string =>
  json.replace(DECEPTIVE, (mark) =>
    Array.from({ length: mark.length }, (_, at) => `\\u${mark.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
/** Quotes every line that could be read as one of our head lines. */
export function withoutHeads(text: string): string {
  return text
    .toWellFormed()
    .split(/\r\n|[\n\r\u000b\u000c\u0085\u2028\u2029]/)
    .map((line) => line.replace(UNSEEN, ""))
    .map((line) => (looksLikeHead(line) ? `> ${line}` : line))
    .join("\n");
}
/** Also with brackets of other widths, and with invisible characters in between. */
const looksLikeHead = (line: string): boolean =>
  /^\s*\[\s*(?:message|system|note)/i.test(line.slice(0, 200).normalize("NFKC").replace(DECEPTIVE, ""));
/** As many whole characters as fit. */
function beginning(text: string, maxBytes: number): string {
  // A UTF-16 unit has at most three bytes.
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.min(text.length * 3, maxBytes)));
  return text.slice(0, read);
}
function quoteOf(text: string): string {
  const clean = text.toWellFormed().replace(UNSEEN, "").trim();
  return clean.length > MAX_QUOTE ? `${clean.slice(0, MAX_QUOTE).toWellFormed()}...` : clean;
}
const drop = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
