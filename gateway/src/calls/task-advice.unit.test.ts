import assert from "node:assert/strict";
import { test } from "node:test";
import { ERRORS, type ErrorReason } from "../../../protocol/gen/errors.ts";
import type { Origin } from "../ports/origin.ts";
import { limitAdvice } from "./limit-question.ts";
import { forSender, hintsOf } from "./task-advice.ts";

const TASK: Origin = { kind: "task", taskId: "t" };
const KEYED: Origin = { ...TASK, keyed: true };
const CAUSED: Origin = { ...TASK, event: { id: "e", hops: 1 } };
const CLIENT = { kind: "client" } as Origin;
const error = (reason: ErrorReason, hints: object = hintsOf(reason)) => ({ reason, message: "It failed.", ...hints });

/** Errors that end no run of a task: their hints may name messages, conversations and commands. */
const NOT_OF_RUNS: ReadonlySet<ErrorReason> = new Set([
  "agent.in_use",
  "approval.ambiguous",
  "chat.bad_directive",
  "chat.empty",
  "node.bad_options",
  "node.cannot_start",
  "pack.rejected",
  "policy.denied",
  "run.not_found",
  "session.deleting",
  "session.not_found",
  "session.queue_full",
  "tool.failed",
  "undo.nothing",
]);
test("[RT2] no hint of the contract tells the sender of a task to write in a conversation", () => {
  for (const reason of Object.keys(ERRORS) as ErrorReason[]) {
    assert.equal(forSender(error(reason), CLIENT).hint, ERRORS[reason].hint);
    if (NOT_OF_RUNS.has(reason)) continue;
    const told = forSender(error(reason), KEYED).hint ?? "";
    assert.doesNotMatch(told, /[`( ]\/[a-z]|[Mm]essage|[Cc]onversation|[Cc]ontinue|[Rr]ephrase|^Say|^Tell|\{again/, reason);
  }
});
test("[RT2] a hint is replaced only by the one that its error has for the sender of a task, whatever its words", () => {
  const hint = "Correct what the message names, then try again.";
  assert.deepEqual(forSender(error("model.rejected", { hint }), TASK), error("model.rejected", { hint }));
  const both = error("model.bad_answer", { hint: "Ask again in other words.", taskHint: "Set it. {again} then." });
  assert.deepEqual(forSender(both, KEYED), error("model.bad_answer", { hint: "Set it. Send the task again with a new key then." }));
  assert.deepEqual(forSender(both, CLIENT), error("model.bad_answer", { hint: "Ask again in other words." }));
});
test("[RT2] a new key is named only when the request had one; settings and commands stay", () => {
  const hintOf = (reason: ErrorReason, origin: Origin) => forSender(error(reason), origin).hint;
  assert.equal(hintOf("model.timeout", TASK), "Send the task again, or raise `timeouts.llmMs`.");
  assert.equal(hintOf("model.timeout", KEYED), "Send the task again with a new key, or raise `timeouts.llmMs`.");
  assert.equal(hintOf("run.no_progress", KEYED), "Send the task again with a new key.");
  assert.equal(hintOf("run.no_progress", CAUSED), "Emit the event again.");
  assert.equal(hintOf("model.auth", KEYED), ERRORS["model.auth"].hint);
  const used = { of: "tokens", limit: 1, setting: "limits.runTokens" } as const;
  assert.equal(limitAdvice(KEYED, used), "Send the task again with a new key, or raise `limits.runTokens`.");
  assert.equal(
    limitAdvice(TASK, { ...used, isFirst: true }),
    "Send the task again with less text, use a model that costs less, or raise `limits.runTokens`.",
  );
});
