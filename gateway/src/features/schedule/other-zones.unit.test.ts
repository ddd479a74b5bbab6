import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "./job.ts";
import { otherZones } from "./other-zones.ts";

const job = (id: string, schedule: Job["body"]["schedule"]): Pick<Job, "id" | "body"> => ({
  id,
  body: { name: id, createdAt: 0, updatedAt: 0, schedule, spec: { mode: "systemEvent", text: "x" } },
});
const cron = (id: string, tz: string) => job(id, { kind: "cron", expr: "0 7 * * *", tz });

test("[SC3] a change of the owner's time zone names the jobs that keep another one", () => {
  assert.deepEqual(otherZones([], "Europe/Berlin"), []);
  assert.deepEqual(otherZones([cron("a", "Europe/Berlin"), job("b", { kind: "at", atMs: 5 })], "Europe/Berlin"), []);
  assert.deepEqual(otherZones([cron("a", "UTC")], "Europe/Berlin"), [
    '1 job keeps its time zone: a (UTC). To change one: `gsv cron edit a --cron "0 7 * * *" --tz Europe/Berlin`.',
  ]);
  assert.deepEqual(otherZones([cron("a", "UTC"), cron("b", "Zulu")], "Etc/UTC"), [], "the same zone under another name");
  const many = ["a", "b", "c", "d"].map((id) => cron(id, "UTC"));
  assert.match(otherZones(many, "Europe/Berlin")[0] ?? "", /^4 jobs keep their time zones: a \(UTC\), b \(UTC\), c \(UTC\) and 1 more\. /);
});
