/** Loops: the same call again and again in one run. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bench, call } from "../../../test/session/machine-bench.ts";
import type { ReplyCall } from "./event.ts";
import { countRepeats, MOST_REPEATS } from "./repeats.ts";

const made = (args: Record<string, unknown>, name = "lap__Bash"): ReplyCall => ({ ...call({}, name), arguments: args });
const id = (step: number, index = 0): string => `ref0000000/r1/${step}/${index}`;
/** Says one thing and lets the model make this call again and again until the run ends. */
function loop(next: (step: number) => ReplyCall, most = 10): { readonly b: Bench; readonly steps: number } {
  const b = new Bench();
  b.say("a");
  let step = 1;
  for (; step <= most && b.state.run.phase === "thinking"; step++) {
    b.reply("", [next(step)]);
    if (b.last?.transitions.includes("callsMade")) b.result(id(step), "the same again");
  }
  return { b, steps: step - 1 };
}

describe("a model in a loop", () => {
  test("[SP9] [T6] the third equal call in a row is made, and its result has a note; the fifth ends the run unmade", () => {
    const { b, steps } = loop(() => call());
    assert.equal(steps, MOST_REPEATS);
    assert.doesNotMatch(b.textOf(id(2)), /same call/);
    assert.match(b.textOf(id(3)), /^the same again[\s\S]*the same arguments for the 3rd time in a row[\s\S]*At the 5th time the run ends/);
    assert.match(b.textOf(id(4)), /4th time/);
    assert.match(b.textOf(id(5)), /^Not run/);
    assert.deepEqual(b.notices(), ["error:budget.loop"]);
    assert.equal(b.state.run.phase, "idle");
    assert.ok(!b.state.outbox.some((effect) => effect.type === "DispatchTool"));
  });
  test("[SP9] another call between them, or other arguments, start the count again", () => {
    const other = loop((step) => (step % 3 === 0 ? made({ command: "pwd" }) : call()));
    assert.equal(other.steps, 10);
    assert.deepEqual(other.b.notices(), []);
    const counting = loop((step) => made({ n: step }));
    assert.equal(counting.steps, 10);
  });
  test("[SP9] the order of keys does not make it another call, at any depth", () => {
    const args = (step: number): Record<string, unknown> => (step % 2 === 0 ? { a: 1, b: { c: 1, d: 2 } } : { b: { d: 2, c: 1 }, a: 1 });
    assert.equal(loop((step) => made(args(step))).steps, MOST_REPEATS);
  });
  test("[SP9] equal calls of one answer count once, and none of an answer that ends the run is made", () => {
    const b = new Bench();
    b.say("a");
    const six = [...Array.from({ length: 6 }, () => call()), made({ command: "pwd" }), call()];
    b.reply("", six);
    assert.equal(b.state.run.phase, "acting");
    for (const index of six.keys()) b.result(id(1, index), "fine");
    for (let step = 2; step <= 4; step++) {
      b.reply("", [call()]);
      b.result(id(step), "fine");
    }
    b.reply("", [call(), made({ command: "pwd" })]);
    assert.equal(b.state.run.phase, "idle");
    assert.match(b.textOf(id(5, 0)), /^Not run/);
    assert.match(b.textOf(id(5, 1)), /^Not run/);
  });
  test("[SP9] a call that no tool takes counts as well", () => {
    const unknown: ReplyCall = { ...call(), target: { kind: "none", reason: "tool.unknown", message: "There is no such tool." } };
    const { b, steps } = loop(() => unknown);
    assert.equal(steps, MOST_REPEATS);
    assert.match(b.textOf(id(3)), /There is no such tool\.\n\[This is the same call/);
  });
  test("[SP9] the next run begins at one, and the conversation goes on", () => {
    const { b } = loop(() => call());
    b.say("b");
    b.reply("", [call()]);
    assert.equal(b.state.run.phase, "acting");
    b.result("ref0000000/r2/1/0", "fine");
    b.reply("done");
    assert.equal(b.state.run.phase, "idle");
  });
  test("[SP9] counts of an answer continue those of the run", () => {
    const first = countRepeats(undefined, [made({ n: 1 }), made({ n: 1 })]);
    assert.deepEqual(first.counts, [1, 1]);
    assert.deepEqual(countRepeats(first.last, [made({ n: 1 }), made({ n: 2 }), made({ n: 2 }, "lap__Read")]).counts, [2, 1, 1]);
  });
});
