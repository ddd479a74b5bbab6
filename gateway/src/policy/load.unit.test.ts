import assert from "node:assert/strict";
import { test } from "node:test";
import { NOT_READ } from "./deletion/reading.ts";
import { Policies } from "./load.ts";

test("[PO13] [PO12] a policy has what reads deletions; without it each command may delete many files", async () => {
  const { deletionOf, deletesMany, deleterIn } = (await new Policies().of(undefined)).deletions;
  assert.deepEqual([deletionOf("ls"), deletionOf("rm -rf a"), deletesMany(["ls"]), deleterIn("rm -rf a")], ["few", "many", false, "rm"]);
  assert.deepEqual([NOT_READ.deletionOf("ls"), NOT_READ.deletesMany(["ls"]), NOT_READ.deleterIn("rm -rf a")], ["many", true, undefined]);
});
