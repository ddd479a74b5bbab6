/**
 * A fake WhatsApp: the real wire (handshake, linking, Signal sessions, receipts, files over TLS) with people that the test creates.
 * Built on Baileys' codec, which its client uses, too. Only the wire; no other behaviour of WhatsApp.
 */
import { createCipheriv, createHmac, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import {
  type BinaryNode,
  decodeBinaryNode,
  encodeBinaryNode,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  getMediaKeys,
  jidDecode,
  proto,
  sha256,
} from "@whiskeysockets/baileys";
import { type WebSocket, WebSocketServer } from "ws";
import { selfSigned } from "./certificate.ts";
import { control } from "./control.ts";
import { Linking } from "./linking.ts";
import { NoiseServer, serverIdentity, type ServerIdentity } from "./noise-server.ts";
import { type Bot, Party, type Person, type Shown } from "./party.ts";
import type { Connection, Note, Say, SayMedia } from "./types.ts";

const SERVER = "s.whatsapp.net";
const seconds = (): number => Math.floor(Date.now() / 1000);
const children = (node: BinaryNode): readonly BinaryNode[] => (Array.isArray(node.content) ? node.content : []);
const bytesOf = (node: BinaryNode | undefined): Buffer => Buffer.from((node?.content as Uint8Array | undefined) ?? []);

function damage(enc: readonly BinaryNode[]): void {
  for (const { content } of enc) if (content instanceof Uint8Array) content[content.length - 3] = (content[content.length - 3] ?? 0) ^ 0xff;
}

export class FakeWhatsApp {
  identity: ServerIdentity = serverIdentity();
  readonly tls = selfSigned();
  readonly account = { pn: "15550001111", lid: "900000001111", device: 7 };
  readonly phone = new Party({ ...this.account, name: "Owner" });
  readonly peers = new Map<string, Party>();
  readonly groups = new Map<string, { readonly subject: string; readonly members: readonly string[] }>();
  readonly log: Note[] = [];
  readonly files = new Map<string, Buffer>();
  readonly linking = new Linking(this);
  bot: Bot | undefined;
  /** Refuses the next login with this code. */
  refuseLogin: string | undefined;
  /** The device's next message reaches its receiver, then the connection breaks before the acknowledgement. */
  dropAfterNextMessage: boolean | string = false;
  live: Connection | undefined;
  readonly #watchers = new Set<() => void>();
  readonly #connections = new Set<Connection>();
  /** Sent and not yet acknowledged. */
  readonly #unconfirmed = new Map<string, BinaryNode>();
  /** Kept for retry requests. */
  readonly #said = new Map<string, readonly [pn: string, message: proto.IMessage, options: Say]>();
  readonly #http = createServer((request, response) => this.#onHttp(request, response));
  readonly #https = createTlsServer(this.tls, (request, response) => this.#onHttp(request, response));
  readonly #sockets = new WebSocketServer({ noServer: true, maxPayload: 8 << 20 });

  async listen(port = 0): Promise<this> {
    this.#http.on("upgrade", (request, socket, head) => {
      this.#sockets.handleUpgrade(request, socket, head, (ws) => this.#onSocket(ws, request));
    });
    await new Promise<void>((resolve) => this.#http.listen(port, "127.0.0.1", resolve));
    await new Promise<void>((resolve) => this.#https.listen(0, "127.0.0.1", resolve));
    return this;
  }
  async close(): Promise<void> {
    for (const { ws } of this.#connections) ws.terminate();
    this.#sockets.close();
    this.#http.closeAllConnections();
    this.#https.closeAllConnections();
    await Promise.all([this.#http, this.#https].map((server) => new Promise((resolve) => server.close(resolve))));
  }
  get url(): string {
    return `ws://127.0.0.1:${(this.#http.address() as AddressInfo).port}/ws/chat`;
  }
  get rootHex(): string {
    return Buffer.from(this.identity.root.public).toString("hex");
  }
  get fileHost(): string {
    return `127.0.0.1:${(this.#https.address() as AddressInfo).port}`;
  }
  get botJid(): string {
    return `${this.account.pn}:${this.account.device}@${SERVER}`;
  }
  get connections(): number {
    return this.#connections.size;
  }

  // ---------------------------------------------------------------- records

  note(kind: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.log.push({ ...fields, kind, at: Date.now() });
    for (const watcher of [...this.#watchers]) watcher();
  }
  /** Waits until the condition holds, at most `ms`. */
  async until<T>(what: string, look: () => T | undefined | false, ms = 10_000): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const check = (): void => {
        const found = look();
        if (found === undefined || found === false) return;
        end();
        resolve(found);
      };
      const timer = setTimeout(() => {
        end();
        reject(
          new Error(
            `${what}: not within ${ms} ms; last: ${this.log
              .slice(-8)
              .map(({ kind }) => kind)
              .join(", ")}`,
          ),
        );
      }, ms);
      const end = (): void => {
        clearTimeout(timer);
        this.#watchers.delete(check);
      };
      this.#watchers.add(check);
      check();
    });
  }
  noted(kind: string): readonly Note[] {
    return this.log.filter((note) => note.kind === kind);
  }

  // ---------------------------------------------------------------- people

  addPeer(person: Person): Party {
    const party = new Party(person);
    this.peers.set(person.pn, party);
    return party;
  }
  addGroup(id: string, subject: string, members: readonly string[]): void {
    this.groups.set(id, { subject, members });
  }
  #party(jid: string): Party | undefined {
    const user = jidDecode(jid)?.user;
    return [this.phone, ...this.peers.values()].find(({ pn, lid }) => pn === user || lid === user);
  }
  shown(pn: string): readonly Shown[] {
    return this.peers.get(pn)?.shown ?? [];
  }

  // ---------------------------------------------------------------- connections

  #onSocket(ws: WebSocket, request: IncomingMessage): void {
    const connection: Connection = { ws, noise: new NoiseServer(this.identity), state: "hello", registration: undefined, flushed: false };
    this.#connections.add(connection);
    let tail = Promise.resolve();
    ws.on("message", (data: Buffer) => {
      tail = tail
        .then(async () => {
          for (const frame of connection.noise.frames(data)) await this.#onFrame(connection, frame);
        })
        .catch((error: unknown) => {
          this.note("error", { error: error instanceof Error ? error.stack : String(error) });
          ws.close(1011);
        });
    });
    ws.on("close", (code) => {
      this.#connections.delete(connection);
      if (this.live === connection) this.live = undefined;
      this.note("disconnected", { code });
    });
    this.note("connected", { origin: request.headers.origin, at_once: this.#connections.size });
  }
  send(connection: Connection, node: BinaryNode): void {
    connection.ws.send(connection.noise.seal(encodeBinaryNode(node)));
  }
  async #onFrame(connection: Connection, frame: Uint8Array): Promise<void> {
    if (connection.state === "hello") {
      connection.ws.send(connection.noise.serverHello(frame));
      connection.state = "finish";
      return;
    }
    if (connection.state === "finish") {
      const payload = connection.noise.clientFinish(frame);
      connection.state = "open";
      if (payload.devicePairingData) this.linking.begin(connection, payload.devicePairingData);
      else this.#login(connection, payload);
      return;
    }
    const node = await decodeBinaryNode(connection.noise.unseal(frame));
    await this.#onNode(connection, node);
  }
  #login(connection: Connection, payload: proto.ClientPayload): void {
    const known = this.bot && String(payload.username) === this.account.pn && payload.device === this.account.device;
    const refusal = this.refuseLogin ?? (known ? undefined : "401");
    this.refuseLogin = undefined;
    this.note("login", { refused: refusal });
    if (refusal !== undefined) {
      this.send(connection, { tag: "failure", attrs: { reason: refusal, location: "fake" } });
      connection.ws.close();
      return;
    }
    this.live = connection;
    const lid = `${this.account.lid}:${this.account.device}@lid`;
    this.send(connection, { tag: "success", attrs: { t: String(seconds()), lid, props: "27", companion_enc_static: "x" } });
  }
  /** Ends the connection with this status code, as WhatsApp does. */
  disconnect(reason: number): void {
    const connection = this.live;
    if (!connection) return;
    const content = reason === 440 ? [{ tag: "conflict", attrs: { type: "replaced" } }] : undefined;
    const attrs: Record<string, string> = reason === 440 ? {} : { code: String(reason) };
    this.send(connection, { tag: "stream:error", attrs, ...(content ? { content } : {}) });
    setTimeout(() => connection.ws.close(), 20);
  }
  /** Breaks the connection like a network failure. */
  drop(): void {
    this.live?.ws.terminate();
  }

  // ---------------------------------------------------------------- stanzas

  async #onNode(connection: Connection, node: BinaryNode): Promise<void> {
    const { tag, attrs } = node;
    switch (tag) {
      case "iq":
        await this.#onIq(connection, node);
        return;
      case "message":
        await this.#onMessage(connection, node);
        return;
      case "receipt": {
        const ids = [attrs["id"] ?? "", ...getBinaryNodeChildren(children(node)[0], "item").map((item) => item.attrs["id"] ?? "")];
        for (const id of ids) if (attrs["type"] !== "retry") this.#unconfirmed.delete(id);
        if (attrs["type"] === "retry") await this.#resend(attrs["id"] ?? "");
        this.note("receipt", { ids, to: attrs["to"], type: attrs["type"] ?? "delivery", participant: attrs["participant"] });
        const type: Record<string, string> = attrs["type"] === undefined ? {} : { type: attrs["type"] };
        this.send(connection, { tag: "ack", attrs: { class: "receipt", id: attrs["id"] ?? "", from: attrs["to"] ?? "", ...type } });
        return;
      }
      case "ack":
        if (attrs["class"] === "message") {
          this.#unconfirmed.delete(attrs["id"] ?? "");
          this.note("ack", { id: attrs["id"], error: attrs["error"] });
        }
        return;
      case "chatstate":
        this.note("typing", { to: attrs["to"], state: children(node)[0]?.tag });
        return;
      case "presence":
        this.note("presence", { type: attrs["type"] });
        return;
      default:
        this.note("node", { tag });
    }
  }
  async #onIq(connection: Connection, node: BinaryNode): Promise<void> {
    const { attrs } = node;
    const first = children(node)[0];
    const answer = (content?: BinaryNode[]): void =>
      this.send(connection, {
        tag: "iq",
        attrs: { from: attrs["to"] ?? SERVER, id: attrs["id"] ?? "", type: "result", t: String(seconds()) },
        ...(content ? { content } : {}),
      });
    if (attrs["type"] === "result") return this.linking.onResult(connection, node);
    switch (attrs["xmlns"]) {
      case "encrypt":
        return this.#onKeys(node, answer);
      case "usync": {
        const list = children(getBinaryNodeChild(first, "list") ?? { tag: "list", attrs: {} });
        return answer([
          {
            tag: "usync",
            attrs: { sid: first?.attrs["sid"] ?? "", index: "0", last: "true" },
            content: [{ tag: "list", attrs: {}, content: list.map((user) => this.#devices(user.attrs["jid"] ?? "")) }],
          },
        ]);
      }
      case "w:m":
        return answer([
          {
            tag: "media_conn",
            attrs: { auth: "AUTH", ttl: "3600", max_buckets: "12" },
            content: [{ tag: "host", attrs: { hostname: this.fileHost, maxContentLengthBytes: "104857600" } }],
          },
        ]);
      case "w:g2":
        return answer(attrs["type"] === "get" ? [this.#groupNode(attrs["to"] ?? "")] : undefined);
      case "privacy":
        return answer([{ tag: "privacy", attrs: {}, content: [{ tag: "category", attrs: { name: "readreceipts", value: "all" } }] }]);
      case "abt":
        return answer([{ tag: "props", attrs: { hash: "h" }, content: [] }]);
      case "blocklist":
        return answer([{ tag: "list", attrs: {}, content: [] }]);
      case "passive":
        answer();
        return this.#flush(connection);
      case "md":
        if (first?.tag === "remove-companion-device") {
          this.bot = undefined;
          this.note("logout");
        } else if (first?.tag === "link_code_companion_reg") {
          answer();
          return this.linking.onCode(connection, first);
        }
        return answer();
      case "w:p":
        this.note("ping");
        return answer();
      default:
        return answer();
    }
  }
  #onKeys(node: BinaryNode, answer: (content?: BinaryNode[]) => void): void {
    const first = children(node)[0];
    if (node.attrs["type"] === "set") {
      const keys = getBinaryNodeChildren(getBinaryNodeChild(node, "list"), "key");
      for (const key of keys)
        this.bot?.preKeys.push({
          keyId: bytesOf(getBinaryNodeChild(key, "id")).readUIntBE(0, 3),
          publicKey: bytesOf(getBinaryNodeChild(key, "value")),
        });
      this.note("prekeys", { count: keys.length });
      return answer();
    }
    if (first?.tag === "count") return answer([{ tag: "count", attrs: { value: String(this.bot?.preKeys.length ?? 0) } }]);
    if (first?.tag === "digest") return answer([{ tag: "digest", attrs: {} }]);
    const users = children(first ?? node).map((user): BinaryNode => {
      const jid = user.attrs["jid"] ?? "";
      return this.#party(jid)?.bundle(jid) ?? { tag: "user", attrs: { jid }, content: [{ tag: "error", attrs: { code: "404" } }] };
    });
    return answer([{ tag: "list", attrs: {}, content: users }]);
  }
  #devices(jid: string): BinaryNode {
    const party = this.#party(jid);
    const own: BinaryNode[] = party === this.phone ? [{ tag: "device", attrs: { id: String(this.account.device), "key-index": "1" } }] : [];
    const devices: BinaryNode = {
      tag: "devices",
      attrs: {},
      content: [{ tag: "device-list", attrs: {}, content: [{ tag: "device", attrs: { id: "0" } }, ...own] }],
    };
    return { tag: "user", attrs: { jid }, content: [devices, ...(party ? [{ tag: "lid", attrs: { val: party.lidJid } }] : [])] };
  }
  #groupNode(jid: string): BinaryNode {
    const group = this.groups.get(jid);
    if (!group) return { tag: "groups", attrs: {}, content: [] };
    const attrs = {
      id: jid.split("@")[0] ?? "",
      subject: group.subject,
      s_t: "1",
      creation: "1",
      creator: `${group.members[0]}@${SERVER}`,
      addressing_mode: "pn",
    };
    return { tag: "group", attrs, content: group.members.map((pn) => ({ tag: "participant", attrs: { jid: `${pn}@${SERVER}` } })) };
  }
  #flush(connection: Connection): void {
    if (connection.flushed) return;
    connection.flushed = true;
    const waiting = [...this.#unconfirmed.values()];
    const count = String(waiting.length);
    if (waiting.length > 0)
      this.send(connection, {
        tag: "ib",
        attrs: { from: SERVER },
        content: [{ tag: "offline_preview", attrs: { count, message: count, receipt: "0", notification: "0", appdata: "0" } }],
      });
    for (const node of waiting) this.send(connection, { ...node, attrs: { ...node.attrs, offline: "1" } });
    this.send(connection, { tag: "ib", attrs: { from: SERVER }, content: [{ tag: "offline", attrs: { count } }] });
    this.note("flushed", { count: waiting.length });
  }

  // ---------------------------------------------------------------- from people to the device

  async say(pn: string, message: string | proto.IMessage, options: Say = {}): Promise<string> {
    const party = pn === this.account.pn ? this.phone : this.peers.get(pn);
    if (!party || !this.bot) throw new Error(party ? "no device is linked" : `there is no person ${pn}`);
    const {
      id = `3EB0${randomBytes(9).toString("hex").toUpperCase()}`,
      group,
      byLid = false,
      tellOther = true,
      sentAt = seconds(),
    } = options;
    const content: proto.IMessage = typeof message === "string" ? { conversation: message } : message;
    this.#said.set(id, [pn, content, { ...options, id, damaged: false }]);
    const enc = group
      ? await party.encryptGroup(this.botJid, this.bot, group, content)
      : [await party.encrypt(this.botJid, this.bot, content)];
    const [as, other] = byLid || group ? [party.lidJid, party.phoneJid] : [party.phoneJid, party.lidJid];
    const mode = byLid || group ? "lid" : "pn";
    const tell = (name: string): Record<string, string> => (tellOther ? { [name]: other } : {});
    const from: Record<string, string> = group
      ? { from: group, participant: as, ...tell("participant_pn") }
      : { from: as, ...tell(mode === "lid" ? "sender_pn" : "sender_lid") };
    const type = content.conversation || content.extendedTextMessage ? "text" : "media";
    const node: BinaryNode = {
      tag: "message",
      attrs: { ...from, addressing_mode: mode, id, type, t: String(sentAt), notify: party.name },
      content: enc,
    };
    if (options.damaged === true) damage(enc);
    this.#unconfirmed.set(id, node);
    this.note("said", { id });
    if (this.live?.flushed) this.send(this.live, node);
    return id;
  }
  /** A message without encryption, in any name, as only the server (or an attacker in its place) can send one. */
  sayPlaintext(attrs: Readonly<Record<string, string>>, text: string): string {
    const id = `3EB0${randomBytes(9).toString("hex").toUpperCase()}`;
    const content = proto.Message.encode(proto.Message.fromObject({ conversation: text })).finish();
    const node: BinaryNode = {
      tag: "message",
      attrs: { id, type: "text", t: String(seconds()), notify: "Owner", ...attrs },
      content: [{ tag: "plaintext", attrs: {}, content }],
    };
    this.#unconfirmed.set(id, node);
    if (this.live?.flushed) this.send(this.live, node);
    return id;
  }
  /** The device could not decrypt it: the sender starts a new session and sends it again. */
  async #resend(id: string): Promise<void> {
    const said = this.#said.get(id);
    if (!said) return;
    const [pn, message, options] = said;
    this.peers.get(pn)?.forgetBot();
    this.note("sent-again", { id });
    await this.say(pn, message, options);
  }
  /** This person's phone could not decrypt a message and requests it again. */
  askAgain(pn: string, id: string): void {
    const party = this.peers.get(pn);
    if (!party || !this.live) throw new Error(party ? "the device is not connected" : `there is no person ${pn}`);
    const registration = Buffer.alloc(4);
    registration.writeUInt32BE(party.creds.registrationId);
    this.send(this.live, {
      tag: "receipt",
      attrs: { from: party.phoneJid, id, type: "retry", t: String(seconds()) },
      content: [
        { tag: "retry", attrs: { count: "1", id, t: String(seconds()), v: "1" } },
        { tag: "registration", attrs: {}, content: registration },
      ],
    });
  }
  /** The owner writes to their own number on the phone. */
  async sayToSelf(text: string): Promise<string> {
    if (!this.bot) throw new Error("no device is linked");
    const id = `3A${randomBytes(9).toString("hex").toUpperCase()}`;
    const message = { deviceSentMessage: { destinationJid: this.phone.phoneJid, message: { conversation: text } } };
    const enc = await this.phone.encrypt(this.botJid, this.bot, message);
    const node: BinaryNode = {
      tag: "message",
      attrs: { from: this.phone.phoneJid, recipient: this.phone.phoneJid, id, type: "text", t: String(seconds()), notify: this.phone.name },
      content: [enc],
    };
    this.#unconfirmed.set(id, node);
    if (this.live?.flushed) this.send(this.live, node);
    return id;
  }
  /** Sends the same message again, newly encrypted, as WhatsApp does when unsure. */
  async sayAgain(pn: string, id: string, message: string): Promise<void> {
    await this.say(pn, message, { id });
  }
  async sayFile(pn: string, bytes: Uint8Array, { kind, mimetype, more = {}, ...options }: SayMedia): Promise<string> {
    const mediaKey = randomBytes(32);
    const { cipherKey, iv, macKey } = await getMediaKeys(mediaKey, kind);
    const cipher = createCipheriv("aes-256-cbc", cipherKey, iv);
    const secret = Buffer.concat([cipher.update(bytes), cipher.final()]);
    const mac = createHmac("sha256", macKey ?? Buffer.alloc(0))
      .update(iv)
      .update(secret)
      .digest()
      .subarray(0, 10);
    const sealed = Buffer.concat([secret, mac]);
    const directPath = `/files/${randomBytes(8).toString("hex")}`;
    this.files.set(directPath, sealed);
    const message = {
      url: `https://${this.fileHost}${directPath}`,
      directPath,
      mediaKey,
      mimetype,
      fileLength: bytes.length,
      fileSha256: sha256(Buffer.from(bytes)),
      fileEncSha256: sha256(sealed),
      mediaKeyTimestamp: seconds(),
      ...more,
    };
    return this.say(pn, { [`${kind}Message`]: message }, options);
  }

  // ---------------------------------------------------------------- from the device to people

  async #onMessage(connection: Connection, node: BinaryNode): Promise<void> {
    const { to = "", id = "" } = node.attrs;
    const group = to.endsWith("@g.us");
    const open = async (jid: string, enc: BinaryNode): Promise<void> => {
      const party = this.#party(jid);
      if (!party || (party === this.phone && jidDecode(jid)?.device === this.account.device)) return;
      const message = await party.decrypt(this.botJid, enc);
      if (message.senderKeyDistributionMessage?.groupId) return;
      const sent = message.deviceSentMessage?.message;
      party.show(id, to, sent ? proto.Message.fromObject(sent) : message);
    };
    for (const receiver of children(getBinaryNodeChild(node, "participants") ?? { tag: "", attrs: {} }))
      for (const enc of getBinaryNodeChildren(receiver, "enc")) await open(receiver.attrs["jid"] ?? "", enc);
    for (const enc of getBinaryNodeChildren(node, "enc")) {
      if (!group) await open(to, enc);
      else for (const pn of this.groups.get(to)?.members ?? []) await this.#openGroup(pn, to, id, enc);
    }
    this.note("device-message", { id, to });
    const drops = this.dropAfterNextMessage;
    if (drops === true || (drops !== false && drops === this.#party(to)?.pn)) {
      this.dropAfterNextMessage = false;
      connection.ws.terminate();
      return;
    }
    this.send(connection, { tag: "ack", attrs: { class: "message", id, from: to, t: String(seconds()) } });
  }
  async #openGroup(pn: string, group: string, id: string, enc: BinaryNode): Promise<void> {
    const party = this.peers.get(pn);
    if (party) party.show(id, group, await party.decryptGroup(this.botJid, group, enc.content as Uint8Array));
  }

  // ---------------------------------------------------------------- files and actions

  #onHttp(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      this.#answerHttp(request.method ?? "GET", new URL(request.url ?? "/", "http://fake").pathname, Buffer.concat(chunks)).then(
        ({ status, body }) => response.writeHead(status).end(body),
        (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.stack : String(error)),
      );
    });
  }
  async #answerHttp(method: string, path: string, body: Buffer): Promise<{ status: number; body: Buffer | string }> {
    if (path.startsWith("/files/")) {
      const file = this.files.get(path);
      this.note("file-read", { path, found: file !== undefined });
      return file ? { status: 200, body: file } : { status: 404, body: "" };
    }
    if (path.startsWith("/mms/") && method === "POST") {
      const directPath = `/files/${randomBytes(8).toString("hex")}`;
      this.files.set(directPath, body);
      this.note("file-written", { path: directPath, size: body.length });
      return { status: 200, body: JSON.stringify({ url: `https://${this.fileHost}${directPath}`, direct_path: directPath }) };
    }
    const { status, body: answer } = await control(this, path, body.length === 0 ? {} : JSON.parse(body.toString()));
    return { status, body: JSON.stringify(answer) };
  }
}
