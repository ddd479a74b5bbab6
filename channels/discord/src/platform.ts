/**
 * Discord as a platform of the kit: gateway events in, REST requests out, and the status of both. Rules without network are in the
 * map-*.ts files and connection.ts; queues and order are the kit's.
 */
import type { ChannelAccount, Peer } from "../../../protocol/gen/types.ts";
import { toDiscord } from "../../kit/src/marks.ts";
import type { InboundFile, OutboundPart, Platform, PlatformHost, SendOutcome } from "../../kit/src/platform.ts";
import { Backfill } from "./backfill.ts";
import { Directory } from "./directory.ts";
import { fetchAttachment } from "./files.ts";
import { GatewaySocket } from "./gateway-socket.ts";
import { Interactions } from "./interactions.ts";
import { mapDispatch, type Mapped, mapMessage, type Surroundings } from "./map-inbound.ts";
import { MAX_CHARS } from "./map-outbound.ts";
import { asArray, asId, asNumber, asObject, type Fields } from "./map-reading.ts";
import { type RestClient, restClient } from "./rest-client.ts";
import { Sender } from "./sender.ts";
import type { Settings, SettingsOrWhy } from "./settings.ts";

/** Discord says "the past few minutes"; this is the part we rely on. */
const RECOGNISES_NONCE_MS = 180_000;
const COMMAND_ANSWER_MS = 5_000;
/** READY, `application.flags`: the bot may read messages (GATEWAY_MESSAGE_CONTENT, or its limited form for small bots). */
const MAY_READ = (1 << 18) | (1 << 19);

const REVOKED =
  "Discord no longer accepts the bot's token. Make a new one (Bot, Reset Token), put it into the configuration, then start the channel.";
const MAY_NOT_READ =
  "The bot may not read messages in servers. Turn on Message Content Intent at https://discord.com/developers/applications (Bot, Privileged Gateway Intents), then start the channel.";

interface Bot {
  readonly id: string;
  readonly applicationId: string;
  readonly name?: string;
}
const CAPABILITIES: Platform["capabilities"] = {
  peerKinds: ["dm", "channel", "thread"],
  media: true,
  reactions: true,
  typing: true,
  replies: true,
  edits: true,
  buttons: true,
  login: false,
  maxTextChars: MAX_CHARS,
};

/** Without a usable token there is only the reason. */
export function discordPlatform(host: PlatformHost, read: SettingsOrWhy, random: () => number = Math.random): Platform {
  return read.ok ? new DiscordPlatform(host, read.settings, random) : unusable(read.why);
}
function unusable(why: string): Platform {
  return {
    capabilities: CAPABILITIES,
    recognisesNonceMs: 0,
    mark: toDiscord,
    ensureConnected: async () => {},
    disconnect: async () => {},
    isConnected: () => false,
    isAtRest: () => true,
    status: () => ({ connected: false, authenticated: false, mode: "gateway", error: why }),
    send: async () => ({ kind: "retry", error: why }),
  };
}

class DiscordPlatform implements Platform {
  readonly capabilities = CAPABILITIES;
  readonly recognisesNonceMs = RECOGNISES_NONCE_MS;
  readonly #host: PlatformHost;
  readonly #settings: Settings;
  readonly #client: RestClient;
  readonly #directory: Directory;
  readonly #socket: GatewaySocket;
  readonly #backfill: Backfill;
  readonly #interactions: Interactions;
  readonly #sender: Sender;
  #bot: Bot | undefined;
  /** Servers named in READY whose data has not arrived yet. */
  readonly #toCome = new Set<string>();
  /** Work for after the event's transaction. */
  #afterwards: (() => void)[] = [];
  #lastActivity: number | undefined;

  constructor(host: PlatformHost, settings: Settings, random: () => number) {
    this.#host = host;
    this.#settings = settings;
    this.#client = restClient(settings);
    this.#directory = new Directory(host.kv);
    this.#bot = host.kv.get<Bot>("bot");
    const run = this.#client.run;
    this.#interactions = new Interactions({ host, run, applicationId: () => this.#bot?.applicationId });
    this.#sender = new Sender({
      host,
      run,
      directory: this.#directory,
      interactions: this.#interactions,
      applicationId: () => this.#bot?.applicationId,
      refused: () => this.#socket.refuse(REVOKED),
    });
    this.#backfill = new Backfill({
      host,
      history: (channelId, query) => run((api) => api.channels.getMessages(channelId, query)),
      directory: this.#directory,
      take: (message, guildId, late) => this.#takeLate(message, guildId, late),
      serversToCome: () => this.#toCome.size,
      release: () => this.#socket.release(),
    });
    this.#socket = new GatewaySocket({
      host,
      settings,
      random,
      rest: this.#client.rest,
      dispatch: ({ type, data, name }) => this.#heard(type, data, name),
      kept: () => {
        const work = this.#afterwards;
        this.#afterwards = [];
        for (const each of work) each();
      },
      holds: () => this.#backfill.holds,
      opened: () => this.#opened(),
    });
  }

  mark(markdown: string): string {
    return toDiscord(markdown);
  }

  // ---------------------------------------------------------------- the connection

  async ensureConnected(asked = false): Promise<void> {
    if (asked) this.#client.renew();
    this.#socket.ensure(asked);
    if (this.#socket.state.at !== "connected") return;
    this.#host.kv.put("alive", this.#host.now());
    this.#quietly("backfill", this.#backfill.work());
    this.#quietly("sweep", this.#interactions.sweep());
  }
  async disconnect(): Promise<void> {
    this.#socket.close();
  }
  isConnected(): boolean {
    const { state } = this.#socket;
    // Sending needs no socket, so it is tried unless Discord is unreachable or refuses the bot.
    return state.at === "connected" || state.at === "connecting" || (state.at === "waiting" && !state.offline);
  }
  isAtRest(): boolean {
    return this.#socket.state.at === "stopped";
  }
  status(): ReturnType<Platform["status"]> {
    const { state, heardAt, roundTripMs, identifiesLeft } = this.#socket;
    const connected = state.at === "connected";
    const missed = this.#backfill.missed;
    const warning = this.#host.kv.get<string>("warning");
    const base: Pick<ChannelAccount, "connected" | "authenticated"> = {
      connected,
      authenticated: this.#bot !== undefined && state.at !== "stopped",
    };
    return {
      ...base,
      mode: "gateway",
      ...(state.at === "stopped" || state.at === "waiting" ? { error: state.why } : warning === undefined ? {} : { error: warning }),
      ...(heardAt > 0 ? { silentMs: Math.max(0, this.#host.now() - heardAt) } : {}),
      ...(connected && roundTripMs !== undefined ? { roundTripMs } : {}),
      ...(this.#lastActivity === undefined ? {} : { lastActivity: this.#lastActivity }),
      ...(missed === undefined
        ? {}
        : {
            gap: { from: missed.from, until: missed.until, why: `more was written in ${missed.channels} channels than can be read back` },
          }),
      extra: {
        socket: state.at,
        servers: this.#directory.guildCount,
        restWaiting: this.#client.waiting(),
        ...(this.#bot?.name === undefined ? {} : { bot: this.#bot.name }),
        ...(identifiesLeft === undefined ? {} : { sessionsLeftToday: identifiesLeft }),
      },
    };
  }
  #opened(): void {
    this.#host.kv.put("alive", this.#host.now());
    this.#directory.prune();
    this.#quietly("backfill", this.#backfill.work());
    this.#quietly("commands", this.#interactions.register());
  }
  #quietly(what: string, work: Promise<void>): void {
    work.catch((error: unknown) => this.#host.log(`${what}_failed`, { error: error instanceof Error ? error.name : "unknown" }));
  }

  // ---------------------------------------------------------------- inbound

  /** Runs in the transaction that moves the position in Discord's stream. */
  #heard(type: string, data: Fields, name: string): boolean {
    this.#afterwards = [];
    if (type === "READY") return this.#ready(data);
    if (this.#directory.hear(type, data, this.#bot?.id ?? "")) {
      const id = asId(data["id"]);
      if (id) this.#toCome.delete(id);
      return false;
    }
    this.#echo(type, data);
    const mapped = mapDispatch(type, data, this.#around(name));
    return mapped !== undefined && this.#take(mapped);
  }
  #ready(data: Fields): boolean {
    const user = asObject(data["user"]);
    const application = asObject(data["application"]);
    const id = asId(user?.["id"]);
    const applicationId = asId(application?.["id"]) ?? id;
    if (!id || !applicationId) throw new Error("Discord's READY event does not name the bot");
    const name = user?.["username"];
    this.#bot = { id, applicationId, ...(typeof name === "string" ? { name: name.slice(0, 80) } : {}) };
    this.#host.kv.put("bot", this.#bot);
    const flags = asNumber(application?.["flags"], 0, Number.MAX_SAFE_INTEGER);
    if (flags !== undefined && (flags & MAY_READ) === 0) this.#warn();
    else this.#host.kv.delete("warning");
    this.#directory.newest.clear();
    this.#toCome.clear();
    for (const guild of asArray(data["guilds"], 2_500)) {
      const guildId = asId(asObject(guild)?.["id"]);
      if (guildId) this.#toCome.add(guildId);
    }
    this.#backfill.plan();
    return true;
  }
  #warn(): void {
    if (this.#host.kv.get("warning") !== undefined) return;
    this.#host.kv.put("warning", MAY_NOT_READ);
    this.#host.changed();
  }
  #around(eventName: string): Surroundings {
    const directory = this.#directory;
    const origin = this.#settings.origin;
    return {
      botId: this.#bot?.id ?? "",
      now: this.#host.now(),
      channel: (channelId) => directory.channel(channelId),
      botRoles: (id) => directory.botRoles(id),
      dmUser: (channelId) => directory.dmUser(channelId),
      isOwnMessage: (messageId) => directory.isOwnMessage(messageId),
      eventName,
      ...(origin === undefined ? {} : { fileOrigin: origin }),
    };
  }
  #take(mapped: Mapped): boolean {
    if (mapped.contentMissing === true) {
      this.#warn();
      return false;
    }
    this.#directory.remember(mapped, this.#host.now());
    if (!this.#host.take(mapped.item)) return false;
    this.#lastActivity = this.#host.now();
    const { interaction } = mapped;
    if (interaction) {
      this.#interactions.open(interaction);
      this.#afterwards.push(() => this.#quietly("defer", this.#interactions.defer(interaction)));
    }
    return true;
  }
  /** Messages of the history lack the server, which the directory knows. */
  #takeLate(message: Fields, guildId: string | undefined, late: boolean): boolean {
    return this.#host.transaction(() => {
      const fields = guildId === undefined ? message : { ...message, guild_id: guildId };
      const mapped = mapMessage(fields, this.#around(""), late);
      return mapped !== undefined && this.#take(mapped);
    });
  }
  /** Discord reports the bot's own messages, too: proof of a send whose answer was lost. */
  #echo(type: string, data: Fields): void {
    if (type !== "MESSAGE_CREATE" || asObject(data["author"])?.["id"] !== this.#bot?.id) return;
    const id = asId(data["id"]);
    if (!id) return;
    this.#directory.rememberOwn(id);
    const { nonce } = data;
    if (typeof nonce === "string" && nonce.length <= 25) this.#sender.heard(nonce, id);
  }

  // ---------------------------------------------------------------- outbound

  async send(part: OutboundPart): Promise<SendOutcome> {
    const outcome = await this.#sender.send(part);
    if (outcome.kind === "sent") this.#lastActivity = this.#host.now();
    return outcome;
  }
  /**
   * A command in a direct conversation is answered at once or starts a run. The answer of a run is an ordinary message, because Discord
   * shows command responses only until the window is closed.
   */
  async acknowledged(items: readonly { readonly peer: Peer; readonly receipt: unknown }[]): Promise<void> {
    for (const { peer, receipt } of items) {
      const id = asId(asObject(receipt)?.["interaction"]);
      if (id !== undefined && peer.kind === "dm")
        this.#host.after(COMMAND_ANSWER_MS, () => this.#quietly("dismiss", this.#interactions.dismiss(id)));
    }
  }
  async fetchFile(file: InboundFile): Promise<{ readonly body: ReadableStream<Uint8Array>; readonly sizeBytes?: number }> {
    return fetchAttachment(file, this.#settings.origin);
  }
  async typing(peer: Peer, active: boolean): Promise<void> {
    // Discord ends it by itself.
    if (active) await this.#sender.typing(peer);
  }
  async react(peer: Peer, messageId: string, _senderId: string | undefined, emoji: string): Promise<void> {
    await this.#sender.react(peer, messageId, emoji);
  }
  showLive(...shown: Parameters<Sender["showLive"]>): Promise<string | undefined> {
    return this.#sender.showLive(...shown);
  }
}
