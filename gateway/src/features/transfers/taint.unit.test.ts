/** The label of what is copied, by its source. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { taintFrom } from "./taint.ts";

test("[TF9] a file from outside a machine's workspace is anyone's", () => {
  const node = (capabilities: readonly string[]) =>
    [{ nodeId: "laptop", online: true, hostCapabilities: capabilities, toolCapabilities: {}, tools: [] }] as unknown as Parameters<
      typeof taintFrom
    >[1];
  const label = (path: string, capabilities: readonly string[]) =>
    taintFrom({ kind: "node", nodeId: "laptop", path }, node(capabilities))?.label;
  for (const path of ["/etc/passwd", "../a", "a/../../b", "~/x"]) {
    assert.equal(label(path, []), "world");
    assert.equal(label(path, ["filesystem.confined"]), undefined);
  }
  assert.equal(label("a/b", []), undefined);
});
