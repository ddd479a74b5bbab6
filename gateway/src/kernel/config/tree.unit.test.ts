import assert from "node:assert/strict";
import { test } from "node:test";
import { getAt, leavesOf, mapLeaves, setAt, unsetAt } from "./tree.ts";

const empty = (): unknown => ({});
const TREE = { list: [{ a: 1, b: 2 }, { a: 3 }], text: "x", none: null };

test("a value is read by its own names only", () => {
  assert.equal(getAt(TREE, ["list", "1", "a"]), 3);
  assert.equal(getAt(TREE, []), TREE);
  for (const missing of [["none", "a"], ["text", "0", "x"], ["toString"], ["list", "2"], ["list", "length", "x"]])
    assert.equal(getAt(TREE, missing), undefined, missing.join("."));
});
test("a value is put at a list's positions and the one behind its end, at no other", () => {
  const put = (position: string): unknown => setAt([1, 2], [position], 9, empty);
  assert.deepEqual(put("0"), [9, 2]);
  assert.deepEqual(put("1"), [1, 9]);
  assert.deepEqual(put("2"), [1, 2, 9]);
  for (const none of ["3", "-1", "1.5", "x", "99"]) assert.equal(put(none), undefined, none);
});
test("missing branches are made, and a single value is none", () => {
  assert.deepEqual(setAt({}, ["a", "b"], 1, empty), { a: { b: 1 } });
  assert.deepEqual(setAt({ a: { c: 2 } }, ["a", "b"], 1, empty), { a: { c: 2, b: 1 } });
  assert.deepEqual(
    setAt(undefined, ["0", "b"], 1, (path) => (path.length === 0 ? [] : {})),
    [{ b: 1 }],
  );
  assert.equal(setAt({ a: 5 }, ["a", "b"], 1, empty), undefined);
  assert.equal(setAt({ a: [] }, ["a", "1"], 1, empty), undefined);
});
test("a value is taken out, and with it what becomes empty", () => {
  assert.deepEqual(unsetAt(TREE, ["list", "0", "a"]), { ...TREE, list: [{ b: 2 }, { a: 3 }] });
  assert.deepEqual(unsetAt(TREE, ["list", "0"]), { ...TREE, list: [{ a: 3 }] });
  assert.deepEqual(unsetAt(TREE, ["list", "1", "a"]), { ...TREE, list: [{ a: 1, b: 2 }] });
  assert.deepEqual(unsetAt({ a: [{ b: 1 }], c: 1 }, ["a", "0", "b"]), { c: 1 });
  assert.equal(unsetAt({ a: [{ b: 1 }] }, ["a", "0", "b"]), undefined);
  for (const missing of [["no"], ["no", "a"], ["text", "a"], ["toString"]])
    assert.deepEqual(unsetAt(TREE, missing), TREE, missing.join("."));
});
test("leaves are single values and empty branches, with their paths", () => {
  const tree = { a: [1, { b: null }], c: {}, d: [] };
  assert.deepEqual(
    [...leavesOf(tree)],
    [
      [["a", "0"], 1],
      [["a", "1", "b"], null],
      [["c"], {}],
      [["d"], []],
    ],
  );
  assert.deepEqual(
    mapLeaves(tree, (path, leaf) => `${path.join(".")}=${leaf}`),
    { a: ["a.0=1", { b: "a.1.b=null" }], c: {}, d: [] },
  );
});
