import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isSealed, open, readSealingKeys, SEAL_NONCE_BYTES, seal, sealedBy, type SealingKeys } from "../runtime/sealing.ts";

const keysOf = (...words: readonly string[]): SealingKeys => {
  const read = readSealingKeys(words.join(" "));
  assert.ok(read.ok);
  return read.keys;
};
const OLD = "0f".repeat(32);
const NEW = "a1".repeat(32);
const keys = keysOf(NEW, OLD);
const nonce = fc.uint8Array({ minLength: SEAL_NONCE_BYTES, maxLength: SEAL_NONCE_BYTES }).filter((bytes) => bytes.some((byte) => byte > 0));
const text = fc.oneof(fc.string({ unit: "grapheme" }), fc.constant("\ufeffbyte order mark"));
const place = fc.string({ maxLength: 40, unit: "grapheme" });

describe("[A7] a sealed secret", () => {
  test("opens at its place, to what it was, and does not show it", () => {
    fc.assert(
      fc.property(place, text, nonce, (at, secret, fresh) => {
        const sealed = seal(keys, at, secret, fresh);
        assert.ok(isSealed(sealed));
        assert.deepEqual(open(keys, at, sealed), { ok: true, text: secret });
        if (secret.length > 8) assert.ok(!sealed.includes(secret));
      }),
      { numRuns: 2000 },
    );
  });

  test("with one flipped bit is refused, wherever the bit is", () => {
    const sealed = seal(keys, "apiKeys.openai", "sk-canary-0123456789", new Uint8Array(SEAL_NONCE_BYTES).fill(7));
    let refused = 0;
    for (let at = 0; at < sealed.length; at++) {
      for (let bit = 0; bit < 7; bit++) {
        const flipped = sealed.slice(0, at) + String.fromCharCode(sealed.charCodeAt(at) ^ (1 << bit)) + sealed.slice(at + 1);
        assert.ok(!open(keys, "apiKeys.openai", flipped).ok, flipped);
        refused++;
      }
    }
    assert.equal(refused, sealed.length * 7);
  });

  test("is refused at another place", () => {
    fc.assert(
      fc.property(place, place, nonce, (at, elsewhere, fresh) => {
        fc.pre(at !== elsewhere);
        assert.deepEqual(open(keys, elsewhere, seal(keys, at, "secret", fresh)), { ok: false, problem: "damaged" });
      }),
      { numRuns: 1000 },
    );
  });

  test("of an earlier key opens while that key is among the keys, and new ones are sealed with the first", () => {
    const fresh = new Uint8Array(SEAL_NONCE_BYTES).fill(1);
    const old = seal(keysOf(OLD), "a", "secret", fresh);
    assert.deepEqual(open(keys, "a", old), { ok: true, text: "secret" });
    assert.notEqual(sealedBy(old), sealedBy(seal(keys, "a", "secret", fresh)));
    assert.deepEqual(open(keysOf(NEW), "a", old), { ok: false, problem: "no_key" });
    assert.deepEqual(open(undefined, "a", old), { ok: false, problem: "no_key" });
  });

  test("is not mistaken for a plain one", () => {
    for (const plain of ["", "sk-1", "gsv-sealed:1:", "gsv-sealed:2:0123456789abcdef:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 5])
      assert.ok(!isSealed(plain));
  });

  test("needs new random bytes", () => {
    for (const bad of [new Uint8Array(SEAL_NONCE_BYTES), new Uint8Array(11).fill(1)]) assert.throws(() => seal(keys, "a", "b", bad));
  });
});

test("[A7] keys are 64 hex digits each; anything else is no key", () => {
  for (const none of [undefined, "", "  \n"]) assert.deepEqual(readSealingKeys(none), { ok: false, problem: "missing" });
  for (const bad of ["x", `${NEW}0`, `${NEW} x`, Array(9).fill(NEW).join(" ")])
    assert.deepEqual(readSealingKeys(bad), { ok: false, problem: "invalid" });
  assert.equal(keysOf(NEW.toUpperCase()).current.id, keysOf(NEW).current.id);
});
