/** A text is cut after its secrets are masked: a part of a secret would not be found. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

/** It cuts a stream of masked text, and keeps back what may be the beginning of a secret. */
const STREAM = "features/nodes/live-output.ts";
const ROOT = join(import.meta.dirname, "..", "..");
/** Calls that mask a text after a cut, which these functions must never get. */
const MASKED_AFTER_CUT = /\b(?:scrub|hide|hideTokens|hideSecrets|hideValues|clean|excerpt)\((?:[^()]|\([^()]*\))*\.slice\(/;
/** Notifications and ends of jobs are masked by those who take them. */
const CUT_BEFORE_TAKEN = /\btell\(\{[^}]*\btext: [^,}]*\.slice\(|#ends\.end\([^;]*\.slice\(/;
/** Packs have `excerpt` for texts of their services. */
const CUT_BY_PACK = /failure\((?:[^;])*\.slice\(/;

test("[A11] no text is cut before its secrets are masked", () => {
  const found = ["src", "packs"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).flatMap((name) => {
      if (!name.endsWith(".ts") || name.endsWith(".test.ts") || name === STREAM) return [];
      const text = readFileSync(join(ROOT, folder, name), "utf8");
      const wrong = [MASKED_AFTER_CUT, CUT_BEFORE_TAKEN, ...(folder === "packs" ? [CUT_BY_PACK] : [])].find((shape) => shape.test(text));
      return wrong === undefined ? [] : [`${folder}/${name}: ${wrong.exec(text)?.[0]}`];
    }),
  );
  assert.deepEqual(found, []);
});
test("[A11] the shapes find what was wrong before", () => {
  for (const text of ["scrub(reason.slice(0, 9))", "hide(sentence(error).slice(0, 9))"]) assert.match(text, MASKED_AFTER_CUT);
  assert.match("notify.tell({ kind, text: text.slice(0, 9) })", CUT_BEFORE_TAKEN);
  assert.match("failure('x', said.slice(0, 9))", CUT_BY_PACK);
  assert.doesNotMatch("scrub(reason).slice(0, 9)", MASKED_AFTER_CUT);
});
