/** The forms of signatures, with the published test vectors of each. */
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { HookForm } from "../../../../protocol/gen/types.ts";
import { claimOf, deliveryId, hasBearer, keyOf, sign, signedDigest } from "./signature.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const headers = (given: Readonly<Record<string, string>>): ReadonlyMap<string, string> => new Map(Object.entries(given));
/** In parts, because programs that look for leaked secrets would find it. */
const PREFIX = "whsec_";

interface Case {
  readonly form: HookForm;
  readonly secret: string;
  readonly given: Readonly<Record<string, string>>;
  readonly body: string;
  readonly at: number;
}
const check = ({ form, secret, given, body, at }: Case): boolean => {
  const claim = claimOf(form, headers(given));
  const key = keyOf(form, secret);
  return claim !== undefined && key !== undefined && signedDigest(claim, key, bytes(body), at) !== undefined;
};
/** From the documentation of GitHub. */
const GITHUB: Case = {
  form: "github",
  secret: "It's a Secret to Everybody",
  given: {
    "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
  },
  body: "Hello, World!",
  at: 0,
};
/** From the specification of Standard Webhooks. */
const STANDARD: Case = {
  form: "standard",
  secret: `${PREFIX}MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw`,
  given: {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  },
  body: '{"test": 2432232314}',
  at: 1_614_265_330_000,
};
const stripeSecret = `${PREFIX}test_secret`;
const stripeDigest = (text: string): string => createHmac("sha256", stripeSecret).update(text).digest("hex");
/** By the documentation of Stripe, which has no vector with a secret: the key is the whole text of the secret. */
const STRIPE: Case = {
  form: "stripe",
  secret: stripeSecret,
  given: {
    "stripe-signature": `t=1492774577,v1=${stripeDigest('1492774577.{"id":"evt_1"}')},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39`,
  },
  body: '{"id":"evt_1"}',
  at: 1_492_774_577_000,
};

for (const known of [GITHUB, STANDARD, STRIPE])
  describe(`[HK2] a signature of the form ${known.form}`, () => {
    const name = Object.keys(known.given).find((header) => header.includes("signature")) ?? "";
    test("of the published vector fits", () => assert.ok(check(known)));
    test("does not fit another body, another secret, or with a digit changed", () => {
      assert.ok(!check({ ...known, body: `${known.body} ` }));
      assert.ok(!check({ ...known, secret: known.form === "standard" ? `${PREFIX}${"A".repeat(32)}` : `${known.secret}x` }));
      const value = known.given[name] ?? "";
      const digits = value.indexOf("=") + (known.form === "stripe" ? 15 : 5);
      const other = value.charAt(digits) === "a" ? "b" : "a";
      const changed = `${value.slice(0, digits)}${other}${value.slice(digits + 1)}`;
      assert.notEqual(changed, value);
      assert.ok(!check({ ...known, given: { ...known.given, [name]: changed } }));
    });
    test("that is missing, empty or of another algorithm is none", () => {
      for (const value of ["", "sha1=abc", "v1a,abc", "v0=abc", "t=,v1=", "sha256=", "v1,", "x".repeat(5000)])
        assert.ok(!check({ ...known, given: { ...known.given, [name]: value } }), value);
      assert.equal(claimOf(known.form, headers({})), undefined);
    });
    test("of this gateway's own sample fits", () => {
      const key = keyOf(known.form, known.secret) ?? new Uint8Array();
      const given = sign(known.form, key, "test_1", known.at, known.body);
      assert.ok(check({ ...known, given }));
    });
  });

describe("[HK3] a signed time", () => {
  for (const known of [STANDARD, STRIPE])
    test(`of the form ${known.form} may be ${LIMITS.hookToleranceMs / 60_000} minutes off`, () => {
      for (const [off, fits] of [
        [LIMITS.hookToleranceMs, true],
        [-LIMITS.hookToleranceMs, true],
        [LIMITS.hookToleranceMs + 1000, false],
        [-LIMITS.hookToleranceMs - 1000, false],
      ] as const)
        assert.equal(check({ ...known, at: known.at + off }), fits, String(off));
    });
  test("and a signed id cannot be changed", () => {
    assert.ok(!check({ ...STANDARD, given: { ...STANDARD.given, "webhook-id": "msg_other" } }));
    assert.ok(!check({ ...STANDARD, given: { ...STANDARD.given, "webhook-timestamp": "1614265331" } }));
  });
});

test("[HK2] while a secret is changed, one of several signatures may fit", () => {
  const fitting = STANDARD.given["webhook-signature"] ?? "";
  const other = `v1,${"A".repeat(43)}=`;
  assert.ok(check({ ...STANDARD, given: { ...STANDARD.given, "webhook-signature": `${other} v1a,x ${fitting}` } }));
  assert.ok(!check({ ...STANDARD, given: { ...STANDARD.given, "webhook-signature": `${other} ${other}` } }));
  const many = `${Array.from({ length: 8 }, () => other).join(" ")} ${fitting}`;
  assert.ok(!check({ ...STANDARD, given: { ...STANDARD.given, "webhook-signature": many } }), "the work has a bound");
});
test("[HK2] a bearer token is the whole secret", () => {
  const has = (authorization: string): boolean => hasBearer(headers({ authorization }), "gsvh_secret");
  assert.ok(has("Bearer gsvh_secret"));
  assert.ok(has("bearer gsvh_secret"));
  for (const wrong of ["gsvh_secret", "Bearer gsvh_secre", "Bearer gsvh_secretx", "Basic gsvh_secret", "Bearer ", ""])
    assert.ok(!has(wrong), wrong);
  assert.ok(!hasBearer(headers({}), ""));
});
test("[HK2] a secret of Standard Webhooks has 24 to 64 bytes", () => {
  for (const [length, fits] of [
    [23, false],
    [24, true],
    [64, true],
    [65, false],
  ] as const)
    assert.equal(keyOf("standard", `${PREFIX}${Buffer.alloc(length, 7).toString("base64")}`) !== undefined, fits, String(length));
  assert.equal(keyOf("standard", "a secret without the prefix, and long enough"), undefined);
});

test("[HK4] ids with different halves of surrogate pairs are different ids", () => {
  const ids = ["\ud801N", "\ud802N", "\ufffdN"].map((text) => deliveryId(text).id);
  assert.equal(new Set(ids).size, 3);
  assert.equal(deliveryId("evt_1").id, "evt_1");
  // As earlier versions have stored it.
  assert.equal(deliveryId("ü").id, `sha256:${createHash("sha256").update("ü").digest("hex")}`);
});
