/**
 * What is wrong with a JSON body (rule RT1). A field that the contract does not have is refused: a misspelt one would otherwise be lost
 * without a word. Names fields, never values.
 */
import type { TypeName } from "../../../../protocol/gen/explain-table.ts";
import { fieldsOf, resolveCell } from "../../../../protocol/runtime/cells.ts";
import { explain, MAX_PROBLEMS, problemText } from "../../../../protocol/runtime/explain.ts";
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import { nearest } from "../../../../protocol/runtime/nearest.ts";
import { visible } from "../../prompt/hidden.ts";

const SHOWN_CHARS = 64;

/** One sentence; undefined: the body fits the type. The fields of the body itself are checked, not those inside of its values. */
export function bodyProblem(type: TypeName, body: unknown): string | undefined {
  const problems = [...unknownFields(type, body), ...explain(type, body)].slice(0, MAX_PROBLEMS);
  return problems.length === 0 ? undefined : `${problemText(problems)}.`;
}
function unknownFields(type: TypeName, body: unknown): readonly { readonly path: string; readonly message: string }[] {
  const cell = resolveCell(["ref", type]);
  if (cell[0] !== "struct" || !isJsonObject(body)) return [];
  const names = fieldsOf(cell[1]).map(({ name }) => name);
  return Object.keys(body)
    .filter((key) => !names.includes(key))
    .slice(0, MAX_PROBLEMS)
    .map((key) => {
      const meant = nearest(key.slice(0, SHOWN_CHARS), names);
      const known = meant === undefined ? `the fields are ${names.join(", ")}` : `did you mean \`${meant}\`?`;
      return { path: visible(key, SHOWN_CHARS), message: `there is no such field (${known})` };
    });
}
