/** The texts that explain an invalid value to a person. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explain, explainText, MAX_PROBLEMS } from "../runtime/explain.ts";

const connect = { minProtocol: 1, maxProtocol: 1, client: { id: "cli", version: "1", platform: "linux", mode: "client" } };

test("a value that fits has no problems", () => {
  assert.deepEqual(explain("ConnectParams", connect), []);
});

test("the path, the expectation and the kind that was found are named", () => {
  const value = {
    ...connect,
    client: { ...connect.client, mode: "boss", version: 3 },
    minProtocol: -1,
    tools: [{ name: "Bash", inputSchema: {} }],
  };
  assert.deepEqual(explain("ConnectParams", value), [
    { path: "minProtocol", message: "expected a whole number from 0 to 65535, got a smaller one" },
    { path: "client.version", message: "expected a string of at most 64 characters, got a whole number" },
    { path: "client.mode", message: 'expected one of "client", "node", "channel", got a string of 4 characters' },
    { path: "tools[0].description", message: "missing" },
  ]);
});

test("a union names its arms", () => {
  assert.equal(explainText("Frame", { id: "1" }), 'type: missing; expected one of "req", "res", "evt"');
  assert.equal(explainText("Frame", { type: "nope" }), 'type: expected one of "req", "res", "evt", got a string of 4 characters');
  assert.equal(explainText("Frame", 3), "expected an object, got a whole number");
});

test("null and absence have different explanations", () => {
  assert.equal(
    explainText("ConnectParams", { ...connect, auth: null }),
    "auth: expected an object, got null (leave the field out instead)",
  );
});

test("the bounds of a time are also given in units that people use", () => {
  assert.equal(
    explainText("TokensCreateParams", { kind: "client", expiresInMs: 1 }),
    "expiresInMs: expected a whole number of milliseconds from 1000 (1 s) to 315360000000 (3650 d), got a smaller one",
  );
  assert.match(explainText("ToolInvokeParams", { tool: "a__b", timeoutMs: "x" }), /from 0 to 86400000 \(1 d\), got a string/);
});

test("[S5] values are never repeated, at any place", () => {
  const secret = "hunter2-canary";
  const values = [
    { ...connect, auth: { token: { [secret]: secret } } },
    { ...connect, auth: secret },
    { ...connect, client: { ...connect.client, mode: secret } },
    { ...connect, minProtocol: secret },
  ];
  for (const value of values) {
    const text = explainText("ConnectParams", value);
    assert.notEqual(text, "");
    assert.ok(!text.includes(secret), text);
  }
});

test("[P19] at most five problems and short paths, for any input", () => {
  const many = { methods: Array.from({ length: 1000 }, () => 1), events: [] };
  assert.equal(explain("Features", many).length, MAX_PROBLEMS);
  const key = `k${"\u202e".repeat(500)}`;
  const [problem] = explain("NodeRuntime", { hostCapabilities: [], toolCapabilities: { [key]: 1 } });
  assert.equal(problem?.path, "toolCapabilities.<key of 501 characters>");
});

test("length is counted in characters, not in UTF-16 units", () => {
  const emoji = "\u{1F600}".repeat(64);
  assert.deepEqual(explain("ServerInfo", { version: emoji, connectionId: "c" }), []);
  assert.equal(explain("ServerInfo", { version: `${emoji}x`, connectionId: "c" }).length, 1);
});
