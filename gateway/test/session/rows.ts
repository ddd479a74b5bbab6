/** Rows of a conversation for tests: only the number and what a test names differ. */
import type { AssistantRow, UserRow } from "../../src/session/machine/log.ts";

export const user = (seq: number, content = `u${seq}`): UserRow => ({
  seq,
  at: 0,
  runId: "r",
  kind: "user",
  messageId: `m${seq}`,
  origin: { kind: "client", clientId: "o" },
  message: { role: "user", content, timestamp: 0 },
});
export const assistant = (seq: number, calls = 0): AssistantRow => ({
  seq,
  at: 0,
  runId: "r",
  kind: "assistant",
  step: 1,
  attempt: 0,
  calls: Array.from({ length: calls }, (_, n) => ({ callId: `c${seq}/${n}`, providerId: "p", name: "t" })),
  message: {
    role: "assistant",
    content: [{ type: "text", text: `a${seq}` }],
    api: "a",
    provider: "p",
    model: "m",
    usage: { input: 0, output: 0, total: 0 },
    stopReason: "stop",
    timestamp: 0,
  },
});
