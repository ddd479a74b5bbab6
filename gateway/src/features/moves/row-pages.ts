/** Rows of the row database (D1) as records, page by page, and back (rules MV5, MV8). */
import type { MovedState, MovedValue, ObjectCursor, ObjectPage, ObjectRecord } from "../../ports/moving.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import { decodeValue, encodeValue, insertText, type KeyedTable, keyedTable, pageText } from "../../storage/row-text.ts";

/** Rows that are read, and statements that are run, at once. */
const AT_ONCE = 40;

async function describe(db: RowDatabase, table: string, without: readonly string[]): Promise<KeyedTable> {
  const text = await db.prepare("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?").bind(table).first<{ sql: string }>();
  const columns = await db.prepare(`PRAGMA table_info("${table}")`).all<{ name: string; pk: number }>();
  return keyedTable(table, text?.sql ?? "", columns.results, without);
}

export async function readRowPage(
  db: RowDatabase,
  { tables, without }: MovedState["rows"],
  cursor: ObjectCursor | undefined,
  budget: number,
): Promise<ObjectPage> {
  const records: ObjectRecord[] = [];
  let size = 0;
  let { table: at, after } = cursor ?? { table: 0 };
  for (; at < tables.length; at++) {
    const name = tables[at] ?? "";
    const table = await describe(db, name, without[name] ?? []);
    for (;;) {
      if (size >= budget) return { records, size, next: { table: at, ...(after === undefined ? {} : { after }) } };
      const statement = db.prepare(pageText(table, after !== undefined, AT_ONCE));
      const found = await statement.bind(...(after ?? []).map(decodeValue)).raw<(string | number | null | ArrayBuffer)[]>();
      const rows: MovedValue[][] = found.map((row) => row.map(encodeValue));
      if (rows.length > 0)
        records.push({ kind: "rows", table: name, columns: table.columns, rows: rows.map((row) => row.slice(table.key.length)) });
      size += JSON.stringify(rows).length;
      after = rows.at(-1)?.slice(0, table.key.length);
      if (rows.length < AT_ONCE) break;
    }
    after = undefined;
  }
  return { records, size };
}

export async function writeRowPage(db: RowDatabase, { tables }: MovedState["rows"], records: readonly ObjectRecord[]): Promise<void> {
  for (const record of records) {
    if (record.kind !== "rows" || !tables.includes(record.table)) throw new Error("no move writes this into the row database");
    const insert = insertText(record.table, record.columns);
    for (let at = 0; at < record.rows.length; at += AT_ONCE)
      await db.batch(record.rows.slice(at, at + AT_ONCE).map((row) => db.prepare(insert).bind(...row.map(decodeValue))));
  }
}
export async function countRows(db: RowDatabase, { tables }: MovedState["rows"]): Promise<number> {
  let sum = 0;
  for (const table of tables) sum += (await db.prepare(`SELECT count(*) AS n FROM "${table}"`).first<{ n: number }>())?.n ?? 0;
  return sum;
}
export async function emptyRows(db: RowDatabase, { tables }: MovedState["rows"]): Promise<void> {
  for (const table of tables) await db.prepare(`DELETE FROM "${table}"`).run();
}
