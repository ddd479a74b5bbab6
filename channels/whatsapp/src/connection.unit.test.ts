import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { CONNECTION, type Effect, type Event, type State, step, waitAfter } from "./connection.ts";

const open: State = { kind: "open", since: 1_000, attempt: 3 };
const connecting: State = { kind: "connecting", since: 1_000, attempt: 2 };
const pairing: State = { kind: "pairing", since: 1_000, until: 121_000 };
const waiting: State = { kind: "waiting", until: 5_000, attempt: 2, note: "lost" };
const idle: State = { kind: "idle" };
const stopped: State = { kind: "stopped", note: "no" };
const closed = (reason: number | undefined, now = 100_000, paired = true): Event => ({ type: "closed", now, reason, paired, random: 0.5 });
const wanted = (now: number, paired = true, lastStanzaAt?: number): Extract<Event, { type: "wanted" }> => ({
  type: "wanted",
  now,
  paired,
  lastStanzaAt,
  asked: false,
});
const names = (effects: readonly Effect[]): string => effects.map(({ type }) => type).join(" ");

const table: readonly (readonly [what: string, from: State, event: Event, to: State["kind"], effects: string])[] = [
  ["not linked: no socket", idle, wanted(1, false), "idle", ""],
  ["a linked device connects", idle, wanted(1), "connecting", "OpenSocket"],
  ["a connecting socket is not touched", connecting, wanted(30_000), "connecting", ""],
  ["a stuck connecting socket is closed and retried later", connecting, wanted(62_000), "waiting", "CloseSocket WakeAfter"],
  ["a connecting socket has its whole time", connecting, wanted(1_000 + CONNECTION.connectingMs), "connecting", ""],
  ["a connection may be silent for its whole time", open, wanted(100_000 + CONNECTION.silentMs, true, 100_000), "open", ""],
  ["and no longer", open, wanted(100_001 + CONNECTION.silentMs, true, 100_000), "waiting", "CloseSocket WakeAfter"],
  ["a code is shown until its time", pairing, wanted(120_999, false), "pairing", ""],
  ["a connection of almost a minute counts as an attempt", open, closed(500, 999 + CONNECTION.settledMs), "stopped", ""],
  ["one of a minute does not", open, closed(500, 1_000 + CONNECTION.settledMs), "waiting", "WakeAfter"],
  [
    "login again in the last moment shows the same code",
    pairing,
    { type: "login", now: 121_000, paired: false, force: false },
    "pairing",
    "",
  ],
  ["a wait continues until its time", waiting, wanted(4_999), "waiting", ""],
  ["after the wait it connects", waiting, wanted(5_000), "connecting", "OpenSocket"],
  ["stopped stays stopped", stopped, wanted(1), "stopped", ""],
  ["a person's start connects", stopped, { ...wanted(1), asked: true }, "connecting", "OpenSocket"],
  ["a start without a linked device stays stopped", stopped, { ...wanted(1, false), asked: true }, "stopped", ""],
  ["an active connection stays", open, wanted(200_000, true, 190_000), "open", ""],
  ["a silent connection is closed", open, wanted(200_000, true, 100_000), "waiting", "CloseSocket WakeAfter"],
  ["silence from before the connection does not count", { ...open, since: 190_000 }, wanted(200_000, true, 5), "open", ""],
  ["an unscanned code expires", pairing, wanted(121_000, false), "idle", "CloseSocket"],
  ["515 after a login: reconnects at once", pairing, closed(515), "connecting", "OpenSocket"],
  ["515 in a session: reconnects at once", open, closed(515), "connecting", "OpenSocket"],
  ["515 without a linked device ends the login", pairing, closed(515, 2_000, false), "idle", "CloseSocket"],
  ["401: deletes the keys", open, closed(401), "stopped", "ClearKeys"],
  ["440: waits and marks a gap", open, closed(440), "waiting", "MarkGap WakeAfter"],
  ["403 stops", open, closed(403), "stopped", ""],
  ["411 stops", connecting, closed(411), "stopped", ""],
  ["500 waits", { ...open, attempt: 2 }, closed(500, 2_000), "waiting", "WakeAfter"],
  ["500 of a settled connection waits", open, closed(500), "waiting", "WakeAfter"],
  ["repeated 500 stops", { ...open, attempt: 3 }, closed(500, 2_000), "stopped", ""],
  ["500 in a login stops", pairing, closed(500, 2_000, false), "stopped", ""],
  ["408 waits", open, closed(408), "waiting", "WakeAfter"],
  ["428 waits", open, closed(428), "waiting", "WakeAfter"],
  ["503 waits", connecting, closed(503), "waiting", "WakeAfter"],
  ["a network failure waits", connecting, closed(undefined), "waiting", "WakeAfter"],
  ["a broken login ends", pairing, closed(408, 2_000, false), "idle", "CloseSocket"],
  ["a late close event is ignored", waiting, closed(408), "waiting", ""],
  ["login begins", idle, { type: "login", now: 1, paired: false, force: false }, "pairing", "ClearKeys OpenSocket WakeAfter"],
  ["login again shows the same code", pairing, { type: "login", now: 2_000, paired: false, force: false }, "pairing", ""],
  [
    "login by phone: closes the first socket, then opens another",
    pairing,
    { type: "login", now: 2_000, paired: false, force: false, phone: "316" },
    "pairing",
    "CloseSocket ClearKeys OpenSocket WakeAfter",
  ],
  ["login of a linked device that is connected", open, { type: "login", now: 2_000, paired: true, force: false }, "open", ""],
  ["login while waiting connects now", waiting, { type: "login", now: 2_000, paired: true, force: false }, "connecting", "OpenSocket"],
  ["login while stopped connects", stopped, { type: "login", now: 2_000, paired: true, force: false }, "connecting", "OpenSocket"],
  [
    "forced login starts again",
    open,
    { type: "login", now: 2_000, paired: true, force: true },
    "pairing",
    "CloseSocket ClearKeys OpenSocket WakeAfter",
  ],
  ["opened", connecting, { type: "opened", now: 3_000 }, "open", ""],
  ["opened twice", open, { type: "opened", now: 3_000 }, "open", ""],
  ["opened too late", idle, { type: "opened", now: 3_000 }, "idle", ""],
  ["stop", open, { type: "disconnect" }, "idle", "CloseSocket"],
  ["stop while waiting", waiting, { type: "disconnect" }, "idle", ""],
  ["logout", open, { type: "loggedOut" }, "idle", "CloseSocket ClearKeys"],
  ["logout while stopped", stopped, { type: "loggedOut" }, "idle", "ClearKeys"],
];

describe("the connection", () => {
  for (const [what, from, event, to, effects] of table) {
    test(`[P12] ${what}`, () => {
      const next = step(from, event);
      assert.equal(next.state.kind, to);
      assert.equal(names(next.effects), effects);
    });
  }

  test("[P12] backoff grows from 2 s to five minutes, plus or minus 25 %", () => {
    assert.deepEqual(
      [0, 1, 2, 3, 7, 8, 100].map((attempt) => waitAfter(attempt, 0.5)),
      [2_000, 4_000, 8_000, 16_000, 256_000, 300_000, 300_000],
    );
    assert.equal(waitAfter(0, 0), 1_500);
    assert.equal(waitAfter(1, 0.999), 4_998);
    assert.equal(waitAfter(50, 0.999), 300_000);
  });

  test("[P12] a connection that does not open waits longer each time; one that was open for a minute starts over", () => {
    const after = (from: State, event: Event): readonly [ms: number, attempt: number] => {
      const next = step(from, event);
      assert(next.state.kind === "waiting");
      const now = "now" in event ? event.now : 0;
      assert.deepEqual(next.effects.at(-1), { type: "WakeAfter", ms: next.state.until - now });
      return [next.state.until - now, next.state.attempt];
    };
    assert.deepEqual(after(connecting, wanted(62_000)), [8_000, 3]);
    assert.deepEqual(after(connecting, closed(503)), [8_000, 3]);
    assert.deepEqual(after({ ...open, attempt: 2 }, closed(503, 2_000)), [8_000, 3]);
    assert.deepEqual(after(open, closed(503)), [2_000, 1]);
    assert.deepEqual(after(open, wanted(200_000, true, 100_000)), [2_000, 1]);
  });

  test("a stop keeps its note, and a login its phone number", () => {
    assert.deepEqual(step(open, { type: "disconnect", note: "no number" }).state, { kind: "idle", note: "no number" });
    assert.deepEqual(step(open, { type: "disconnect" }).state, { kind: "idle" });
    const login = (phone?: string): State =>
      step(idle, { type: "login", now: 5, paired: false, force: false, ...(phone === undefined ? {} : { phone }) }).state;
    assert.deepEqual(login("316"), { kind: "pairing", since: 5, until: 5 + CONNECTION.pairingMs, phone: "316" });
    assert.deepEqual(login(), { kind: "pairing", since: 5, until: 5 + CONNECTION.pairingMs });
  });

  test("[P12] two programs on one link do not evict each other every two seconds", () => {
    let state: State = open;
    const waits: number[] = [];
    for (let now = 2_000; waits.length < 5; ) {
      const after = step(state, closed(440, now));
      assert(after.state.kind === "waiting");
      waits.push(after.state.until - now);
      now = after.state.until;
      state = step(step(after.state, wanted(now)).state, { type: "opened", now }).state;
      now += 500;
    }
    assert.deepEqual(waits, [16_000, 32_000, 64_000, 128_000, 256_000]);
    const calm = step({ kind: "open", since: 0, attempt: 9 }, closed(440, CONNECTION.settledMs));
    assert(calm.state.kind === "waiting");
    assert.equal(calm.state.until, CONNECTION.settledMs + 2_000);
  });

  test("[P12] a failed login names the cause: too slow, or WhatsApp out of reach", () => {
    const note = (reason: number | undefined): string => {
      const { state } = step(pairing, closed(reason, 2_000, false));
      return state.kind === "idle" ? (state.note ?? "") : state.kind;
    };
    assert.match(note(408), /not finished in time/);
    assert.match(note(undefined), /could not be reached/);
    assert.match(note(503), /\(503\)/);
  });

  test("[P12] any event sequence: never two sockets, and one exactly when the state says so", () => {
    const event: fc.Arbitrary<(now: number) => Event> = fc.oneof(
      fc.record({ paired: fc.boolean(), asked: fc.boolean(), ago: fc.option(fc.integer({ min: 0, max: 200_000 })) }).map(
        ({ paired, asked, ago }) =>
          (now: number): Event => ({ type: "wanted", now, paired, asked, lastStanzaAt: ago === null ? undefined : now - ago }),
      ),
      fc.record({ paired: fc.boolean(), force: fc.boolean(), phone: fc.boolean() }).map(
        ({ paired, force, phone }) =>
          (now: number): Event => ({ type: "login", now, paired, force, ...(phone ? { phone: "31612345678" } : {}) }),
      ),
      fc.constant((now: number): Event => ({ type: "opened", now })),
      fc
        .record({
          reason: fc.constantFrom(undefined, 401, 403, 408, 411, 428, 440, 500, 503, 515, 999),
          paired: fc.boolean(),
          random: fc.double({ min: 0, max: 0.999, noNaN: true }),
        })
        .map(
          ({ reason, paired, random }) =>
            (now: number): Event => ({ type: "closed", now, reason, paired, random }),
        ),
      fc.constant((): Event => ({ type: "disconnect" })),
      fc.constant((): Event => ({ type: "loggedOut" })),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.integer({ min: 0, max: 150_000 })), { maxLength: 40 }), (events) => {
        let state: State = idle;
        let sockets = 0;
        let now = 0;
        for (const [make, passed] of events) {
          now += passed;
          const next = make(now);
          // Only an existing socket can open or close.
          if ((next.type === "closed" || next.type === "opened") && sockets === 0) continue;
          if (next.type === "closed") sockets--;
          const after = step(state, next);
          for (const { type } of after.effects) {
            if (type === "OpenSocket") sockets++;
            if (type === "CloseSocket") sockets = Math.max(0, sockets - 1);
            assert(sockets <= 1, `${state.kind} + ${next.type}: two sockets`);
          }
          state = after.state;
          assert.equal(sockets === 1, ["pairing", "connecting", "open"].includes(state.kind), `${next.type} -> ${state.kind}`);
          if (state.kind === "waiting") assert(state.until - now <= CONNECTION.longestWaitMs && state.until > now);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
