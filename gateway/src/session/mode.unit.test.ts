/** Who may set a mode, for how long, and how it is shown. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ApprovalConfig, PolicyMode } from "../../../protocol/gen/types.ts";
import { configWith } from "../../test/models/support.ts";
import { changedMode, modeAt, modeText, modeTime, currentMode } from "./mode.ts";

const HOUR = 3_600_000;
const WALL = Date.UTC(2026, 10, 22, 13, 5);
const changed = (mode: PolicyMode, modeMs?: number, { isOwners = true, byClient = true } = {}) => {
  const outcome = changedMode({ mode, modeMs }, { isOwners, byClient, wall: WALL });
  return outcome.ok ? outcome.value : `${outcome.error.reason}: ${outcome.error.message}`;
};

describe("[PO8] a change of the mode", () => {
  test("is made in the owner's own conversation, and full by a client only", () => {
    assert.match(String(changed("plan", undefined, { isOwners: false })), /^auth\.forbidden: .*other people take part/);
    assert.match(String(changed("full", undefined, { byClient: false })), /^auth\.forbidden: .*`gsv chat '\/mode full'`\.$/);
    assert.deepEqual(changed("auto", undefined, { byClient: false }), { mode: "auto" });
  });
  test("holds until it is changed, full for an hour, or for a time of up to a day", () => {
    assert.deepEqual(changed("plan"), { mode: "plan" });
    assert.deepEqual(changed("full"), { mode: "full", modeUntil: WALL + HOUR });
    assert.deepEqual(changed("full", 24 * HOUR), { mode: "full", modeUntil: WALL + 24 * HOUR });
    assert.deepEqual(changed("ask", 1), { mode: "ask", modeUntil: WALL + 1 });
    for (const ms of [0, -1, 24 * HOUR + 1, Number.NaN])
      assert.match(String(changed("ask", ms)), /^protocol\.invalid_params: .*at most 24 hours/);
  });
  test("ends at its time", () => {
    assert.equal(modeAt({ mode: "full", modeUntil: WALL }, WALL - 1), "full");
    assert.equal(modeAt({ mode: "full", modeUntil: WALL }, WALL), undefined);
    assert.equal(modeAt({ mode: "plan" }, WALL), "plan");
  });
});

test("[PO8] a time is minutes, hours or a day", () => {
  assert.deepEqual(["90m", "2h", "1D", "24h", "1440m", "1m"].map(modeTime), [
    90 * 60_000,
    2 * HOUR,
    24 * HOUR,
    24 * HOUR,
    24 * HOUR,
    60_000,
  ]);
  for (const none of ["0m", "25h", "1441m", "2d", "1", "h", "1s", "-1h", "1.5h", ""]) assert.equal(modeTime(none), undefined, none);
});

test("[PO8] the mode is shown with where it comes from", () => {
  assert.equal(modeText("full", WALL, "Europe/Berlin"), "full until 2026-11-22 14:05 (Europe/Berlin)");
  const shown = (toolApproval?: ApprovalConfig): string => currentMode({}, configWith({}, { toolApproval }), WALL);
  assert.equal(currentMode({ mode: "plan" }, undefined, WALL), "plan");
  assert.equal(currentMode({ mode: "full", modeUntil: WALL + 1 }, undefined, WALL), "full until 2026-11-22 13:05 (UTC)");
  assert.equal(currentMode({ mode: "full", modeUntil: WALL }, undefined, WALL), "auto, the default");
  assert.deepEqual([shown(), shown({ mode: "plan" })], ["auto, the default", "plan, as configured"]);
  assert.equal(shown({ defaultDecision: "allow" }), "not set: what no rule decides runs");
  assert.equal(shown({ defaultDecision: "ask" }), "not set: what no rule decides asks");
  assert.equal(shown({ defaultDecision: "deny" }), "not set: what no rule decides is denied");
});
