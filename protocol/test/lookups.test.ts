/** Lookups: the policy classes of machines' tools, and the generator for any lookup. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildModel } from "../../scripts/codegen/build-model.ts";
import { emitLookups, emitRustLookups } from "../../scripts/codegen/lookups.ts";
import { ContractError } from "../../scripts/codegen/model.ts";
import { policyClassOf } from "../gen/lookups.ts";
import { compareTexts } from "../runtime/compare-texts.ts";
import { PolicyClassValues } from "../gen/types.ts";
import { freshVocabulary, scratchModel } from "./scratch.ts";
import { model } from "./support.ts";

test("each tool of GSV's own machines has its policy class", () => {
  const expected = {
    Bash: "exec",
    Process: "exec",
    Read: "read_private",
    Glob: "read_private",
    Grep: "read_private",
    Write: "write_files",
    Edit: "write_files",
    Delete: "write_files",
  };
  for (const [tool, policyClass] of Object.entries(expected)) assert.equal(policyClassOf(tool), policyClass, tool);
  assert.deepEqual(Object.keys(model.lookups.find(({ name }) => name === "policyClassOf")?.rows ?? {}), Object.keys(expected).sort());
});

test("an unknown tool of a machine is exec, whatever its name", () => {
  for (const name of [
    "Launch",
    "",
    "bash",
    "Read ",
    "laptop__Read",
    "constructor",
    "__proto__",
    "toString",
    "read_private",
    ...PolicyClassValues,
  ])
    assert.equal(policyClassOf(name), "exec", name);
});

test("no type of the wire holds a policy class, so no peer can send one", () => {
  for (const type of model.types)
    assert.ok(!JSON.stringify(type).includes('"name":"PolicyClass"') || type.name === "PolicyClass", type.name);
});

test("a lookup is generated in both languages, rows sorted", async () => {
  const scratch = await scratchModel();
  assert.match(
    emitLookups(scratch),
    /function colorOf\(name: string\): Color \{\s+switch \(name\) \{\s+case "rose":\s+return "red";\s+case "sky":\s+return "2-tone";\s+default:\s+return "dark-blue";/,
  );
  assert.match(
    emitRustLookups(scratch),
    /pub fn color_of\(name: &str\) -> Color \{\s+match name \{\s+"rose" => Color::Red,\s+"sky" => Color::V2Tone,\s+_ => Color::DarkBlue,/,
  );
});

test("mistakes in a lookup are named", async () => {
  const vocabulary = await freshVocabulary();
  const { enumOf, lookup, struct } = vocabulary;
  const Color = enumOf("Color", "A color.", ["red"]);
  const Thing = struct("Thing", "A thing.", {});
  lookup("colorOf", { doc: "x", result: Color, rows: { rose: "pink" }, otherwise: "grey" });
  lookup("thing-of", { doc: "x", result: Thing, rows: {}, otherwise: "red" });
  assert.throws(
    () => buildModel(vocabulary),
    (error) => {
      assert.ok(error instanceof ContractError);
      assert.deepEqual(error.message.split("\n"), [
        "lookup colorOf, rose: pink is not a value of Color",
        "lookup colorOf, otherwise: grey is not a value of Color",
        "lookup thing-of: camelCase letters only",
        "lookup thing-of: there is no enum Thing",
      ]);
      return true;
    },
  );
});

test("texts have one order, by their UTF-16 units, and equal ones keep their places", () => {
  assert.deepEqual(["b", "B", "a", "ä", "", "ab"].toSorted(compareTexts), ["", "B", "a", "ab", "b", "ä"]);
  assert.deepEqual([compareTexts("a", "b"), compareTexts("a", "a"), compareTexts("b", "a")], [-1, 0, 1]);
});
