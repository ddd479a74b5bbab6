/** Addresses and headers of a collector. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { otlpProblem, tracesUrl } from "./endpoint.ts";

describe("[OT2] the address of a collector", () => {
  test("is https, or http on this machine, and gets the path of traces", () => {
    for (const [endpoint, url] of [
      ["https://otel.example.com", "https://otel.example.com/v1/traces"],
      ["https://10.0.0.5:4318/otlp/", "https://10.0.0.5:4318/otlp/v1/traces"],
      ["http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"],
      ["http://localhost:4318/", "http://localhost:4318/v1/traces"],
      ["http://[::1]:4318", "http://[::1]:4318/v1/traces"],
    ] as const) {
      assert.equal(otlpProblem({ endpoint }), undefined, endpoint);
      assert.equal(tracesUrl({ endpoint }), url);
    }
  });
  test("every other one is refused with what to do", () => {
    for (const [endpoint, why] of [
      ["http://otel.example.com", /only an address of this machine/],
      ["http://10.0.0.5:4318", /only an address of this machine/],
      ["http://127.0.0.1.example.com", /only an address of this machine/],
      ["https://me:secret@otel.example.com", /telemetry\.otlp\.headers/],
      ["https://otel.example.com?key=1", /telemetry\.otlp\.headers/],
      ["https://otel.example.com/v1/traces", /Leave it out/],
      ["https://", /not an address/],
      ["ftp://127.0.0.1", /only an address of this machine/],
    ] as const) {
      assert.match(otlpProblem({ endpoint }) ?? "", why, endpoint);
      assert.equal(tracesUrl({ endpoint }), undefined);
    }
    assert.equal(tracesUrl(undefined), undefined);
    assert.equal(tracesUrl({ content: true }), undefined);
  });
});

test("[OT3] a header that could change the request is refused, and its value is not repeated", () => {
  assert.equal(otlpProblem({ headers: { authorization: "Bearer abc", "x-scope": "1" } }), undefined);
  for (const [name, value] of [
    ["Content-Type", "text/plain"],
    ["host", "other"],
    ["x y", "secret-value"],
    ["x-a", "secret-value\r\nx-b: 1"],
    ["x-a", " "],
  ] as const) {
    const problem = otlpProblem({ headers: { [name]: value } }) ?? "";
    assert.match(problem, /^telemetry\.otlp\.headers\./, name);
    assert.doesNotMatch(problem, /secret-value/);
  }
});
