import assert from "node:assert/strict";
import { test } from "node:test";
import { asCallId, asRunId, asSessionKey, asToolName, type StoryCall } from "../../../../protocol/gen/types.ts";
import type { RunEnd } from "../../ports/session.ts";
import { reportOf } from "./report.ts";

const call = (more: Partial<StoryCall>): StoryCall => ({ callId: asCallId("c"), tool: asToolName("lap__Bash"), outcome: "ok", ...more });

test("[RT2] a call whose command failed is `ok`, because it ran, and has the command's exit code or signal", () => {
  const usage = { input: 1, output: 1, total: 2 };
  const report = reportOf({
    taskId: "t",
    agentId: "main",
    approvals: [],
    delegations: [],
    resultAccess: "none",
    end: { state: "final", text: "Done." },
    story: {
      sessionKey: asSessionKey("agent:main:task:t"),
      runId: asRunId("r"),
      startedAt: 0,
      end: "final",
      usage,
      left: 0,
      steps: [
        {
          step: 1,
          at: 0,
          ms: 0,
          provider: "demo",
          model: "demo",
          usage,
          calls: [call({ exitCode: 2 }), call({ signal: "SIGKILL" }), call({ exitCode: 0 }), call({ tool: asToolName("lap__Read") })],
        },
      ],
    },
  });
  assert.deepEqual(
    report.tool_calls.map(({ outcome, exit_code, signal }) => [outcome, exit_code, signal]),
    [
      ["ok", 2, undefined],
      ["ok", undefined, "SIGKILL"],
      ["ok", 0, undefined],
      ["ok", undefined, undefined],
    ],
  );
  assert.equal("approvals" in report.metadata, false);
});

test("[RT2] what was not completed says why", () => {
  const usage = { input: 1, output: 1, total: 2 };
  const story = {
    sessionKey: asSessionKey("agent:main:task:t"),
    runId: asRunId("r"),
    startedAt: 0,
    end: "error" as const,
    usage,
    left: 0,
    steps: [],
  };
  const ended = (end: RunEnd): unknown[] => {
    const facts = { taskId: "t", agentId: "main", approvals: [], delegations: [], resultAccess: "none", story } as const;
    const { status, summary, error } = reportOf({ ...facts, end });
    return [status, summary, error?.reason, error?.message];
  };
  const away = "The model did not answer.";
  assert.deepEqual(ended({ state: "error", error: away, reason: "model.timeout" }), ["failed", away, "model.timeout", away]);
  assert.deepEqual(ended({ state: "error", error: away, reason: "budget.cost" }), ["budget_exceeded", away, "budget.cost", away]);
  assert.deepEqual(ended({ state: "aborted", error: "" }), ["cancelled", "The run was stopped.", undefined, undefined]);
  const gone = "The end of the run is not known: its conversation was removed.";
  assert.deepEqual(ended({ state: "unknown" }), ["failed", gone, "internal", gone]);
});
