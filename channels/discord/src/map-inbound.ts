/**
 * PURE. Maps Discord's events to messages of the kit (product P7). Total: any input gives a message or `undefined`. Trusts no names:
 * people are identified by id only (promises S7, X15). Ignores messages of bots, webhooks and Discord itself.
 */
import { APPLICATION_COMMANDS } from "./commands.ts";
import type { ChannelInbound, Peer, Sender } from "../../../protocol/gen/types.ts";
import { cleanName } from "../../../protocol/runtime/clean-name.ts";
import type { InboundItem } from "../../kit/src/platform.ts";
import { describeExtras, filesOf, readable } from "./map-content.ts";
import { asArray, asId, asNumber, asObject, asTime, cleanText, type Fields, timeOfId } from "./map-reading.ts";

/** The channel of a message, as far as it is known. */
export interface KnownChannel {
  readonly type: number;
  readonly name?: string;
  readonly guildId?: string;
}
export interface Surroundings {
  readonly botId: string;
  readonly now: number;
  readonly channel: (channelId: string) => KnownChannel | undefined;
  /** The bot's own roles in a server: mentioning one mentions the bot. */
  readonly botRoles: (guildId: string) => ReadonlySet<string>;
  /** The other person in a direct channel. */
  readonly dmUser: (channelId: string) => string | undefined;
  readonly isOwnMessage: (messageId: string) => boolean;
  /** An additional origin for files. */
  readonly fileOrigin?: string;
  /** An id for events to which Discord gives none. */
  readonly eventName: string;
}
/** A message with buttons, as Discord shows it. */
export interface Asked {
  readonly messageId: string;
  readonly text: string;
}
export interface Mapped {
  readonly item: InboundItem;
  readonly channelId: string;
  /** The newest message of the channel, as this event shows. */
  readonly messageId?: string;
  readonly dmUserId?: string;
  readonly guildId?: string;
  readonly threadName?: string;
  /** Discord withheld the message's text. */
  readonly contentMissing?: boolean;
  readonly interaction?: {
    readonly id: string;
    readonly token: string;
    readonly kind: "command" | "button";
    /** The message that has the button. */
    readonly asked?: Asked;
  };
}

export const MAX_TEXT = 16_000;
const MAX_QUOTE = 2_000;
/** Messages of people: plain ones and replies. All other types are Discord's own or command responses. */
const PERSONAL_TYPES: ReadonlySet<number> = new Set([0, 19]);
const THREAD_TYPES: ReadonlySet<number> = new Set([10, 11, 12]);
const DM_TYPES: ReadonlySet<number> = new Set([1, 3]);
export const isThread = (type: number | undefined): boolean => type !== undefined && THREAD_TYPES.has(type);
/** The id for an interaction's message; never equal to a Discord message id. */
const interactionName = (id: string): string => `i:${id}`;

export function mapDispatch(type: unknown, data: unknown, around: Surroundings): Mapped | undefined {
  const fields = asObject(data);
  if (!fields) return undefined;
  switch (type) {
    case "MESSAGE_CREATE":
      return mapMessage(fields, around);
    case "MESSAGE_UPDATE":
      return mapEdit(fields, around);
    case "MESSAGE_DELETE":
      return mapDelete(fields, around);
    case "MESSAGE_REACTION_ADD":
      return mapReaction(fields, around, true);
    case "MESSAGE_REACTION_REMOVE":
      return mapReaction(fields, around, false);
    case "INTERACTION_CREATE":
      return mapInteraction(fields, around);
    default:
      return undefined;
  }
}

// ---------------------------------------------------------------- messages

/** `late`: read from the channel's history. */
export function mapMessage(fields: Fields, around: Surroundings, late = false): Mapped | undefined {
  const id = asId(fields["id"]);
  const channelId = asId(fields["channel_id"]);
  const sender = personOf(fields["author"], asObject(fields["member"]));
  const type = asNumber(fields["type"] ?? 0, 0, 1000);
  if (!id || !channelId || !sender || type === undefined || !PERSONAL_TYPES.has(type)) return undefined;
  if (fields["webhook_id"] !== undefined && fields["webhook_id"] !== null) return undefined;
  const where = whereIs(fields, channelId, sender, around);
  if (!where) return undefined;

  const users = asArray(fields["mentions"], 256).flatMap((entry) => personOf(entry, undefined, true) ?? []);
  const reference = asObject(fields["message_reference"]);
  const forwarded = reference?.["type"] === 1;
  const snapshot = forwarded ? asObject(asObject(asArray(fields["message_snapshots"], 1)[0])?.["message"]) : undefined;
  const source = snapshot ?? fields;
  const own = readable(cleanText(source["content"], MAX_TEXT), { botId: around.botId, users, channel: around.channel });
  const { files, refused } = filesOf(source, around.fileOrigin);
  const text = [own, ...describeExtras(source, own, forwarded), ...refused].filter((part) => part !== "").join("\n\n");

  const quoted = forwarded ? undefined : quoteOf(fields, users, around);
  const roles = where.guildId === undefined ? undefined : around.botRoles(where.guildId);
  const named = users.some((user) => user.id === around.botId);
  const byRole = roles !== undefined && asArray(fields["mention_roles"], 256).some((role) => typeof role === "string" && roles.has(role));
  const toAgent = quoted?.senderId === around.botId;
  const timestamp = asTime(fields["timestamp"]) ?? timeOfId(id);
  const silent = text === "" && files.length === 0;
  const inbound: ChannelInbound = {
    peer: where.peer,
    sender,
    ...senderIds(sender),
    message: {
      id,
      text,
      timestamp,
      ...(quoted ? { replyToId: quoted.id } : {}),
      ...(quoted && quoted.text !== "" ? { replyToText: quoted.text } : {}),
      ...(quoted?.senderId === undefined ? {} : { replyToSenderId: quoted.senderId }),
      ...(forwarded ? { forwarded: true } : {}),
    },
    wasMentioned: named || byRole || toAgent,
    ...(toAgent ? { repliedToAgent: true } : {}),
    ...(users.length > 0 ? { mentionedIds: users.map((user) => user.id) } : {}),
    ...(late ? { backlog: true } : {}),
    receivedAt: around.now,
  };
  const origin = { channelId, messageId: id, ...where.found };
  if (!silent) return { item: { key: id, inbound, files }, ...origin };
  // A mention without text is a valid message; no content at all means a missing permission.
  if (named || byRole) return { item: { key: id, inbound, files }, ...origin };
  const contentMissing = where.peer.kind !== "dm" && fields["content"] === "" && !forwarded;
  return contentMissing ? { item: { key: id, inbound, files }, ...origin, contentMissing } : undefined;
}

/** An edit by a person. Discord also reports previews that it adds itself, which change no text. */
function mapEdit(fields: Fields, around: Surroundings): Mapped | undefined {
  const editedAt = asTime(fields["edited_timestamp"]);
  const mapped = editedAt === undefined ? undefined : mapMessage(fields, around);
  if (!mapped || mapped.contentMissing) return undefined;
  const { item } = mapped;
  const id = `${item.inbound.message.id}.e${editedAt}`;
  const { messageId: _, ...rest } = mapped;
  return {
    ...rest,
    // The files arrived with the original message.
    item: { key: id, inbound: { ...item.inbound, message: { ...item.inbound.message, id, editOf: item.inbound.message.id } }, files: [] },
  };
}
function mapDelete(fields: Fields, around: Surroundings): Mapped | undefined {
  const messageId = asId(fields["id"]);
  const channelId = asId(fields["channel_id"]);
  if (!messageId || !channelId || around.isOwnMessage(messageId)) return undefined;
  const where = whereIs(fields, channelId, undefined, around);
  if (!where) return undefined;
  const id = `${messageId}.d`;
  const message = { id, text: "", editOf: messageId, deleted: true, timestamp: around.now };
  return { item: { key: id, inbound: { peer: where.peer, message, receivedAt: around.now }, files: [] }, channelId, ...where.found };
}
/** Only reactions to the agent's messages count. */
function mapReaction(fields: Fields, around: Surroundings, added: boolean): Mapped | undefined {
  const messageId = asId(fields["message_id"]);
  const channelId = asId(fields["channel_id"]);
  const userId = asId(fields["user_id"]);
  const emoji = asObject(fields["emoji"]);
  const sign = cleanName(emoji?.["name"], 32);
  if (!messageId || !channelId || !userId || userId === around.botId || sign === undefined) return undefined;
  if (fields["message_author_id"] !== around.botId && !around.isOwnMessage(messageId)) return undefined;
  const member = asObject(fields["member"]);
  const author = member ? personOf(member["user"], member) : { id: userId };
  if (!author || author.id !== userId) return undefined;
  const where = whereIs(fields, channelId, author, around);
  if (!where) return undefined;
  const id = `${messageId}.r.${around.eventName}`;
  const reaction = added ? (asId(emoji?.["id"]) === undefined ? sign : `:${sign}:`) : "";
  const message = { id, text: "", timestamp: around.now, replyToId: messageId, replyToSenderId: around.botId, reaction };
  const inbound: ChannelInbound = {
    peer: where.peer,
    sender: author,
    ...senderIds(author),
    message,
    repliedToAgent: true,
    receivedAt: around.now,
  };
  return { item: { key: id, inbound, files: [] }, channelId, ...where.found };
}

// ---------------------------------------------------------------- commands and buttons

const COMMAND_NAMES: ReadonlySet<string> = new Set(APPLICATION_COMMANDS.map(({ name }) => name));

function mapInteraction(fields: Fields, around: Surroundings): Mapped | undefined {
  const id = asId(fields["id"]);
  const token = typeof fields["token"] === "string" && /^[\w.~-]{1,1000}$/.test(fields["token"]) ? fields["token"] : undefined;
  const channel = asObject(fields["channel"]);
  const channelId = asId(fields["channel_id"]) ?? asId(channel?.["id"]);
  const member = asObject(fields["member"]);
  const sender = personOf(member?.["user"] ?? fields["user"], member);
  const data = asObject(fields["data"]);
  if (!id || !token || !channelId || !sender || !data) return undefined;
  // 2: a conversation between people without the bot.
  if (fields["context"] === 2) return undefined;
  const type = asNumber(channel?.["type"], 0, 1000);
  const where = whereIs({ ...fields, ...(type === undefined ? {} : { channel_type: type }) }, channelId, sender, around);
  const said = where && (fields["type"] === 2 ? commandText(data) : fields["type"] === 3 ? buttonText(data) : undefined);
  if (!where || said === undefined) return undefined;
  const name = cleanName(channel?.["name"]);
  const peer: Peer = where.peer.kind === "dm" || name === undefined ? where.peer : { ...where.peer, name };
  const pressed = fields["type"] === 3 ? asId(asObject(fields["message"])?.["id"]) : undefined;
  const inbound: ChannelInbound = {
    peer,
    sender,
    ...senderIds(sender),
    message: {
      id: interactionName(id),
      text: said,
      timestamp: timeOfId(id),
      ...(pressed === undefined ? {} : { replyToId: pressed, replyToSenderId: around.botId }),
      ...(fields["type"] === 3 ? { pressed: true } : {}),
    },
    wasMentioned: true,
    ...(pressed === undefined ? {} : { repliedToAgent: true }),
    receivedAt: around.now,
  };
  const kind = fields["type"] === 2 ? "command" : "button";
  const content = asObject(fields["message"])?.["content"];
  const asked =
    pressed !== undefined && typeof content === "string" ? { asked: { messageId: pressed, text: content.slice(0, MAX_QUOTE) } } : {};
  const receipt = kind === "command" ? { receipt: { interaction: id } } : {};
  return {
    item: { key: interactionName(id), inbound, files: [], ...receipt },
    channelId,
    ...where.found,
    interaction: { id, token, kind, ...asked },
  };
}
function commandText(data: Fields): string | undefined {
  const name = data["name"];
  if (typeof name !== "string" || !COMMAND_NAMES.has(name)) return undefined;
  const values = asArray(data["options"], 5).flatMap((option) => {
    const value = asObject(option)?.["value"];
    return typeof value === "string" ? (cleanName(value, 200) ?? []) : [];
  });
  return [`/${name}`, ...values].join(" ");
}
const buttonText = (data: Fields): string | undefined => (data["component_type"] === 2 ? cleanName(data["custom_id"], 100) : undefined);

// ---------------------------------------------------------------- people and channels

/** `bots`: include bots, which can be mentioned. */
function personOf(value: unknown, member: Fields | undefined, bots = false): Sender | undefined {
  const user = asObject(value);
  const id = asId(user?.["id"]);
  if (!user || !id || (!bots && (user["bot"] === true || user["system"] === true))) return undefined;
  const handle = cleanName(user["username"]);
  const name = cleanName(member?.["nick"]) ?? cleanName(user["global_name"]) ?? handle;
  return { id, ...(name === undefined ? {} : { name }), ...(handle === undefined ? {} : { handle }) };
}
const senderIds = ({ handle }: Sender): Pick<ChannelInbound, "senderIds"> =>
  handle === undefined ? {} : { senderIds: { username: handle } };

interface Where {
  readonly peer: Peer;
  readonly guildId?: string;
  readonly found: Pick<Mapped, "dmUserId" | "guildId">;
}
function whereIs(fields: Fields, channelId: string, sender: Sender | undefined, around: Surroundings): Where | undefined {
  const known = around.channel(channelId);
  const guildId = asId(fields["guild_id"]) ?? known?.guildId;
  const type = known?.type ?? asNumber(fields["channel_type"], 0, 1000);
  if (guildId === undefined) {
    // A direct conversation is identified by the person, not by Discord's channel.
    if (type !== undefined && !DM_TYPES.has(type)) return undefined;
    const userId = around.dmUser(channelId) ?? sender?.id;
    if (userId === undefined) return undefined;
    const self = sender?.id === userId ? sender : undefined;
    const peer: Peer = {
      kind: "dm",
      id: userId,
      ...(self?.name === undefined ? {} : { name: self.name }),
      ...(self?.handle === undefined ? {} : { handle: self.handle }),
    };
    return { peer, found: { dmUserId: userId } };
  }
  // Only messages in threads have a `position`.
  const thread = type === undefined ? asNumber(fields["position"], 0, Number.MAX_SAFE_INTEGER) !== undefined : isThread(type);
  const peer: Peer = { kind: thread ? "thread" : "channel", id: channelId, ...(known?.name === undefined ? {} : { name: known.name }) };
  return { peer, guildId, found: { guildId } };
}
function quoteOf(
  fields: Fields,
  users: readonly Sender[],
  around: Surroundings,
): { readonly id: string; readonly text: string; readonly senderId?: string } | undefined {
  const id = asId(asObject(fields["message_reference"])?.["message_id"]);
  if (!id) return undefined;
  const quoted = asObject(fields["referenced_message"]);
  const senderId = asId(asObject(quoted?.["author"])?.["id"]);
  const isProgram = asObject(quoted?.["author"])?.["bot"] === true || quoted?.["webhook_id"] !== undefined;
  const own = quoted ? readable(cleanText(quoted["content"], MAX_QUOTE), { botId: "", users, channel: around.channel }) : "";
  const text = quoted
    ? [own, ...describeExtras(quoted, own, isProgram && senderId !== around.botId), ...filesOf(quoted, undefined).names]
        .filter((part) => part !== "")
        .join("\n")
    : "";
  return { id, text: text.slice(0, MAX_QUOTE), ...(senderId === undefined ? {} : { senderId }) };
}
