import assert from "node:assert/strict";
import { test } from "node:test";
import { onAlarm } from "./alarm.ts";

async function alarmsAfter(work: () => Promise<void>): Promise<readonly number[]> {
  const set: number[] = [];
  await onAlarm(
    "channel-test",
    work,
    async (at) => void set.push(at),
    () => 1_000,
  );
  return set;
}

test("[P12] an alarm that fails is followed by another one, and is logged", async (context) => {
  const log = context.mock.method(console, "log", () => undefined);
  assert.deepEqual(await alarmsAfter(() => Promise.reject(new Error("the disk is full"))), [31_000]);
  assert.match(String(log.mock.calls[0]?.arguments[0]), /"event":"alarm_failed","component":"channel-test","error":"the disk is full"/);
});
test("[P12] an alarm that works sets what it needs itself", async () => {
  assert.deepEqual(await alarmsAfter(() => Promise.resolve()), []);
});
