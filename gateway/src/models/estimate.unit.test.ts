import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Message } from "../ports/messages.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { tool } from "../../test/models/support.ts";
import { IMAGE_TOKENS, tokensOfMessage, tokensOfMessages, tokensOfText, tokensOfTool } from "./estimate.ts";

const user = (content: Extract<Message, { role: "user" }>["content"]): Message => ({ role: "user", content, timestamp: 0 });

describe("[P5.3] tokens are characters / 4 x 1.2 when no provider has counted them", () => {
  it("of texts", () => {
    assert.equal(tokensOfText(""), 0);
    assert.equal(tokensOfText("x"), 1);
    assert.equal(tokensOfText("x".repeat(1000)), 300);
  });
  it("a message is a little larger than its text, and a longer text never has a smaller estimate", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (left, right) => {
        assert.ok(tokensOfMessage(user(left)) >= tokensOfText(left));
        assert.ok(tokensOfMessage(user(left + right)) >= tokensOfMessage(user(left)));
      }),
    );
  });
  it("an image has a fixed estimate, independent of its bytes", () => {
    const data = "A".repeat(400_000);
    const tokens = tokensOfMessage(user([{ type: "image", data, mimeType: "image/png" }]));
    assert.ok(tokens >= IMAGE_TOKENS && tokens < IMAGE_TOKENS + 20);
    const stored = tokensOfMessage(user([{ type: "image", r2Key: "media/x/y.png", mimeType: "image/png" }]));
    assert.equal(stored, tokens);
  });
  it("a recording counts as its transcript, a call as its arguments", () => {
    const audio = { type: "audio", r2Key: "media/x/y.ogg", mimeType: "audio/ogg", transcript: "w".repeat(400) } as const;
    assert.ok(tokensOfMessage(user([audio])) >= 120);
    const call = { type: "toolCall", id: "c", name: "laptop__Bash", arguments: { command: "x".repeat(400) } } as const;
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0, costUsd: 0 };
    const said: Message = {
      role: "assistant",
      content: [call],
      api: "a",
      provider: "p",
      model: "m",
      usage,
      stopReason: "toolUse",
      timestamp: 0,
    };
    assert.ok(tokensOfMessage(said) >= 120);
  });
  it("the estimate of many messages is about the sum of the single ones", () => {
    const messages = Array.from({ length: 50 }, (_, i) => user("x".repeat(i * 10)));
    const sum = messages.reduce((all, message) => all + tokensOfMessage(message), 0);
    assert.ok(Math.abs(tokensOfMessages(messages) - sum) <= messages.length);
  });
  it("a text counts with 16 characters for its message; a text file with its size, up to what is shown of it", () => {
    assert.equal(tokensOfMessage(user("x".repeat(84))), 30);
    assert.equal(tokensOfMessage(user([{ type: "text", text: "x".repeat(84) }])), 30);
    const file = (sizeBytes: number) =>
      tokensOfMessage(user([{ type: "document", r2Key: "media/x/y", mimeType: "text/plain", filename: "a.txt", sizeBytes }]));
    assert.equal(file(1_000) - file(0), 300);
    assert.equal(file(2 * LIMITS.inlineDocumentBytes), file(LIMITS.inlineDocumentBytes));
  });
  it("a tool counts with its schema", () => assert.ok(tokensOfTool(tool("laptop__Bash")) > tokensOfText("laptop__Bash")));
});
