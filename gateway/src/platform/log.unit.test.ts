import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isSecretName } from "../../../protocol/runtime/secret-shapes.ts";
import { createLogger, redact, SecretValues } from "./log.ts";

const CANARY = "hunter2-hunter2-hunter2";
const secrets = new SecretValues();
secrets.set([CANARY, "abc"]);
const written = (fields: Readonly<Record<string, unknown>>): string => {
  let line = "";
  createLogger({ component: "test", clock: { now: () => 0 }, secrets, sink: (_level, text) => (line = text) }).info(
    "thing_happened",
    fields,
  );
  return line;
};

describe("[S17] the log", () => {
  test("writes one JSON object per line", () => {
    const line = written({ a: "x\ny", n: 1 });
    assert.ok(!line.includes("\n"));
    assert.deepEqual(JSON.parse(line), {
      ts: "1970-01-01T00:00:00.000Z",
      level: "info",
      event: "thing_happened",
      component: "test",
      a: "x\ny",
      n: 1,
    });
  });

  test("[A11] hides a registered secret in its usual spellings, wherever it stands", () => {
    const value = 'canary "of a key"/+1';
    const values = new SecretValues();
    values.set([value]);
    const bytes = Buffer.from(value);
    for (const spelled of [
      value,
      JSON.stringify(value),
      encodeURIComponent(value),
      bytes.toString("hex"),
      bytes.toString("hex").toUpperCase(),
    ])
      assert.ok(values.scrub(`a ${spelled} b`).includes("[redacted]"), spelled);
    for (const before of ["", "a", "ab", "abc"])
      for (const after of ["", "x", "xy"])
        for (const how of ["base64", "base64url"] as const) {
          const text = Buffer.concat([Buffer.from(before), bytes, Buffer.from(after)]).toString(how);
          const clean = values.scrub(text);
          assert.ok(clean.includes("[redacted]"), text);
          assert.ok(!Buffer.from(clean.replace("[redacted]", ""), how).includes("canary"), clean);
        }
    // Encodings of the encodings do not pile up, and the plain values stay known.
    assert.deepEqual(values.all(), [value]);
    assert.ok(values.spelled().length <= 12);
    for (const other of ["canary of a key", Buffer.from("canary birds").toString("base64"), "63616e617279"])
      assert.equal(values.scrub(other), other);
  });

  test("hides values with a secret's name", () => {
    for (const key of [
      "authorization",
      "Cookie",
      "Set-Cookie",
      "password",
      "client_secret",
      "token",
      "authToken",
      "api_key",
      "apiKeys",
      "X-API-Key",
      "bearer",
      "privateKey",
      "qr",
      "qrDataUrl",
      "session",
      "credentials",
    ]) {
      assert.ok(isSecretName(key), key);
      assert.ok(!written({ [key]: "plain text" }).includes("plain text"), key);
      assert.ok(!written({ deep: [{ [key]: { inner: "plain text" } }] }).includes("plain text"), key);
    }
  });

  test("shows values that only look like secrets", () => {
    for (const [key, value] of [
      ["tokenId", "abcd"],
      ["tokens", 12],
      ["session", "agent:main:main"],
      ["sessionKey", "agent:main:main"],
      ["secretary", "Ann"],
      ["token", 5],
    ] as const)
      assert.ok(written({ [key]: value }).includes(String(value)), key);
  });

  test("hides registered values and secret-shaped values anywhere in a text", () => {
    const gsv = `gsv_admin_abcdefgh_${"0".repeat(64)}`;
    for (const text of [
      CANARY,
      gsv,
      `sk-${"a1".repeat(12)}`,
      "Bearer abcdefghij",
      "ghp_abcdefghijklmnop1234",
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig",
    ]) {
      for (const fields of [{ a: `x ${text} y` }, { a: [text] }, { [text]: 1 }, { error: new Error(`failed with ${text}`) }])
        assert.ok(!written(fields).includes(text), text);
    }
    assert.ok(written({ a: "abc" }).includes("abc"), "a short value is an ordinary word");
  });

  test("[LG1] hides numbers that may be a PIN or a password, and bytes; counts are shown", () => {
    for (const fields of [{ password: 12_345_678 }, { pin: { token: 987_654_321n } }, { key: new TextEncoder().encode(CANARY) }]) {
      const line = written({ deep: [fields] });
      assert.ok(!/12345678|987654321|104/.test(line), line);
    }
    assert.match(written({ bytes: new Uint8Array([104, 117]) }), /"bytes":"\[2 bytes\]"/);
    assert.match(written({ token: 12, code: 404 }), /"token":12,"code":404/);
  });
  test("[LG1] never prints a secret under a secret's name, or a stored one, at any depth", () => {
    const names = ["authorization", "Cookie", "password", "client_secret", "authToken", "api_key", "apikey", "X-Api-Key", "session"];
    const planted = fc.string({ minLength: 8, maxLength: 20 }).map((text) => `planted${text.replace(/[^a-z]/g, "x")}`);
    const secret = fc.oneof(
      fc.tuple(fc.constantFrom(...names), planted).map(([name, value]) => ({ value, tree: { [name]: value } as unknown })),
      fc.tuple(fc.constantFrom(...names), planted).map(([name, value]) => ({ value, tree: { [name]: [{ inner: value }] } as unknown })),
      fc.constant({ value: CANARY, tree: { note: `a ${CANARY} b` } as unknown }),
      fc.constant({ value: CANARY, tree: { [CANARY]: 1 } as unknown }),
      fc.constant({ value: CANARY, tree: new Error(`no ${CANARY}`) as unknown }),
    );
    type Planted = { readonly value: string; readonly tree: unknown };
    const deeper = ({ value, tree }: Planted, path: readonly (string | number)[]): Planted => ({
      value,
      tree: path.reduce<unknown>((inner, step) => (typeof step === "number" ? [step, inner] : { [step]: inner, beside: 1 }), tree),
    });
    fc.assert(
      fc.property(secret, fc.array(fc.oneof(fc.constantFrom("a", "data", "list", "error"), fc.nat(9)), { maxLength: 9 }), (given, path) => {
        const { value, tree } = deeper(given, path);
        const line = written({ fields: tree });
        assert.ok(!line.includes(value), line);
        assert.equal(line.split("\n").length, 1);
      }),
      { numRuns: 3000 },
    );
  });

  test("bounds its output, and redacting twice changes nothing", () => {
    fc.assert(
      fc.property(fc.anything({ maxDepth: 10 }), fc.string({ maxLength: 10 }), (value, text) => {
        const once = redact({ value, text: `${text}${CANARY}` }, secrets);
        assert.ok(!JSON.stringify(once).includes(CANARY));
        assert.deepEqual(redact(once, secrets), once);
      }),
      { numRuns: 5000 },
    );
    assert.ok(written({ a: "x".repeat(100_000), b: Array.from({ length: 1000 }, () => "y") }).length < 4000);
  });
});
