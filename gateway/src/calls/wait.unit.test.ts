import assert from "node:assert/strict";
import { test } from "node:test";
import { askedWait, durationText, withoutWait, withWait } from "./wait.ts";

test("[OM1] a wait is a length of at most a day, or 0", () => {
  const waitOf = (wait: string): unknown => askedWait("lap__Bash", { wait }, {}, undefined);
  for (const [wait, waitMs] of [
    ["2h", 7_200_000],
    ["30m", 1_800_000],
    ["90 seconds", 90_000],
    ["1d", 86_400_000],
    [" 1H 30M ", 5_400_000],
    ["1.5h", 5_400_000],
  ] as const)
    assert.deepEqual(waitOf(wait), { ok: true, waitMs, isAsked: true, args: {} }, wait);
  assert.deepEqual(waitOf(" 0 "), { ok: true, isAsked: true, args: {} });
  for (const wait of ["", "2", "h", "-2h", "2w", "2h later", "9999999s"])
    assert.match(JSON.stringify(waitOf(wait)), /is a time such as/, wait);
});

test("[OM1] the argument is the gateway's: the call's own wait comes before that of the run, and 0 means not at all", () => {
  const asked = (args: unknown, byDefault?: number): unknown => askedWait("lap__Bash", args, {}, byDefault);
  assert.deepEqual(asked({ command: "ls" }), { ok: true, isAsked: false, args: { command: "ls" } });
  assert.deepEqual(asked({ command: "ls" }, 5), { ok: true, waitMs: 5, isAsked: false, args: { command: "ls" } });
  assert.deepEqual(asked({ command: "ls" }, 0), { ok: true, isAsked: false, args: { command: "ls" } });
  assert.deepEqual(asked({ command: "ls", wait: "1m" }, 5), { ok: true, waitMs: 60_000, isAsked: true, args: { command: "ls" } });
  assert.deepEqual(asked({ command: "ls", wait: "0" }, 5), { ok: true, isAsked: true, args: { command: "ls" } });
  for (const wait of ["soon", "25h", 7, null])
    assert.deepEqual(asked({ wait }), {
      ok: false,
      problem: 'Not run: `wait` of lap__Bash is a time such as "2h" or "30m", at most "24h".',
    });
});

test("[OM1] a tool that has an argument of this name itself keeps it", () => {
  const own = { type: "object", properties: { wait: { type: "number" } } };
  assert.deepEqual(askedWait("lap__Press", { wait: 3 }, own, undefined), { ok: true, isAsked: false, args: { wait: 3 } });
  assert.equal(withWait(own), own);
  const schema = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
  const more = withWait(schema);
  assert.deepEqual(Object.keys(more["properties"] as object), ["command", "wait"]);
  assert.deepEqual(more["required"], ["command"]);
  assert.deepEqual(askedWait("lap__Bash", { wait: "1s" }, more, undefined), { ok: true, waitMs: 1_000, isAsked: true, args: {} });
  assert.deepEqual(withoutWait({ command: "ls", wait: "2h" }), { command: "ls" });
});

test("a time has its two largest units", () => {
  for (const [ms, text] of [
    [7_200_000, "2 h"],
    [5_400_000, "1 h 30 min"],
    [61_000, "1 min 1 s"],
    [86_400_000, "24 h"],
    [3_601_000, "1 h 1 s"],
    [400, "0 s"],
    [-5, "0 s"],
  ] as const)
    assert.equal(durationText(ms), text);
});
