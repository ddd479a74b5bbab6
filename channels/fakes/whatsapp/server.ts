/**
 * A fake WhatsApp: the real wire (handshake, linking, Signal sessions, receipts, files over TLS) with people that the test creates.
 * Built on Baileys' codec, which its client uses, too. Only the wire; no other behaviour of WhatsApp.
 */
import { createCipheriv, createHmac, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
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
import { FileServer } from "./file-server.ts";
import { Linking } from "./linking.ts";
import { NoiseServer, serverIdentity, type ServerIdentity } from "./noise-server.ts";
import { type Bot, Party, type Person, type Shown } from "./party.ts";
import { Queries } from "./queries.ts";
import { Records } from "./records.ts";
import { children, seconds, SERVER } from "./stanza.ts";
import type { Connection, Say, SayMedia } from "./types.ts";

function damage(enc: readonly BinaryNode[]): void {
  for (const { content } of enc) if (content instanceof Uint8Array) content[content.length - 3] = (content[content.length - 3] ?? 0) ^ 0xff;
}

export class FakeWhatsApp extends Records {
  identity: ServerIdentity = serverIdentity();
  readonly tls = selfSigned();
  readonly account = { pn: "15550001111", lid: "900000001111", device: 7 };
  readonly phone = new Party({ ...this.account, name: "Owner" });
  readonly peers = new Map<string, Party>();
  readonly groups = new Map<string, { readonly subject: string; readonly members: readonly string[] }>();
  readonly linking = new Linking(this);
  readonly #queries = new Queries(this);
  readonly #web = new FileServer(this);
  readonly files = this.#web.files;
  bot: Bot | undefined;
  /** Refuses the next login with this code. */
  refuseLogin: string | undefined;
  /** The device's next message reaches its receiver, then the connection breaks before the acknowledgement. */
  dropAfterNextMessage: boolean | string = false;
  live: Connection | undefined;
  readonly #connections = new Set<Connection>();
  /** Sent and not yet acknowledged. */
  readonly #unconfirmed = new Map<string, BinaryNode>();
  /** Kept for retry requests. */
  readonly #said = new Map<string, readonly [pn: string, message: proto.IMessage, options: Say]>();
  readonly #http = createServer(this.#web.answer);
  readonly #https = createTlsServer(this.tls, this.#web.answer);
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

  // ---------------------------------------------------------------- people

  addPeer(person: Person): Party {
    const party = new Party(person);
    this.peers.set(person.pn, party);
    return party;
  }
  addGroup(id: string, subject: string, members: readonly string[]): void {
    this.groups.set(id, { subject, members });
  }
  party(jid: string): Party | undefined {
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
        await this.#queries.answer(connection, node);
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
  flush(connection: Connection): void {
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
    const directPath = this.#web.keep(sealed);
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
      const party = this.party(jid);
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
    if (drops === true || (drops !== false && drops === this.party(to)?.pn)) {
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
}
