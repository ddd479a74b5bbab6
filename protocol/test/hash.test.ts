import assert from "node:assert/strict";
import { test } from "node:test";
import { hashPair, hex32 } from "../runtime/hash.ts";

test("hashes have the values that earlier versions stored", () => {
  for (const [text, hex] of [
    ["", "811c9dc59e3779b9"],
    ["a", "e40c292cf898acf3"],
    ["agent:main:wa:dm:31600@s.whatsapp.net", "6b86bbb8ca1bb71f"],
    ["größer 😀", "5f10387518e87030"],
  ] as const)
    assert.equal(hashPair(text).map(hex32).join(""), hex, JSON.stringify(text));
});

test("a salt changes the first hash", () => {
  assert.notEqual(hashPair("text", 1)[0], hashPair("text")[0]);
});
