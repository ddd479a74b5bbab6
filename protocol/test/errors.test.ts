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

/**
 * Exit statuses that differ from the rule. Scripts rely on the first released ones, so they stay; a new reason follows the rule.
 * 1 stands for: it was right, and failed.
 */
const OWN_EXIT: Readonly<Record<number, readonly string[]>> = {
  // It may pass, and was released as a failure.
  1: [
    ...["node.offline", "node.replaced", "run.no_progress", "session.archive_failed", "storage.failed", "workspace.conflict"],
    // The input cannot be used, and was released as a failure.
    ...["file.binary", "model.unknown", "path.invalid", "path.not_a_file", "tool.bad_args", "path.outside_workspace"],
    // The settings of the gateway are incomplete; the command is right.
    "model.not_configured",
  ],
  2: ["protocol.already_connected", "protocol.unknown_method"],
  // It passes when the owner resumes; trying again does not help before.
  4: ["method.not_served", "gateway.stopped"],
  // A status of its own, so that a program of the agent can tell it from a rejected token.
  6: ["auth.agent_command"],
  70: ["internal"],
};
for (const [reason, { exit, http, blame, retryable }] of ROWS)
  test(`[P10] ${reason} has the exit status that the command line documents`, () => {
    const isNotAllowed = http === 401 || http === 403 || reason.startsWith("auth.");
    const isWrongInput = blame === "caller" && [400, 413, 415].includes(http);
    const byRule = retryable ? 4 : isNotAllowed ? 3 : isWrongInput ? 2 : 1;
    const own = Object.entries(OWN_EXIT).find(([, reasons]) => reasons.includes(reason));
    assert.equal(exit, own === undefined ? byRule : Number(own[0]));
  });

test("[P10] every setting that a hint names exists", () => {
  let checked = 0;
  for (const [reason, { hint }] of ROWS) {
    for (const [, name = ""] of hint.matchAll(/`([a-z][A-Za-z]*(?:\.[A-Za-z]+)+)`/g)) {
      assert.ok(isSetting(name), `${reason}: ${name}`);
      checked++;
    }
    for (const [, name = ""] of hint.matchAll(/`gsv config (?:set|get|unset) ([a-z][^\s`<]*)/g)) {
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
