/** Valid examples with one random change each, for tests that compare readers of the contract. */
import fc from "fast-check";
import type { TypeName } from "../gen/explain-table.ts";
import { goldenExamples } from "./support.ts";

const starts = goldenExamples()
  .filter(({ example }) => example.valid)
  .map(({ type, example }) => ({ type: type as TypeName, value: example.value }));

const junk = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, "", "x", 0, -1, 0.5, 65536, 2 ** 53, -(2 ** 53), {}, { type: "req" }, [null]),
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

export interface BentExample {
  readonly type: TypeName;
  readonly bent: unknown;
}
export const bentExamples: fc.Arbitrary<BentExample> = fc
  .tuple(fc.constantFrom(...starts), fc.array(fc.nat(997), { maxLength: 4 }), junk)
  .map(([{ type, value }, picks, replacement]) => ({ type, bent: bend(value, picks, replacement) }));
