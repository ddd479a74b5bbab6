import assert from "node:assert/strict";
import { test } from "node:test";
import { seeded } from "../../../test/seeded.ts";
import { shownOutput, shownText } from "./shown-output.ts";

const result = (output: string, more: object = {}): string =>
  JSON.stringify({ status: "completed", sessionId: "s", exitCode: 0, output, tail: output.slice(-20), truncated: false, ...more });

test("[CT4] of a command people see what it printed, of any other tool the text of its result", () => {
  assert.equal(shownText("lap__Bash", result('one\n"two" \\ \u{1F680}\n')), 'one\n"two" \\ \u{1F680}\n');
  assert.equal(shownText("lap__Process", JSON.stringify({ status: "running", pid: 1, tail: "so far" })), "so far");
  assert.equal(shownText("lap__Read", result("x")), result("x"));
  assert.equal(shownText("lap__Bash", "command not found"), "command not found");
  assert.equal(shownText("lap__Bash", '{"status":"running"}'), '{"status":"running"}');
});
test("[CT4] a result whose middle was left out shows both ends and the note", () => {
  const text = result(`a\n${"x".repeat(60)}\nz "end"\n`);
  const cut = `${text.slice(0, 70)}[... 40 characters were left out here. The result is kept: path "results/s-r1-0-0.txt". ...]${text.slice(110)}`;
  const shown = shownText("lap__Bash", cut);
  assert.ok(shown.startsWith("a\nx") && shown.endsWith('x\nz "end"\n') && shown.includes('path "results/s-r1-0-0.txt"'), shown);
});
test("[CT4] an event has the beginning, the end and the number of lines", () => {
  assert.deepEqual(shownOutput("lap__Bash", result("")), { head: "", lines: 0 });
  assert.deepEqual(shownOutput("lap__Bash", result("one\ntwo\n")), { head: "one\ntwo", lines: 2 });
  const long = Array.from({ length: 2_000 }, (_, line) => `line ${line}`).join("\n");
  const { head, tail, lines } = shownOutput("lap__Read", long);
  assert.equal(lines, 2_000);
  assert.ok(long.startsWith(head) && long.endsWith(tail ?? "?") && head.length <= 2_000 && (tail?.length ?? 0) <= 1_000);
});
test("[CT4] any text, cut anywhere, is shown without an error and within its bounds", () => {
  const random = seeded(7);
  const below = (bound: number): number => Math.floor(random() * bound);
  const pieces = ['"', "\\", "\n", "\u{1F680}", "a", '"output":"', "[... 3 characters were left out here. x ...]", "{", "}", "\u001B[2J"];
  for (let round = 0; round < 500; round++) {
    const made = Array.from({ length: below(400) }, () => pieces[below(pieces.length)]).join("");
    const whole = below(2) === 0 ? result(made) : made;
    const text = whole.slice(0, below(whole.length + 1));
    const { head, tail = "" } = shownOutput("lap__Bash", text);
    assert.ok(head.length <= 2_000 && tail.length <= 1_000);
    assert.doesNotMatch(tail, /^[\uDC00-\uDFFF]/);
  }
});
