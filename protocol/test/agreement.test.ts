/**
 * Three independent readers of one contract: TypeBox's dynamic check of the schema as written, the generated validator, and
 * explain. They must give the same verdict on randomly changed examples.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { explain } from "../runtime/explain.ts";
import { bentExamples } from "./bend.ts";
import { generatedAccepts, typeboxAccepts } from "./support.ts";

test("TypeBox, the generated validators and explain agree on randomly changed examples", () => {
  let refused = 0;
  let accepted = 0;
  fc.assert(
    fc.property(bentExamples, ({ type, bent }) => {
      const verdict = typeboxAccepts(type, bent);
      const at = `${type} ${JSON.stringify(bent)}`;
      assert.equal(generatedAccepts(type, bent), verdict, at);
      assert.equal(explain(type, bent).length === 0, verdict, at);
      if (verdict) accepted++;
      else refused++;
    }),
    { numRuns: 5000 },
  );
  // Without both verdicts the agreement would prove nothing.
  assert.ok(refused > 500 && accepted > 500, `${refused} refused, ${accepted} accepted`);
});
