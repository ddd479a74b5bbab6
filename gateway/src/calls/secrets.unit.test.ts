import assert from "node:assert/strict";
import { test } from "node:test";
import { hideIn } from "./secrets.ts";

const hide = (text: string): string => text.replaceAll("SECRET", "[hidden]");
test("[S5] texts and names of fields are hidden at any depth; numbers and null stay", () => {
  assert.deepEqual(hideIn({ "a SECRET": ["SECRET", 5, null, { b: "x SECRET" }], c: null, d: true }, hide), {
    "a [hidden]": ["[hidden]", 5, null, { b: "x [hidden]" }],
    c: null,
    d: true,
  });
  assert.equal(hideIn("SECRET", hide), "[hidden]");
  for (const value of [null, undefined, 5, true]) assert.equal(hideIn(value, hide), value);
});
test("[S5] only the bytes of an image are left alone", () => {
  assert.deepEqual(hideIn({ type: "image", data: "SECRET", mimeType: "SECRET" }, hide), {
    type: "image",
    data: "SECRET",
    mimeType: "[hidden]",
  });
  assert.deepEqual(hideIn({ type: "text", data: "SECRET" }, hide), { type: "text", data: "[hidden]" });
});
