import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChannelAccount } from "../../../protocol/gen/types.ts";
import { memoryDatabase } from "../test/world.ts";
import { migrate } from "./database.ts";
import { KeyValues } from "./kv.ts";
import { KIT } from "./limits.ts";
import { StatusReport } from "./status-report.ts";

/** An account whose state is `said`; the gateway answers when the test says so. */
class Rig {
  now = 1_700_000_000_000;
  said = "first";
  readonly got: string[] = [];
  answer: () => Promise<void> = () => Promise.resolve();
  readonly report: StatusReport;

  constructor() {
    const db = memoryDatabase();
    migrate(db);
    this.report = new StatusReport({
      kv: new KeyValues(db),
      now: () => this.now,
      random: () => 0.5,
      after: () => () => {},
      status: () => ({ accountId: "default", connected: true, error: this.said }) as ChannelAccount,
      send: ({ error }) => {
        this.got.push(error ?? "");
        return this.answer();
      },
    });
  }
}

test("[P12] a change is reported at once, and once", async () => {
  const { report, got, now } = new Rig();
  assert.equal(report.nextAt(), undefined);
  report.changed();
  assert.equal(report.nextAt(), now);
  await report.send();
  await report.send();
  assert.deepEqual([got, report.nextAt()], [["first"], undefined]);
});
test("[P12] a change during a report is reported again", async () => {
  const rig = new Rig();
  rig.report.changed();
  rig.answer = async () => {
    if (rig.got.length > 1) return;
    rig.said = "second";
    rig.report.changed();
    await rig.report.send();
    assert.deepEqual(rig.got, ["first"], "one report at a time");
    assert.ok((rig.report.nextAt() ?? 0) >= rig.now + KIT.leaseMs, "the alarm does not come while a report is under way");
  };
  await rig.report.send();
  assert.equal(rig.report.nextAt(), rig.now);
  await rig.report.send();
  assert.deepEqual([rig.got, rig.report.nextAt()], [["first", "second"], undefined]);
});
test("[P12] a report that fails is retried, after growing waits", async () => {
  const rig = new Rig();
  rig.answer = () => Promise.reject(new Error("no connection"));
  rig.report.changed();
  for (const wait of [1_000, 2_000, 4_000]) {
    await rig.report.send();
    assert.equal(rig.report.nextAt(), rig.now + wait);
    await rig.report.send();
    rig.now += wait;
  }
  assert.equal(rig.got.length, 3, "none before its time");
  rig.answer = () => Promise.resolve();
  await rig.report.send();
  assert.deepEqual([rig.got.length, rig.report.nextAt()], [4, undefined]);
});
