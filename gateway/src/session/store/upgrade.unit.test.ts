/**
 * Rows that earlier versions have stored. test/session/fixtures/state-v1.jsonl was written by the code of commit 5bdadb2 (its reduce,
 * encodeState and encodeRow): one line for each situation, never changed since.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { OpenCall } from "../../calls/open-call.ts";
import type { Origin } from "../../ports/origin.ts";
import type { EventBody, Stamp } from "../machine/event.ts";
import { checkState, checkStep } from "../machine/invariants.ts";
import { reduce } from "../machine/reduce.ts";
import type { LogRow } from "../machine/log.ts";
import { activeRun, type State, STATE_VERSION } from "../machine/state.ts";
import { processesIn, UNREAD, withLabel } from "./upgrade.ts";
import { decodeMessage, decodeRow, decodeState, encodeState, type StoredRow } from "./rows.ts";

interface Stored {
  readonly name: string;
  readonly parts: Readonly<Record<string, string>>;
  readonly queue: readonly { readonly id: number; readonly run: string; readonly bytes: number; readonly body: string }[];
  readonly log: readonly StoredRow[];
}
const V1: readonly Stored[] = readFileSync(join(import.meta.dirname, "../../../test/session/fixtures/state-v1.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));
const stored = (name: string): Stored => V1.find((candidate) => candidate.name === name) ?? assert.fail(name);
function read({ parts, log = [] }: Pick<Stored, "parts"> & Partial<Stored>): State {
  const rows = log.map(decodeRow);
  const originOf = (runId: string): Origin | undefined => {
    const row = rows.find((candidate) => candidate.kind === "user" && candidate.runId === runId);
    return row?.kind === "user" ? row.origin : undefined;
  };
  return decodeState(new Map(Object.entries(parts)), originOf) ?? assert.fail("no state");
}
function apply(state: State, body: EventBody): State {
  const { now, wall } = state.clock;
  const stamp: Stamp = { now, wall, jitter: 0.5, freshId: "fresh", published: 0, settled: 0, quiet: [], head: undefined, named: undefined };
  const step = reduce(state, { ...body, ...stamp });
  if (step.state !== state) checkStep(state, step);
  return step.state;
}
function callsOf({ run }: State): readonly OpenCall[] {
  assert.ok(run.phase === "acting", `${run.phase} instead of acting`);
  return run.calls;
}

/** Written by the code of commit fffd380, and never changed since. */
const V2: readonly Pick<Stored, "name" | "parts" | "log">[] = readFileSync(
  join(import.meta.dirname, "../../../test/session/fixtures/state-v2.jsonl"),
  "utf8",
)
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));
describe("[P21] state of version 2", () => {
  for (const { name, parts, log } of V2)
    test(`${name}: it is read, is valid, goes on after a wake, and is stored as the current version`, () => {
      const state = read({ parts, log });
      checkState(state);
      assert.equal(JSON.parse(parts["session"] ?? "").v, 2);
      assert.deepEqual(state, { ...state, ...JSON.parse(parts["session"] ?? ""), v: STATE_VERSION });
      assert.equal(state.taint === UNREAD, state.messageCount > 0);
      const awake = apply(state, { type: "Woke" });
      assert.deepEqual(
        decodeState(new Map(encodeState(undefined, awake)), () => undefined),
        awake,
      );
      for (const row of log) assert.equal(decodeRow(row).seq, row.seq);
    });
});

describe("[P21] state of version 1", () => {
  for (const { name, parts, log } of V1)
    test(`${name}: it is read, is valid, goes on after a wake, and is stored as the current version`, () => {
      const state = read({ parts, log });
      checkState(state);
      assert.equal(state.v, STATE_VERSION);
      const { phase } = JSON.parse(parts["session"] ?? "").run;
      assert.equal(state.run.phase, phase);
      assert.equal(state.identity.isOwnersSession, true);
      assert.doesNotMatch(JSON.stringify(state), /isMain|"sealed"|"sent"|roomMade/);
      const awake = apply(state, { type: "Woke" });
      assert.deepEqual(
        decodeState(new Map(encodeState(undefined, awake)), () => undefined),
        awake,
      );
      for (const row of log) assert.equal(decodeRow(row).seq, row.seq);
    });

  test("a call's status follows from what the old program had committed", () => {
    const before = callsOf(read(stored("acting, nothing handed over")));
    assert.deepEqual(
      before.map(({ name, status }) => `${name} ${status}`),
      [
        "gsv__WriteFile dispatched",
        "lap__Bash dispatched",
        "lap__Read dispatched",
        "old__Bash planned",
        "old__Read dispatched",
        "box__Bash dispatched",
        "gone__Bash planned",
      ],
    );
    const after = callsOf(read(stored("acting, calls in every state, a compaction waits")));
    assert.deepEqual(
      after.map(({ name, status, dispatch }) => `${name} ${status} ${dispatch}`),
      [
        "gsv__WriteFile dispatched 0",
        "lap__Bash dispatched 1",
        "lap__Read dispatched 1",
        "old__Bash dispatched 0",
        "old__Read dispatched 0",
        "box__Bash in_grace 0",
        "gone__Bash in_grace 0",
      ],
    );
    assert.deepEqual(after[0], {
      status: "dispatched",
      index: 0,
      callId: "ref0000000/r1/1/0",
      name: "gsv__WriteFile",
      target: { kind: "native" },
      ledger: false,
      idempotent: false,
      dispatch: 0,
      restarts: 1,
      startedAt: 0,
      deadline: 60_000,
    });
    assert.deepEqual(after[6], {
      status: "in_grace",
      index: 6,
      callId: "ref0000000/r1/1/6",
      name: "gone__Bash",
      target: { kind: "node", nodeId: "gone" },
      ledger: false,
      idempotent: false,
      dispatch: 0,
      startedAt: 0,
      deadline: 60_000,
      graceUntil: 10_500,
    });
  });

  test("origins are data: of waiting messages, of the log, and of the run", () => {
    const { queue } = stored("a queue of every origin");
    assert.deepEqual(
      queue.map(({ body }) => decodeMessage(body).origin),
      [
        { kind: "client", clientId: "laptop-cli" },
        { kind: "channel", channel: "discord", accountId: "bot", senderId: "user:42", role: "guest", peer: { kind: "group", id: "g1" } },
        { kind: "channel", channel: "test", accountId: "default", senderId: "anna", role: "guest" },
        { kind: "session", sessionKey: "agent:work:main", hops: 3 },
        { kind: "session", sessionKey: "agent:main:main", hops: 1 },
        { kind: "node_event", nodeId: "lap" },
      ],
    );
    const originOf = (name: string): Origin => {
      const { run } = read(stored(name));
      const active = activeRun(run);
      assert.ok(active);
      return active.origin;
    };
    const peer = { kind: "dm", id: "31612345678@s.whatsapp.net", name: "Anna" };
    const anna = { kind: "channel", channel: "whatsapp", accountId: "default", senderId: peer.id, role: "guest", peer };
    assert.deepEqual(originOf("thinking, second try, from a channel"), anna);
    assert.deepEqual(originOf("archiving, a run waits for room"), anna);
    assert.deepEqual(originOf("thinking, asked by another session"), {
      kind: "session",
      sessionKey: "agent:main:dm:test%3Aanna",
      hops: 2,
    });
    assert.deepEqual(originOf("acting, nothing handed over"), { kind: "client", clientId: "t" });
  });

  test("[P6] calls continue: results of nodes are accepted, and waiting calls end with an unknown outcome", () => {
    let state = read(stored("acting, calls in every state, a compaction waits"));
    const report = (index: number, nodeId: string): void => {
      const callId = `ref0000000/r1/1/${index}`;
      state = apply(state, { type: "ToolResult", callId, from: { kind: "node", nodeId }, content: [], outcome: "ok" });
    };
    report(3, "old");
    report(6, "elsewhere");
    report(6, "gone");
    assert.deepEqual(
      callsOf(state).map(({ index }) => index),
      [0, 1, 2, 4, 5],
    );
    state = { ...state, clock: { ...state.clock, now: 10_500 } };
    state = apply(state, { type: "Tick", inFlight: [] });
    assert.deepEqual(state.closed, [
      { callId: "ref0000000/r1/1/5", name: "box__Bash", runId: "run-a", outcome: "unknown", target: { kind: "node", nodeId: "box" } },
    ]);
  });

  test("[P7] calls that were closed may still report late", () => {
    const { closed } = read(stored("idle, given-up calls and a cancel that is open"));
    assert.deepEqual(
      closed.map(({ name, target, outcome }) => [name, target, outcome]),
      [
        ["lap__Bash", { kind: "node", nodeId: "lap" }, "cancelled"],
        ["gsv__WriteFile", { kind: "native" }, "cancelled"],
        ["lap__Read", { kind: "node", nodeId: "lap" }, "cancelled"],
      ],
    );
  });

  test("a run that waits for an archive, the summary, the settings and earlier session ids are kept", () => {
    const waiting = read(stored("archiving, a run waits for room"));
    assert.ok(waiting.run.phase === "archiving");
    assert.equal(waiting.run.resume?.messageId, "d");
    assert.equal(waiting.queue.count, 6);
    const behind = read(stored("thinking behind a summary"));
    assert.ok(behind.run.phase === "thinking");
    assert.equal(behind.run.compactionTried, true);
    assert.equal(behind.summary?.text, "what was said");
    assert.equal(read(stored("idle")).settings.thinkingLevel, "high");
    assert.deepEqual(read(stored("idle after a reset, memories to write")).previousSessionIds, ["s1"]);
  });

  test("an archive without stages begins again", () => {
    const { parts } = stored("idle");
    const { compactions: _none, ...core } = JSON.parse(parts["session"] ?? "");
    const archiving = {
      phase: "archiving",
      requestId: "q",
      cause: "asked",
      ordinal: 1,
      attempt: 2,
      failures: 0,
      from: 1,
      upto: 2,
      count: 2,
    };
    const more = { archivedAt: 5, newSessionId: "s2", deadline: 9 };
    const old = (run: object): State => {
      const session = { ...core, run: { ...archiving, ...more, ...run }, outbox: [{ type: "Archive", id: "a1/2", notBefore: 0 }] };
      const state = read({ parts: { session: JSON.stringify(session) } });
      checkState(state);
      return state;
    };
    const reset = old({ kind: "reset", keep: 0 });
    assert.deepEqual([reset.compactions, reset.outbox[0]?.type, reset.outbox[0]?.id], [0, "Archive", "a1/2"]);
    const compact = old({ kind: "compact", keep: 20 });
    assert.deepEqual([compact.outbox.length, compact.outbox[0]?.type, compact.outbox[0]?.id], [1, "Summarize", "s1/2"]);
  });
});

test("[P21] state of version 5 is that of the current one, which may have calls that wait for machines", () => {
  const present = read(stored("acting, nothing handed over"));
  const old = read({ parts: { session: JSON.stringify({ ...present, v: 5 }) } });
  assert.deepEqual(old, present);
  checkState(old);
});

test("[P21] state of a newer version is refused with a sentence", () => {
  const { parts } = stored("idle");
  for (const v of [STATE_VERSION + 1, 99]) {
    const session = JSON.stringify({ ...JSON.parse(parts["session"] ?? ""), v });
    assert.throws(() => read({ parts: { session } }), {
      name: "NewerStateError",
      message: new RegExp(`^A newer version of GSV has written this state: .* have version ${v}, .* up to ${STATE_VERSION}\\.`),
    });
  }
});

describe("[TA2] [P21] the label of a conversation of an earlier version", () => {
  const base = read(V2[0] ?? assert.fail("no fixture"));
  const user = (origin: Origin, content: string): LogRow => ({
    ...{ seq: 1, at: 0, runId: "r", kind: "user", messageId: "m", origin },
    message: { role: "user", content, timestamp: 0 },
  });
  const result = (toolName: string, durationMs = 5): LogRow => ({
    ...{ seq: 2, at: 0, runId: "r", kind: "toolResult", step: 1, callId: "c", outcome: "ok", durationMs },
    message: { role: "toolResult", toolCallId: "c", toolName, content: [], isError: false, timestamp: 0 },
  });
  const client: Origin = { kind: "client", clientId: "cli" };
  const guest: Origin = { kind: "channel", channel: "test", accountId: "a", role: "guest" };
  const notice = (kind: "late" | "note"): LogRow => ({ seq: 3, at: 0, runId: "r", kind: "notice", notice: kind, text: "x" });
  const withFile = (type: "document" | "image"): LogRow => ({
    ...{ seq: 1, at: 0, runId: "r", kind: "user", messageId: "m", origin: client },
    message: { role: "user", content: [{ type, r2Key: "k", mimeType: "x/y" }], timestamp: 0 },
  });
  const rows: readonly (readonly [string, readonly LogRow[], string])[] = [
    ["the owner's words", [user(client, "hello")], "owner"],
    ["a guest's words", [user(client, "hello"), user(guest, "hi")], "peer"],
    ["a head line, which may quote others", [user(client, '[message] {"quotes":{}}')], "world"],
    ["the output of a command", [user(client, "x"), result("lap__Bash")], "world"],
    ["the agent's own notes", [user(client, "x"), result("gsv__Remember")], "self"],
    ["a call that no tool got", [user(client, "x"), result("lap__Bash", 0)], "owner"],
    ["a late result", [user(client, "x"), notice("late")], "world"],
    ["another notice", [user(client, "x"), notice("note")], "owner"],
    ["a document", [withFile("document")], "world"],
    ["a picture", [withFile("image")], "owner"],
  ];
  for (const [name, log, label] of rows)
    test(`${name}: ${label}`, () => {
      const { summary: _none, ...state } = { ...base, taint: UNREAD };
      assert.equal(withLabel(state, log).taint?.label ?? "owner", label);
    });
  test("a summary stands for messages that no one can read any more", () => {
    const summary = { text: "s", count: 3, at: 0 };
    assert.equal(withLabel({ ...base, taint: UNREAD, summary }, [user(client, "hello")]).taint, UNREAD);
  });
});

test("[G8] processes that go on are found in the results of their calls, the newest of a name", () => {
  const result = (callId: string, toolName: string, text: string, outcome: "ok" | "error" = "ok"): LogRow => ({
    ...{ seq: 2, at: 0, runId: "r", kind: "toolResult", step: 1, callId, outcome },
    message: { role: "toolResult", toolCallId: "c", toolName, content: [{ type: "text", text }], isError: false, timestamp: 0 },
  });
  const running = (sessionId: string): string => JSON.stringify({ status: "running", sessionId });
  const found = processesIn([
    result("c1", "lap__Bash", running("p1")),
    result("c2", "my__lap__Bash", running("p1")),
    result("c3", "lap__Bash", running("p2"), "error"),
    result("c4", "Bash", running("p3")),
    result("c5", "lap__Bash", "done"),
    result("c6", "lap__Bash", running("p1")),
  ]);
  assert.deepEqual(found, [
    { nodeId: "lap", processId: "p1", callId: "c6" },
    { nodeId: "my__lap", processId: "p1", callId: "c2" },
  ]);
});
