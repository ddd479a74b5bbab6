import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nextStepFindings } from "./next-steps.ts";

/** `#{` in a text stands for the mark of a placeholder. */
const found = (text: string, file = "gateway/src/x.ts"): string[] =>
  nextStepFindings(new Map([[file, text.replaceAll("#{", "$".concat("{"))]])).map(
    ({ message, line }) => `${line} ${/"([^"]*)"/.exec(message)?.[1]}`,
  );

describe("[P10] next steps in messages of errors", () => {
  it("are found in calls that make an error, also in templates, conditions and further lines", () => {
    assert.deepEqual(found('one\nfailure("storage.failed", "The storage could not read it. Try again.")'), ["2 Try again"]);
    assert.deepEqual(found('fail("limit.rate", "Too many calls are open. Wait until some have ended.")'), ["1 Wait"]);
    assert.deepEqual(found('failure(\n  "model.auth",\n  `The key of #{name(a, b)} is wrong. Run \\`gsv setup\\`.`,\n)'), ["3 Run \\`gsv"]);
    assert.deepEqual(found('fail("a.b", isLate ? "It is late. Try again." : "It is not.")'), ["1 Try again"]);
    assert.deepEqual(found('failed(isNew ? "a.b" : "a.c", "No answer. Send the message again.", true)'), ["1 Send the message again"]);
    assert.deepEqual(found('problemResponse("limit.rate", "Too many. Try again.")'), ["1 Try again"]);
  });
  it("are found in the fields of an error", () => {
    assert.deepEqual(found('const BUSY = { reason: "session.busy", message: "It is busy. Try again in a moment." };'), ["1 Try again"]);
    assert.deepEqual(found("return { reason, message: `#{why} Wait for it.`, details: {} };"), ["1 Wait"]);
  });
  it("are right in a hint, in a comment, in a test and outside of the gateway", () => {
    for (const right of [
      'failure("storage.failed", "The storage could not read it.", "Try again.")',
      'fail("a.b", `The machine #{id} is away.`, `Wait for #{f(id, "Try again")}.`)',
      'fail("session.busy") // Try again',
      'fail("a.b", why(x, y), "Wait a minute.")',
      '{ reason: "session.busy", message: "It is busy.", hint: "Try again in a moment." }',
      'fail("a.b", "A hook waits: Waiting was tried again.")',
    ])
      assert.deepEqual(found(right), [], right);
    const wrong = 'fail("a.b", "No. Try again.")';
    for (const file of ["gateway/src/x.unit.test.ts", "gateway/test/x.ts", "channels/kit/src/x.ts"])
      assert.deepEqual(found(wrong, file), []);
  });
});
