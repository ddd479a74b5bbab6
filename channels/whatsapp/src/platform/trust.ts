/**
 * Makes signature checks effective. As published, Baileys accepts any certificate, account signature and key bundle, because libsignal
 * returns `false` where its callers expect an error. Here an invalid signature is an error everywhere.
 */
import { Curve, WA_CERT_DETAILS } from "@whiskeysockets/baileys";
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

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);
export const isLoopback = (url: string): boolean => URL.canParse(url) && LOOPBACK.has(new URL(url).hostname);

const pinned = WA_CERT_DETAILS.PUBLIC_KEY;
/** Pins WhatsApp's own root key. Another root is accepted only for a server on this machine (tests). */
export function pinNoiseRoot(socketUrl: string, rootHex: string | undefined): void {
  const other = rootHex !== undefined && /^[0-9a-f]{64}$/i.test(rootHex) && isLoopback(socketUrl);
  WA_CERT_DETAILS.PUBLIC_KEY = other ? Buffer.from(rootHex, "hex") : pinned;
}
