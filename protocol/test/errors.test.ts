/** [P10] The two texts of each row of the error table: what happened and what to do next, in plain English. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { languageFindings } from "../../scripts/check/language.ts";
import { ERRORS } from "../gen/errors.ts";
import { model } from "./support.ts";

const ROWS = Object.entries(ERRORS);
/** A full sentence. */
const SENTENCES = /^[A-Z].*\.$/;
const ODD = /\b(all the same|meanwhile)\b/i;

for (const [reason, { text, hint }] of ROWS) {
  test(`[P10] ${reason} has a text and a hint in plain English`, () => {
    for (const said of [text, hint]) {
      assert.match(said, SENTENCES);
      assert.doesNotMatch(said, ODD);
      assert.deepEqual(languageFindings(new Map([[reason, said]]), []), []);
    }
    assert.doesNotMatch(text, /\. |`gsv /, "what to do next belongs in the hint");
    assert.ok(!hint.includes(text), "the hint repeats the text");
  });
}

test("[P10] every setting that a hint names exists", () => {
  let checked = 0;
  for (const [reason, { hint }] of ROWS) {
    for (const [, name = ""] of hint.matchAll(/`([a-z][A-Za-z]*(?:\.[A-Za-z]+)+)`/g)) {
      assert.ok(isSetting(name), `${reason}: ${name}`);
      checked++;
    }
    for (const [, name = ""] of hint.matchAll(/`gsv config (?:set|get|unset) ([^\s`<]+)/g)) {
      assert.ok(isSetting(name.replace(/\.$/, "")), `${reason}: ${name}`);
      checked++;
    }
  }
  assert.ok(checked >= 8, `${checked}`);
});

/** Whether the dotted path leads through the structs of the configuration; below a map or a list anything does. */
function isSetting(path: string): boolean {
  let type = model.typeByName.get("GsvConfig");
  for (const segment of path.split(".")) {
    if (type?.kind !== "struct") return false;
    const field = type.fields.find(({ name }) => name === segment);
    if (field === undefined) return false;
    if (field.node.kind !== "ref") return true;
    type = model.typeByName.get(field.node.name);
  }
  return true;
}
