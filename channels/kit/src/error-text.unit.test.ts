import assert from "node:assert/strict";
import { test } from "node:test";
import { errorText } from "./error-text.ts";

test("an error's text has at most 300 characters", () => {
  assert.equal(errorText(new Error("x".repeat(301))), "x".repeat(300));
  assert.equal(errorText("no error"), "no error");
});
