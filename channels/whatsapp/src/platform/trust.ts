/**
 * Makes signature checks effective. As published, Baileys accepts any certificate, account signature and key bundle, because libsignal
 * returns `false` where its callers expect an error. Here an invalid signature is an error everywhere. Baileys also never compares the
 * server's key with the certificate's, so that anyone could replay WhatsApp's public certificates; here the server must own the key.
 */
import { Curve, proto, WA_CERT_DETAILS } from "@whiskeysockets/baileys";
import curve from "libsignal/src/curve.js";

const verify = curve.verifySignature;

/** Turns signature checks on. May be repeated. */
export function checkSignatures(): void {
  const strict: typeof verify = (key, message, signature) => {
    if (!verify(key, message, signature)) throw new Error("a signature does not hold");
    return true;
  };
  curve.verifySignature = strict;
  Curve.verify = (key, message, signature) => {
    try {
      return strict(key.length === 33 ? key : Buffer.concat([Buffer.from([5]), key]), message, signature);
    } catch {
      return false;
    }
  };
}
/** Throws when a valid signature fails or an invalid one passes. */
export function proveSignatures(): void {
  const [mine, other] = [Curve.generateKeyPair(), Curve.generateKeyPair()];
  const text = Buffer.from("signed");
  const signature = Curve.sign(mine.private, text);
  const forged = Buffer.from(signature);
  forged.writeUInt8(forged.readUInt8(7) ^ 1, 7);
  const holds =
    Curve.verify(mine.public, text, signature) &&
    !Curve.verify(other.public, text, signature) &&
    !Curve.verify(mine.public, text, forged) &&
    !Curve.verify(mine.public, Buffer.from("signeD"), signature);
  if (!holds) throw new Error("signatures are not checked: this build must not connect");
}

/** Status code of the connection's end, as Baileys' own errors have one. */
export const UNTRUSTED = 495;
class Untrusted extends Error {
  override readonly name = "Untrusted";
  readonly output = { statusCode: UNTRUSTED };
}
/** Clocks differ. */
const CLOCK_MS = 300_000;
const { Details } = proto.CertChain.NoiseCertificate;
const decodeChain = proto.CertChain.decode;
const sharedKey = Curve.sharedKey;
/** The public key of the last key agreement. In the handshake that is the server's static key when its certificates are read. */
let agreedWith: Uint8Array | undefined;

/** Checks the server's key and its certificates' dates when Baileys reads them; Baileys checks their signatures then. May be repeated. */
export function checkServerKey(now: () => number): void {
  Curve.sharedKey = (mine, theirs) => {
    agreedWith = theirs;
    return sharedKey(mine, theirs);
  };
  proto.CertChain.decode = (bytes, length) => {
    const chain = decodeChain.call(proto.CertChain, bytes, length);
    const serverKey = agreedWith;
    agreedWith = undefined;
    assertServer(chain, serverKey, now());
    return chain;
  };
}
/** Throws unless the chain is valid now and ends in the server's key. A missing date is no limit: the dates are signed, so an attacker cannot remove one. */
function assertServer({ intermediate, leaf }: proto.CertChain, serverKey: Uint8Array | undefined, now: number): void {
  // Baileys refuses an incomplete chain.
  if (!intermediate?.details || !leaf?.details) return;
  const [issuer, own] = [Details.decode(intermediate.details), Details.decode(leaf.details)];
  if (own.issuerSerial !== issuer.serial) throw new Untrusted("the server's certificate has another issuer");
  for (const { notBefore, notAfter } of [issuer, own]) {
    if (Number(notBefore) * 1000 > now + CLOCK_MS) throw new Untrusted("a certificate of the server is not valid yet");
    if (Number(notAfter) > 0 && Number(notAfter) * 1000 < now - CLOCK_MS) throw new Untrusted("a certificate of the server has expired");
  }
  if (serverKey?.length !== 32 || !Buffer.from(own.key ?? []).equals(serverKey))
    throw new Untrusted("the server does not own the key of its certificate");
}

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);
export const isLoopback = (url: string): boolean => URL.canParse(url) && LOOPBACK.has(new URL(url).hostname);

const pinned = WA_CERT_DETAILS.PUBLIC_KEY;
/** Pins WhatsApp's own root key. Another root is accepted only for a server on this machine (tests). */
export function pinNoiseRoot(socketUrl: string, rootHex: string | undefined): void {
  const other = rootHex !== undefined && /^[0-9a-f]{64}$/i.test(rootHex) && isLoopback(socketUrl);
  WA_CERT_DETAILS.PUBLIC_KEY = other ? Buffer.from(rootHex, "hex") : pinned;
}
