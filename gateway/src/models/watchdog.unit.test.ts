import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { manualTime } from "../../test/models/support.ts";
import { startWatchdog } from "./watchdog.ts";

describe("watchdog", () => {
  const start = (wholeMs = 600_000) => {
    const time = manualTime();
    const fired: string[] = [];
    return { time, fired, dog: startWatchdog(time, time.now, wholeMs, (phase) => fired.push(phase)) };
  };
  it("[P5] 60 s to the first byte", () => {
    const { time, fired } = start();
    time.advance(59_999);
    assert.deepEqual(fired, []);
    time.advance(1);
    assert.deepEqual(fired, ["first_byte"]);
  });
  it("[P5] 45 s between bytes, measured from the last one", () => {
    const { time, fired, dog } = start();
    time.advance(30_000);
    dog.touch();
    for (let i = 0; i < 100; i++) {
      time.advance(1000);
      dog.touch();
    }
    time.advance(44_999);
    assert.deepEqual(fired, []);
    time.advance(1);
    assert.deepEqual(fired, ["idle"]);
  });
  it("[P5] one byte a second is bounded by the total time", () => {
    const { time, fired, dog } = start(600_000);
    for (let i = 0; i < 599; i++) {
      time.advance(1000);
      dog.touch();
    }
    assert.deepEqual(fired, []);
    time.advance(1000);
    assert.deepEqual(fired, ["whole"]);
  });
  it("uses one timer, and none after it is stopped", () => {
    const { time, dog } = start();
    for (let i = 0; i < 50; i++) dog.touch();
    assert.equal(time.pending, 1);
    dog.stop();
    assert.equal(time.pending, 0);
  });
});
