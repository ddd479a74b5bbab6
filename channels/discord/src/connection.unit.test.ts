import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  CONNECTION,
  type Connection,
  type ConnectionEffect,
  type ConnectionEvent,
  IDENTIFIES_KEPT,
  identifyWaitMs,
  isSpent,
  retryWaitMs,
  stepConnection,
} from "./connection.ts";

const NOW = 1_000_000;
const connected: Connection = { at: "connected", since: NOW - 60_000, attempt: 1 };
const connecting: Connection = { at: "connecting", since: NOW - 100, attempt: 1 };
const waiting: Connection = { at: "waiting", until: NOW + 500, attempt: 2, why: "x", offline: false };
const stopped: Connection = { at: "stopped", why: "x" };
const closed = (code: number, invalidSession = false): ConnectionEvent => ({ type: "closed", code, invalidSession });
const wanted = (heardAt = NOW, asked = false): ConnectionEvent => ({ type: "wanted", heardAt, asked });
const names = (effects: readonly ConnectionEffect[]): string => effects.map((effect) => effect.do).join(" ");

const table: readonly (readonly [what: string, from: Connection, event: ConnectionEvent, to: Connection["at"], effects: string])[] = [
  ["is started", { at: "idle" }, wanted(), "connecting", "connect"],
  ["is not touched while it is being made", connecting, wanted(), "connecting", ""],
  ["is not touched while it is open", connected, wanted(), "connected", ""],
  ["waits and sets a wake-up", waiting, wanted(), "waiting", "wake"],
  ["is tried when the wait is over", { ...waiting, until: NOW }, wanted(), "connecting", "connect"],
  [
    "is tried at once when a person asks and Discord was unreachable",
    { ...waiting, offline: true },
    wanted(NOW, true),
    "connecting",
    "connect",
  ],
  ["keeps Discord's rate limit, also for a person", waiting, wanted(NOW, true), "waiting", "wake"],
  ["does not start by itself after a stop", stopped, wanted(), "stopped", ""],
  ["starts when a person asks", stopped, wanted(NOW, true), "connecting", "connect"],
  ["times out while connecting", { ...connecting, since: NOW - CONNECTION.connectingMs }, wanted(), "waiting", "retire wake tell"],
  ["is not timed out a moment early", { ...connecting, since: NOW - CONNECTION.connectingMs + 1 }, wanted(), "connecting", ""],
  ["is not silent a moment early", { ...connected, since: 0 }, wanted(NOW - CONNECTION.silentMs + 1), "connected", ""],
  ["does not count silence from before it was open", { ...connected, since: NOW - CONNECTION.silentMs + 1 }, wanted(0), "connected", ""],
  ["waits to the last moment", { ...waiting, until: NOW + 1 }, wanted(), "waiting", "wake"],
  ["times out after silence", { ...connected, since: 0 }, wanted(NOW - CONNECTION.silentMs), "waiting", "retire wake tell"],
  ["opens", connecting, { type: "opened" }, "connected", "tell"],
  ["closes with 1000", connected, closed(1000), "waiting", "retire wake tell"],
  ["closes with 1006", connected, closed(1006), "waiting", "retire wake tell"],
  ["closes with 4000", connected, closed(4000), "waiting", "retire wake tell"],
  ["closes with 4007: the session is over", connected, closed(4007), "waiting", "retire forget-session wake tell"],
  ["closes with 4009: the session is over", connected, closed(4009), "waiting", "retire forget-session wake tell"],
  ["is told that its session is over (op 9)", connected, closed(1000, true), "waiting", "retire forget-session wake tell"],
  ["closes with 4004", connecting, closed(4004), "stopped", "retire forget-session tell"],
  ...[4010, 4011, 4012, 4013, 4014].map((code) => [`closes with ${code}`, connecting, closed(code), "stopped", "retire tell"] as const),
  ["ignores a late close", waiting, closed(1000), "waiting", ""],
  ["cannot reach Discord", connecting, { type: "failed", error: "x" }, "waiting", "retire wake tell"],
  ["is refused by 401", connecting, { type: "failed", error: "x", status: 401 }, "stopped", "retire forget-session tell"],
  ["waits as long as Discord says", connecting, { type: "failed", error: "x", waitMs: 9_000 }, "waiting", "retire wake tell"],
  ["cannot store an event", connected, { type: "stuck", error: "full" }, "waiting", "retire wake tell"],
  ["is ended", connected, { type: "unwanted" }, "idle", "retire forget-session tell"],
  ["is ended twice", { at: "idle" }, { type: "unwanted" }, "idle", ""],
  ["is refused by a REST call", connected, { type: "refused", why: "x" }, "stopped", "retire tell"],
];
for (const [what, from, event, to, effects] of table) {
  test(`[W25] the connection ${what}`, () => {
    const [next, done] = stepConnection(from, event, NOW, 0.5);
    assert.deepEqual([next.at, names(done)], [to, effects]);
  });
}

/** The attempt is the one after the wait, so a failure of the first attempt waits as long as the second attempt says. */
const waits: readonly (readonly [
  what: string,
  from: Connection,
  event: ConnectionEvent,
  waitMs: number,
  attempt: number,
  offline: boolean,
])[] = [
  ["that does not open in time", { ...connecting, since: 0 }, wanted(), 1_000, 3, true],
  ["that goes silent", { ...connected, since: 0, attempt: 5 }, wanted(0), 500, 2, false],
  ["that fails", connecting, { type: "failed", error: "x" }, 1_000, 3, true],
  ["that fails with a wait of Discord's", connecting, { type: "failed", error: "x", waitMs: 9_000 }, 9_000, 1, false],
  ["whose socket never opens", connecting, closed(1006), 1_000, 3, true],
  ["that is closed with a code while it opens", connecting, closed(4000), 1_000, 3, false],
  ["that breaks after it was open", { ...connected, since: NOW - 100, attempt: 3 }, closed(1006), 2_000, 4, false],
  ["that could not keep a message", { ...connected, since: NOW - 100, attempt: 1 }, { type: "stuck", error: "x" }, 2_000, 4, false],
];
for (const [what, from, event, waitMs, attempt, offline] of waits) {
  test(`[W25] after a connection ${what} it waits ${waitMs} ms`, () => {
    const [next, effects] = stepConnection(from, event, NOW, 0.5);
    assert.ok(next.at === "waiting");
    assert.deepEqual([next.until - NOW, next.attempt, next.offline], [waitMs, attempt, offline]);
    assert.deepEqual(
      effects.find((effect) => effect.do === "wake"),
      { do: "wake", afterMs: waitMs },
    );
  });
}

test("[W25] an error that only a person can fix says what to do", () => {
  for (const code of [4004, 4010, 4011, 4012, 4013, 4014]) {
    const [next] = stepConnection(connecting, closed(code), NOW, 0.5);
    assert.ok(next.at === "stopped");
    assert.match(next.why, /(Make|Start|Remove|Install|Turn on) /);
  }
});

test("[W25] a session that Discord may still know is never dropped", () => {
  for (const code of [1000, 1001, 1006, 4000, 4001, 4002, 4005, 4008, 4200, 4999]) {
    const [, effects] = stepConnection(connected, closed(code), NOW, 0.5);
    assert.ok(!names(effects).includes("forget-session"), String(code));
  }
});

test("[W25] backoff grows to five minutes and resets after a good connection", () => {
  assert.deepEqual(
    [1, 2, 3, 4, 10, 40].map((attempt) => retryWaitMs(attempt, 0.5)),
    [500, 1_000, 2_000, 4_000, 256_000, 300_000],
  );
  const after = (state: Connection): number => {
    const [next] = stepConnection(state, closed(1006), NOW, 0.5);
    assert.ok(next.at === "waiting");
    return next.until - NOW;
  };
  assert.equal(after({ at: "connected", since: NOW - CONNECTION.goodMs, attempt: 9 }), 500);
  assert.equal(after({ at: "connected", since: NOW - 100, attempt: 9 }), 128_000);
  assert.equal(after({ at: "connected", since: NOW - CONNECTION.goodMs + 1, attempt: 9 }), 128_000);
});

test("[F93] reconnects that Discord asks for do not back off, and failures between them do", () => {
  const waits = (codes: readonly number[], openMs: number): number[] => {
    let state: Connection = { at: "idle" };
    let now = NOW;
    return codes.map((code) => {
      [state] = stepConnection(state, wanted(now), now, 0.5);
      [state] = stepConnection(state, { type: "opened" }, now, 0.5);
      now += openMs;
      [state] = stepConnection(state, closed(code), now, 0.5);
      assert.ok(state.at === "waiting");
      const wait = state.until - now;
      now = state.until;
      return wait;
    });
  };
  assert.deepEqual(new Set(waits(new Array(12).fill(4200), 5_000)), new Set([500]));
  assert.deepEqual(new Set(waits(new Array(12).fill(1001), 5_000)), new Set([500]));
  assert.deepEqual(new Set(waits(new Array(12).fill(4200), 0)), new Set([CONNECTION.askedAgainMs]));
  assert.deepEqual(waits([1006, 4200, 1006, 4200, 1006], 5_000), [500, 500, 1_000, 500, 2_000]);
});

const budget = { total: 1_000, remaining: 900, resetAt: NOW + 3_600_000, gapMs: 5_000 };
const budgets: readonly (readonly [what: string, waitMs: number, lastAt: number, change: Partial<typeof budget>])[] = [
  ["enough", 0, 0, {}],
  ["too soon after the last", 2_000, NOW - 3_000, {}],
  ["at the reserve", 3_600_000, 0, { remaining: IDENTIFIES_KEPT }],
  ["one above the reserve", 0, 0, { remaining: IDENTIFIES_KEPT + 1 }],
  ["spent, but the day is over", 0, 0, { remaining: 0, resetAt: NOW }],
  ["spent, the day is over, and too soon after the last", 2_000, NOW - 3_000, { remaining: 0, resetAt: NOW }],
  ["a small grant is kept half", 0, 0, { total: 20, remaining: 11 }],
  ["a small grant, half used", 3_600_000, 0, { total: 20, remaining: 10 }],
];
for (const [what, waitMs, lastAt, change] of budgets) {
  test(`[P7] a new session: ${what}`, () => {
    assert.equal(identifyWaitMs({ ...budget, ...change }, lastAt, NOW), waitMs);
    assert.equal(isSpent({ ...budget, ...change }, NOW), waitMs === 3_600_000);
  });
}
test("[F93] after a connection that Discord ended at once the next one waits longer, and one that held counts as good", () => {
  const after = (openMs: number): readonly [number, number] => {
    const [next] = stepConnection({ at: "connected", since: NOW - openMs, attempt: 9 }, closed(4200), NOW, 0.5);
    assert.ok(next.at === "waiting");
    return [next.until - NOW, next.attempt];
  };
  assert.deepEqual(after(CONNECTION.askedAgainMs - 1), [CONNECTION.askedAgainMs, 9]);
  assert.equal(after(CONNECTION.askedAgainMs)[0], 500);
  assert.deepEqual([after(CONNECTION.goodMs - 1)[1], after(CONNECTION.goodMs)[1]], [9, 1]);
});

const begin = (): Connection => ({ at: "idle" });
const anyEvent: fc.Arbitrary<ConnectionEvent> = fc.oneof(
  fc.record({ type: fc.constant("wanted" as const), heardAt: fc.nat(), asked: fc.constant(false) }),
  fc.constant({ type: "opened" as const }),
  fc.record({
    type: fc.constant("closed" as const),
    code: fc.constantFrom(1000, 1001, 1006, 4000, 4003, 4004, 4007, 4009, 4014, 4200),
    invalidSession: fc.boolean(),
  }),
  fc.record({ type: fc.constant("failed" as const), error: fc.constant("x") }),
  fc.constant({ type: "stuck" as const, error: "x" }),
  fc.constant({ type: "unwanted" as const }),
);
test("[W25] any event order: at most one socket, none after a stop, never stuck", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyEvent, fc.nat({ max: 200_000 })), { maxLength: 60 }), (events) => {
      let state: Connection = begin();
      let now = NOW;
      let open = false;
      for (const [event, later] of events) {
        now += later;
        const before: Connection = state;
        const [next, effects] = stepConnection(state, event, now, 0.5);
        state = next;
        for (const effect of effects) {
          if (effect.do === "retire") open = false;
          if (effect.do === "connect") {
            assert.equal(open, false, "a second socket");
            open = true;
          }
        }
        assert.equal(open, state.at === "connecting" || state.at === "connected");
        if (before.at === "stopped" && event.type !== "unwanted") assert.equal(state.at, "stopped");
        // The wait ends with a wake-up.
        if (state.at === "waiting" && before !== state) assert.ok(names(effects).includes("wake"));
      }
      const [last] = stepConnection(state, { type: "wanted", heardAt: 0, asked: false }, now + 400_000, 0.5);
      if (state.at !== "stopped") assert.notEqual(last.at, "idle");
    }),
    { numRuns: 1_000 },
  );
});
