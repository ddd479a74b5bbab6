/**
 * A fake Discord: the gateway and REST wire for the real libraries, without an account. It stores messages, enforces nonces and rate
 * limits, takes files and records all requests. Control it by its methods or over HTTP (`POST /control/{method}` with a list of
 * arguments, `GET /control/log`). Not for production.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FakeGateway } from "./gateway.ts";

type Json = Record<string, unknown>;
export interface Note extends Json {
  readonly kind: string;
  readonly at: number;
}
export interface FakeMessage extends Json {
  readonly id: string;
  readonly channel_id: string;
  content: string;
}
export interface FakeOptions {
  readonly token?: string;
  readonly heartbeatMs?: number;
  readonly identifiesLeft?: number;
}
export interface Said {
  readonly content?: string;
  readonly channel?: string;
  readonly guild?: string;
  readonly user?: Json;
  readonly mention?: boolean;
  readonly replyTo?: FakeMessage;
  readonly attachments?: readonly Json[];
  readonly more?: Json;
  /** Adds it to the history without a gateway event. */
  readonly unheard?: boolean;
}

export const BOT = { id: "100000000000000001", username: "gsv", discriminator: "0", global_name: null, avatar: null, bot: true };
export const APPLICATION = "100000000000000009";
export const ALICE = { id: "400000000000000001", username: "alice", discriminator: "0", global_name: "Alice", avatar: null };
export const GUILD = "200000000000000001";
export const GENERAL = "300000000000000001";
export const THREAD = "300000000000000002";
export const DM = "500000000000000001";
/** A person's direct channel; Alice's is `DM`. */
export const dmOf = (userId: string): string => `5${userId.slice(1)}`;
const ROLE = "600000000000000001";

export class FakeDiscord {
  readonly token: string;
  readonly gateway: FakeGateway;
  readonly log: Note[] = [];
  /** By channel, oldest first. */
  readonly messages = new Map<string, FakeMessage[]>();
  readonly files = new Map<string, { readonly type: string; readonly bytes: Uint8Array }>();
  readonly replies = new Map<string, Json>();
  identifiesLeft: number;
  maxConcurrency = 16;
  applicationFlags = 1 << 18;
  readonly #nonces = new Map<string, FakeMessage>();
  readonly #refused = new Map<string, { readonly status: number; readonly code: number }>();
  #faults: {
    readonly path: RegExp;
    readonly kind: "limit" | "status" | "lose" | "cut" | "hold";
    readonly value: number;
    readonly global: boolean;
    left: number;
  }[] = [];
  #waiting: { readonly test: (note: Note) => boolean; readonly done: (note: Note) => void }[] = [];
  #serial = 0n;
  #held: Promise<void> = Promise.resolve();
  readonly #server: Server;

  constructor({ token = "MTAw.Fake-1.fake-token-of-a-bot", heartbeatMs = 41_250, identifiesLeft = 1_000 }: FakeOptions = {}) {
    this.token = token;
    this.identifiesLeft = identifiesLeft;
    this.gateway = new FakeGateway({
      token,
      heartbeatMs,
      note: (kind, fields) => this.#note(kind, fields),
      mayIdentify: () => this.identifiesLeft-- > 0,
      ready: (session) => this.#ready(session),
    });
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.on("upgrade", (request, socket, head) => this.gateway.accept(request, socket, head));
  }
  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return this;
  }
  async close(): Promise<void> {
    this.gateway.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
  get origin(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }
  get api(): string {
    return `${this.origin}/api`;
  }

  // ---------------------------------------------------------------- records

  #note(kind: string, fields: Json = {}): void {
    const note: Note = { ...fields, kind, at: Date.now() };
    this.log.push(note);
    const met = this.#waiting.filter(({ test }) => test(note));
    this.#waiting = this.#waiting.filter((entry) => !met.includes(entry));
    for (const { done } of met) done(note);
  }
  /** Resolves with the first record from `from` on that matches, also a future one. */
  async until(test: (note: Note) => boolean, what: string, from = 0, ms = 10_000): Promise<Note> {
    const past = this.log.slice(from).find(test);
    if (past) return past;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () =>
          reject(
            new Error(
              `${what} did not happen; last: ${this.log
                .slice(-8)
                .map(({ kind }) => kind)
                .join(", ")}`,
            ),
          ),
        ms,
      );
      this.#waiting.push({
        test,
        done: (note) => {
          clearTimeout(timer);
          resolve(note);
        },
      });
    });
  }
  /** The bot's messages in a channel. */
  sent(channel: string): readonly FakeMessage[] {
    return (this.messages.get(channel) ?? []).filter(({ author }) => (author as Json)["id"] === BOT.id);
  }

  // ---------------------------------------------------------------- actions of people

  #id(): string {
    return String((BigInt(Date.now() - 1_420_070_400_000) << 22n) | (this.#serial++ & 0xfffn));
  }
  #keep(message: FakeMessage): void {
    this.messages.set(message.channel_id, [...(this.messages.get(message.channel_id) ?? []), message]);
  }
  say({
    content = "",
    channel = DM,
    user = ALICE,
    mention = false,
    replyTo,
    attachments = [],
    more = {},
    unheard = false,
    ...rest
  }: Said): FakeMessage {
    const guild = rest.guild ?? (channel === GENERAL || channel === THREAD ? GUILD : undefined);
    const message: FakeMessage = {
      id: this.#id(),
      channel_id: channel,
      author: user,
      content: mention ? `<@${BOT.id}> ${content}` : content,
      timestamp: new Date().toISOString(),
      edited_timestamp: null,
      tts: false,
      mention_everyone: false,
      mentions: mention ? [BOT] : [],
      mention_roles: [],
      attachments,
      embeds: [],
      pinned: false,
      type: replyTo ? 19 : 0,
      flags: 0,
      ...(replyTo ? { message_reference: { message_id: replyTo.id, channel_id: channel }, referenced_message: replyTo } : {}),
      ...more,
    };
    this.#keep(message);
    if (!unheard)
      this.gateway.dispatch("MESSAGE_CREATE", guild === undefined ? message : { ...message, guild_id: guild, member: { roles: [] } });
    return message;
  }
  edit(message: FakeMessage, content: string): void {
    message.content = content;
    const guild = message.channel_id === DM ? {} : { guild_id: GUILD };
    this.gateway.dispatch("MESSAGE_UPDATE", { ...message, ...guild, edited_timestamp: new Date().toISOString() });
  }
  remove(message: FakeMessage): void {
    const guild = message.channel_id === DM ? {} : { guild_id: GUILD };
    this.gateway.dispatch("MESSAGE_DELETE", { id: message.id, channel_id: message.channel_id, ...guild });
  }
  react(message: FakeMessage, emoji: string): void {
    const guild = message.channel_id === DM ? {} : { guild_id: GUILD, member: { user: ALICE, roles: [] } };
    const fields = {
      user_id: ALICE.id,
      channel_id: message.channel_id,
      message_id: message.id,
      message_author_id: (message["author"] as Json)["id"],
    };
    this.gateway.dispatch("MESSAGE_REACTION_ADD", { ...fields, ...guild, emoji: { id: null, name: emoji }, type: 0 });
  }
  #interaction(channel: string, fields: Json, user: Json = ALICE): { readonly id: string; readonly token: string } {
    const id = this.#id();
    const token = `aW50ZXJhY3Rpb24.${id}`;
    const who = channel === DM ? { user } : { guild_id: GUILD, member: { user, roles: [] } };
    const place = { channel_id: channel, channel: { id: channel, type: channel === DM ? 1 : channel === THREAD ? 11 : 0 } };
    this.gateway.dispatch("INTERACTION_CREATE", { id, application_id: APPLICATION, token, version: 1, ...who, ...place, ...fields });
    return { id, token };
  }
  command(name: string, options: readonly Json[] = [], channel = DM): { readonly id: string; readonly token: string } {
    return this.#interaction(channel, { type: 2, data: { id: "1", name, type: 1, options } });
  }
  press(message: FakeMessage, customId: string, user: Json = ALICE): { readonly id: string; readonly token: string } {
    return this.#interaction(message.channel_id, { type: 3, message, data: { custom_id: customId, component_type: 2 } }, user);
  }
  /** Adds a file for attachments. */
  upload(name: string, bytes: Uint8Array, type: string): Json {
    const id = this.#id();
    this.files.set(`/attachments/${id}/${name}`, { type, bytes });
    return { id, filename: name, size: bytes.length, content_type: type, url: `${this.origin}/attachments/${id}/${name}` };
  }

  // ---------------------------------------------------------------- faults

  /** The next `times` requests to a matching path get 429. */
  limit(path: string, retryAfterSeconds: number, times = 1, global = false): void {
    this.#faults.push({ path: new RegExp(path), kind: "limit", value: retryAfterSeconds, global, left: times });
  }
  failNext(path: string, status: number, times = 1): void {
    this.#faults.push({ path: new RegExp(path), kind: "status", value: status, global: false, left: times });
  }
  /** The request has its effect; the response is lost. */
  loseAnswers(path: string, times = 1): void {
    this.#faults.push({ path: new RegExp(path), kind: "lose", value: 0, global: false, left: times });
  }
  /** The connection breaks before the request has an effect. */
  cutNext(path: string, times = 1): void {
    this.#faults.push({ path: new RegExp(path), kind: "cut", value: 0, global: false, left: times });
  }
  /** The next request waits until the returned function is called, and has no effect when its client is gone by then. */
  hold(path: string): () => void {
    let release = (): void => {};
    this.#held = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#faults.push({ path: new RegExp(path), kind: "hold", value: 0, global: false, left: 1 });
    return release;
  }
  refuse(channel: string, status: number, code: number): void {
    this.#refused.set(channel, { status, code });
  }

  // ---------------------------------------------------------------- the wire

  #ready(session: string): { ready: Json; events: readonly (readonly [string, unknown])[] } {
    const newest = (channel: string): string | null => this.messages.get(channel)?.at(-1)?.id ?? null;
    const guild = {
      id: GUILD,
      name: "Home",
      roles: [{ id: ROLE, name: "gsv", tags: { bot_id: BOT.id } }],
      members: [{ user: BOT, roles: [ROLE] }],
      channels: [{ id: GENERAL, type: 0, name: "general", last_message_id: newest(GENERAL) }],
      threads: [{ id: THREAD, type: 11, name: "plans", parent_id: GENERAL, last_message_id: newest(THREAD) }],
    };
    const resume = `${this.origin.replace("http", "ws")}/gateway`;
    return {
      ready: {
        v: 10,
        user: BOT,
        guilds: [{ id: GUILD, unavailable: true }],
        session_id: session,
        resume_gateway_url: resume,
        application: { id: APPLICATION, flags: this.applicationFlags },
        shard: [0, 1],
      },
      events: [["GUILD_CREATE", guild]],
    };
  }
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      const url = new URL(request.url ?? "/", this.origin);
      const file = this.files.get(url.pathname);
      if (file) return void response.writeHead(200, { "content-type": file.type, "content-length": file.bytes.length }).end(file.bytes);
      if (url.pathname.startsWith("/control/")) return await this.#control(url.pathname.slice("/control/".length), body, response);
      await this.#rest(request, response, url, body);
    } catch (error) {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error));
    }
  }
  async #control(method: string, body: Buffer, response: ServerResponse): Promise<void> {
    const answer = (value: unknown): void =>
      void response.writeHead(200, { "content-type": "application/json" }).end(`${JSON.stringify(value ?? null)}\n`);
    if (method === "log") return answer(this.log);
    const args = body.length === 0 ? [] : (JSON.parse(body.toString()) as unknown[]);
    const target: object = method.startsWith("gateway.") ? this.gateway : this;
    const work: unknown = Reflect.get(target, method.replace("gateway.", ""));
    if (typeof work !== "function") return void response.writeHead(404).end("no such method\n");
    answer(await (Reflect.apply(work, target, args) as unknown));
  }
  async #rest(request: IncomingMessage, response: ServerResponse, url: URL, raw: Buffer): Promise<void> {
    const path = url.pathname.replace(/^\/api\/v10/, "").replaceAll("%40", "@");
    const { fields, files } = await readBody(request, raw);
    const method = request.method ?? "GET";
    this.#note("rest", { method, path, body: fields, files });
    const send = (status: number, value?: unknown, headers: Record<string, string> = {}): void => {
      const bucket = {
        "x-ratelimit-bucket": `b${method}${path.replaceAll(/\d+/g, "")}`,
        "x-ratelimit-limit": "50",
        "x-ratelimit-remaining": "49",
        "x-ratelimit-reset-after": "0.1",
      };
      response.writeHead(status, { ...bucket, ...(value === undefined ? {} : { "content-type": "application/json" }), ...headers });
      response.end(value === undefined ? undefined : JSON.stringify(value));
    };
    const fault = this.#faults.find((entry) => entry.left > 0 && entry.path.test(`${method} ${path}`));
    if (fault) fault.left--;
    if (fault?.kind === "limit")
      return send(
        429,
        { message: "You are being rate limited.", retry_after: fault.value, global: fault.global },
        {
          "retry-after": String(fault.value),
          "x-ratelimit-scope": fault.global ? "global" : "user",
          ...(fault.global
            ? { "x-ratelimit-global": "true" }
            : { "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": String(fault.value) }),
        },
      );
    if (fault?.kind === "hold") await this.#held;
    if (fault?.kind === "cut" || request.socket.destroyed) return void request.socket.destroy();
    if (fault?.kind === "status") return send(fault.value, { message: "forced", code: 0 });
    const open = /^\/(?:interactions|webhooks)\//.test(path);
    if (!open && request.headers.authorization !== `Bot ${this.token}`) return send(401, { message: "401: Unauthorized", code: 0 });
    const [status, value] = this.#answer(method, path, url, fields, files);
    if (fault?.kind === "lose") return void request.socket.destroy();
    send(status, value);
  }
  #answer(method: string, path: string, url: URL, body: Json, files: readonly Json[]): readonly [number, unknown?] {
    if (path === "/gateway/bot")
      return [
        200,
        {
          url: `${this.origin.replace("http", "ws")}/gateway`,
          shards: 1,
          session_start_limit: {
            total: 1_000,
            remaining: this.identifiesLeft,
            reset_after: 3_600_000,
            max_concurrency: this.maxConcurrency,
          },
        },
      ];
    if (path === "/users/@me/channels") return [200, { id: dmOf(String(body["recipient_id"])), type: 1, recipients: [ALICE] }];
    if (path.startsWith("/applications/")) return [200, body];
    if (path.endsWith("/callback")) {
      this.#note("interaction.callback", { id: path.split("/")[2], body });
      return [204];
    }
    const original = /^\/webhooks\/\d+\/([^/]+)\/messages\/@original$/.exec(path);
    if (original) {
      const token = original[1] ?? "";
      if (!this.log.some(({ kind, id }) => kind === "interaction.callback" && token.endsWith(String(id))))
        return [404, { message: "Unknown Webhook", code: 10015 }];
      if (method === "DELETE") return [204];
      this.replies.set(token, body);
      return [200, { id: this.#id(), channel_id: DM, author: BOT, content: body["content"] ?? "" }];
    }
    return this.#channels(method, path, url, body, files);
  }
  #channels(method: string, path: string, url: URL, body: Json, files: readonly Json[]): readonly [number, unknown?] {
    const [, channel = "", rest = ""] = /^\/channels\/(\d+)(\/.*)$/.exec(path) ?? [];
    const refused = this.#refused.get(channel);
    if (refused) return [refused.status, { message: "Missing Access", code: refused.code }];
    if (rest === "/typing" || rest.includes("/reactions/")) return [204];
    if (rest === "/messages" && method === "GET") {
      const after = BigInt(url.searchParams.get("after") ?? 0);
      const limit = Number(url.searchParams.get("limit") ?? 50);
      const found = (this.messages.get(channel) ?? []).filter(({ id }) => BigInt(id) > after).slice(0, limit);
      return [200, found.toReversed()];
    }
    const content = String(body["content"] ?? "");
    if (content.length > 2_000) return [400, { message: "Invalid Form Body", code: 50035 }];
    if (rest === "/messages" && method === "POST") return [200, this.#posted(channel, content, body, files)];
    const edited = /^\/messages\/(\d+)$/.exec(rest)?.[1];
    const message = (this.messages.get(channel) ?? []).find(({ id }) => id === edited);
    if (!message) return [404, { message: "Unknown Message", code: 10008 }];
    if (method === "PATCH") {
      message.content = content;
      if (body["components"] !== undefined) message["components"] = body["components"];
    }
    return [200, message];
  }
  #posted(channel: string, content: string, body: Json, files: readonly Json[]): FakeMessage {
    const name = `${channel}/${String(body["nonce"])}`;
    const before = body["enforce_nonce"] === true && body["nonce"] !== undefined ? this.#nonces.get(name) : undefined;
    if (before) return before;
    const message: FakeMessage = {
      id: this.#id(),
      channel_id: channel,
      author: BOT,
      content,
      nonce: body["nonce"] ?? null,
      timestamp: new Date().toISOString(),
      edited_timestamp: null,
      mentions: [],
      mention_roles: [],
      attachments: files,
      embeds: [],
      components: body["components"] ?? [],
      message_reference: body["message_reference"] ?? null,
      type: body["message_reference"] === undefined ? 0 : 19,
    };
    if (body["nonce"] !== undefined) this.#nonces.set(name, message);
    this.#keep(message);
    const guild = channel.startsWith("5") ? {} : { guild_id: GUILD };
    this.gateway.dispatch("MESSAGE_CREATE", { ...message, ...guild });
    return message;
  }
}

async function readBody(request: IncomingMessage, raw: Buffer): Promise<{ readonly fields: Json; readonly files: readonly Json[] }> {
  const type = request.headers["content-type"] ?? "";
  if (raw.length === 0) return { fields: {}, files: [] };
  if (type.includes("json")) return { fields: JSON.parse(raw.toString()) as Json, files: [] };
  if (!type.includes("multipart")) return { fields: {}, files: [] };
  const form = await new Response(new Uint8Array(raw), { headers: { "content-type": type } }).formData();
  const fields = JSON.parse(String(form.get("payload_json") ?? "{}")) as Json;
  const files: Json[] = [];
  for (const [name, value] of form) {
    if (typeof value === "string" || !name.startsWith("files[")) continue;
    files.push({ filename: value.name, size: value.size, content_type: value.type, text: (await value.text()).slice(0, 2_000) });
  }
  return { fields, files };
}
