/**
 * The contract's types as data: one cell per type, kind first (`scripts/codegen/explain-table.ts` writes them). For code that walks
 * a value or a path along the contract. It holds no check and no text.
 */
import { EXPLAIN_TABLE, type TypeName } from "../gen/explain-table.ts";

export type Cell =
  | readonly ["ref", TypeName]
  | readonly ["json"]
  | readonly ["boolean"]
  | readonly ["string", minLength: number, maxLength: number | null, pattern: string | null]
  | readonly ["integer", minimum: number, maximum: number]
  | readonly ["number", minimum: number | null, maximum: number | null]
  | readonly ["literal", boolean | number | string]
  | readonly ["enum", ...string[]]
  | readonly ["array", items: Cell, maxItems: number]
  | readonly ["map", values: Cell]
  | readonly ["struct", CellFields]
  | readonly ["tagged", tag: string, arms: Readonly<Record<string, CellFields>>];
/** By name; a `?` after the name marks an optional field. */
export type CellFields = Readonly<Record<string, Cell>>;

/** Parsed when first needed and kept: the table never changes. */
let parsed: Readonly<Record<TypeName, Cell>> | undefined;
const table = (): Readonly<Record<TypeName, Cell>> => {
  parsed ??= JSON.parse(EXPLAIN_TABLE) as Readonly<Record<TypeName, Cell>>;
  return parsed;
};

/** The cell that a chain of references ends in. */
export function resolveCell(cell: Cell): Exclude<Cell, readonly ["ref", TypeName]> {
  let here = cell;
  while (here[0] === "ref") here = table()[here[1]];
  return here;
}

export interface Field {
  readonly name: string;
  readonly cell: Cell;
  readonly optional: boolean;
}
/** The fields in reading order. */
export const fieldsOf = (fields: CellFields): readonly Field[] =>
  Object.entries(fields).map(([key, cell]) => {
    const optional = key.endsWith("?");
    return { name: optional ? key.slice(0, -1) : key, cell, optional };
  });
