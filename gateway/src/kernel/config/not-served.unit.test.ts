/** Settings that nothing reads: refused when they are set, kept and shown as not in force when an earlier version stored them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { readPath, setPath, unsetPath } from "./change.ts";
import { effective } from "./effective.ts";

const reasonOf = (outcome: ReturnType<typeof setPath>): string => (outcome.ok ? "ok" : outcome.error.reason);

describe("[F1] a setting that nothing reads", () => {
  test("is refused with a reason of its own, alone and inside a larger value", () => {
    const refused = setPath({}, "cron.maxJobs", 7);
    assert.ok(!refused.ok);
    assert.equal(refused.error.reason, "config.not_served");
    assert.match(refused.error.message, /does not use cron, so it was not stored/);
    assert.equal(reasonOf(setPath({}, "cron", { enabled: true })), "config.not_served");
    assert.equal(reasonOf(setPath({}, "cron", {})), "config.not_served");
  });

  test("has no default, so that the settings in force do not show it", () => {
    assert.ok(!Object.hasOwn(effective({}), "cron"));
  });

  const stored: GsvConfig = {
    userTimezone: "Europe/Berlin",
    cron: { maxJobs: 173 },
  };

  test("of an earlier version is kept, and no run gets it", () => {
    const inForce = effective(stored);
    assert.equal(inForce.userTimezone, "Europe/Berlin");
    assert.ok(!Object.hasOwn(inForce, "cron"));
  });

  test("of an earlier version is shown as not in force", () => {
    const whole = readPath(stored, undefined);
    assert.ok(whole.ok);
    assert.deepEqual(whole.value.notInForce, ["cron"]);
    assert.ok(!JSON.stringify(whole.value.value).includes("173"));
    const part = readPath(stored, "cron.maxJobs");
    assert.ok(part.ok);
    assert.deepEqual([part.value.value, part.value.notInForce], [173, ["cron"]]);
    const other = readPath(stored, "userTimezone");
    assert.ok(other.ok);
    assert.deepEqual(other.value.notInForce, []);
  });

  test("of an earlier version blocks no other change, may be sent back unchanged, and can be removed", () => {
    const other = setPath(stored, "model.provider", "openai");
    assert.ok(other.ok);
    assert.deepEqual(other.value.config.cron, stored.cron);
    assert.equal(reasonOf(setPath(stored, "cron", stored.cron)), "ok");
    assert.equal(reasonOf(setPath(stored, "cron.maxJobs", 2)), "config.not_served");
    const removed = unsetPath(stored, "cron");
    assert.ok(removed.ok && removed.value.wasSet && removed.value.config.cron === undefined);
  });
});
