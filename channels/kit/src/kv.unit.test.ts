/** [S5] A secret that was replaced or removed stays nowhere in the database's file. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { databaseOf } from "../test/world.ts";
import { migrate } from "./database.ts";
import { KeyValues } from "./kv.ts";

const SECRET = "canary-of-the-bot-token-0123456789";

for (const [what, next] of [
  ["deleted", undefined],
  ["removed", {}],
  ["replaced by a shorter one", { token: "short" }],
  ["replaced by a longer one", { token: "a-much-longer-token-than-the-one-before-0123456789-0123456789" }],
] as const)
  test(`[S5] a secret that is ${what} stays nowhere in the file`, () => {
    const folder = mkdtempSync(join(tmpdir(), "gsv-kv-"));
    const file = join(folder, "account.sqlite");
    const raw = new DatabaseSync(file);
    try {
      raw.exec("PRAGMA journal_mode = WAL; PRAGMA secure_delete = OFF");
      const db = databaseOf(raw);
      migrate(db);
      const kv = new KeyValues(db);
      kv.put("before", 1);
      kv.put("account.config", { token: SECRET });
      kv.put("later", 2);
      raw.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      assert.ok(readFileSync(file).includes(SECRET));
      if (next === undefined) kv.delete("account.config");
      else kv.replace("account.config", next);
      raw.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      assert.deepEqual(kv.get("account.config"), next);
      assert.ok(!readFileSync(file).includes(SECRET.slice(0, 12)), "the beginning of the secret");
      assert.ok(!readFileSync(file).includes(SECRET.slice(-12)), "the end of the secret");
    } finally {
      raw.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
