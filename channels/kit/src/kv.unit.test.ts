/** [S5] A secret that was replaced or removed stays nowhere in the database's file. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { databaseOf } from "../test/world.ts";
import { readSealingKeys } from "../../../protocol/runtime/sealing.ts";
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

/** The values of an account under these keys, in a database of its own or in that of another one. */
function account(words: string, raw = new DatabaseSync(":memory:"), accountId = "default") {
  const db = databaseOf(raw);
  migrate(db);
  const nonce = (): Uint8Array => crypto.getRandomValues(new Uint8Array(12));
  const kv = new KeyValues(db, { accountId, keys: readSealingKeys(words), nonce });
  return {
    raw,
    kv,
    isWhole: kv.sealStored(),
    inFile: (text: string) => JSON.stringify(raw.prepare("SELECT * FROM kv").all()).includes(text),
  };
}
const [OLD, NEW] = ["01".repeat(32), "02".repeat(32)];
const CREDS = { noiseKey: SECRET };

describe("[A10] settings and logins of an account", () => {
  test("are sealed where they are stored, and other values are not", () => {
    const { kv, inFile } = account(OLD);
    kv.put("account.config", { token: SECRET });
    kv.put("p.creds", CREDS);
    kv.put("account.started", true);
    assert.ok(!inFile(SECRET) && inFile("true"));
    assert.deepEqual([kv.get("account.config"), kv.get("p.creds"), kv.names("p.")], [{ token: SECRET }, CREDS, ["p.creds"]]);
  });

  test("that were stored plain are sealed when the account begins, as are those of an earlier key", () => {
    const plain = account("");
    plain.kv.put("p.creds", CREDS);
    plain.kv.put("account.config", { token: SECRET });
    assert.ok(plain.inFile(SECRET));
    const first = account(OLD, plain.raw);
    assert.ok(first.isWhole && !first.inFile(SECRET));
    assert.deepEqual(first.kv.get("p.creds"), CREDS);
    assert.ok(account(`${NEW} ${OLD}`, plain.raw).isWhole);
    const second = account(NEW, plain.raw);
    assert.ok(second.isWhole);
    assert.deepEqual([second.kv.get("p.creds"), second.kv.get("account.config")], [CREDS, { token: SECRET }]);
  });

  test("that were stored while there was no key are sealed when it is back", () => {
    const { raw } = account(OLD);
    const plain = account("", raw);
    plain.kv.put("p.creds", CREDS);
    assert.ok(plain.inFile(SECRET));
    assert.ok(!account(OLD, raw).inFile(SECRET));
  });

  test("cannot be used without their key, stay as they are, and work again with it", () => {
    const { raw, kv } = account(OLD);
    kv.put("p.creds", CREDS);
    for (const words of [NEW, ""]) {
      const without = account(words, raw);
      assert.ok(!without.isWhole);
      assert.equal(without.kv.get("p.creds"), undefined);
    }
    const back = account(OLD, raw);
    assert.ok(back.isWhole);
    assert.deepEqual(back.kv.get("p.creds"), CREDS);
  });

  test("that cannot be opened make room for new ones, and only they", () => {
    const { raw, kv } = account(OLD);
    kv.put("p.creds", CREDS);
    const other = account(NEW, raw);
    other.kv.put("p.other", 1);
    other.kv.dropUnreadable();
    assert.deepEqual([other.kv.names("p."), account(NEW, raw).isWhole], [["p.other"], true]);
  });

  test("cannot be moved to another name or account", () => {
    const { raw, kv } = account(OLD);
    kv.put("p.creds", CREDS);
    raw.exec("INSERT INTO kv SELECT 'p.moved', value FROM kv WHERE name = 'p.creds'");
    assert.equal(kv.get("p.moved"), undefined);
    assert.equal(account(OLD, raw, "another").kv.get("p.creds"), undefined);
  });
});
