import { ERRORS } from "../../../../protocol/gen/errors.ts";
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { attachment, isMediaKey } from "./media.ts";
import { problem } from "./problem.ts";
import { originAllowed } from "../../kernel/admission.ts";
import { addressOf, hostAllowed } from "./hosts.ts";

describe("[S2][H7] origins", () => {
  test("are compared whole", () => {
    const allowed = ["https://app.example", "http://localhost:3000"];
    for (const origin of ["https://app.example", "https://app.example:443", "http://localhost:3000"])
      assert.ok(originAllowed(origin, allowed), origin);
    for (const origin of [
      "http://app.example",
      "https://app.example:8443",
      "https://evil-app.example",
      "https://app.example.evil",
      "https://evil.app.example",
      "null",
      "",
      "https://",
      "file://",
      "app.example",
    ])
      assert.ok(!originAllowed(origin, allowed), origin);
    assert.ok(originAllowed(null, []), "programs send none");
    assert.ok(!originAllowed("null", ["null"]));
  });
});

describe("[F77] [TH9] hosts", () => {
  test("[F21] a Host header that makes no address gives no address, instead of an exception", () => {
    for (const url of ["http://a b/health", "http://[::1/health", "http://%zz%/", "http://:99999/", "/health", ""])
      assert.equal(addressOf({ url }), undefined, url);
    assert.equal(addressOf({ url: "http://127.0.0.1:8787/health" })?.pathname, "/health");
  });
  test("loopback names and allowed names pass, names that only look similar do not", () => {
    for (const host of [
      "localhost",
      "LOCALHOST:1",
      "localhost.",
      "a.localhost",
      "127.0.0.1:8787",
      "127.255.0.9",
      "[::1]",
      "[::1]:80",
      "box.lan",
      "box.lan:8787",
    ])
      assert.ok(hostAllowed(host, ["box.lan"]), host);
    for (const host of [
      null,
      "",
      "localhost.evil",
      "evillocalhost",
      "evillocalhost:8787",
      "evil.localhost.com",
      "127.0.0.1.evil",
      "127.0.0",
      "0.0.0.0",
      "192.168.1.1",
      "[::2]",
      "[::ffff:127.0.0.1]",
      "box.lan.evil",
      "localhost@evil",
      "localhost/evil",
      "a b",
    ])
      assert.ok(!hostAllowed(host, ["box.lan"]), String(host));
    fc.assert(
      fc.property(fc.string(), (host) => void hostAllowed(host, [])),
      { numRuns: 5000 },
    );
  });
});

describe("[X18] media", () => {
  test("keys", () => {
    for (const key of ["agent:main:main/0b5c.png", "agent:a:x:dm:1%3A2/uuid-1.bin"]) assert.ok(isMediaKey(key), key);
    for (const key of ["", "x", "a/b", "../a/b.png", "a/../b.png", "./a.png", "/a.png", "a/b/c.png", "a/b.PNG", "a\0/b.png", "a/.png"])
      assert.ok(!isMediaKey(key), key);
  });
  test("a file name never breaks out of its header", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        const header = attachment(name);
        assert.match(header, /^attachment; filename="[A-Za-z0-9._ -]+"; filename\*=UTF-8''[A-Za-z0-9%._~!-]+$/);
      }),
      { numRuns: 20_000 },
    );
    assert.equal(attachment("../../etc/passwd"), `attachment; filename="passwd"; filename*=UTF-8''passwd`);
    assert.equal(attachment("\u202egpj.exe"), `attachment; filename="gpj.exe"; filename*=UTF-8''gpj.exe`);
  });
});

test("HTTP problems carry the code and the hint of the error table", () => {
  assert.deepEqual(problem("auth.required"), {
    type: "about:blank",
    title: problem("auth.required").title,
    status: 401,
    code: 401,
    reason: "auth.required",
    hint: "Send a token in the header `Authorization: Bearer TOKEN`. Make one: `gsv token create --scope client`.",
  });
  assert.equal(problem("auth.required", "No.", "Ask the owner.").hint, "Ask the owner.");
  for (const reason of ["protocol.too_deep", "protocol.too_large", "protocol.unknown_method", "protocol.unsupported"] as const)
    assert.doesNotMatch(problem(reason).title, /frame|gateway/, reason);
  assert.match(problem("auth.required", undefined, ERRORS["auth.required"].hint).hint ?? "", /Authorization/, "not the command line's own");
  assert.deepEqual([problem("limit.sockets", "x").retryable, problem("limit.sockets", "x").detail], [true, "x"]);
});
