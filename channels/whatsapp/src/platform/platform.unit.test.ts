import assert from "node:assert/strict";
import { test } from "node:test";
import { type BinaryNode, Curve, makeNoiseHandler, NOISE_WA_HEADER, proto, WA_CERT_DETAILS } from "@whiskeysockets/baileys";
import fc from "fast-check";
import * as original from "whatsapp-rust-bridge";
import * as ours from "./bridge.ts";
import { impostorOf, NoiseServer, type ServerIdentity, serverIdentity } from "../../../fakes/whatsapp/noise-server.ts";
import { takeUnencrypted } from "../link.ts";
import { guard, isOwnLine } from "./console-guard.ts";
import { silent } from "./pino.ts";
import { withLength } from "./polyfill.ts";
import { checkServerKey, checkSignatures, isLoopback, pinNoiseRoot, proveSignatures } from "./trust.ts";

const both = (salt: Uint8Array | undefined, info: string | undefined) => ({
  ...(salt === undefined ? {} : { salt }),
  ...(info === undefined ? {} : { info }),
});
const bytes = (max = 64) => fc.uint8Array({ minLength: 1, maxLength: max });

test("[S17] only our own log lines pass the console", () => {
  const lines: unknown[][] = [];
  const target = {
    log: (...args: unknown[]) => void lines.push(args),
    info: (...args: unknown[]) => void lines.push(args),
    error: (...args: unknown[]) => void lines.push(args),
  };
  guard(target);
  target.info("Closing session:", { privKey: "0123" });
  target.error("Session error: bad mac", new Error("a text"));
  target.log({ ts: "x", event: "e", component: "channel-whatsapp" });
  target.log('{"ts":"2026", broken');
  target.log('{"ts":"2026","event":"e","component":"libsignal"}');
  const own = '{"ts":"2026","event":"connection","component":"channel-whatsapp"}';
  target.log(own, "and more");
  target.log(own);
  assert.deepEqual(lines, [[own]]);
  assert.equal(isOwnLine([own]), true);
});

test("[S17] the bridge gives the same bytes as the original", () => {
  fc.assert(
    fc.property(
      bytes(),
      fc.integer({ min: 1, max: 200 }),
      fc.option(bytes(), { nil: undefined }),
      fc.option(fc.string({ maxLength: 20 }), { nil: undefined }),
      (key, length, salt, info) => {
        assert.deepEqual(
          new Uint8Array(ours.hkdf(key, length, both(salt, info))),
          new Uint8Array(original.hkdf(key, length, both(salt, info))),
        );
        assert.deepEqual(new Uint8Array(ours.md5(key)), new Uint8Array(original.md5(key)));
      },
    ),
    { numRuns: 100 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (key) => {
      const [left, right] = [ours.expandAppStateKeys(key), original.expandAppStateKeys(key)];
      for (const name of ["indexKey", "valueEncryptionKey", "valueMacKey", "snapshotMacKey", "patchMacKey"] as const)
        assert.deepEqual(new Uint8Array(left[name] ?? []), new Uint8Array(right[name]));
    }),
    { numRuns: 30 },
  );
  const element = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 128, maxLength: 128 }),
      fc.array(element, { maxLength: 4 }),
      fc.array(element, { maxLength: 4 }),
      (base, out, into) => {
        assert.deepEqual(
          new Uint8Array(new ours.LTHashAntiTampering().subtractThenAdd(base, out, into)),
          new Uint8Array(new original.LTHashAntiTampering().subtractThenAdd(base, out, into)),
        );
      },
    ),
    { numRuns: 50 },
  );
});

test("[S5] as published any signature passes; with the check only a valid one", () => {
  const [mine, other] = [Curve.generateKeyPair(), Curve.generateKeyPair()];
  const text = Buffer.from("text");
  const signature = Curve.sign(mine.private, text);
  const forged = Buffer.from(signature);
  forged.writeUInt8(forged.readUInt8(0) ^ 1, 0);
  assert.equal(Curve.verify(other.public, text, signature), true, "if this fails, Baileys checks by itself, and trust.ts can go");
  assert.throws(proveSignatures, /not checked/);
  checkSignatures();
  proveSignatures();
  assert.equal(Curve.verify(mine.public, text, signature), true);
  assert.equal(Curve.verify(other.public, text, signature), false);
  assert.equal(Curve.verify(mine.public, text, forged), false);
  assert.equal(Curve.verify(mine.public, text, Buffer.alloc(3)), false);
});

/** Baileys' side of the handshake with a server of this identity, whose root is pinned. */
function handshake(identity: ServerIdentity): void {
  const pinned = WA_CERT_DETAILS.PUBLIC_KEY;
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(identity.root.public);
  try {
    const keyPair = Curve.generateKeyPair();
    const client = makeNoiseHandler({ keyPair, NOISE_HEADER: NOISE_WA_HEADER, logger: silent });
    const server = new NoiseServer(identity);
    const hello = proto.HandshakeMessage.encode({ clientHello: { ephemeral: keyPair.public } }).finish();
    const [frame] = server.frames(client.encodeFrame(hello));
    assert(frame);
    const { serverHello } = proto.HandshakeMessage.decode(server.serverHello(frame).subarray(3));
    client.processHandshake({ serverHello } as proto.HandshakeMessage, Curve.generateKeyPair());
  } finally {
    WA_CERT_DETAILS.PUBLIC_KEY = pinned;
  }
}

test("[F91][S5] the server must own the key of its certificate, and the certificates must be valid now", () => {
  checkSignatures();
  checkServerKey(() => Date.now());
  handshake(serverIdentity());
  handshake(serverIdentity({ from: -60, until: 60 }));
  assert.throws(() => handshake(impostorOf(serverIdentity())), /does not own the key/);
  assert.throws(() => handshake(serverIdentity({ from: -86_400, until: -3_600 })), /has expired/);
  assert.throws(() => handshake(serverIdentity({ from: 3_600, until: 86_400 })), /not valid yet/);
  assert.throws(
    () => handshake({ ...serverIdentity(), root: Curve.generateKeyPair() }),
    /certificate signature invalid/,
    "Baileys still checks the root",
  );
});

test("[F91][S5] unencrypted messages are taken out of the stream, except those of newsletters", () => {
  const stanza = (from: string | undefined, ...tags: readonly string[]): BinaryNode => ({
    tag: "message",
    attrs: { id: "1", ...(from === undefined ? {} : { from }) },
    content: tags.map((tag) => ({ tag, attrs: {}, content: Buffer.from("x") })),
  });
  for (const from of ["15550002222@s.whatsapp.net", "900000002222@lid", "1203@g.us", "status@broadcast", undefined])
    for (const tags of [["plaintext"], ["enc", "plaintext"]]) {
      const frame = stanza(from, ...tags);
      const { attrs } = frame;
      assert.deepEqual(takeUnencrypted(frame), { tag: "message", attrs });
      assert.deepEqual(frame, { tag: "dropped", attrs: {} });
    }
  for (const frame of [stanza("1203@newsletter", "plaintext"), stanza("15550002222@s.whatsapp.net", "enc"), Buffer.from("frame")]) {
    const before = structuredClone(frame);
    assert.equal(takeUnencrypted(frame), undefined);
    assert.deepEqual(structuredClone(frame), before);
  }
});

test("[S5] another root is accepted only for a server on this machine", () => {
  const root = "ab".repeat(32);
  const own = Buffer.from(WA_CERT_DETAILS.PUBLIC_KEY).toString("hex");
  for (const [url, rootHex, expected] of [
    ["ws://127.0.0.1:1/ws/chat", root, root],
    ["wss://web.whatsapp.com/ws/chat", root, own],
    ["ws://127.0.0.1.evil.example/", root, own],
    ["ws://user@evil.example/127.0.0.1", root, own],
    ["ws://127.0.0.1:1/", "short", own],
    ["ws://127.0.0.1:1/", undefined, own],
    ["not a url", root, own],
  ] as const) {
    pinNoiseRoot(url, rootHex);
    assert.equal(Buffer.from(WA_CERT_DETAILS.PUBLIC_KEY).toString("hex"), expected, url);
  }
  assert.equal(isLoopback("ws://[::1]:5/"), true);
});

test("a text of any length is written without a length argument", () => {
  const strict = function (this: Uint8Array, text: string, offset?: number, length?: number): number {
    if (length === undefined || offset === undefined) throw new RangeError("ERR_OUT_OF_RANGE");
    return Buffer.from(this.buffer, this.byteOffset, this.length).write(text, offset, length, "utf8");
  };
  const target = Buffer.alloc(100);
  assert.throws(() => strict.call(target, "x".repeat(50), 10), RangeError);
  assert.equal(withLength(strict).call(target, "é".repeat(40), 10), 80);
  assert.equal(target.toString("utf8", 10, 90), "é".repeat(40));
});
