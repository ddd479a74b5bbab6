import assert from "node:assert/strict";
import { test } from "node:test";
import { deleterIn, deletesMany, deletionOf, isReaderLoaded } from "./deletion-reader.ts";
import { Policies } from "./load.ts";

test("[PO13] [PO12] before what reads deletions is loaded each command may delete many files; a policy is given with it loaded", async () => {
  assert.deepEqual([isReaderLoaded(), deletionOf("ls"), deletesMany(["ls"]), deleterIn("ls")], [false, "many", true, undefined]);
  await new Policies().of(undefined);
  assert.deepEqual([isReaderLoaded(), deletionOf("ls"), deletesMany(["ls"]), deleterIn("rm -rf a")], [true, "few", false, "rm"]);
});
