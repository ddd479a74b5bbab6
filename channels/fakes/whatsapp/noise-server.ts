/** The server's side of WhatsApp's handshake (Noise XX, 25519, AES-GCM, SHA-256) and its frames. One instance per connection. */
import {
  aesDecryptGCM,
  aesEncryptGCM,
  Curve,
  hkdf,
  type KeyPair,
  NOISE_MODE,
  NOISE_WA_HEADER,
  proto,
  sha256,
} from "@whiskeysockets/baileys";

const EMPTY = Buffer.alloc(0);

/** A generated root and a chain that ends in the server's key. */
export interface ServerIdentity {
  readonly root: KeyPair;
  readonly own: KeyPair;
  readonly chain: Uint8Array;
}
/** Seconds from now. */
export interface Validity {
  readonly from?: number;
  readonly until?: number;
}
export function serverIdentity({ from = -86_400, until = 86_400 * 365 }: Validity = {}): ServerIdentity {
  const [root, own, middle] = [Curve.generateKeyPair(), Curve.generateKeyPair(), Curve.generateKeyPair()];
  const seconds = Math.floor(Date.now() / 1000);
  const { Details } = proto.CertChain.NoiseCertificate;
  const valid = { notBefore: seconds + from, notAfter: seconds + until };
  const intermediate = Details.encode({ serial: 1, issuerSerial: 0, key: middle.public, ...valid }).finish();
  const leaf = Details.encode({ serial: 2, issuerSerial: 1, key: own.public, ...valid }).finish();
  const chain = proto.CertChain.encode({
    intermediate: { details: intermediate, signature: Curve.sign(root.private, intermediate) },
    leaf: { details: leaf, signature: Curve.sign(middle.private, leaf) },
  }).finish();
  return { root, own, chain };
}

/** An attacker who recorded the chain of another server and has only another key. */
export const impostorOf = ({ root, chain }: ServerIdentity): ServerIdentity => ({ root, chain, own: Curve.generateKeyPair() });

interface Transport {
  readonly readKey: Uint8Array;
  readonly writeKey: Uint8Array;
  reads: number;
  writes: number;
}
function iv(counter: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt32BE(counter, 8);
  return bytes;
}

export class NoiseServer {
  readonly #identity: ServerIdentity;
  readonly #ephemeral = Curve.generateKeyPair();
  #hash: Uint8Array;
  #salt: Uint8Array;
  #key: Uint8Array;
  #counter = 0;
  #buffer = EMPTY;
  #introduced = false;
  #transport: Transport | undefined;

  constructor(identity: ServerIdentity) {
    this.#identity = identity;
    const mode = Buffer.from(NOISE_MODE);
    this.#hash = mode.length === 32 ? mode : sha256(mode);
    this.#salt = this.#hash;
    this.#key = this.#hash;
    this.#mixHash(NOISE_WA_HEADER);
  }
  #mixHash(data: Uint8Array): void {
    this.#hash = sha256(Buffer.concat([this.#hash, data]));
  }
  #mixKey(data: Uint8Array): void {
    const out = Buffer.from(hkdf(Buffer.from(data), 64, { salt: Buffer.from(this.#salt), info: "" }));
    this.#salt = out.subarray(0, 32);
    this.#key = out.subarray(32);
    this.#counter = 0;
  }
  #encrypt(plain: Uint8Array): Uint8Array {
    const secret = aesEncryptGCM(plain, this.#key, iv(this.#counter++), this.#hash);
    this.#mixHash(secret);
    return secret;
  }
  #decrypt(secret: Uint8Array): Uint8Array {
    const plain = aesDecryptGCM(secret, this.#key, iv(this.#counter++), this.#hash);
    this.#mixHash(secret);
    return plain;
  }

  /** Splits received bytes into frames. */
  frames(data: Uint8Array): Uint8Array[] {
    this.#buffer = Buffer.concat([this.#buffer, data]);
    if (!this.#introduced) {
      if (this.#buffer.subarray(0, 2).toString() === "ED") {
        const length = ((this.#buffer[4] ?? 0) << 16) | this.#buffer.readUInt16BE(5);
        this.#buffer = this.#buffer.subarray(7 + length);
      }
      if (!this.#buffer.subarray(0, 4).equals(NOISE_WA_HEADER)) throw new Error("this is not a WhatsApp client");
      this.#buffer = this.#buffer.subarray(4);
      this.#introduced = true;
    }
    const out: Uint8Array[] = [];
    for (;;) {
      if (this.#buffer.length < 3) return out;
      const size = this.#buffer.readUIntBE(0, 3);
      if (this.#buffer.length < size + 3) return out;
      out.push(this.#buffer.subarray(3, 3 + size));
      this.#buffer = this.#buffer.subarray(3 + size);
    }
  }
  #frame(data: Uint8Array): Buffer {
    const frame = Buffer.alloc(3 + data.length);
    frame.writeUIntBE(data.length, 0, 3);
    frame.set(data, 3);
    return frame;
  }

  serverHello(frame: Uint8Array): Buffer {
    const ephemeral = Buffer.from(proto.HandshakeMessage.decode(frame).clientHello?.ephemeral ?? EMPTY);
    this.#mixHash(ephemeral);
    this.#mixHash(this.#ephemeral.public);
    this.#mixKey(Curve.sharedKey(this.#ephemeral.private, ephemeral));
    const secretStatic = this.#encrypt(this.#identity.own.public);
    this.#mixKey(Curve.sharedKey(this.#identity.own.private, ephemeral));
    const payload = this.#encrypt(this.#identity.chain);
    const hello = { serverHello: { ephemeral: this.#ephemeral.public, static: secretStatic, payload } };
    return this.#frame(proto.HandshakeMessage.encode(hello).finish());
  }
  clientFinish(frame: Uint8Array): proto.ClientPayload {
    const finish = proto.HandshakeMessage.decode(frame).clientFinish;
    const clientStatic = this.#decrypt(Buffer.from(finish?.static ?? EMPTY));
    this.#mixKey(Curve.sharedKey(this.#ephemeral.private, clientStatic));
    const payload = proto.ClientPayload.decode(this.#decrypt(Buffer.from(finish?.payload ?? EMPTY)));
    const out = Buffer.from(hkdf(EMPTY, 64, { salt: Buffer.from(this.#salt), info: "" }));
    this.#transport = { readKey: out.subarray(0, 32), writeKey: out.subarray(32), reads: 0, writes: 0 };
    return payload;
  }
  seal(plain: Uint8Array): Buffer {
    if (!this.#transport) throw new Error("the handshake has not ended");
    return this.#frame(aesEncryptGCM(plain, this.#transport.writeKey, iv(this.#transport.writes++), EMPTY));
  }
  unseal(frame: Uint8Array): Buffer {
    if (!this.#transport) throw new Error("the handshake has not ended");
    return aesDecryptGCM(frame, this.#transport.readKey, iv(this.#transport.reads++), EMPTY);
  }
}
