import assert from "node:assert/strict";
import { test } from "node:test";
import { transitionProblem } from "./transitions.ts";

test("the transitions of a step lead from its first phase to its last", () => {
  assert.equal(transitionProblem("idle", "UserMessage", ["messageStartsRun"], "thinking"), undefined);
  assert.equal(transitionProblem("thinking", "ModelReplied", ["answered", "nothingWaits"], "idle"), undefined);
  assert.equal(transitionProblem("acting", "UserMessage", ["messageWaits"], "acting"), undefined);
});
test("a step without a transition, from another phase, on another event or to another phase is named", () => {
  assert.equal(transitionProblem("idle", "UserMessage", [], "idle"), "UserMessage changed a session in idle without a transition");
  assert.equal(transitionProblem("thinking", "UserMessage", ["messageStartsRun"], "thinking"), "messageStartsRun was taken from thinking");
  assert.equal(transitionProblem("idle", "ExecEnded", ["messageStartsRun"], "thinking"), "messageStartsRun was taken on ExecEnded");
  assert.equal(
    transitionProblem("idle", "UserMessage", ["messageStartsRun"], "idle"),
    "messageStartsRun lead to thinking, and the session is idle",
  );
  assert.match(transitionProblem("thinking", "ModelReplied", ["nothingWaits"], "idle") ?? "", /nothingWaits was taken from thinking/);
});
