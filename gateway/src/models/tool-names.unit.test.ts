import assert from "node:assert/strict";
import { test } from "node:test";
import { shortHash, toolNamesOf, wireName } from "./tool-names.ts";

test("a hash is the same in every version: 32-bit FNV-1a", () => {
  assert.equal(shortHash(""), "811c9dc5");
  assert.equal(shortHash("a"), "e40c292c");
  assert.equal(shortHash("foobar"), "bf9cf968");
});
test("a name that providers take is used as it is; others get a distinct one and are found by it", () => {
  const [fitting, odd] = ["lap__Bash", "my.lap__Bash"];
  assert.equal(wireName(fitting), fitting);
  assert.equal(wireName("x".repeat(64)), "x".repeat(64));
  assert.match(wireName("x".repeat(65)), /^x{55}_[0-9a-f]{8}$/);
  assert.match(wireName(odd), /^my_lap__Bash_[0-9a-f]{8}$/);
  const nameOf = toolNamesOf([fitting, odd]);
  assert.deepEqual([nameOf(fitting), nameOf(wireName(odd)), nameOf("unknown")], [fitting, odd, "unknown"]);
  assert.equal(toolNamesOf([fitting])(fitting), fitting);
});
