/** States of a session that thinks and that archives, and ports that allow, refuse or do nothing, for unit tests of single effects. */
import { Policies } from "../../src/policy/load.ts";
import type { DecidePorts } from "../../src/session/decided-calls.ts";
import { asAgentId } from "../../../protocol/gen/types.ts";
import type { Origin } from "../../src/ports/origin.ts";
import type { SessionMedia } from "../../src/ports/media.ts";
import type { ModelOutcome } from "../../src/ports/model.ts";
import type { RunContext } from "../../src/ports/run-context.ts";
import { type Archiving, newborn, type State } from "../../src/session/machine/state.ts";
import { History } from "../../src/session/history.ts";
import type { SpendGate } from "../../src/session/spend-gate.ts";
import type { Flight } from "../../src/session/pump.ts";

export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
export const flight = (over: Partial<Flight> = {}): Flight => ({
  signal: new AbortController().signal,
  inherited: false,
  tries: 0,
  ...over,
});
export const ORIGIN: Origin = { kind: "client", clientId: "o" };
export const RUN = {
  ordinal: 1,
  runId: "run",
  messageId: "m",
  origin: ORIGIN,
  directives: {},
  startedAt: 0,
  progressAt: 0,
  step: 1,
  modelIndex: 0,
  spent: { input: 0, output: 0, total: 0 },
};
/** No limit, and nothing is counted. */
export const unlimited: Pick<SpendGate, "begin"> = {
  begin: ({ maxTokens }) => Promise.resolve({ ok: true, call: { maxTokens, end: (outcome) => ({ outcome }), cancel: () => {} } }),
};
/** A bucket that fails on any use. */
export const media: SessionMedia = {
  takeAttachments: () => Promise.reject(new Error("no files here")),
  takeResult: () => Promise.reject(new Error("no files here")),
  hydrate: (messages) => Promise.resolve(messages),
  transcribe: () => Promise.reject(new Error("no files here")),
  delete: () => Promise.reject(new Error("no files here")),
};
export const base: State = newborn({
  identity: { key: "agent:main:main", ref: "ref", agentId: "main", isOwnersSession: true },
  sessionId: "s1",
  wall: 0,
});
export const thinking: State = { ...base, run: { ...RUN, phase: "thinking", attempt: 2, tries: 0, restarts: 0, deadline: 0 } };
export const context: RunContext = {
  version: "v1",
  config: {
    model: { provider: "a", id: "one", fallbacks: [{ provider: "b", id: "two" }] },
    timeouts: { llmMs: 1_000, toolMs: 60_000 },
    limits: { stepsPerRun: 5, runMs: 1_000, runCostUsd: 1 },
    session: { mainKey: "main" },
    userTimezone: "UTC",
  },
  agent: { id: asAgentId("main") },
  tools: [],
  nodes: [],
  skillPins: [],
};
export const history = new History([
  { seq: 1, at: 0, runId: "run", kind: "user", messageId: "m", origin: ORIGIN, message: { role: "user", content: "hi", timestamp: 0 } },
]);
export const USAGE = { input: 1, output: 1, total: 2 };
export const replied = (text: string): ModelOutcome => ({
  kind: "replied",
  calls: [],
  usage: USAGE,
  message: {
    role: "assistant",
    content: [{ type: "text", text }],
    api: "a",
    provider: "p",
    model: "m",
    usage: USAGE,
    stopReason: "stop",
    timestamp: 0,
  },
});

export const archiving: Archiving = {
  phase: "archiving",
  kind: "reset",
  requestId: "q",
  cause: "asked",
  stage: "archive",
  ordinal: 1,
  attempt: 0,
  failures: 0,
  restarts: 0,
  from: 1,
  upto: 1,
  count: 1,
  kept: 0,
  firstAt: 0,
  lastAt: 0,
  cursor: 1,
  chunks: 0,
  plain: false,
  archivedAt: 5,
  newSessionId: "s2",
  deadline: 0,
};

/** Without rules and modes: every call that is offered runs. */
export const deciding: DecidePorts = {
  native: { entries: [] },
  sha256: (text) => Promise.resolve(text),
  policies: new Policies(),
  useGrants: () => Promise.resolve([]),
  audit: () => Promise.resolve(),
  wall: () => 7,
  failed: () => {},
};
