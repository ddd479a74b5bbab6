/** `run.why`: the session's log and the audit together. */
import { reset } from "cloudflare:test";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { asCallId, asRunId, asSessionKey, asToolName, type RunWhyResult } from "../../../../protocol/gen/types.ts";
import { client, fakeSessions, node, type Peer, port, seed, token } from "../../support/gateway.ts";

const KEY = "agent:main:cli:dm:why";
const usage = { input: 1, output: 1, total: 2 };
let peer: Peer;
let asked: ReturnType<typeof fakeSessions>["asked"];
beforeAll(async () => {
  await reset();
  const fake = fakeSessions((key) => ({
    story: async () => ({
      ok: true,
      value: {
        sessionKey: asSessionKey(key),
        runId: asRunId("run-1"),
        startedAt: Date.now() - 60_000,
        end: "open",
        usage,
        left: 0,
        steps: [
          {
            step: 1,
            at: 1,
            ms: 1,
            provider: "p",
            model: "m",
            usage,
            calls: [
              { callId: asCallId("ref/r1/1/0"), tool: asToolName("lap__Bash"), outcome: "ok" },
              { callId: asCallId("ref/r1/1/1"), tool: asToolName("lap__Bash"), reason: "policy.denied", outcome: "error" },
            ],
          },
        ],
      },
    }),
  }));
  asked = fake.asked;
  await seed();
  peer = await client();
  await peer.ok("chat.send", { sessionKey: KEY, message: "hi" });
  const actor = `session:${KEY}`;
  await port().audit({ actor, action: "tool.call", target: "lap__Bash", decision: "allowed", rule: "grant:g1", detail: "ref/r1/1/0" });
  await port().audit({ actor, action: "tool.call", target: "lap__Bash", decision: "denied", rule: "mode:plan", detail: "ref/r1/1/1" });
});
afterAll(() => {
  vi.restoreAllMocks();
});

test("[AU7] tells what decided about each call, by a run, by one of its calls, and of the last run", async () => {
  const story = await peer.ok<RunWhyResult>("run.why", { sessionKey: KEY, runId: "run-1" });
  expect(story.steps[0]?.calls.map(({ decision, rule, outcome }) => [decision, rule, outcome])).toEqual([
    ["allowed", "grant:g1", "ok"],
    ["denied", "mode:plan", "error"],
  ]);
  await peer.ok("run.why", { sessionKey: KEY });
  expect(asked.filter(({ what }) => what === "story").map(({ key, args }) => [key, args[0]])).toEqual([
    [KEY, { runId: "run-1", callId: undefined }],
    [KEY, { runId: undefined, callId: undefined }],
  ]);
  // A call's id names its conversation; this one names none.
  expect((await peer.refused("run.why", { callId: "none/r1/1/0" })).reason).toBe("run.not_found");
  expect((await peer.refused("run.why", { sessionKey: "agent:main:cli:dm:never" })).reason).toBe("session.not_found");
});

test("[AU7] has the audit's scope: no machine, and no client that may not read the audit", async () => {
  for (const other of [await node("lap"), await client((await token("client-ro")).token), await client((await token("client")).token)])
    expect((await other.refused("run.why", { sessionKey: KEY })).reason).toBe("auth.forbidden");
});
