/**
 * Three independent readers of one contract: TypeBox's dynamic check of the schema as written, the generated validator, and
 * explain. On examples that were bent at random they must give the same verdict.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { TypeName } from "../gen/explain-table.ts";
import { explain } from "../runtime/explain.ts";
import { generatedAccepts, goldenFiles, typeboxAccepts } from "./support.ts";

const starts = goldenFiles()
  .filter((file) => file.valid)
  .map((file) => ({ type: file.type as TypeName, value: JSON.parse(file.text) as unknown }));

const junk = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, "", "x", 0, -1, 0.5, 65536, 2 ** 53, -(2 ** 53), [], {}, [null], { type: "req" }),
  fc.string({ unit: "grapheme", maxLength: 600 }),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Replaces, removes or adds something at a place that `picks` choose. */
function bend(value: unknown, picks: readonly number[], replacement: unknown): unknown {
  const [pick, ...rest] = picks;
  if (pick === undefined || typeof value !== "object" || value === null) return replacement;
  if (Array.isArray(value)) {
    if (value.length === 0) return [replacement];
    const at = pick % value.length;
    return value.map((item: unknown, index) => (index === at ? bend(item, rest, replacement) : item));
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return { added: replacement };
  const at = pick % entries.length;
  if (rest.length === 0 && pick % 3 === 0) return Object.fromEntries(entries.filter((_entry, index) => index !== at));
  return Object.fromEntries(entries.map(([key, item], index) => [key, index === at ? bend(item, rest, replacement) : item]));
}

test("TypeBox, the generated validators and explain agree on bent examples", () => {
  let refused = 0;
  let accepted = 0;
  fc.assert(
    fc.property(fc.constantFrom(...starts), fc.array(fc.nat(997), { maxLength: 4 }), junk, ({ type, value }, picks, replacement) => {
      const bent = bend(value, picks, replacement);
      const verdict = typeboxAccepts(type, bent);
      const at = `${type} ${JSON.stringify(bent)}`;
      assert.equal(generatedAccepts(type, bent), verdict, at);
      assert.equal(explain(type, bent).length === 0, verdict, at);
      if (verdict) accepted++;
      else refused++;
    }),
    { numRuns: 5000 },
  );
  // Both verdicts must have been exercised, or the agreement says nothing.
  assert.ok(refused > 500 && accepted > 500, `${refused} refused, ${accepted} accepted`);
});
