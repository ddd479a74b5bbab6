import assert from "node:assert/strict";
import { test } from "node:test";
import { ERRORS, type ErrorReason } from "../../../protocol/gen/errors.ts";
import type { Origin } from "../ports/origin.ts";
import { limitAdvice } from "./limit-question.ts";
import { forSender } from "./task-advice.ts";

const TASK: Origin = { kind: "task", taskId: "t" };
const KEYED: Origin = { ...TASK, keyed: true };
const hintOf = (reason: ErrorReason, hint: string | undefined, origin: Origin): string | undefined =>
  forSender({ reason, message: "It failed.", ...(hint === undefined ? {} : { hint }) }, origin).hint;

test("[RT2] no hint of the contract tells the sender of a task to write in a conversation", () => {
  for (const [reason, { hint }] of Object.entries(ERRORS) as [ErrorReason, { hint?: string }][]) {
    const told = hintOf(reason, hint, KEYED) ?? "";
    assert.doesNotMatch(told, /[`( ]\/[a-z]|[Mm]essage|[Cc]onversation|[Cc]ontinue|[Rr]ephrase|^Say|^Tell/, reason);
    assert.equal(hintOf(reason, hint, { kind: "client" } as Origin), hint);
  }
});
test("[RT2] a new key is named only when the request had one; settings and commands stay", () => {
  assert.equal(hintOf("model.timeout", "Send the message again.", TASK), "Send the task again, or raise `timeouts.llmMs`.");
  assert.equal(hintOf("model.timeout", "Send the message again.", KEYED), "Send the task again with a new key, or raise `timeouts.llmMs`.");
  assert.equal(hintOf("run.no_progress", "Send the message again.", KEYED), "Send the task again with a new key.");
  const caused: Origin = { ...TASK, event: { id: "e", hops: 1 } };
  assert.equal(hintOf("run.no_progress", "Send the message again.", caused), "Emit the event again.");
  assert.equal(hintOf("model.auth", ERRORS["model.auth"].hint, KEYED), ERRORS["model.auth"].hint);
  const used = { of: "tokens", limit: 1, setting: "limits.runTokens" } as const;
  assert.equal(limitAdvice(KEYED, used), "Send the task again with a new key, or raise `limits.runTokens`.");
  assert.equal(
    limitAdvice(TASK, { ...used, isFirst: true }),
    "Send the task again with less text, use a model that costs less, or raise `limits.runTokens`.",
  );
});
