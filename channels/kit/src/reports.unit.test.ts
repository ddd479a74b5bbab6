import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryDatabase } from "../test/world.ts";
import { migrate } from "./database.ts";
import { KIT } from "./limits.ts";
import { DeliveryReports } from "./reports.ts";

test("[P9] reports are sent one at a time, and the alarm does not come while one is under way", async () => {
  const db = memoryDatabase();
  migrate(db);
  const now = 1_700_000_000_000;
  db.query("INSERT INTO deliveries VALUES('d1', ?, 'sent', '[]', NULL, 0, 0, ?)", now, now);
  let told = 0;
  let release: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const reports = new DeliveryReports({
    db,
    now: () => now,
    random: () => 0.5,
    after: () => () => {},
    report: () => {
      told += 1;
      return gate;
    },
  });
  const first = reports.send();
  await reports.send();
  assert.deepEqual([told, reports.nextAt()], [1, now + KIT.leaseMs]);
  release();
  await first;
  assert.deepEqual([told, reports.nextAt()], [1, undefined]);
});
test("[P9] a report that fails is retried after growing waits; the one after it is not held up", async () => {
  const db = memoryDatabase();
  migrate(db);
  let now = 1_700_000_000_000;
  const add = (id: string): unknown => db.query("INSERT INTO deliveries VALUES(?, ?, 'sent', '[\"m1\"]', NULL, 0, 0, ?)", id, now, now);
  const told: string[] = [];
  const fails = new Set(["d1"]);
  const reports = new DeliveryReports({
    db,
    now: () => now,
    random: () => 0.5,
    after: () => () => {},
    report: async ({ deliveryId }) => {
      told.push(deliveryId);
      if (fails.has(deliveryId)) throw new Error("no connection");
    },
  });
  add("d1");
  add("d2");
  await reports.send();
  assert.deepEqual(told, ["d1", "d2"]);
  for (const wait of [1_000, 2_000, 4_000]) {
    assert.equal(reports.nextAt(), now + wait);
    now += wait;
    await reports.send();
  }
  assert.deepEqual(told, ["d1", "d2", "d1", "d1", "d1"]);
  fails.clear();
  now += 8_000;
  await reports.send();
  await reports.send();
  assert.deepEqual([told.length, reports.nextAt()], [6, undefined]);
});
