/** The pump: what it starts, retries, stops and reports. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Effect } from "./machine/effect.ts";
import { Pump } from "./pump.ts";
import { settle } from "../../test/session/effect-bench.ts";

describe("the pump", () => {
  function bench(outbox: Effect[]): {
    pump: Pump;
    started: string[];
    ends: ((end: "done" | { retryInMs: number }) => void)[];
    aborted: string[];
    at: (now: number) => void;
  } {
    let now = 0;
    const [started, ends, aborted]: [string[], ((end: "done" | { retryInMs: number }) => void)[], string[]] = [[], [], []];
    const pump = new Pump({
      outbox: () => outbox,
      now: () => now,
      start: (effect, { inherited, tries, signal }) => {
        started.push(`${effect.id} ${inherited ? "inherited" : "new"} ${tries}`);
        signal.addEventListener("abort", () => aborted.push(effect.id));
        return new Promise((resolve) => ends.push(resolve));
      },
      keep: (work) => void work,
      failed: () => {},
      landed: () => {},
    });
    return {
      pump,
      started,
      ends,
      aborted,
      at: (to) => {
        now = to;
        pump.sync();
      },
    };
  }
  const cancel = (n: number): Effect => ({ type: "CancelTool", id: `cancel/${n}`, nodeId: "n", callIds: [], reason: "" });
  test("[D5] an effect starts once per incarnation, also when it is done and still open", async () => {
    const b = bench([cancel(1)]);
    b.pump.sync();
    b.pump.sync();
    await settle();
    b.ends[0]?.("done");
    await settle();
    b.at(1_000_000);
    await settle();
    assert.deepEqual(b.started, ["cancel/1 inherited 0"]);
    assert.deepEqual(b.pump.inFlight(), []);
  });
  test("an effect starts at its time, and again when it asks for a retry", async () => {
    const b = bench([{ type: "CallModel", id: "m", notBefore: 100 }]);
    b.pump.sync();
    assert.equal(b.pump.nextStart(), 100);
    b.at(100);
    await settle();
    b.ends[0]?.({ retryInMs: 50 });
    await settle();
    assert.equal(b.pump.nextStart(), 150);
    b.at(149);
    await settle();
    b.at(150);
    await settle();
    assert.deepEqual(b.started, ["m inherited 0", "m inherited 1"]);
  });
  test("a settled effect is stopped", async () => {
    const outbox = [cancel(1)];
    const b = bench(outbox);
    b.pump.sync();
    await settle();
    outbox.splice(0, 1, cancel(2));
    b.pump.sync();
    await settle();
    assert.deepEqual(b.aborted, ["cancel/1"]);
    assert.deepEqual(b.started, ["cancel/1 inherited 0", "cancel/2 new 0"]);
  });
});
