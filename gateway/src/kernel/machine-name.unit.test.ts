import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isMachineName } from "../tools/registry.ts";
import { caseProblem, machineNameProblem } from "./machine-name.ts";

describe("[RM7] names of machines", () => {
  it("begin with a letter or digit, have 1 to 64 plain characters, no separator of tools, and are not the gateway's", () => {
    for (const name of ["laptop", "a", "7", "Box.lan", "a_b-c.d", "a_", "x".repeat(64), "gsv-box", "my.gsv"])
      assert.equal(machineNameProblem(name), undefined, name);
    for (const name of [
      "",
      "x".repeat(65),
      "_a",
      ".a",
      "-a",
      "a b",
      "../x",
      "a:b",
      "é",
      "a\n",
      "a__b",
      "a___b",
      "a__",
      "gsv",
      "GSV",
      "Gsv",
    ])
      assert.deepEqual(
        machineNameProblem(name),
        {
          message:
            "A machine's name has 1 to 64 letters, digits, `_`, `.` or `-`, begins with a letter or digit, and contains no `__`. `gsv` is reserved.",
          hint: "Choose another name, such as `laptop`.",
        },
        name,
      );
  });
  it("that earlier versions took can still be named", () => {
    assert.deepEqual(["a__b", "GSV", "a:b", ""].map(isMachineName), [true, true, false, false]);
  });
  it("differ in more than case", () => {
    assert.equal(caseProblem("lap", []), undefined);
    assert.equal(caseProblem("lap", ["Lap", "lap"]), undefined);
    assert.deepEqual(caseProblem("LAP", ["lap"]), {
      message: "A machine is already called `lap`, and two names must differ in more than upper and lower case.",
      hint: "Use another name, or `lap` if it is the same machine.",
    });
  });
});
