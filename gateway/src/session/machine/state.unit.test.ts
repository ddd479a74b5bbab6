import assert from "node:assert/strict";
import { test } from "node:test";
import { Bench } from "../../../test/session/machine-bench.ts";
import { archiveEffectId, isOwnCallId } from "./ids.ts";
import { activeRun, shownState } from "./state.ts";

test("[G1] a call id is a session's own when it names the session and a run that has begun", () => {
  const state = { identity: { ref: "ref0000000" }, runCount: 2 } as unknown as Parameters<typeof isOwnCallId>[0];
  for (const id of ["ref0000000/r1/1/0", "ref0000000/r2/999999999/999999999"]) assert.equal(isOwnCallId(state, id), true, id);
  for (const id of [
    "ref0000001/r1/1/0",
    "ref0000000/r3/1/0",
    "ref0000000/r0/1/0",
    "ref0000000/1/1/0",
    "ref0000000/r1/1",
    "ref0000000/r1/1/0/0",
    "ref0000000/r1/x/0",
    "ref0000000/r1/1/x",
    "ref0000000/r1/1/1234567890",
  ])
    assert.equal(isOwnCallId(state, id), false, id);
});
test("an archive for a waiting run shows as thinking, and the run is still active", () => {
  const b = new Bench();
  assert.deepEqual([shownState(b.state.run), activeRun(b.state.run)], ["idle", undefined]);
  b.say("a");
  const { run } = b.state;
  assert.ok(run.phase === "thinking");
  assert.deepEqual([shownState(run), activeRun(run)], ["thinking", run]);
  b.reply("one");
  b.apply({ type: "Reset" });
  const archiving = b.state.run;
  assert.ok(archiving.phase === "archiving");
  assert.deepEqual([shownState(archiving), activeRun(archiving)], ["archiving", undefined]);
  const resumed = { ...archiving, resume: run } as unknown as typeof archiving;
  assert.deepEqual([shownState(resumed), activeRun(resumed)], ["thinking", run]);
});
test("the effects of an archive's stages have names of their own", () => {
  assert.deepEqual(
    (["archive", "summarize"] as const).map((stage) => archiveEffectId({ ordinal: 3, attempt: 2, stage })),
    ["a3/2", "s3/2"],
  );
});
