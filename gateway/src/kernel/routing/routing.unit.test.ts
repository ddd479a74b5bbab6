/** Tool names, call ids and call times: the small pure parts of routing. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { ToolDefinition } from "../../../../protocol/gen/types.ts";
import { clientCallId, isClientCallName, ownerOf } from "./call-ids.ts";
import { callTimes } from "./call-times.ts";
import { qualifiedName, splitToolName } from "./tool-names.ts";

describe("[G4] tool names", () => {
  test("a qualified name leads back to its tool, whatever either is called", () => {
    const name = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,8}$/);
    fc.assert(
      fc.property(name, name, fc.array(name, { maxLength: 4 }), (owner, tool, others) => {
        const owns = (candidate: string, rest: string): boolean => candidate === owner && rest === tool;
        assert.deepEqual(
          splitToolName(qualifiedName(owner, tool), owns, (candidate) => others.includes(candidate)),
          { owner, tool },
        );
      }),
      { numRuns: 20_000 },
    );
  });

  test("the first split that a machine owns wins; else the first whose machine is known", () => {
    const owns = (owner: string, tool: string): boolean => owner === "a__b" && tool === "C";
    assert.deepEqual(
      splitToolName("a__b__C", owns, () => true),
      { owner: "a__b", tool: "C" },
    );
    assert.deepEqual(
      splitToolName("a__b__D", owns, (owner) => owner === "a"),
      { owner: "a", tool: "b__D" },
    );
    assert.equal(
      splitToolName("nowhere__Bash", owns, () => false),
      undefined,
    );
    for (const name of ["Bash", "__Bash", "a__", "", "a_b"])
      assert.equal(
        splitToolName(
          name,
          () => true,
          () => true,
        ),
        undefined,
        name,
      );
  });
});

describe("[G1][W7] call ids", () => {
  test("a session's and the gateway's never meet", () => {
    assert.deepEqual(ownerOf("abcdefghij/r1/2/0"), { kind: "session", ref: "abcdefghij" });
    assert.deepEqual(ownerOf("gw/token/x"), { kind: "gateway" });
    for (const id of ["", "/", "/a", "call_0"]) assert.equal(ownerOf(id), undefined, id);
  });

  test("two tokens, two names, a chosen and a fresh one: always two ids", () => {
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

describe("[G5] call times", () => {
  const tool = (more: Partial<ToolDefinition> = {}): ToolDefinition => ({ name: "Read", description: "", inputSchema: {}, ...more });
  test("the client's wish, else the tool's, else the configured one", () => {
    assert.equal(callTimes(tool(), {}, undefined, 60_000).timeoutMs, 60_000);
    assert.equal(callTimes(tool({ timeoutMs: 5000 }), {}, undefined, 60_000).timeoutMs, 5000);
    assert.equal(callTimes(tool({ timeoutMs: 5000 }), {}, 100, 60_000).timeoutMs, 100);
    assert.equal(callTimes(tool({ timeoutMs: 0 }), {}, 0, 60_000).timeoutMs, 60_000);
  });
  test("a command has at least its own time, and the way", () => {
    assert.equal(callTimes(tool({ name: "Bash" }), { timeout: 300_000 }, undefined, 60_000).timeoutMs, 305_000);
    assert.equal(callTimes(tool({ name: "Bash" }), { timeout: "300000" }, undefined, 60_000).timeoutMs, 60_000);
    assert.equal(callTimes(tool({ name: "Bash" }), { timeout: 1e12 }, undefined, 60_000).timeoutMs, 86_400_000);
  });
});
