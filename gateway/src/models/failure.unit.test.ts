import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { configWith } from "../../test/models/support.ts";
import { classify, excerpt, parseRetryAfter, readProviderError, secretsOf } from "./failure.ts";
import { resolveTarget } from "./resolve.ts";

const resolved = resolveTarget({ provider: "openai", id: "gpt-4.1" }, configWith({ provider: "openai", id: "gpt-4.1" }), {
  apiKeys: { openai: "my-own-secret-key" },
  headers: { "x-h": "header-secret" },
});
assert.ok(resolved.ok);
const target = resolved.value;

describe("failure messages", () => {
  it("[R2] an address that does not answer: the advice names the setting that it comes from, or what to start", () => {
    const hints = (provider: string, more: Partial<Parameters<typeof configWith>[0]>, providers = {}): readonly string[] => {
      const config = { ...configWith({ provider, id: "m", ...more }), providers };
      const at = resolveTarget({ provider, id: "m" }, config, { apiKeys: { openai: "key" }, headers: {} });
      assert.ok(at.ok);
      const faults = [
        { kind: "unreachable", cause: "" },
        { kind: "not_a_stream", contentType: "text/html" },
        { kind: "redirect", status: 301 },
      ] as const;
      return faults.map((fault) => classify(at.value, fault).error.hint ?? "");
    };
    const baseUrl = "http://127.0.0.1:9/v1";
    for (const hint of hints("openai", {})) {
      assert.match(hint, /^Check the network/);
      assert.doesNotMatch(hint, /baseUrl/);
    }
    for (const hint of hints("openai", { baseUrl })) assert.match(hint, /`model\.baseUrl`/);
    for (const hint of hints("openai", {}, { openai: { baseUrl, wire: "openai-completions" } }))
      assert.match(hint, /`providers\.openai\.baseUrl`/);
    const [unreachable = "", other = ""] = hints("ollama", {});
    assert.match(unreachable, /^Start Ollama .*`gsv config set providers\.ollama '\{"baseUrl"/);
    assert.match(other, /Ollama/);
  });
  it("[P19] have at most 300 characters of the provider's text", () => {
    const words = (length: number): string =>
      "word "
        .repeat(100)
        .slice(0, length - 1)
        .concat("x");
    assert.equal(excerpt(words(300), []), words(300));
    assert.equal(excerpt(words(301), []), `${words(301).slice(0, 300)}...`);
  });
  it("[S5] hide secrets of four characters and more, and the long parts of a pair of keys", () => {
    assert.equal(excerpt("abc abcd", ["abcd", "abc"]).includes("abcd"), false);
    assert.match(excerpt("abc", ["abc"]), /^abc$/);
    const [short, long] = ["a".repeat(15), "b".repeat(16)];
    assert.deepEqual(secretsOf({ ...target, apiKey: `${short}:${long}`, headers: { x: "h" } }), [`${short}:${long}`, long, "h"]);
  });
  it("[S5] [A11] hide a secret that is encoded, and one that stands where the text is cut", () => {
    const secret = "canary-of-the-provider";
    for (const spelled of [btoa(secret), Buffer.from(secret).toString("hex"), `Basic ${btoa(`:${secret}`)}`])
      assert.match(excerpt(`rejected: ${spelled}.`, [secret]), /^rejected: .*\[redacted\]/);
    const cut = excerpt(`${" ".repeat(8180)}${secret}`, [secret]);
    assert.ok(!cut.includes("canary"), cut);
  });
  it("[S5] never contain a key, a header's value or a text that looks like a key", () => {
    const message = classify(target, {
      kind: "http",
      status: 400,
      body: JSON.stringify({ error: { message: "bad my-own-secret-key header-secret sk-proj-********abcd AIzaSyABCDEFGHIJKLMN" } }),
    }).error.message;
    for (const secret of ["my-own-secret-key", "header-secret", "abcd", "AIzaSy"]) assert.ok(!message.includes(secret), message);
  });
  it("[S17] contain no control characters or terminal escapes, and are short", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 2000 }), (text) => {
        const clean = excerpt(`\u001b[31m${text}\u202e`, []);
        assert.ok(clean.length <= 303);
        assert.doesNotMatch(clean, /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
      }),
    );
  });
  it("reads the common shapes of error bodies", () => {
    assert.equal(readProviderError('{"type":"error","error":{"type":"overloaded_error","message":"m"}}').type, "overloaded_error");
    assert.deepEqual(readProviderError('{"error":{"message":"m","code":502}}'), { type: "", message: "m", status: 502 });
    for (const [code, status] of [
      [399, undefined],
      [400, 400],
      [599, 599],
      [600, undefined],
    ])
      assert.equal(readProviderError(`{"error":{"message":"m","code":${code}}}`).status, status);
    assert.equal(readProviderError('[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]').message, "m");
    assert.equal(readProviderError('{"error":"model not found"}').message, "model not found");
    assert.equal(readProviderError("<html>x</html>").message, "");
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (body) => typeof readProviderError(body).message === "string"));
  });
  it("[P5] an error inside a stream is classified by its own type", () => {
    const inBand = (body: string) => {
      const { error, retryable } = classify(target, { kind: "in_band", body });
      return [error.reason, retryable];
    };
    assert.deepEqual(inBand('{"error":{"type":"overloaded_error"}}'), ["model.overloaded", true]);
    assert.deepEqual(inBand('{"error":{"code":429,"message":"slow down"}}'), ["model.rate_limited", true]);
    assert.deepEqual(inBand('{"error":{"type":"invalid_request_error","message":"no"}}'), ["model.rejected", false]);
    assert.deepEqual(inBand('{"error":{"type":"invalid_request_error","message":"prompt is too long: 5 tokens"}}'), [
      "model.context_overflow",
      false,
    ]);
    assert.deepEqual(inBand("what"), ["model.bad_answer", true]);
  });
  it("a rate limit that mentions tokens is not a context overflow", () => {
    assert.equal(
      classify(target, { kind: "http", status: 429, body: '{"error":{"message":"Rate limit: too many tokens"}}' }).error.reason,
      "model.rate_limited",
    );
  });
  it("[F48] a rate limit is called so, and an overloaded model too", () => {
    const of = (status: number) => classify(target, { kind: "http", status, body: "" }).error;
    assert.equal(of(429).reason, "model.rate_limited");
    assert.match(of(429).message, /rate limit \(HTTP 429\)/);
    assert.doesNotMatch(of(429).message, /overloaded/);
    for (const status of [503, 529]) assert.equal(of(status).reason, "model.overloaded");
  });
  it("[P5] retry-after: seconds, date, nonsense", () => {
    const at = (headers: Record<string, string>) => parseRetryAfter(new Headers(headers), 1_000_000);
    assert.deepEqual(
      [
        at({ "retry-after": "1.5" }),
        at({ "retry-after-ms": "250" }),
        at({ "retry-after": new Date(1_009_000).toUTCString() }),
        at({ "retry-after": new Date(1000).toUTCString() }),
        at({ "retry-after": "soon" }),
        at({}),
      ],
      [1500, 250, 9000, 0, undefined, undefined],
    );
  });
});

describe("[P5] the outcome of an HTTP status", () => {
  const outcome = (status: number, message = "") => {
    const { error, retryable } = classify(target, {
      kind: "http",
      status,
      body: message === "" ? "" : JSON.stringify({ error: { message } }),
    });
    return { reason: error.reason, retryable, message: error.message };
  };
  it("names the reason, and whether another try helps", () => {
    for (const [status, reason, retryable] of [
      [400, "model.rejected", false],
      [401, "model.auth", false],
      [402, "model.rejected", false],
      [403, "model.auth", false],
      [404, "model.rejected", false],
      [408, "model.timeout", true],
      [409, "model.overloaded", true],
      [413, "model.rejected", false],
      [418, "model.rejected", false],
      [425, "model.overloaded", true],
      [429, "model.rate_limited", true],
      [500, "model.bad_answer", true],
      [502, "model.unreachable", true],
      [503, "model.overloaded", true],
      [504, "model.timeout", true],
      [529, "model.overloaded", true],
    ] as const)
      assert.deepEqual(outcome(status), { ...outcome(status), reason, retryable }, String(status));
  });
  it("a context that is too long is told by its words, where the status is no other thing", () => {
    const long = "prompt is too long: 213462 tokens > 200000 maximum";
    const isOverflow = (status: number): boolean => outcome(status, long).reason === "model.context_overflow";
    for (const status of [400, 404, 413, 422]) assert.ok(isOverflow(status), String(status));
    for (const status of [399, 401, 402, 403, 408, 429, 500]) assert.ok(!isOverflow(status), String(status));
  });
  it("Google answers 400 to a wrong key", () => {
    const wrong = outcome(400, "API key not valid. Please pass a valid API key.");
    assert.deepEqual([wrong.reason, / It says:/.test(wrong.message)], ["model.auth", false]);
    assert.equal(outcome(500, "API key not valid.").reason, "model.bad_answer");
  });
  it("quotes what the provider says, where it says something that helps", () => {
    assert.match(outcome(429, "slow down").message, / It says: "slow down"\.$/);
    assert.doesNotMatch(outcome(429).message, /It says/);
    assert.match(outcome(403, "no access").message, / It says: "no access"\.$/);
    assert.doesNotMatch(outcome(401, "no access").message, /It says/);
    assert.match(outcome(418).message, /\(HTTP 418\)\.$/);
    assert.match(outcome(418, "teapot").message, /\(HTTP 418\)\. It says: "teapot"\.$/);
  });
});
it("an answer of another kind is named by its type, if it has one", () => {
  const told = (contentType: string): string => classify(target, { kind: "not_a_stream", contentType }).error.message;
  assert.match(told("text/html"), / answered with text\/html where /);
  assert.match(told(""), / answered with something where /);
});
