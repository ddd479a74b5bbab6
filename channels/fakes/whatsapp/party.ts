/** One party of the fake WhatsApp, a contact or the account's own phone: its keys, its sessions and the messages that it has received. */
import "./quiet.ts";
import {
  addTransactionCapability,
  Curve,
  encodeBigEndian,
  generateSignalPubKey,
  initAuthCreds,
  proto,
  type BinaryNode,
  type SignalDataSet,
  unpadRandomMax16,
  writeRandomPadMax16,
  xmppPreKey,
  xmppSignedPreKey,
} from "@whiskeysockets/baileys";
import { makeLibSignalRepository } from "@whiskeysockets/baileys/lib/Signal/libsignal.js";

export interface Person {
  /** The number, without plus. */
  readonly pn: string;
  readonly lid: string;
  readonly name: string;
}
/** Keys that the account's device published when it was linked. */
export interface Bot {
  readonly identity: Uint8Array;
  readonly registrationId: number;
  readonly signedPreKey: { readonly keyId: number; readonly publicKey: Uint8Array; readonly signature: Uint8Array };
  readonly preKeys: { readonly keyId: number; readonly publicKey: Uint8Array }[];
}
/** A message on this person's phone. */
export interface Shown {
  readonly id: string;
  readonly chat: string;
  readonly message: proto.Message;
  /** Received copies; a phone shows one. */
  copies: number;
}
const quiet = { level: "silent", child: () => quiet, trace() {}, debug() {}, info() {}, warn() {}, error() {} };
type Stored = NonNullable<SignalDataSet[keyof SignalDataSet]>[string];

export class Party implements Person {
  readonly pn: string;
  readonly lid: string;
  readonly name: string;
  readonly creds = initAuthCreds();
  readonly shown: Shown[] = [];
  readonly #stored = new Map<string, Stored>();
  readonly #repository;
  #nextPreKey = 1;
  /** True when a session with the device exists. */
  #session = false;

  constructor({ pn, lid, name }: Person) {
    this.pn = pn;
    this.lid = lid;
    this.name = name;
    const keys = addTransactionCapability(
      {
        get: async (type, ids) => {
          const found: Record<string, never> = {};
          for (const id of ids) {
            const value = this.#stored.get(`${type}/${id}`);
            if (value !== undefined && value !== null) found[id] = value as never;
          }
          return found;
        },
        set: async (data) => {
          for (const [type, entries] of Object.entries(data))
            for (const [id, value] of Object.entries(entries ?? {})) {
              if (value === null) this.#stored.delete(`${type}/${id}`);
              else this.#stored.set(`${type}/${id}`, value);
            }
        },
      },
      quiet,
      { maxCommitRetries: 1, delayBetweenTriesMs: 10 },
    );
    this.#repository = makeLibSignalRepository({ creds: this.creds, keys }, quiet, async () => []);
  }
  get phoneJid(): string {
    return `${this.pn}@s.whatsapp.net`;
  }
  get lidJid(): string {
    return `${this.lid}@lid`;
  }

  /** A bundle for a new session, with a one-time key. */
  bundle(jid: string): BinaryNode {
    const id = this.#nextPreKey++;
    const preKey = Curve.generateKeyPair();
    this.#stored.set(`pre-key/${id}`, preKey);
    return {
      tag: "user",
      attrs: { jid },
      content: [
        { tag: "registration", attrs: {}, content: encodeBigEndian(this.creds.registrationId) },
        { tag: "type", attrs: {}, content: Buffer.from([5]) },
        { tag: "identity", attrs: {}, content: this.creds.signedIdentityKey.public },
        xmppSignedPreKey(this.creds.signedPreKey),
        xmppPreKey(preKey, id),
      ],
    };
  }
  /** The account was linked again: drops sessions with the old device. */
  forgetBot(): void {
    this.#session = false;
    for (const name of [...this.#stored.keys()]) if (/^(session|sender-key|identity-key)/.test(name)) this.#stored.delete(name);
  }
  async #meet(address: string, bot: Bot): Promise<void> {
    if (this.#session) return;
    const preKey = bot.preKeys.shift();
    await this.#repository.injectE2ESession({
      jid: address,
      session: {
        registrationId: bot.registrationId,
        identityKey: generateSignalPubKey(bot.identity),
        signedPreKey: { ...bot.signedPreKey, publicKey: generateSignalPubKey(bot.signedPreKey.publicKey) },
        preKey: { keyId: preKey?.keyId ?? 0, publicKey: generateSignalPubKey(preKey?.publicKey ?? bot.signedPreKey.publicKey) },
      },
    });
    this.#session = true;
  }
  async encrypt(address: string, bot: Bot, message: proto.IMessage): Promise<BinaryNode> {
    await this.#meet(address, bot);
    const { type, ciphertext } = await this.#repository.encryptMessage({ jid: address, data: padded(message) });
    return { tag: "enc", attrs: { v: "2", type }, content: ciphertext };
  }
  async encryptGroup(address: string, bot: Bot, group: string, message: proto.IMessage): Promise<BinaryNode[]> {
    const { ciphertext, senderKeyDistributionMessage } = await this.#repository.encryptGroupMessage({
      group,
      meId: this.lidJid,
      data: padded(message),
    });
    const distribution = { groupId: group, axolotlSenderKeyDistributionMessage: senderKeyDistributionMessage };
    return [
      await this.encrypt(address, bot, { senderKeyDistributionMessage: distribution }),
      { tag: "enc", attrs: { v: "2", type: "skmsg" }, content: ciphertext },
    ];
  }
  async decrypt(from: string, enc: BinaryNode): Promise<proto.Message> {
    const type = enc.attrs["type"] === "pkmsg" ? "pkmsg" : "msg";
    const bytes = await this.#repository.decryptMessage({ jid: from, type, ciphertext: Buffer.from(enc.content as Uint8Array) });
    this.#session = true;
    const message = proto.Message.decode(unpadRandomMax16(bytes));
    if (message.senderKeyDistributionMessage?.groupId)
      await this.#repository.processSenderKeyDistributionMessage({ authorJid: from, item: message.senderKeyDistributionMessage });
    return message;
  }
  async decryptGroup(from: string, group: string, secret: Uint8Array): Promise<proto.Message> {
    const bytes = await this.#repository.decryptGroupMessage({ group, authorJid: from, msg: Buffer.from(secret) });
    return proto.Message.decode(unpadRandomMax16(bytes));
  }
  show(id: string, chat: string, message: proto.Message): void {
    const before = this.shown.find((shown) => shown.id === id && shown.chat === chat);
    if (before) before.copies++;
    else this.shown.push({ id, chat, message, copies: 1 });
  }
}
const padded = (message: proto.IMessage): Uint8Array =>
  writeRandomPadMax16(proto.Message.encode(proto.Message.fromObject(message)).finish());
