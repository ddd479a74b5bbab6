import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryDatabase } from "../test/world.ts";
import { migrate } from "./database.ts";

test("tables are made once; a newer program's tables are left alone, with what to do", () => {
  const db = memoryDatabase();
  migrate(db);
  db.query("INSERT INTO kv VALUES('kept', '1')");
  migrate(db);
  assert.deepEqual(
    db.query<{ name: string }>("SELECT name FROM kv").map(({ name }) => name),
    ["kept"],
  );
  db.query("UPDATE schema_version SET version = 99");
  assert.throws(() => migrate(db), /tables are of version 99, but this program knows only 2; install the newer program/);
});
