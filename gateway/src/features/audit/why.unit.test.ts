import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asCallId, asRunId, asSessionKey, asToolName, type AuditEntry, type StoryCall } from "../../../../protocol/gen/types.ts";
import type { RunStory } from "../../ports/session.ts";
import { withDecisions } from "./why.ts";

let seq = 0;
const entry = (more: Partial<AuditEntry>): AuditEntry => ({
  seq: ++seq,
  at: seq,
  actor: "session:k",
  action: "tool.call",
  decision: "allowed",
  prevHash: "",
  hash: "",
  ...more,
});
const call = (id: string, more: Partial<StoryCall> = {}): StoryCall => ({ callId: asCallId(id), tool: asToolName("lap__Bash"), ...more });
const usage = { input: 0, output: 0, total: 0 };
const decided = (calls: StoryCall[], entries: readonly AuditEntry[]): readonly StoryCall[] => {
  const story: RunStory = {
    sessionKey: asSessionKey("k"),
    runId: asRunId("r"),
    startedAt: 0,
    end: "final",
    usage,
    left: 0,
    steps: [{ step: 1, at: 0, ms: 0, provider: "p", model: "m", usage, calls }],
  };
  return withDecisions(story, entries).steps[0]?.calls ?? [];
};

describe("[AU7] the audit's part of a story", () => {
  test("a call has the decision and the rule of its own entry", () => {
    const entries = [
      entry({ detail: "c1", rule: "grant:g1" }),
      entry({ detail: "c2", rule: "rule:no-rm", decision: "denied" }),
      entry({ detail: "other", rule: "x" }),
    ];
    assert.deepEqual(
      decided([call("c1"), call("c2"), call("c3")], entries).map(({ decision, rule }) => [decision, rule]),
      [
        ["allowed", "grant:g1"],
        ["denied", "rule:no-rm"],
        [undefined, undefined],
      ],
    );
  });
  test("the first answer that was taken counts, and a call that the owner denied is denied", () => {
    const entries = [
      entry({ action: "approval.resolve", target: "k7q2a", actor: "client:late", decision: "failed" }),
      entry({ action: "approval.resolve", target: "K7Q2A", actor: "client:me" }),
      entry({ action: "approval.resolve", target: "K7Q2A", actor: "client:other" }),
    ];
    const [denied] = decided([call("c1", { code: "K7Q2A", reason: "approval.denied" })], entries.toReversed());
    assert.deepEqual([denied?.decision, denied?.by], ["denied", "client:me"]);
    const pressed = entry({ action: "approval.resolve", target: "K7Q2A", actor: "channel:guest", decision: "denied", detail: "pressed" });
    const owners = entry({ action: "approval.resolve", target: "k7q2a", actor: "client:me", decision: "denied", rule: "approval:K7Q2A" });
    const [both] = decided([call("c1", { code: "K7Q2A", reason: "approval.denied" })], [owners, pressed]);
    assert.deepEqual([both?.decision, both?.by], ["denied", "client:me"]);
  });
  test("a call that waits keeps the decision and the rule of the session", () => {
    const [waits] = decided([call("c1", { decision: "waits", rule: "mode:ask" })], [entry({ detail: "c1", rule: "x" })]);
    assert.deepEqual([waits?.decision, waits?.rule], ["waits", "mode:ask"]);
  });
});
