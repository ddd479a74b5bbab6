/** A self-signed certificate for 127.0.0.1, generated each time, so that the repository has no key. DER by hand (X.680, RFC 5280). */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

const tlv = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts);
  const length =
    body.length < 128
      ? Buffer.from([body.length])
      : body.length < 256
        ? Buffer.from([0x81, body.length])
        : Buffer.from([0x82, body.length >> 8, body.length & 255]);
  return Buffer.concat([Buffer.from([tag]), length, body]);
};
const sequence = (...parts: readonly Uint8Array[]): Buffer => tlv(0x30, ...parts);
const oid = (hex: string): Buffer => tlv(0x06, Buffer.from(hex, "hex"));
const integer = (bytes: Uint8Array): Buffer => tlv(0x02, bytes);
const utcTime = (time: Date): Buffer => tlv(0x17, Buffer.from(time.toISOString().replace(/^\d\d|[-:T]|\.\d+/g, "")));
const bits = (bytes: Uint8Array): Buffer => tlv(0x03, Buffer.from([0]), bytes);
const ECDSA_SHA256 = sequence(oid("2a8648ce3d040302"));

export function selfSigned(now = Date.now()): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = sequence(tlv(0x31, sequence(oid("550403"), tlv(0x0c, Buffer.from("fake whatsapp")))));
  const day = 86_400_000;
  const alternative = sequence(tlv(0x87, Buffer.from([127, 0, 0, 1])), tlv(0x82, Buffer.from("localhost")));
  const authority = sequence(tlv(0x01, Buffer.from([0xff])));
  const extensions = sequence(
    sequence(oid("551d13"), tlv(0x01, Buffer.from([0xff])), tlv(0x04, authority)),
    sequence(oid("551d11"), tlv(0x04, alternative)),
  );
  const body = sequence(
    tlv(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_SHA256,
    name,
    sequence(utcTime(new Date(now - day)), utcTime(new Date(now + 365 * day))),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, extensions),
  );
  const certificate = sequence(body, ECDSA_SHA256, bits(sign("sha256", body, privateKey)));
  const base64 = certificate.toString("base64").replace(/.{64}/g, "$&\n");
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.trimEnd()}\n-----END CERTIFICATE-----\n`,
  };
}
