import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FileChanging } from "../../ports/changes.ts";
import { ABSENT, actionOf, planSteps, ruleOn } from "./plan.ts";

/** Content undefined: no file. The version of a content is its name. */
const change = (path: string, before: string | undefined, after: string | undefined): FileChanging => ({
  callId: "ref/r1/1/0",
  agentId: "main",
  path,
  ...(before === undefined ? {} : { before: { version: `v-${before}`, sha256: before } }),
  ...(after === undefined ? {} : { after }),
});
const only = (...changes: readonly FileChanging[]) => {
  const [step, ...others] = planSteps(changes);
  assert.ok(step !== undefined && others.length === 0);
  return step;
};

describe("[UN3] [UN5] what an undo does with an agent's file", () => {
  it("the first content of each file comes back, the newest change first", () => {
    const steps = planSteps([change("a", "1", "2"), change("b", undefined, "x"), change("a", "2", undefined)]);
    assert.deepEqual(
      steps.map((step) => [step.path, step.before?.version, actionOf(step), step.isMixed]),
      [
        ["a", "v-1", "bring_back", false],
        ["b", undefined, "remove", false],
      ],
    );
  });

  it("a content that the calls did not leave is a conflict unless forced; the first content is no change", () => {
    const step = only(change("a", "1", "2"), change("a", "2", "3"));
    const kinds = (force: boolean) => ["1", "2", "3", "other", ABSENT, undefined].map((now) => ruleOn(step, now, force).kind);
    assert.deepEqual(kinds(false), ["unchanged", "restore", "restore", "conflict", "conflict", "conflict"]);
    assert.deepEqual(kinds(true), ["unchanged", "restore", "restore", "restore", "restore", "restore"]);
    const problem = (now: Parameters<typeof ruleOn>[1]) => {
      const ruling = ruleOn(step, now, false);
      return ruling.kind === "conflict" && ruling.problem;
    };
    assert.deepEqual([problem(ABSENT), problem("other")], ["it was removed since", "it was changed since"]);
  });

  it("a change in between by something else is a conflict, and a recorded change that was not made is none", () => {
    const mixed = only(change("a", "1", "2"), change("a", "owner's", "3"));
    assert.deepEqual([mixed.isMixed, ruleOn(mixed, "3", false).kind], [true, "conflict"]);
    const notMade = only(change("a", "1", "2"), change("a", "1", "3"));
    assert.deepEqual([notMade.isMixed, ruleOn(notMade, "3", false).kind], [false, "restore"]);
  });

  it("a file of unknown content is never taken for another one", () => {
    const large = only({ ...change("a", "1", "2"), before: { version: "v-large" } });
    assert.equal(ruleOn(large, undefined, false).kind, "conflict");
    assert.equal(ruleOn(large, "2", false).kind, "restore");
  });
});
