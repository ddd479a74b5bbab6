/** Tables of every form as records, page by page, and back: no row is lost or twice at any size of a page. */
import { env } from "cloudflare:workers";
import { reset, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import { countObject, readObject, tablesOf, writeRecords } from "../../../src/platform/object-rows.ts";
import type { ObjectCursor, ObjectRecord } from "../../../src/ports/moving.ts";

beforeEach(() => reset());

const TABLES = [
  "CREATE TABLE numbered(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT) STRICT",
  "CREATE TABLE plain(id INTEGER PRIMARY KEY, real REAL, bytes BLOB) STRICT",
  "CREATE TABLE named(name TEXT PRIMARY KEY, n INTEGER) STRICT",
  "CREATE TABLE pairs_of_keys(left TEXT NOT NULL, right INTEGER NOT NULL, body TEXT, PRIMARY KEY(left, right)) STRICT, WITHOUT ROWID",
  "CREATE TABLE empty_one(id INTEGER PRIMARY KEY) STRICT",
];
function fill({ sql, kv }: DurableObjectStorage): void {
  for (const statement of TABLES) sql.exec(statement);
  for (let at = 0; at < 700; at++) {
    sql.exec("INSERT INTO numbered(text) VALUES(?)", at % 7 === 0 ? null : `"\u0001é😀\\${"x".repeat(at % 50)}`);
    sql.exec("INSERT INTO plain(id, real, bytes) VALUES(?, ?, ?)", at * 3 - 900, at / 3, new Uint8Array([at & 255, 0, 255]));
    sql.exec("INSERT INTO named(name, n) VALUES(?, ?)", `name ${(at * 37) % 700}`, at);
    sql.exec("INSERT INTO pairs_of_keys(left, right, body) VALUES(?, ?, ?)", `k${at % 5}`, at % 3 === 0 ? -at : at, "b");
    if (at % 5 === 0) kv.put(`key ${at}`, { at, list: [at, null, "x"] });
  }
  sql.exec("DELETE FROM numbered WHERE id > 690");
}
function content(storage: DurableObjectStorage): unknown {
  const rows = tablesOf(storage).map((name) => [
    name,
    storage.sql
      .exec(`SELECT * FROM "${name}"`)
      .toArray()
      .map((row) => JSON.stringify(row, (_key, value: unknown) => (value instanceof ArrayBuffer ? [...new Uint8Array(value)] : value)))
      .sort(),
  ]);
  return { rows, sequence: storage.sql.exec("SELECT * FROM sqlite_sequence").toArray(), values: [...storage.kv.list()] };
}
const object = (name: string) => env.SESSION.getByName(name);

describe("[MV5] [MV8] an object's state", () => {
  for (const budget of [1, 1000, 100_000, 10_000_000])
    test(`is the same after it moved in pages of ${budget} characters, each written twice`, async () => {
      const { pages, before, counts } = await runInDurableObject(object("a"), (_object, { storage }) => {
        fill(storage);
        const found: (readonly ObjectRecord[])[] = [];
        let cursor: ObjectCursor | undefined;
        do {
          const page = readObject(storage, { values: true }, cursor, budget);
          const rows = page.records.reduce((sum, record) => sum + (record.kind === "rows" ? record.rows.length : 0), 0);
          expect(rows <= Math.max(1, budget)).toBe(true);
          found.push(page.records);
          // A cursor travels as text.
          cursor = page.next === undefined ? undefined : (JSON.parse(JSON.stringify(page.next)) as ObjectCursor);
        } while (cursor !== undefined);
        return { pages: JSON.stringify(found), before: content(storage), counts: countObject(storage, { values: true }) };
      });
      const after = await runInDurableObject(object("b"), (_object, { storage }) => {
        for (const statement of TABLES) storage.sql.exec(statement);
        for (const records of JSON.parse(pages) as ObjectRecord[][])
          for (const _time of [1, 2]) storage.transactionSync(() => writeRecords(storage, records));
        return { content: content(storage), counts: countObject(storage, { values: true }) };
      });
      expect(after.content).toEqual(before);
      expect(after.counts).toEqual(counts);
      expect(counts).toEqual({ rows: 2790, values: 140 });
    });

  test("is written only into tables that it has, and that were named", async () => {
    await runInDurableObject(object("c"), (_object, { storage }) => {
      for (const statement of TABLES) storage.sql.exec(statement);
      const write = (table: string, columns = ["id"], only?: ReadonlySet<string>) =>
        writeRecords(storage, [{ kind: "rows", table, columns, rows: [[1]] }], only);
      for (const table of ["other", "sqlite_sequence", "_cf_KV", "schema_version", 'plain"; DROP TABLE plain; --'])
        expect(() => write(table), table).toThrow(/no move writes a table/);
      expect(() => write("plain", ['id") --'])).toThrow(/a name that no move takes/);
      expect(() => write("plain", ["id"], new Set(["named"]))).toThrow(/no move writes a table/);
      write("plain", ["id"], new Set(["plain"]));
      expect(countObject(storage, { values: true }).rows).toBe(1);
    });
  });
});
