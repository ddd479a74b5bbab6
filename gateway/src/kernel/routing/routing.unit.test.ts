/** Call ids. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { clientCallId, isClientCallName, ownerOf } from "./call-ids.ts";

describe("[G1][W7] call ids", () => {
  test("a session's call ids and the gateway's own differ", () => {
    assert.deepEqual(ownerOf("abcdefghij/r1/2/0"), { kind: "session", ref: "abcdefghij" });
    assert.deepEqual(ownerOf("gw/token/x"), { kind: "gateway" });
    for (const id of ["", "/", "/a", "call_0"]) assert.equal(ownerOf(id), undefined, id);
  });

  test("different tokens or names always give different ids", () => {
    const token = fc.stringMatching(/^[a-z2-7-]{1,12}$/);
    const chosen = fc.option(fc.string({ maxLength: 8 }).filter(isClientCallName), { nil: undefined });
    fc.assert(
      fc.property(token, token, chosen, chosen, fc.stringMatching(/^[a-z2-7]{1,8}$/), (one, two, left, right, fresh) => {
        if (one === two && left === right) return;
        assert.notEqual(clientCallId(one, left, fresh), clientCallId(two, right, fresh));
      }),
      { numRuns: 20_000 },
    );
  });
});
