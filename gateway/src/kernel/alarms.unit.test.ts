import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Logger } from "../platform/log.ts";
import { Alarms, type Participant } from "./alarms.ts";

const quiet: Logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
/** `failures`: how often the platform fails to set the alarm, from the first time on. */
function make(participants: readonly Participant[], failures = 0) {
  const clock = { at: 0, now: () => clock.at };
  const set: number[] = [];
  let left = failures;
  const storage = {
    setAlarm: async (at: number | Date): Promise<void> => {
      if (left-- > 0) throw new Error("no");
      set.push(Number(at));
    },
  };
  return { clock, set, alarms: new Alarms(storage, clock, quiet, participants) };
}
/** A deadline that is over once it has been run. */
function once(name: string, at: number, ran: string[], act: () => void = () => undefined): Participant {
  let next: number | undefined = at;
  return {
    name,
    next: () => next,
    run: () => {
      act();
      next = undefined;
      ran.push(name);
    },
  };
}

describe("[W13] many deadlines over one alarm", () => {
  test("the alarm is set to the nearest deadline, and only when it becomes earlier", () => {
    let at: number | undefined = 500;
    const { alarms, set } = make([
      { name: "a", next: () => at, run: () => undefined },
      { name: "b", next: () => undefined, run: () => undefined },
    ]);
    alarms.arm();
    alarms.arm();
    at = 700;
    alarms.arm();
    at = 300;
    alarms.arm();
    assert.deepEqual(set, [500, 300]);
  });

  test("a single new deadline is compared with the alarm that is set: no one is asked while that is early enough", () => {
    let asked = 0;
    let at = 500;
    const next = (): number => {
      asked++;
      return at;
    };
    const { alarms, set } = make([{ name: "a", next, run: () => undefined }]);
    alarms.armFor(undefined);
    assert.deepEqual([set, asked], [[], 0]);
    alarms.armFor(900);
    assert.deepEqual([set, asked], [[500], 1]);
    alarms.armFor(500);
    alarms.armFor(501);
    assert.deepEqual([set, asked], [[500], 1]);
    at = 300;
    alarms.armFor(300);
    assert.deepEqual([set, asked], [[500, 300], 2]);
  });

  test("without a deadline no alarm is set", () => {
    const { alarms, set } = make([{ name: "a", next: () => undefined, run: () => undefined }]);
    alarms.arm();
    assert.deepEqual(set, []);
  });

  test("only due participants run, and the others keep their alarm", async () => {
    const ran: string[] = [];
    const { alarms, clock, set } = make([once("early", 100, ran), once("late", 900, ran)]);
    clock.at = 100;
    await alarms.fire();
    assert.deepEqual(ran, ["early"]);
    assert.deepEqual(set, [900]);
  });

  test("a failing participant stops neither the others nor the next alarm", async () => {
    const ran: string[] = [];
    const broken: Participant = {
      name: "broken",
      next: () => 100,
      run: () => {
        throw new Error("bug");
      },
    };
    const rejects: Participant = {
      name: "rejects",
      next: () => 100,
      run: async () => {
        throw new Error("bug");
      },
    };
    const mute: Participant = {
      name: "mute",
      next: () => {
        throw new Error("bug");
      },
      run: () => undefined,
    };
    const { alarms, clock, set } = make([broken, rejects, mute, once("heartbeat", 100, ran), once("cron", 5000, ran)]);
    clock.at = 100;
    await alarms.fire();
    assert.deepEqual(ran, ["heartbeat"]);
    assert.equal(set.length, 1);
    assert.ok((set[0] ?? 0) > 100 && (set[0] ?? 0) <= 5000);
  });

  test("a participant that keeps failing is retried with growing pauses of at most five minutes", async () => {
    const { alarms, clock, set } = make([
      {
        name: "broken",
        next: () => 0,
        run: () => {
          throw new Error("bug");
        },
      },
    ]);
    const waits: number[] = [];
    for (let round = 0; round < 14; round++) {
      await alarms.fire();
      const next = set.at(-1) ?? 0;
      waits.push(next - clock.at);
      clock.at = next;
    }
    assert.deepEqual(waits.slice(0, 4), [1000, 2000, 4000, 8000]);
    assert.equal(Math.max(...waits), 300_000);
  });

  test("[F80] an alarm that could not be set is set the next time, and only then", async () => {
    const { alarms, set } = make([{ name: "a", next: () => 500, run: () => undefined }], 1);
    alarms.arm();
    await new Promise(setImmediate);
    assert.deepEqual(set, []);
    alarms.arm();
    alarms.arm();
    assert.deepEqual(set, [500]);
  });
});
