/**
 * Signatures in minisign's format (https://jedisct1.github.io/minisign/): Ed25519 over the BLAKE2b hash of a file, and again over that
 * signature with the trusted comment. Reads secret keys without a password. Never writes or shows a secret key, except a new one.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign, verify } from "node:crypto";

const ALGORITHM = "Ed";
const PREHASHED = "ED";
const CHECKSUM = "B2";
const ID_BYTES = 8;
const SEED_BYTES = 32;
/** DER of an Ed25519 private key (RFC 8410), without its 32 bytes; and of a public key. */
const PRIVATE_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_HEAD = Buffer.from("302a300506032b6570032100", "hex");

export class KeyProblem extends Error {}

export interface SecretKey {
  readonly id: Buffer;
  readonly seed: Buffer;
}

export function newKey(): SecretKey {
  const { privateKey } = generateKeyPairSync("ed25519");
  const der = privateKey.export({ format: "der", type: "pkcs8" });
  return { id: randomBytes(ID_BYTES), seed: der.subarray(PRIVATE_HEAD.length) };
}

const privateKeyOf = ({ seed }: SecretKey): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PRIVATE_HEAD, seed]), format: "der", type: "pkcs8" });
const publicBytes = (key: SecretKey): Buffer =>
  createPublicKey(privateKeyOf(key)).export({ format: "der", type: "spki" }).subarray(PUBLIC_HEAD.length);

/** BLAKE2b with 32 bytes, which Node has under no name of its own: minisign's checksum of a secret key. Its key file needs none to be read. */
const NO_CHECKSUM = Buffer.alloc(32);

/** The text of a secret key's file, without a password. */
export function secretKeyText(key: SecretKey): string {
  const none = Buffer.alloc(32 + 8 + 8);
  const body = Buffer.concat([
    Buffer.from(ALGORITHM),
    Buffer.alloc(2),
    Buffer.from(CHECKSUM),
    none,
    key.id,
    key.seed,
    publicBytes(key),
    NO_CHECKSUM,
  ]);
  return `untrusted comment: minisign secret key of GSV's releases, for scripts/release\n${body.toString("base64")}\n`;
}

/** The second line of a public key's file. */
export const publicKey = (key: SecretKey): string => Buffer.concat([Buffer.from(ALGORITHM), key.id, publicBytes(key)]).toString("base64");

export function parseSecretKey(text: string): SecretKey {
  const line = text.split("\n").find((line) => line.trim() !== "" && !line.startsWith("untrusted comment:")) ?? "";
  const body = Buffer.from(line.trim(), "base64");
  const head = 2 + 2 + 2 + 32 + 8 + 8;
  if (body.length !== head + ID_BYTES + SEED_BYTES * 2 + 32 || body.toString("latin1", 0, 2) !== ALGORITHM)
    throw new KeyProblem("The secret key is not one of minisign. Make one: ./scripts/release --new-key FILE");
  if (body.readUInt16LE(2) !== 0)
    throw new KeyProblem("The secret key has a password, which a release can't be asked for. Make one without: minisign -G -W");
  const id = body.subarray(head, head + ID_BYTES);
  const seed = body.subarray(head + ID_BYTES, head + ID_BYTES + SEED_BYTES);
  const key = { id, seed };
  if (!publicBytes(key).equals(body.subarray(head + ID_BYTES + SEED_BYTES, head + ID_BYTES + SEED_BYTES * 2)))
    throw new KeyProblem("The secret key is damaged: its two halves do not fit together.");
  return key;
}

/** The text of a signature's file. The trusted comment is signed too. */
export function signature(key: SecretKey, content: Buffer, comment: string): string {
  const secret = privateKeyOf(key);
  const made = sign(null, createHash("blake2b512").update(content).digest(), secret);
  const whole = sign(null, Buffer.concat([made, Buffer.from(comment)]), secret);
  const line = Buffer.concat([Buffer.from(PREHASHED), key.id, made]).toString("base64");
  return `untrusted comment: signature of GSV's releases\n${line}\ntrusted comment: ${comment}\n${whole.toString("base64")}\n`;
}

/** Whether a signature's text is one of this public key over these bytes. */
export function isSigned(publicKeyLine: string, content: Buffer, text: string): boolean {
  const [, line = "", trusted = "", whole = ""] = text.split("\n");
  const key = Buffer.from(publicKeyLine, "base64");
  const made = Buffer.from(line, "base64");
  const comment = /^trusted comment: (.*)$/.exec(trusted)?.[1];
  if (key.length !== 2 + ID_BYTES + 32 || made.length !== 2 + ID_BYTES + 64 || comment === undefined) return false;
  if (!made.subarray(2, 2 + ID_BYTES).equals(key.subarray(2, 2 + ID_BYTES)) || made.toString("latin1", 0, 2) !== PREHASHED) return false;
  const known = createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, key.subarray(2 + ID_BYTES)]), format: "der", type: "spki" });
  const own = made.subarray(2 + ID_BYTES);
  const hash = createHash("blake2b512").update(content).digest();
  return verify(null, hash, known, own) && verify(null, Buffer.concat([own, Buffer.from(comment)]), known, Buffer.from(whole, "base64"));
}
