/** What the record of a run has of its texts: each whole, or a mark. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogRow } from "./machine/log.ts";
import { textsOf } from "./record-view.ts";

const base = { seq: 1, at: 0, runId: "r1", step: 1 };
const user = (text: string): LogRow =>
  ({ ...base, kind: "user", messageId: "m", origin: { kind: "client" }, message: { role: "user", content: text } }) as unknown as LogRow;
const result = (callId: string, text: string): LogRow =>
  ({
    ...base,
    kind: "toolResult",
    callId,
    outcome: "ok",
    message: { role: "toolResult", content: [{ type: "text", text }] },
  }) as unknown as LogRow;
const answer = (text: string, args: object): LogRow =>
  ({
    ...base,
    kind: "assistant",
    attempt: 0,
    calls: [{ callId: "c1", providerId: "p1", name: "t" }],
    message: {
      role: "assistant",
      content: [
        { type: "text", text },
        { type: "toolCall", id: "p1", name: "t", arguments: args },
      ],
    },
  }) as unknown as LogRow;

test("[OT6] a text of at most 64 KiB is whole; a longer one is left out, with its length", () => {
  const fits = "x".repeat(65_536);
  assert.deepEqual(textsOf([user(fits), answer(fits, { a: "y".repeat(20_000) }), result("c1", fits)]), {
    input: fits,
    answers: { "1": fits },
    calls: { c1: { args: { a: "y".repeat(20_000) }, result: fits } },
  });
  const over = "x".repeat(65_537);
  assert.deepEqual(textsOf([user(over), user("short"), answer(over, { a: over }), result("c1", "\u00e9".repeat(40_000))]), {
    input: "[65537 characters]\n\nshort",
    answers: { "1": "[65537 characters]" },
    calls: { c1: { args: "[65545 characters]", result: "[40000 characters]" } },
  });
});

test("[OT6] the texts of one run have at most 4 MiB; later ones are left out, with their length", () => {
  const text = "x".repeat(65_536);
  const { calls } = textsOf(Array.from({ length: 70 }, (_, index) => result(`c${index}`, text)));
  const results = Object.values(calls).map(({ result: shown }) => shown);
  assert.equal(results.filter((shown) => shown === text).length, 64);
  assert.deepEqual(
    results.slice(64),
    Array.from({ length: 6 }, () => "[65536 characters]"),
  );
});
