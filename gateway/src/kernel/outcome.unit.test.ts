import assert from "node:assert/strict";
import { test } from "node:test";
import { ERRORS } from "../../../protocol/gen/errors.ts";
import { fail } from "./outcome.ts";

test("[P10] a failure has the table's text and hint; with a message of its own it has only the hint that it is given", () => {
  const { text, hint } = ERRORS["auth.forbidden"];
  assert.ok(hint);
  assert.deepEqual(fail("auth.forbidden").error, { reason: "auth.forbidden", message: text, hint });
  assert.deepEqual(fail("auth.forbidden", "No.").error, { reason: "auth.forbidden", message: "No." });
  assert.deepEqual(fail("auth.forbidden", "No.", "Ask.").error, { reason: "auth.forbidden", message: "No.", hint: "Ask." });
});
