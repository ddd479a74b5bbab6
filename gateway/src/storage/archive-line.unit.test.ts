import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { AssistantMessage as PiAssistant, Message as PiMessage } from "@mariozechner/pi-ai";
import type { AssistantMessage } from "../ports/messages.ts";
import { lineUsage, readLine, writeLine } from "./archive-line.ts";

const answer: AssistantMessage = {
  role: "assistant",
  content: [{ type: "text", text: "hello" }],
  api: "openai-completions",
  provider: "openai",
  model: "m",
  usage: { input: 7, output: 3, cacheRead: 2, total: 12, costUsd: 0.25 },
  stopReason: "stop",
  timestamp: 5,
};

describe("[F40] [TR4] lines of transcripts", () => {
  test("an answer's line is a message of the model library: usage has totalTokens and a cost", () => {
    // The compiler checks the form against the library's own type.
    const usage: PiAssistant["usage"] = lineUsage(answer.usage);
    assert.deepEqual(usage, {
      input: 7,
      output: 3,
      cacheRead: 2,
      cacheWrite: 0,
      totalTokens: 12,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0.25 },
    });
    const line: PiMessage = JSON.parse(writeLine(answer));
    assert.ok(line.role === "assistant");
    assert.deepEqual(line.usage, usage);
    assert.ok(!Object.hasOwn(line.usage, "total"));
  });

  test("what is written is read back, and so are lines of earlier versions", () => {
    const whole = { ...answer, usage: { input: 7, output: 3, cacheRead: 2, cacheWrite: 0, total: 12, costUsd: 0.25 } };
    assert.deepEqual(readLine(writeLine(answer)), whole);
    assert.deepEqual(readLine(JSON.stringify(answer)), whole);
    const { costUsd: _cost, ...unpriced } = whole.usage;
    assert.deepEqual(readLine(writeLine({ ...whole, usage: unpriced })), { ...whole, usage: unpriced });
  });

  test("other messages are as they are", () => {
    const question = { role: "user", content: "hi", timestamp: 1 } as const;
    assert.equal(writeLine(question), JSON.stringify(question));
    assert.deepEqual(readLine(writeLine(question)), question);
  });
});
