/** What a session's log tells about one run. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { asCallId } from "../../../protocol/gen/types.ts";
import { tokensOfMessages, tokensOfText } from "../../src/models/estimate.ts";
import { newSession, onNode, says, Stage, until, value } from "./support.ts";

afterEach(() => vi.restoreAllMocks());

describe("[AU7] the story of a run", () => {
  it("has its cause, each answer of the model with its cost, and for each call its question, its outcome and why it was not made", async () => {
    const on = new Stage().open();
    on.tools = [onNode("lap", "Bash"), onNode("lap", "Write")];
    on.toolApproval = {
      rules: [
        { id: "no", tool: "*__Write", decision: "deny" },
        { id: "ask", tool: "*__Bash", decision: "ask" },
      ],
    };
    const s = newSession({ isOwnersSession: true });
    expect(await s.port.story({})).toMatchObject({ ok: false, error: { reason: "session.not_found" } });
    await s.send("a");
    (await on.call(0)).answer(
      says("", [
        { name: "lap__Bash", arguments: { command: "secret-word" } },
        { name: "lap__Write", arguments: { path: "a", content: "b" } },
      ]),
    );
    const question = await until("the question", () => on.approvals.at(-1)?.waiting[0]);
    const open = value(await s.port.story({}));
    expect(open).toMatchObject({ runId: "run-a", end: "open", left: 0 });
    expect(open.steps[0]?.calls[0]).toMatchObject({
      decision: "waits",
      code: question.code,
      rule: "rule:ask",
      why: question.why,
    });
    value(await s.port.answerApproval({ code: question.code, answer: "allow", by: "client:me" }));
    await until("the call", () => on.dispatches.length === 1);
    await s.port.toolResult("lap", {
      callId: asCallId(on.dispatches[0]?.callId ?? ""),
      outcome: "ok",
      result: { status: "failed", exitCode: 2, output: "private output" },
    });
    (await on.call(1)).answer(says("done"));
    await on.ended("run-a");

    const story = value(await s.port.story({ runId: "run-a" }));
    expect(story).toMatchObject({ runId: "run-a", sessionKey: s.identity.key, origin: "client", end: "final", left: 0 });
    expect(story.endedAt).toBeGreaterThanOrEqual(story.startedAt);
    expect(story.usage).toEqual({ input: 20, output: 10, total: 30, costUsd: 0.002 });
    expect(story.steps.map(({ step, provider, model, calls }) => [step, provider, model, calls.length])).toEqual([
      [1, "demo", "demo", 2],
      [2, "demo", "demo", 0],
    ]);
    expect(story.steps[0]?.calls).toMatchObject([
      { tool: "lap__Bash", code: question.code, outcome: "ok", exitCode: 2 },
      { tool: "lap__Write", outcome: "error", reason: "policy.denied" },
    ]);
    expect(story.steps[0]?.calls[1]).not.toHaveProperty("exitCode");
    expect(story.steps[0]?.calls[1]?.why).toContain("rule no denies this call");
    // Arguments and results are not part of the story.
    expect(JSON.stringify(story)).not.toMatch(/secret-word|private output/);
    const callId = story.steps[0]?.calls[1]?.callId;
    expect(value(await s.port.story({ callId })).runId).toBe("run-a");
    expect(on.dispatches[0]?.rule).toBe(`approval:${question.code}`);
  });

  it("is of the last run when none is named; an unknown run and call have none", async () => {
    const on = new Stage().open();
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await on.call(0)).answer(says("one"));
    await on.ended("run-a");
    await s.send("b");
    (await on.call(1)).answer(says("two"));
    await on.ended("run-b");
    expect(value(await s.port.story({})).runId).toBe("run-b");
    expect(value(await s.port.story({ runId: "run-a" })).steps).toHaveLength(1);
    for (const wanted of [{ runId: "run-x" }, { callId: "x/r1/1/0" }])
      expect(await s.port.story(wanted)).toMatchObject({ ok: false, error: { reason: "run.not_found" } });
  });

  it("[AU8] has the layers of each call that was sent, and the calls that got no answer", async () => {
    const on = new Stage().open();
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    const error = { reason: "model.context_overflow", message: "Too long." } as const;
    (await on.call(0)).answer({ kind: "failed", error, retryable: false });
    const answered = await on.call(1);
    answered.answer(says("one"));
    await on.ended("run-a");
    const [step] = value(await s.port.story({})).steps;
    expect(step?.failed).toMatchObject([{ reason: "model.context_overflow", sent: { provider: "demo", layers: expect.any(Array) } }]);
    const { layers = [], at = 0 } = step?.sent ?? {};
    expect([layers.length, layers[3]]).toEqual([6, 0]);
    expect(at).toBeGreaterThanOrEqual(step?.failed?.[0]?.sent?.at ?? Number.NaN);
    expect(at).toBeLessThanOrEqual(step?.at ?? 0);
    // What was measured is what was sent.
    const { systemPrompt, messages } = answered.request;
    expect(layers[0]).toBe(tokensOfText(systemPrompt));
    expect(layers[4]).toBe(tokensOfMessages(messages));

    await s.send("b");
    const refused = { reason: "model.rejected", message: "No." } as const;
    (await on.call(2)).answer({ kind: "failed", error: refused, retryable: false });
    await on.ended("run-b");
    const ended = value(await s.port.story({ runId: "run-b" }));
    expect(ended).toMatchObject({ end: "error", steps: [], failed: [{ reason: "model.rejected", sent: { model: "demo" } }] });
    expect(ended.failed?.[0]?.sent?.layers[4]).toBeGreaterThan(layers[4] ?? 0);

    await s.send("c");
    await on.call(3);
    value(await s.port.abort("run-c"));
    await on.ended("run-c");
    expect(value(await s.port.story({ runId: "run-c" }))).toMatchObject({ end: "aborted", failed: [{ reason: "run.aborted" }] });
  });
});
