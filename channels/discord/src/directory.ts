/**
 * Known servers, channels and people: names, kinds, the bot's roles, and the read position of each conversation. Stored with the
 * account, so that a resumed session has it after a restart. Bounded; never asks Discord.
 */
import { cleanName } from "../../../protocol/runtime/clean-name.ts";
import type { PlatformHost } from "../../kit/src/platform.ts";
import { isThread, type Mapped, type KnownChannel } from "./map-inbound.ts";
import { asArray, asId, asNumber, asObject, type Fields, isNewerId } from "./map-reading.ts";

const MAX_CHANNELS = 2_000;
const MAX_OWN = 500;
const MAX_PEOPLE = 2_000;
/** Remembered conversations, by last activity. */
const MAX_CONVERSATIONS = 200;

type Entry = readonly [type: number, name?: string];
interface Guild {
  readonly name?: string;
  readonly roles: readonly string[];
  /** Channel id to kind and name. */
  readonly channels: Readonly<Record<string, Entry>>;
}
export interface Conversation {
  readonly channelId: string;
  /** The newest message that was handed over. */
  readonly last: string;
  readonly at: number;
  readonly guildId?: string;
  readonly dmUserId?: string;
}
type Kv = PlatformHost["kv"];

export class Directory {
  readonly #kv: Kv;
  readonly #guilds = new Map<string, Guild>();
  readonly #guildOf = new Map<string, string>();
  /** The agent's own messages of this instance, newest last. */
  readonly #own = new Set<string>();
  /** Newest message by channel, from the server's list; in memory only. */
  readonly newest = new Map<string, string>();

  constructor(kv: Kv) {
    this.#kv = kv;
    for (const key of kv.keys("guild.")) {
      const guild = kv.get<Guild>(key);
      if (guild) this.#learn(key.slice("guild.".length), guild);
    }
  }

  get guildCount(): number {
    return this.#guilds.size;
  }
  channel(channelId: string): KnownChannel | undefined {
    const guildId = this.#guildOf.get(channelId);
    const entry = guildId === undefined ? undefined : this.#guilds.get(guildId)?.channels[channelId];
    if (guildId === undefined || !entry) return undefined;
    const [type, name] = entry;
    return { type, guildId, ...(name === undefined ? {} : { name }) };
  }
  botRoles(guildId: string): ReadonlySet<string> {
    return new Set(this.#guilds.get(guildId)?.roles ?? []);
  }
  dmUser(channelId: string): string | undefined {
    return this.#kv.get<string>(`dm-user.${channelId}`);
  }
  dmChannel(userId: string): string | undefined {
    return this.#kv.get<string>(`dm-channel.${userId}`);
  }
  rememberDm(channelId: string, userId: string): void {
    if (this.dmUser(channelId) === userId) return;
    this.#kv.put(`dm-user.${channelId}`, userId);
    this.#kv.put(`dm-channel.${userId}`, channelId);
  }
  isOwnMessage(messageId: string): boolean {
    return this.#own.has(messageId);
  }
  rememberOwn(messageId: string): void {
    this.#own.add(messageId);
    if (this.#own.size > MAX_OWN) for (const oldest of [...this.#own].slice(0, this.#own.size - MAX_OWN)) this.#own.delete(oldest);
  }

  // ---------------------------------------------------------------- read positions

  /** Call in the transaction that stores the message. */
  remember({ channelId, messageId, guildId, dmUserId }: Mapped, now: number): void {
    if (dmUserId !== undefined) this.rememberDm(channelId, dmUserId);
    if (messageId === undefined) return;
    const before = this.#kv.get<Conversation>(`read.${channelId}`);
    if (before && !isNewerId(messageId, before.last)) return;
    this.#kv.put(`read.${channelId}`, {
      channelId,
      last: messageId,
      at: now,
      ...(guildId === undefined ? {} : { guildId }),
      ...(dmUserId === undefined ? {} : { dmUserId }),
    } satisfies Conversation);
  }
  /** Newest first; beyond the limit the oldest are dropped. */
  conversations(): readonly Conversation[] {
    const all = this.#kv
      .keys("read.")
      .flatMap((key) => this.#kv.get<Conversation>(key) ?? [])
      .toSorted((left, right) => right.at - left.at);
    for (const { channelId } of all.slice(MAX_CONVERSATIONS)) this.#kv.delete(`read.${channelId}`);
    return all.slice(0, MAX_CONVERSATIONS);
  }
  /** A bounded cache of people; dropped entries are fetched again. */
  prune(): void {
    this.conversations();
    const people = this.#kv.keys("dm-user.");
    for (const key of people.slice(0, Math.max(0, people.length - MAX_PEOPLE))) {
      const userId = this.#kv.get<string>(key);
      this.#kv.delete(key);
      if (userId !== undefined) this.#kv.delete(`dm-channel.${userId}`);
    }
  }
  /** Text channels and threads that were never read, with their newest message. */
  unread(): readonly { readonly channelId: string; readonly newest: string }[] {
    return [...this.newest].flatMap(([channelId, newest]) =>
      this.#kv.get(`read.${channelId}`) === undefined ? [{ channelId, newest }] : [],
    );
  }

  // ---------------------------------------------------------------- events of Discord

  /** True when the event was handled. Call in the event's transaction. */
  hear(type: unknown, fields: Fields, botId: string): boolean {
    switch (type) {
      case "GUILD_CREATE":
        return this.#guildCreated(fields, botId);
      case "GUILD_DELETE": {
        const id = asId(fields["id"]);
        // An unavailable server is not a removed one.
        if (id && fields["unavailable"] !== true) this.#forget(id);
        return true;
      }
      case "CHANNEL_CREATE":
      case "CHANNEL_UPDATE":
      case "THREAD_CREATE":
      case "THREAD_UPDATE":
        return this.#change(asId(fields["guild_id"]), [fields], []);
      case "THREAD_LIST_SYNC":
        return this.#change(asId(fields["guild_id"]), asArray(fields["threads"], MAX_CHANNELS), []);
      case "CHANNEL_DELETE":
      case "THREAD_DELETE": {
        const id = asId(fields["id"]);
        if (id) this.#kv.delete(`read.${id}`);
        return this.#change(asId(fields["guild_id"]), [], id ? [id] : []);
      }
      default:
        return false;
    }
  }
  #guildCreated(fields: Fields, botId: string): boolean {
    const id = asId(fields["id"]);
    if (!id || fields["unavailable"] === true) return true;
    const roles = new Set<string>();
    for (const entry of asArray(fields["roles"], 500)) {
      const role = asObject(entry);
      const roleId = asId(role?.["id"]);
      if (roleId && asObject(role?.["tags"])?.["bot_id"] === botId) roles.add(roleId);
    }
    for (const entry of asArray(fields["members"], 1_000)) {
      const member = asObject(entry);
      if (asObject(member?.["user"])?.["id"] !== botId) continue;
      for (const role of asArray(member?.["roles"], 250)) if (asId(role)) roles.add(String(role));
    }
    const name = cleanName(fields["name"]);
    const before = this.#guilds.get(id);
    const channels = new Map<string, Entry>();
    for (const entry of [...asArray(fields["channels"], MAX_CHANNELS), ...asArray(fields["threads"], MAX_CHANNELS)])
      this.#note(channels, entry);
    this.#keep(id, { ...(name === undefined ? {} : { name }), roles: [...roles], channels: Object.fromEntries(channels) }, before);
    return true;
  }
  #change(guildId: string | undefined, changed: readonly unknown[], gone: readonly string[]): boolean {
    if (!guildId) return true;
    const before = this.#guilds.get(guildId) ?? { roles: [], channels: {} };
    const channels = new Map<string, Entry>(Object.entries(before.channels));
    for (const entry of changed) this.#note(channels, entry);
    for (const id of gone) {
      channels.delete(id);
      this.#guildOf.delete(id);
    }
    this.#keep(guildId, { ...before, channels: Object.fromEntries(channels) }, before);
    return true;
  }
  #note(channels: Map<string, Entry>, value: unknown): void {
    const channel = asObject(value);
    const id = asId(channel?.["id"]);
    const type = asNumber(channel?.["type"], 0, 1000);
    if (!channel || !id || type === undefined) return;
    if (!channels.has(id) && channels.size >= MAX_CHANNELS) return;
    const name = cleanName(channel["name"]);
    channels.set(id, name === undefined ? [type] : [type, name]);
    const newest = asId(channel["last_message_id"]);
    if (newest && (type === 0 || type === 5 || isThread(type))) this.newest.set(id, newest);
  }
  #keep(id: string, guild: Guild, before: Guild | undefined): void {
    if (JSON.stringify(before) !== JSON.stringify(guild)) this.#kv.put(`guild.${id}`, guild);
    this.#learn(id, guild);
  }
  #learn(id: string, guild: Guild): void {
    this.#guilds.set(id, guild);
    for (const channelId of Object.keys(guild.channels)) this.#guildOf.set(channelId, id);
  }
  #forget(id: string): void {
    for (const channelId of Object.keys(this.#guilds.get(id)?.channels ?? {})) this.#guildOf.delete(channelId);
    this.#guilds.delete(id);
    this.#kv.delete(`guild.${id}`);
  }
}
