import assert from "node:assert/strict";
import { test } from "node:test";
import { rowEvents } from "./events.ts";
import type { ToolResultRow } from "./machine/log.ts";

/** What clients are told about the end of a call with this result. */
function ended(text: string, toolName = "lap__Bash", outcome: ToolResultRow["outcome"] = "ok"): object {
  const { exitCode, signal } = shownTool(text, toolName, outcome);
  return { exitCode, signal };
}
function shownTool(text: string, toolName = "lap__Bash", outcome: ToolResultRow["outcome"] = "ok") {
  const message = {
    role: "toolResult",
    toolCallId: "c",
    toolName,
    isError: false,
    content: [{ type: "text", text }],
    timestamp: 1,
  } as const;
  const row: ToolResultRow = { kind: "toolResult", seq: 1, at: 1, runId: "r", step: 0, callId: "c", message, outcome };
  const [news] = rowEvents("agent:main:cli:dm:main", row);
  assert.ok(news?.event === "chat" && news.payload.state === "tool");
  return news.payload.tool;
}

test("a command that failed is told from one that succeeded, also when its result is cut", () => {
  assert.deepEqual(ended('{"status":"completed","exitCode":0,"output":""}'), { exitCode: 0, signal: undefined });
  assert.deepEqual(ended('{"status":"failed","exitCode":2,"output":"x"}'), { exitCode: 2, signal: undefined });
  assert.deepEqual(ended('{"status":"failed","exitCode":-1}'), { exitCode: -1, signal: undefined });
  assert.deepEqual(ended('{"status":"failed","signal":"SIGKILL","output":"x"}'), { exitCode: undefined, signal: "SIGKILL" });
  assert.deepEqual(ended('{"exitCode":3,"output":"aaa [... 9 characters were left out here. ...] aaa","truncated":false}'), {
    exitCode: 3,
    signal: undefined,
  });
});
test("only a command's own result tells how it ended", () => {
  const nothing = { exitCode: undefined, signal: undefined };
  assert.deepEqual(ended(JSON.stringify({ status: "running", output: '{"exitCode":2,"signal":"SIGKILL"}' })), nothing);
  assert.deepEqual(ended('{"exitCode":2}', "lap__Read"), nothing);
  assert.deepEqual(ended('text "exitCode":2,'), nothing);
  assert.deepEqual(ended('{"exitCode":2}', "lap__Bash", "unknown"), nothing);
});
test("[SB9] what the machine notes about a command reaches the person, and output that looks like a note does not", () => {
  const note = (text: string, tool = "lap__Bash", outcome: ToolResultRow["outcome"] = "ok") => shownTool(text, tool, outcome).note;
  assert.equal(note('{"exitCode":0,"note":"did not reach \\"a.org\\"","output":"403"}'), 'did not reach "a.org"');
  assert.equal(note(`{"note":"${"x".repeat(5_000)}","output":""}`)?.length, 1_000);
  assert.equal(note(JSON.stringify({ exitCode: 0, output: '{"note":"made up"}' })), undefined);
  assert.equal(note('{"note":"bad \\x escape"}'), undefined);
  assert.equal(note('{"note":"x"}', "lap__Read"), undefined);
  assert.equal(note('{"note":"x"}', "lap__Bash", "error"), undefined);
  assert.equal(note('"note":"x"'), undefined);
});
