/**
 * PURE. Maps the content of a Discord message: its text as a person reads it, its files, and descriptions of stickers, polls and
 * embeds. Takes any input.
 */
import type { Sender } from "../../../protocol/gen/types.ts";
import { cleanName } from "../../../protocol/runtime/clean-name.ts";
import type { InboundFile } from "../../kit/src/platform.ts";
import { asArray, asNumber, asObject, cleanText, type Fields } from "./map-reading.ts";

const MAX_FILES = 10;
const MAX_EXTRA = 2_000;
/** Discord's own file hosts (promises S18, X18: only these are ever contacted). */
const FILE_HOSTS: ReadonlySet<string> = new Set(["cdn.discordapp.com", "media.discordapp.net"]);
const VOICE_FLAG = 8192;

/** Replaces ids of mentions and emoji with names, and removes a leading mention of the bot. */
export function readable(
  text: string,
  {
    botId,
    users,
    channel,
  }: {
    readonly botId: string;
    readonly users: readonly Sender[];
    readonly channel: (channelId: string) => { readonly name?: string } | undefined;
  },
): string {
  const names = new Map(users.map((user) => [user.id, user.name ?? user.handle]));
  const addressed = botId === "" ? text : text.replace(new RegExp(`^(?:<@!?${botId}>[\\s,:]*)+`), "");
  return addressed
    .replaceAll(/<@!?(\d{5,20})>/g, (whole, id: string) => (names.get(id) === undefined ? whole : `@${names.get(id)}`))
    .replaceAll(/<#(\d{5,20})>/g, (whole, id: string) => {
      const name = channel(id)?.name;
      return name === undefined ? whole : `#${name}`;
    })
    .replaceAll(/<a?:(\w{1,32}):\d{5,20}>/g, ":$1:")
    .trim();
}

/** True for URLs that may be fetched. `origin`: a server that the operator configured instead of Discord. */
export function isFileAddress(address: unknown, origin: string | undefined): address is string {
  if (typeof address !== "string" || address.length > 4096 || !URL.canParse(address)) return false;
  const url = new URL(address);
  if (url.username !== "" || url.password !== "") return false;
  if (origin !== undefined && url.origin === origin) return true;
  return url.protocol === "https:" && url.port === "" && FILE_HOSTS.has(url.hostname);
}

export function filesOf(
  fields: Fields,
  origin: string | undefined,
): { readonly files: readonly InboundFile[]; readonly refused: readonly string[]; readonly names: readonly string[] } {
  const files: InboundFile[] = [];
  const refused: string[] = [];
  const names: string[] = [];
  const voice = (asNumber(fields["flags"], 0, Number.MAX_SAFE_INTEGER) ?? 0) & VOICE_FLAG;
  for (const entry of asArray(fields["attachments"], MAX_FILES)) {
    const attachment = asObject(entry);
    if (!attachment) continue;
    const filename = cleanName(attachment["filename"], 200)?.replaceAll(/[\\/]/g, "_");
    names.push(`[File: ${filename ?? "without a name"}]`);
    const url = attachment["url"];
    if (!isFileAddress(url, origin)) {
      refused.push(`[The file ${JSON.stringify(filename ?? "")} is not on Discord's servers and was not fetched.]`);
      continue;
    }
    const mimeType = mimeOf(attachment["content_type"]);
    const sizeBytes = asNumber(attachment["size"], 0, Number.MAX_SAFE_INTEGER);
    const durationSeconds = asNumber(attachment["duration_secs"], 0, 1_000_000);
    files.push({
      index: files.length,
      mimeType,
      kind: voice ? "audio" : kindOf(mimeType),
      ...(filename === undefined ? {} : { filename }),
      ...(sizeBytes === undefined ? {} : { sizeBytes: Math.trunc(sizeBytes) }),
      ...(durationSeconds === undefined ? {} : { durationSeconds }),
      reference: { url },
    });
  }
  return { files, refused, names };
}
function mimeOf(value: unknown): string {
  const type = typeof value === "string" ? (value.split(";")[0] ?? "").trim().toLowerCase() : "";
  return type.length <= 100 && /^[a-z]+\/[a-z0-9.+-]+$/.test(type) ? type : "application/octet-stream";
}
function kindOf(mimeType: string): InboundFile["kind"] {
  const [family] = mimeType.split("/");
  return family === "image" || family === "audio" || family === "video" ? family : "document";
}

/**
 * `text`: the message's own text. `hasEmbeds`: others than the sender are known to have written in it. People send no embeds: Discord adds
 * them for addresses, with the words of the page, which must not count as the sender's (rule TA1).
 */
export function describeExtras(fields: Fields, text: string, hasEmbeds: boolean): string[] {
  const out: string[] = [];
  for (const entry of asArray(fields["sticker_items"], 3)) {
    const name = cleanName(asObject(entry)?.["name"]);
    if (name !== undefined) out.push(`[Sticker: ${name}]`);
  }
  const poll = asObject(fields["poll"]);
  const question = cleanText(asObject(poll?.["question"])?.["text"], 300);
  if (poll && question !== "") {
    const answers = asArray(poll["answers"], 10).flatMap((entry) => cleanName(asObject(asObject(entry)?.["poll_media"])?.["text"]) ?? []);
    out.push(`[Poll: ${question}${answers.map((answer) => `\n- ${answer}`).join("")}]`);
  }
  for (const entry of hasEmbeds ? asArray(fields["embeds"], 5) : []) {
    const embed = asObject(entry);
    if (!embed || (text !== "" && embed["type"] !== "rich")) continue;
    const parts = [cleanName(embed["title"], 256) ?? "", cleanText(embed["description"], MAX_EXTRA)].filter((part) => part !== "");
    if (parts.length > 0) out.push(`[Embed: ${parts.join(" - ")}]`);
  }
  return out;
}
