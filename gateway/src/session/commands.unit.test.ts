import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ERRORS } from "../../../protocol/gen/errors.ts";
import { asNodeId, asToolName } from "../../../protocol/gen/types.ts";
import { parseMessage, statusText } from "./commands.ts";

test("[WB8] /steer is a message with directives of its own, and needs a text", () => {
  const message = { kind: "message", directives: {}, status: false, steer: true };
  assert.deepEqual(parseMessage("/steer use tabs"), { ...message, text: "use tabs" });
  assert.deepEqual(parseMessage(" /STEER\n/stop it\nnow "), { ...message, text: "/stop it\nnow" });
  assert.deepEqual(parseMessage("/steer /t:high go"), { ...message, text: "go", directives: { thinkLevel: "high" } });
  assert.equal(parseMessage("/steer /t:nope go").kind, "bad-directive");
  for (const text of ["/steer", "/steer  ", "/steer /t:high"]) assert.equal(parseMessage(text).kind, "bad-command");
  for (const text of ["/steering", "please /steer it"])
    assert.deepEqual(parseMessage(text), { kind: "message", text, directives: {}, status: false });
});

describe("[R6] [F36] commands", () => {
  const command = (text: string): unknown => {
    const parsed = parseMessage(text);
    return parsed.kind === "command" ? parsed.command : parsed.kind;
  };
  for (const [text, expected] of [
    ["/stop", { name: "stop" }],
    ["  /STOP  ", { name: "stop" }],
    ["/stop now please", { name: "stop" }],
    ["/status", { name: "status" }],
    ["/help", { name: "help" }],
    ["/new", { name: "new" }],
    ["/reset", { name: "reset" }],
    ["/new hello", "bad-command"],
    ["/compact", { name: "compact" }],
    ["/compact 5", { name: "compact", keep: 5 }],
    ["/compact 0", { name: "compact", keep: 0 }],
    ["/compact many", "bad-command"],
    ["/model", { name: "model" }],
    ["/model anthropic/claude-x", { name: "model", model: { provider: "anthropic", id: "claude-x" } }],
    ["/model openrouter/meta/llama:free", { name: "model", model: { provider: "openrouter", id: "meta/llama:free" } }],
    ["/model default", { name: "model", clear: true }],
    ["/model gpt", { name: "model", named: "gpt" }],
    ["/model two words", "bad-command"],
    ["/think", { name: "think" }],
    ["/think HIGH", { name: "think", level: "high" }],
    ["/think default", { name: "think", clear: true }],
    ["/think hard", "bad-command"],
    ["/? ", { name: "help" }],
    ["/t", { name: "think" }],
    ["/t low", { name: "think", level: "low" }],
    ["/thinking high", { name: "think", level: "high" }],
    ["/think off", { name: "think", level: "none" }],
    ["/think MAX", { name: "think", level: "xhigh" }],
    ["/think constructor", "bad-command"],
    ["/model o3", { name: "model", named: "o3" }],
    ["/unknown word", "message"],
    ["/constructor", "message"],
    ["/usr/bin/env is a path", "message"],
    ["please /stop", "message"],
    ["/", "message"],
  ] as const) {
    test(`${JSON.stringify(text)}`, () => assert.deepEqual(command(text), expected));
  }
  test("every command that a hint of the error table names exists", () => {
    const named = Object.values(ERRORS).flatMap(({ hint }) => [...hint.matchAll(/`(\/[^`]+)`/g)].map((match) => match[1] ?? ""));
    assert.ok(named.length >= 4, named.join(" "));
    for (const text of named) assert.equal(parseMessage(text).kind, "command", text);
  });
});

describe("[P3.3] directives apply to their message and are removed from it", () => {
  test("thinking level and model are recognised anywhere in a message", () => {
    assert.deepEqual(parseMessage("/t:high what is /m:openai/gpt-5 the answer"), {
      kind: "message",
      text: "what is the answer",
      directives: { thinkLevel: "high", model: { provider: "openai", id: "gpt-5" } },
      status: false,
    });
    assert.deepEqual(parseMessage("hello /think:none"), {
      kind: "message",
      text: "hello",
      directives: { thinkLevel: "none" },
      status: false,
    });
  });
  test("a text without directives is unchanged", () => {
    const text = "  two  spaces\n/and a path /t:\n";
    assert.deepEqual(parseMessage(text), { kind: "message", text, directives: {}, status: false });
  });
  test("an invalid level or model is reported, and nothing is sent", () => {
    assert.equal(parseMessage("go /t:hard").kind, "bad-directive");
    assert.equal(parseMessage("go /m:gpt").kind, "bad-directive");
  });
  test("[F36] an id without a provider, and the other names of levels", () => {
    assert.deepEqual(parseMessage("go /m:o3 /t:off"), {
      kind: "message",
      text: "go",
      directives: { thinkLevel: "none", model: { provider: "openai", id: "o3" } },
      status: false,
    });
    assert.deepEqual(parseMessage("go /m:llama3.2", { provider: "ollama", id: "x" }), {
      kind: "message",
      text: "go",
      directives: { model: { provider: "ollama", id: "llama3.2" } },
      status: false,
    });
  });
  test("a message may have directives only", () =>
    assert.deepEqual(parseMessage("/t:low /m:a/b"), {
      kind: "directive-only",
      directives: { thinkLevel: "low", model: { provider: "a", id: "b" } },
      status: false,
    }));
  test("/status is a directive at the beginning or end of a message, and text in the middle", () => {
    assert.deepEqual(parseMessage("/status and go on"), { kind: "message", text: "and go on", directives: {}, status: true });
    assert.deepEqual(parseMessage("go on /status"), { kind: "message", text: "go on", directives: {}, status: true });
    assert.deepEqual(parseMessage("curl the /status route"), {
      kind: "message",
      text: "curl the /status route",
      directives: {},
      status: false,
    });
  });
  test("directives in code are ignored", () => {
    const text = "run `csc /t:library` and\n```\ncsc /t:exe\n```";
    assert.deepEqual(parseMessage(text), { kind: "message", text, directives: {}, status: false });
  });
  // With time squared in the length each of them would take many minutes.
  test("[F83] long input is read in one pass", { timeout: 60_000 }, () => {
    const long = "/t".repeat(1_000_000);
    assert.deepEqual(parseMessage(long), { kind: "message", text: long, directives: {}, status: false });
    assert.equal(parseMessage(`${"`".repeat(500_000)}${" /m:".repeat(500_000)}`).kind, "message");
    assert.equal(parseMessage(`/compact ${" ".repeat(2_000_000)}x`).kind, "bad-command");
  });
});

test("[ST4] `/stop all` stops everything, `/stop` the run; `/resume` is a command", () => {
  assert.deepEqual(parseMessage("/stop ALL"), { kind: "command", command: { name: "stop", all: true } });
  assert.deepEqual(parseMessage("/stop"), { kind: "command", command: { name: "stop" } });
  assert.deepEqual(parseMessage("/resume"), { kind: "command", command: { name: "resume" } });
});

test("[AP16] /status names the questions that wait, with their codes in the owner's conversations only", () => {
  const view = { state: "acting", step: 1, waiting: 0, messages: 1, context: {}, compactions: 0, tokens: { input: 1, output: 1 } };
  const more = { model: undefined, thinkLevel: undefined, sessionId: "s", sessionKey: "k" };
  const line = (questions: readonly string[], isOwners = true): string | undefined =>
    statusText({ ...view, ...more, questions, machines: [], wall: 0, isOwners })
      .split("\n")
      .find((text) => text.startsWith("Question"));
  assert.equal(line([]), undefined);
  assert.equal(line(["K7Q2A"]), "Question: K7Q2A waits for your answer (`gsv approval show K7Q2A`)");
  assert.equal(line(["K7Q2A", "ACDEF"]), "Questions: K7Q2A, ACDEF wait for your answer (`gsv approval list`)");
  assert.equal(line(["K7Q2A"], false), "Question: the run waits for the assistant's owner");
});

test("[OM9] /status names the machines that calls wait for, in the owner's conversations only", () => {
  const view = { state: "acting", step: 1, waiting: 0, messages: 1, context: {}, compactions: 0, tokens: { input: 1, output: 1 } };
  const more = { model: undefined, thinkLevel: undefined, sessionId: "s", sessionKey: "k", questions: [], wall: 60_000 };
  const wait = { nodeId: asNodeId("lap"), tool: asToolName("lap__Bash"), since: 0, until: 7_260_000 };
  const line = (isOwners: boolean): string | undefined =>
    statusText({ ...view, ...more, machines: [wait], isOwners })
      .split("\n")
      .find((text) => text.startsWith("Waits"));
  assert.equal(line(true), "Waits: lap__Bash waits for lap, for 2 h more (/stop ends the run)");
  assert.equal(line(false), "Waits: the run waits for a machine");
});
