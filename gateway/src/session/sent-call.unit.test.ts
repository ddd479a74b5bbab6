/** The measure of a model call by context layer. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { tokensOfMessage, tokensOfText } from "../models/estimate.ts";
import type { Message } from "../ports/messages.ts";
import { History } from "./history.ts";
import { sentCall, systemLayers } from "./sent-call.ts";

const model = { provider: "p", id: "m" };
const user = (content: string): Extract<Message, { role: "user" }> => ({ role: "user", content, timestamp: 0 });
const history = (): History =>
  new History(
    [
      {
        seq: 1,
        at: 0,
        runId: "r",
        kind: "user",
        messageId: "m",
        origin: { kind: "task", taskId: "t" },
        message: user("the task ".repeat(20)),
      },
      {
        seq: 2,
        at: 0,
        runId: "r",
        kind: "toolResult",
        step: 1,
        callId: "c",
        outcome: "ok",
        message: {
          role: "toolResult",
          toolCallId: "c",
          toolName: "recall_memory",
          content: [{ type: "text", text: "a row ".repeat(30) }],
          isError: false,
          timestamp: 0,
        },
      },
      {
        seq: 3,
        at: 0,
        runId: "r",
        kind: "user",
        messageId: "n",
        origin: { kind: "client", clientId: "c" },
        message: user("more"),
      },
    ],
    { text: "the summary", count: 3, at: 0 },
  );

describe("[AU8] what a call of the model is sent, by layer", () => {
  test("the parts of the system prompt are in their layers, and their sum is that of the text", () => {
    const texts = ["x".repeat(100), "y".repeat(200), "z".repeat(300), "m".repeat(400)];
    const system = texts.map((text) => `## heading\n\n${text}`).join("\n\n");
    const layers = systemLayers(
      system,
      texts.map((text, index) => ({ text, layer: ([1, 2, 3, 6] as const)[index] ?? 1 })),
    );
    assert.deepEqual(layers.slice(1), [60, 90, 0, 0, 120]);
    const sum = layers.reduce((total, tokens) => total + tokens, 0);
    assert.ok(Math.abs(sum - tokensOfText(system)) <= layers.length, `${sum} of ${tokensOfText(system)}`);
    assert.deepEqual(systemLayers("", []), [0, 0, 0, 0, 0, 0]);
  });
  test("a task is layer 4, recalled rows are 6, the rest and the summary are 5, and tools are 3", () => {
    const { items, messages } = history();
    const [summary, task, recalled, more] = messages.map(tokensOfMessage);
    const sent = sentCall({ at: 7, model, system: [10, 20, 30, 0, 0, 60], toolTokens: 1_000, items, messages });
    assert.deepEqual(sent, {
      at: 7,
      provider: "p",
      model: "m",
      layers: [10, 20, 1_030, task, (summary ?? 0) + (more ?? 0), 60 + (recalled ?? 0)],
      tools: 1_000,
    });
  });
  test("a message in another form counts as it is sent, and hidden ones do not count", () => {
    const { items, messages } = history();
    const cut = messages.map((message, index) => (index === 1 ? user("cut") : message));
    const system = [0, 0, 0, 0, 0, 0];
    assert.equal(sentCall({ at: 0, model, system, toolTokens: 0, items, messages: cut }).layers[3], tokensOfMessage(user("cut")));
    const hidden = items.map((item, index) => (index === 2 ? { ...item, hidden: true as const } : item));
    const without = sentCall({ at: 0, model, system, toolTokens: 0, items: hidden, messages: messages.slice(0, -1) });
    assert.equal(without.layers[4], tokensOfMessage(messages[0] ?? user("")));
  });
});
