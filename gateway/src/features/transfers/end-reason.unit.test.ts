import assert from "node:assert/strict";
import { test } from "node:test";
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import { reasonOfEnd } from "./end-reason.ts";

test("[TF7] an end tells only reasons of tools, files and copies; every other one is that of a failed end", () => {
  const kept = Object.keys(ERRORS).filter((reason) => reason !== "transfer.failed" && reasonOfEnd(reason) === reason);
  const families = new Set(kept.map((reason) => reason.split(".")[0]));
  assert.deepEqual([...families].sort(), ["file", "path", "tool", "transfer"]);
  assert.deepEqual(
    kept.filter((reason) => reason.startsWith("transfer.")),
    ["transfer.checksum", "transfer.source_changed"],
  );
  for (const reason of [
    "transfer.busy",
    "limit.rate",
    "auth.required",
    "storage.failed",
    "transfer.cancelled",
    "",
    "tool.none",
    "tool",
    "__proto__",
  ])
    assert.equal(reasonOfEnd(reason), "transfer.failed", reason);
});
