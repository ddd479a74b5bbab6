/** Statements and values for rows that move, for the SQLite of an object and for D1. PURE. */
import type { MovedValue } from "../ports/moving.ts";
import type { Value } from "../platform/sql.ts";
import { decodeBase64, encodeBase64 } from "./base64.ts";

const NAME = /^[a-z_][a-z0-9_]{0,62}$/i;
const quoted = (name: string): string => {
  if (!NAME.test(name)) throw new Error("a table or a column has a name that no move takes");
  return `"${name}"`;
};

export interface KeyedTable {
  readonly name: string;
  /** The columns that move. */
  readonly columns: readonly string[];
  /** The columns that order the rows: the primary key, or the number of the row. */
  readonly key: readonly string[];
  /** Numbers of rows are never given twice. */
  readonly counts: boolean;
}
/** `text`: the statement that made the table. `pk`: the position in the primary key, from 1. */
export function keyedTable(
  name: string,
  text: string,
  columns: readonly { readonly name: string; readonly pk: number }[],
  without: readonly string[],
): KeyedTable {
  const primary = columns.filter(({ pk }) => pk > 0).sort((left, right) => left.pk - right.pk);
  return {
    name,
    columns: columns.map((column) => column.name).filter((column) => !without.includes(column)),
    key: /WITHOUT ROWID/i.test(text) ? primary.map((column) => column.name) : ["rowid"],
    counts: /AUTOINCREMENT/i.test(text),
  };
}
/** Key and columns of the rows after a key, in order. */
export function pageText({ name, columns, key }: KeyedTable, isAfter: boolean, limit: number): string {
  const keys = key.map(quoted).join(", ");
  const where = isAfter ? `WHERE (${keys}) > (${key.map(() => "?").join(", ")})` : "";
  return `SELECT ${[keys, ...columns.map(quoted)].join(", ")} FROM ${quoted(name)} ${where} ORDER BY ${keys} LIMIT ${limit}`;
}
export const insertText = (table: string, columns: readonly string[]): string =>
  `INSERT OR REPLACE INTO ${quoted(table)}(${columns.map(quoted).join(", ")}) VALUES(${columns.map(() => "?").join(", ")})`;

export const encodeValue = (value: Value): MovedValue =>
  value instanceof ArrayBuffer ? { base64: encodeBase64(new Uint8Array(value)) } : value;
export function decodeValue(value: MovedValue): Value {
  if (typeof value !== "object" || value === null) return value;
  const bytes = decodeBase64(value.base64);
  if (bytes === undefined) throw new Error("a value of a row is not base64");
  return bytes.buffer;
}
