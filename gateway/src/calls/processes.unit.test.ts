import assert from "node:assert/strict";
import { test } from "node:test";
import { runningProcess } from "./processes.ts";

test("[P14] a result that says running names its process; anything else names none", () => {
  assert.equal(runningProcess({ status: "running", sessionId: "p-1" }), "p-1");
  for (const result of [
    null,
    undefined,
    "running",
    5,
    {},
    { status: "exited", sessionId: "p-1" },
    { status: "running" },
    { status: "running", sessionId: 5 },
    { status: "running", sessionId: "a b" },
    { status: "running", sessionId: "x".repeat(129) },
  ])
    assert.equal(runningProcess(result), undefined, JSON.stringify(result));
});
