/**
 * The tables and the key-value store of an object as records, page by page, and back (rules MV5, MV7, MV8). Knows no table: it moves those
 * that it is given, or all. A page is bounded by the size of its records; writing a page twice has the same result as once.
 */
import type { MovedValue, ObjectCounts, ObjectCursor, ObjectPage, ObjectRecord } from "../ports/moving.ts";
import { decodeValue, encodeValue, insertText, type KeyedTable, keyedTable, pageText } from "../storage/row-text.ts";
import { all, type Database, levelsOf, one, run, type Value } from "./sql.ts";

/** Tables of the platform, and the record of the migrations, which `levels` stands for. */
const OWN = /^(_cf_|sqlite_|schema_version$)/;
/** Rows that are read at once: a row has at most 1 MiB. */
const ROWS = 256;
const VALUES = 64;

export interface Moved {
  /** Absent: all. */
  readonly tables?: readonly string[];
  /** Columns whose texts stay behind, by table: an empty text moves instead. */
  readonly blank?: Readonly<Record<string, readonly string[]>>;
  /** Whether the entries of the key-value store move, too. */
  readonly values: boolean;
}

export function tablesOf({ sql }: Pick<Database, "sql">): readonly string[] {
  return all<{ name: string }>(sql, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    .map(({ name }) => name)
    .filter((name) => !OWN.test(name));
}
const has = ({ sql }: Pick<Database, "sql">, table: string): boolean =>
  one(sql, "SELECT 1 AS x FROM sqlite_master WHERE type = 'table' AND name = ?", table) !== undefined;

function describe(db: Pick<Database, "sql">, table: string): KeyedTable {
  const text = one<{ sql: string }>(db.sql, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", table)?.sql ?? "";
  const columns = all<{ name: string; pk: number }>(db.sql, `PRAGMA table_info("${table}")`);
  return keyedTable(table, text, columns, []);
}

/** The state after `cursor`, as records of about `budget` characters. The first page begins with the object's own record. */
export function readObject(db: Database, moved: Moved, cursor: ObjectCursor | undefined, budget: number): ObjectPage {
  const tables = (moved.tables ?? tablesOf(db)).filter((table) => has(db, table));
  const records: ObjectRecord[] = cursor === undefined ? [{ kind: "object", levels: levelsOf(db) }] : [];
  let size = 0;
  let { table: at, after } = cursor ?? { table: 0 };
  for (; at < tables.length; at++) {
    const name = tables[at] ?? "";
    const page = readRows(db, describe(db, name), moved.blank?.[name] ?? [], after, budget - size);
    records.push(...page.records);
    size += page.size;
    if (page.last !== undefined) return { records, size, next: { table: at, after: page.last } };
    after = undefined;
  }
  if (!moved.values) return { records, size };
  const page = readValues(db, after, budget - size);
  records.push(...page.records);
  size += page.size;
  return { records, size, ...(page.last === undefined ? {} : { next: { table: at, after: page.last } }) };
}

interface Read {
  readonly records: readonly ObjectRecord[];
  readonly size: number;
  /** The key of the last row, where more may follow. */
  readonly last?: readonly MovedValue[];
}
function readRows(
  { sql }: Pick<Database, "sql">,
  table: KeyedTable,
  blank: readonly string[],
  after: readonly MovedValue[] | undefined,
  budget: number,
): Read {
  const rows: (readonly MovedValue[])[] = [];
  const width = table.key.length;
  let size = 0;
  let last: readonly MovedValue[] = [];
  const records = (): readonly ObjectRecord[] => [
    ...(rows.length === 0 ? [] : [{ kind: "rows" as const, table: table.name, columns: table.columns, rows }]),
  ];
  let isFull = budget <= 0 && after !== undefined;
  if (!isFull)
    for (const row of sql.exec(pageText(table, after !== undefined, ROWS), ...(after ?? []).map(decodeValue)).raw<Value[]>()) {
      const values = row.map(encodeValue);
      rows.push(values.slice(width).map((value, index) => (blank.includes(table.columns[index] ?? "") ? "" : value)));
      last = values.slice(0, width);
      size += JSON.stringify(values).length;
      isFull = size >= budget || rows.length === ROWS;
      if (isFull) break;
    }
  if (isFull) return { records: records(), size, last: last.length > 0 ? last : (after ?? []) };
  const sequence = table.counts ? one<{ seq: number }>(sql, "SELECT seq FROM sqlite_sequence WHERE name = ?", table.name)?.seq : undefined;
  const end: readonly ObjectRecord[] = sequence === undefined ? [] : [{ kind: "sequence", table: table.name, last: sequence }];
  return { records: [...records(), ...end], size };
}
function readValues({ kv }: Pick<Database, "kv">, after: readonly MovedValue[] | undefined, budget: number): Read {
  const records: ObjectRecord[] = [];
  const start = after?.[0];
  let size = 0;
  for (const [key, value] of kv.list({ limit: VALUES, ...(typeof start === "string" ? { startAfter: start } : {}) })) {
    const json = JSON.stringify(value);
    if (json === undefined) continue;
    records.push({ kind: "value", key, json });
    size += key.length + json.length;
    if (size >= budget || records.length === VALUES) return { records, size, last: [key] };
  }
  return { records, size };
}

/** Writes records into tables that exist. Only inside a transaction. Each table must be one of `tables`; absent: any table of the object. */
export function writeRecords(db: Database, records: readonly ObjectRecord[], tables?: ReadonlySet<string>): void {
  const { sql, kv } = db;
  const check = (table: string): void => {
    if (OWN.test(table) || tables?.has(table) === false || !has(db, table)) throw new Error(`no move writes a table ${table}`);
  };
  for (const record of records) {
    if (record.kind === "rows") {
      check(record.table);
      const insert = insertText(record.table, record.columns);
      for (const row of record.rows) run(sql, insert, ...row.map(decodeValue));
    } else if (record.kind === "sequence") {
      check(record.table);
      run(sql, "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", record.last, record.table);
      if (one(sql, "SELECT 1 AS x FROM sqlite_sequence WHERE name = ?", record.table) === undefined)
        run(sql, "INSERT INTO sqlite_sequence(name, seq) VALUES(?, ?)", record.table, record.last);
    } else if (record.kind === "value") kv.put(record.key, JSON.parse(record.json) as unknown);
  }
}

export function countObject(db: Database, { tables, values }: Moved): ObjectCounts {
  const named = (tables ?? tablesOf(db)).filter((table) => has(db, table));
  const rows = named.map((table) => one<{ n: number }>(db.sql, `SELECT count(*) AS n FROM "${table}"`)?.n ?? 0);
  return { rows: rows.reduce((sum, count) => sum + count, 0), values: values ? [...db.kv.list()].length : 0 };
}
