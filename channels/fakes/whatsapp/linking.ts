/**
 * Links a device to the fake account as the owner's phone does: by scanning a QR code or typing a pairing code. Checks what a phone
 * checks: the code, the device's identity and its final signature.
 */
import { createHmac, randomBytes } from "node:crypto";
import {
  aesDecryptCTR,
  aesDecryptGCM,
  aesEncryptCTR,
  type BinaryNode,
  Curve,
  derivePairingCodeKey,
  getBinaryNodeChild,
  hkdf,
  proto,
} from "@whiskeysockets/baileys";
import curve from "libsignal/src/curve.js";
import type { Bot, Party } from "./party.ts";
import type { Connection } from "./types.ts";

const SERVER = "s.whatsapp.net";
const bytesOf = (node: BinaryNode | undefined, name: string): Buffer =>
  Buffer.from((getBinaryNodeChild(node, name)?.content as Uint8Array | undefined) ?? []);

interface ByCode {
  readonly connection: Connection;
  readonly wrapped: Buffer;
  readonly ref: Buffer;
  finish: { readonly own: { readonly private: Uint8Array }; readonly companion: Uint8Array } | undefined;
}

/** What linking needs of the server. */
export interface LinkingHost {
  readonly account: { readonly pn: string; readonly lid: string; readonly device: number };
  readonly phone: Party;
  readonly peers: ReadonlyMap<string, Party>;
  bot: Bot | undefined;
  note(kind: string, fields?: Readonly<Record<string, unknown>>): void;
  send(connection: Connection, node: BinaryNode): void;
}
export class Linking {
  readonly #server: LinkingHost;
  #connection: Connection | undefined;
  #refs: readonly string[] = [];
  #byCode: ByCode | undefined;

  constructor(server: LinkingHost) {
    this.#server = server;
  }
  begin(connection: Connection, registration: proto.ClientPayload.IDevicePairingRegistrationData): void {
    connection.registration = registration;
    this.#connection = connection;
    this.#refs = Array.from({ length: 6 }, () => `2@${randomBytes(24).toString("base64")}`);
    this.#server.note("registering");
    this.#server.send(connection, {
      tag: "iq",
      attrs: { from: SERVER, type: "set", id: "pair1", xmlns: "md" },
      content: [
        { tag: "pair-device", attrs: {}, content: this.#refs.map((ref) => ({ tag: "ref", attrs: {}, content: Buffer.from(ref) })) },
      ],
    });
  }
  /** Scans the code. */
  scan(qr: string): void {
    const [ref = "", , identity = "", secret = ""] = qr.replace(/^.*#/, "").split(",");
    const connection = this.#connection;
    if (!connection || !this.#refs.includes(ref)) throw new Error("this code is not valid or has expired");
    if (!Buffer.from(identity, "base64").equals(Buffer.from(connection.registration?.eIdent ?? [])))
      throw new Error("the code belongs to another device");
    this.#confirm(connection, Buffer.from(secret, "base64"));
  }
  /** The device asks for a code, which the owner types into the phone. */
  onCode(connection: Connection, node: BinaryNode): void {
    if (node.attrs["stage"] === "companion_hello") {
      const wrapped = bytesOf(node, "link_code_pairing_wrapped_companion_ephemeral_pub");
      this.#byCode = { connection, wrapped, ref: randomBytes(16), finish: undefined };
      this.#server.note("code-asked", { phone: node.attrs["jid"] });
      return;
    }
    const wish = this.#byCode;
    if (node.attrs["stage"] !== "companion_finish" || !wish?.finish) return;
    const { own, companion } = wish.finish;
    const bundle = bytesOf(node, "link_code_pairing_wrapped_key_bundle");
    const shared = Curve.sharedKey(own.private, companion);
    const key = hkdf(Buffer.from(shared), 32, { salt: bundle.subarray(0, 32), info: "link_code_pairing_key_bundle_encryption_key" });
    const opened = aesDecryptGCM(bundle.subarray(44), Buffer.from(key), bundle.subarray(32, 44), Buffer.alloc(0));
    const [identity, mine, random] = [opened.subarray(0, 32), opened.subarray(32, 64), opened.subarray(64)];
    const account = this.#server.phone.creds.signedIdentityKey;
    if (!mine.equals(Buffer.from(account.public)) || !identity.equals(bytesOf(node, "companion_identity_public")))
      throw new Error("another device finished the linking");
    const both = Buffer.concat([shared, Curve.sharedKey(account.private, identity), random]);
    this.#confirm(connection, Buffer.from(hkdf(both, 32, { info: "adv_secret" })));
  }
  async type(code: string): Promise<void> {
    const wish = this.#byCode;
    if (!wish) throw new Error("no device asked for a code");
    const plain = code.replace("-", "");
    const [salt, iv, secret] = [wish.wrapped.subarray(0, 32), wish.wrapped.subarray(32, 48), wish.wrapped.subarray(48, 80)];
    const companion = aesDecryptCTR(secret, await derivePairingCodeKey(plain, salt), iv);
    const own = Curve.generateKeyPair();
    wish.finish = { own, companion };
    const [mySalt, myIv] = [randomBytes(32), randomBytes(16)];
    const wrapped = Buffer.concat([mySalt, myIv, aesEncryptCTR(Buffer.from(own.public), await derivePairingCodeKey(plain, mySalt), myIv)]);
    this.#server.send(wish.connection, {
      tag: "notification",
      attrs: { from: SERVER, type: "link_code_companion_reg", id: "code1", t: "1" },
      content: [
        {
          tag: "link_code_companion_reg",
          attrs: { stage: "primary_hello" },
          content: [
            { tag: "link_code_pairing_ref", attrs: {}, content: wish.ref },
            { tag: "primary_identity_pub", attrs: {}, content: Buffer.from(this.#server.phone.creds.signedIdentityKey.public) },
            { tag: "link_code_pairing_wrapped_primary_ephemeral_pub", attrs: {}, content: wrapped },
          ],
        },
      ],
    });
  }
  #confirm(connection: Connection, advSecret: Uint8Array): void {
    const { registration } = connection;
    const { account, phone } = this.#server;
    const identity = Buffer.from(registration?.eIdent ?? []);
    const details = proto.ADVDeviceIdentity.encode({ rawId: 1, timestamp: Math.floor(Date.now() / 1000), keyIndex: 1 }).finish();
    const key = phone.creds.signedIdentityKey;
    const accountSignature = Curve.sign(key.private, Buffer.concat([Buffer.from([6, 0]), details, identity]));
    const signed = proto.ADVSignedDeviceIdentity.encode({ details, accountSignatureKey: key.public, accountSignature }).finish();
    const hmac = createHmac("sha256", advSecret).update(signed).digest();
    for (const party of [phone, ...this.#server.peers.values()]) party.forgetBot();
    this.#server.bot = {
      identity,
      registrationId: Buffer.from(registration?.eRegid ?? []).readUInt32BE(0),
      signedPreKey: {
        keyId: Buffer.from(registration?.eSkeyId ?? []).readUIntBE(0, 3),
        publicKey: Buffer.from(registration?.eSkeyVal ?? []),
        signature: Buffer.from(registration?.eSkeySig ?? []),
      },
      preKeys: [],
    };
    const jid = `${account.pn}:${account.device}@${SERVER}`;
    this.#server.send(connection, {
      tag: "iq",
      attrs: { from: SERVER, type: "set", id: "pair2", t: String(Math.floor(Date.now() / 1000)) },
      content: [
        {
          tag: "pair-success",
          attrs: {},
          content: [
            { tag: "device-identity", attrs: {}, content: proto.ADVSignedDeviceIdentityHMAC.encode({ details: signed, hmac }).finish() },
            { tag: "device", attrs: { jid, lid: `${account.lid}:${account.device}@lid` } },
            { tag: "platform", attrs: { name: "android" } },
          ],
        },
      ],
    });
  }
  /** The device signed, too: WhatsApp accepts it over a new connection. */
  onResult(connection: Connection, node: BinaryNode): void {
    const identity = getBinaryNodeChild(getBinaryNodeChild(node, "pair-device-sign"), "device-identity");
    const { bot, phone } = this.#server;
    if (node.attrs["id"] !== "pair2" || !identity || !bot) return;
    const { details, deviceSignature } = proto.ADVSignedDeviceIdentity.decode(identity.content as Uint8Array);
    const signed = Buffer.concat([Buffer.from([6, 1]), details ?? Buffer.alloc(0), bot.identity, phone.creds.signedIdentityKey.public]);
    const signedBy = Buffer.concat([Buffer.from([5]), bot.identity]);
    this.#server.note("linked", { deviceSignature: curve.verifySignature(signedBy, signed, Buffer.from(deviceSignature ?? [])) });
    this.#server.send(connection, { tag: "stream:error", attrs: { code: "515" } });
    setTimeout(() => connection.ws.close(), 20);
  }
}
