/** The store of long-term memory on SQLite in Node: its contract, scopes by the thousand, migrations and failures. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { memory, rowsCases } from "../../../test/features/memory/rows-contract.ts";
import { sqliteRows } from "../../../test/support/rows.ts";
import { seeded } from "../../../../test/seeded.ts";
import type { MemoryScope } from "../../ports/long-term-memory.ts";
import { migrateRows } from "../../storage/rows.ts";
import { D1Memory } from "./d1-store.ts";
import { MEMORY_MIGRATIONS } from "./migrations.ts";
import { readUlid, ulid } from "./ulid.ts";

const now = (): number => 1;
const unexpected = (what: string, error: unknown): void => assert.fail(`${what}: ${String(error)}`);

describe("the rows of long-term memory, on SQLite", () => {
  const rows = new D1Memory(sqliteRows(), now, unexpected);
  for (const [index, { name, run }] of rowsCases.entries()) it(name, () => run(rows, { tenantId: "default", agentId: `agent-${index}` }));
});

describe("scopes", () => {
  const REQUESTS = 10_000;
  it(`[LM3] ${REQUESTS} random requests of other tenants and agents see, change and remove nothing`, async () => {
    const random = seeded(7);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const rows = new D1Memory(sqliteRows(), now, unexpected);
    const names = ["a", "b", "c", "A", "a ", "", "a%", "a_", "*", "' OR 1=1 --"];
    const scopes: MemoryScope[] = names.flatMap((tenantId) => names.map((agentId) => ({ tenantId, agentId })));
    const owner = new Map<string, MemoryScope>();
    for (const scope of scopes)
      for (let number = 0; number < 3; number++) {
        const one = memory(`${JSON.stringify(scope)} ${number}`);
        const stored = await rows.store(scope, one);
        assert.ok(stored.ok);
        owner.set(one.id, scope);
      }
    const ids = [...owner.keys()];
    for (let query = 0; query < REQUESTS; query++) {
      const scope = pick(scopes);
      const others = Array.from({ length: 3 }, () => pick(ids)).filter((id) => owner.get(id) !== scope);
      const got = await rows.get(scope, others);
      assert.ok(got.ok && got.value.size === 0);
      const listed = query % 4 === 0 ? await rows.list(scope, { superseded: true, limit: 100 }) : await rows.changes(scope, 0, 100);
      assert.ok(listed.ok);
      const seen = "memories" in listed.value ? listed.value.memories : listed.value;
      assert.equal(seen.length, 3);
      assert.ok(seen.every(({ id }) => owner.get(id) === scope));
      if (query % 10 === 0) {
        assert.deepEqual(await rows.remove(scope, others), { ok: true, value: 0 });
        const [other] = others;
        if (other === undefined) continue;
        const stored = await rows.store(scope, memory("x", { supersedes: other }));
        assert.ok(!stored.ok && stored.error.reason === "memory.unknown");
      }
    }
  });
});

describe("migrations", () => {
  it("[LM4] each is applied once, also by two objects at a time, and tables of a newer version are refused", async () => {
    const db = sqliteRows();
    await Promise.all([migrateRows(db, "memory", MEMORY_MIGRATIONS, 1), migrateRows(db, "memory", MEMORY_MIGRATIONS, 2)]);
    const more = [...MEMORY_MIGRATIONS, { name: "more", statements: ["CREATE TABLE more(id TEXT) STRICT"] }];
    await migrateRows(db, "memory", more, 3);
    await migrateRows(db, "other", [{ name: "its own", statements: ["CREATE TABLE other(id TEXT) STRICT"] }], 4);
    const { results } = await db.prepare("SELECT owner, number, name FROM gsv_migrations ORDER BY owner, number").all();
    assert.deepEqual(
      results.map((row) => Object.values(row)),
      [
        ["memory", 1, "long-term memory"],
        ["memory", 2, "vectors of embedding services"],
        ["memory", 3, "the vector index"],
        ["memory", 4, "more"],
        ["other", 1, "its own"],
      ],
    );
    const noted: unknown[] = [];
    const refused = await new D1Memory(db, now, (what) => noted.push(what)).list(
      { tenantId: "t", agentId: "a" },
      { superseded: false, limit: 1 },
    );
    assert.ok(!refused.ok);
    assert.match(refused.error.message, /newer version of GSV.*Nothing was changed/);
    assert.deepEqual(noted, ["list the memories"], "what the database said is logged, not shown");
  });
  it("[LM4] a migration that is cut anywhere leaves nothing behind and is applied by the next call", async () => {
    const statements = MEMORY_MIGRATIONS.flatMap((migration) => migration.statements).length + 4;
    for (let cut = 1; cut <= statements; cut++) {
      let left = cut;
      const db = sqliteRows(() => {
        if (--left === 0) throw new Error("cut");
      });
      const rows = new D1Memory(db, now, () => undefined);
      const scope = { tenantId: "t", agentId: "a" };
      let stored = await rows.store(scope, memory("kept", { callId: "one" }));
      while (!stored.ok) stored = await rows.store(scope, memory("kept", { callId: "one" }));
      const listed = await rows.list(scope, { superseded: true, limit: 10 });
      assert.ok(listed.ok && listed.value.memories.length === 1, `cut at ${cut}`);
    }
  });
  it("[LM4] the released migrations have not changed", () => {
    const digest = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
    assert.deepEqual(MEMORY_MIGRATIONS.map(digest), ["0e9380d6169a8090", "101771b1ddb7b1ce", "16f47ee946046dee"]);
  });
});

describe("ids", () => {
  it("rise with time, and are read as people write them", () => {
    const random = crypto.getRandomValues(new Uint8Array(16));
    assert.ok(ulid(1_000, random) < ulid(1_001, new Uint8Array(16)));
    assert.match(ulid(1_469_918_176_385, random), /^01ARYZ6S41[0-9A-HJKMNP-TV-Z]{16}$/);
    assert.equal(readUlid(` ${ulid(5, random).toLowerCase()} `), ulid(5, random));
    for (const bad of ["", "x", "8".repeat(26), "I".repeat(26), `${ulid(5, random)}0`]) assert.equal(readUlid(bad), undefined);
  });
});
