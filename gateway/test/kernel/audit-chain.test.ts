/** The hash chain against an attacker who may change the database, its pruning, and its copies in the bucket. */
import { env } from "cloudflare:workers";
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { AuditEntry, AuditVerifyResult } from "../../../protocol/gen/types.ts";
import { AuditCopies } from "../../src/features/audit/copies.ts";
import { Audit } from "../../src/kernel/audit-store.ts";
import { KERNEL_TABLES } from "../../src/kernel/tables.ts";
import { migrate } from "../../src/platform/sql.ts";
import type { AuditInput } from "../../src/ports/audit.ts";
import { client, fakeSessions, gateway, type Peer, seed, sha256 } from "../support/gateway.ts";

const DAY = 86_400_000;
let admin: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});
const verify = (params: Record<string, unknown> = {}): Promise<AuditVerifyResult> => admin.ok("audit.verify", params);
const change = (value: number): Promise<unknown> => admin.ok("config.set", { path: "limits.stepsPerRun", value });
const inGateway = <T>(work: (state: DurableObjectState) => T | Promise<T>): Promise<T> =>
  runInDurableObject(gateway(), (_gateway, state) => work(state));
const sql = (...statements: string[]): Promise<void> =>
  inGateway(({ storage }) => {
    for (const statement of statements) storage.sql.exec(statement);
  });
/** An audit with a clock that the test moves. */
const withAudit = <T>(work: (audit: Audit, clock: { at: number }, state: DurableObjectState) => Promise<T>): Promise<T> =>
  inGateway((state) => {
    const clock = { at: Date.UTC(2090, 0, 1, 12) };
    return work(new Audit(state.storage, { now: () => clock.at }), clock, state);
  });
const entry = { actor: "a", action: "b", decision: "allowed" } as const;
async function sealed(audit: Audit, input: AuditInput): Promise<void> {
  audit.append(input);
  await audit.seal();
}

test("[AU2] entries that come together are hashed in one pass, soon after the first and without a reader", () =>
  inGateway(async ({ storage }) => {
    const passes: (() => Promise<void>)[] = [];
    const audit = new Audit(storage, { now: () => Date.UTC(2090, 0, 1) }, { deadline: () => {}, soon: (work) => passes.push(work) });
    for (let at = 0; at < 3; at++) audit.append(entry);
    expect(passes).toHaveLength(1);
    expect(audit.after(0, 10), "stored, and without a hash").toHaveLength(0);
    await passes[0]?.();
    expect(audit.after(0, 10)).toHaveLength(3);
    audit.append(entry);
    expect(passes).toHaveLength(2);
    expect((await audit.list(10, undefined, undefined)).entries, "a reader waits for no pass").toHaveLength(4);
    await passes[1]?.();
    expect(await audit.verify()).toMatchObject({ checked: 4, done: true });
  }));

test("[AU2] the gateway hashes an entry although no one reads the log", async () => {
  await change(1);
  await vi.waitFor(async () => {
    const open = await inGateway(({ storage }) => storage.sql.exec("SELECT seq FROM audit WHERE hash IS NULL").toArray());
    expect(open).toEqual([]);
  });
});

test("[AU2] entries of an instance that ended before their hashes are hashed by the next one", () =>
  inGateway(async ({ storage }) => {
    const passes: (() => Promise<void>)[] = [];
    const started = (): Audit =>
      new Audit(storage, { now: () => Date.UTC(2090, 0, 1) }, { deadline: () => {}, soon: (work) => passes.push(work) });
    started().append(entry);
    expect(passes.splice(0)).toHaveLength(1);
    const next = started();
    next.resume();
    await passes[0]?.();
    expect(next.after(0, 10)).toHaveLength(1);
    // With nothing left there is nothing to plan.
    started().resume();
    expect(passes).toHaveLength(1);
  }));

test("[AU3] an entry that is removed before it has a hash is found", () =>
  inGateway(async ({ storage }) => {
    const audit = new Audit(storage, { now: () => Date.UTC(2090, 0, 1) });
    await sealed(audit, entry);
    audit.append(entry);
    storage.sql.exec("DELETE FROM audit WHERE hash IS NULL");
    await sealed(audit, entry);
    expect((await audit.verify()).broken?.problem).toContain("an entry before it was removed");
    expect((await audit.list(10, undefined, undefined)).intact).toBe(false);
  }));

test("[AU2] an entry costs the same however long the log is", () =>
  inGateway(async ({ storage }) => {
    const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
    const exec = (query: string, ...bindings: unknown[]) => {
      const cursor = storage.sql.exec(query, ...bindings);
      cursors.push(cursor);
      return cursor;
    };
    const transactionSync = <T>(work: () => T): T => storage.transactionSync(work);
    const counted = { kv: storage.kv, transactionSync, sql: { exec } as SqlStorage };
    const audit = new Audit(counted, { now: () => Date.UTC(2090, 0, 1) });
    const rowsRead = async (): Promise<number> => {
      cursors.length = 0;
      await sealed(audit, entry);
      return cursors.reduce((sum, cursor) => sum + cursor.rowsRead, 0);
    };
    await sealed(audit, entry);
    const first = await rowsRead();
    for (let at = 0; at < 40; at++) await sealed(audit, entry);
    expect(await rowsRead()).toBe(first);
    expect(first).toBeGreaterThan(0);
  }));

describe("[AU3] [S16] what was done to the log is found", () => {
  const cases: readonly (readonly [string, readonly string[], number, RegExp])[] = [
    ["a changed entry", ["UPDATE audit SET actor = 'forged' WHERE seq = 3"], 3, /changed after it was written/],
    ["a changed decision", ["UPDATE audit SET decision = 'denied' WHERE seq = 3"], 3, /changed after it was written/],
    ["an entry passed off as an old one", ["UPDATE audit SET format = 1 WHERE seq = 3"], 3, /changed after it was written/],
    ["a removed entry", ["DELETE FROM audit WHERE seq = 3"], 4, /an entry before it was removed/],
    ["a removed beginning", ["DELETE FROM audit WHERE seq <= 2"], 3, /an entry before it was removed/],
    [
      "two entries in another order",
      ["UPDATE audit SET seq = 99 WHERE seq = 3", "UPDATE audit SET seq = 3 WHERE seq = 4", "UPDATE audit SET seq = 4 WHERE seq = 99"],
      3,
      /changed after it was written/,
    ],
    ["a cut end", ["DELETE FROM audit WHERE seq >= 4"], 4, /from 4 to 5 are missing/],
    ["an empty log", ["DELETE FROM audit"], 1, /from 1 to 5 are missing/],
  ];
  for (const [what, harm, seq, problem] of cases)
    test(what, async () => {
      for (let at = 1; at <= 5; at++) await change(at);
      expect(await verify()).toMatchObject({ ok: true, done: true, checked: 5, lastSeq: 5 });
      await sql(...harm);
      const found = await verify();
      expect(found).toMatchObject({ ok: false, done: true, broken: { seq, problem: expect.stringMatching(problem) } });
      if (what !== "an empty log" && what !== "a cut end") expect(found.broken?.at).toBeGreaterThan(0);
    });

  test("the record of the end is removed with the end", async () => {
    for (let at = 1; at <= 3; at++) await change(at);
    expect(await verify()).toMatchObject({ ok: true, checked: 3 });
    await inGateway(({ storage }) => storage.kv.delete("audit-head"));
    expect((await verify()).broken?.problem).toContain("record of the log's end is missing");
  });

  test("an entry that follows the cut does not hide it", async () => {
    for (let at = 1; at <= 3; at++) await change(at);
    expect(await verify()).toMatchObject({ ok: true, checked: 3 });
    await sql("DELETE FROM audit WHERE seq = 3");
    await change(4);
    expect((await verify()).broken).toMatchObject({ seq: 4, problem: expect.stringContaining("does not follow entry 2") });
  });
});

test("[AU3] the check goes in pages and needs no more than the last number", async () => {
  await withAudit(async (audit) => {
    for (let at = 0; at < LIMITS.auditVerifyEntries + 5; at++) audit.append(entry);
    await audit.seal();
  });
  const first = await verify();
  expect(first).toMatchObject({ ok: true, done: false, checked: LIMITS.auditVerifyEntries });
  expect(first.exported, "only the last page asks the bucket").toBeUndefined();
  expect(await verify({ afterSeq: first.lastSeq })).toMatchObject({ ok: true, done: true, checked: 5 });
  await sql(`UPDATE audit SET target = 'x' WHERE seq = ${first.lastSeq + 2}`);
  expect((await verify()).ok).toBe(true);
  expect((await verify({ afterSeq: first.lastSeq })).broken?.seq).toBe(first.lastSeq + 2);
});

test("[AU2] entries of an earlier version keep their hashes, and an entry commits to them", async () => {
  await inGateway(async ({ storage }) => {
    storage.sql.exec("DROP TABLE audit");
    storage.sql.exec("DELETE FROM schema_version WHERE owner = 'kernel'");
    storage.kv.delete("audit-head");
    storage.sql.exec(`CREATE TABLE audit(
      seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, target TEXT, decision TEXT NOT NULL,
      detail TEXT, args_hash TEXT, prev_hash TEXT, hash TEXT
    ) STRICT`);
    let prev = "0".repeat(64);
    const began = Date.now();
    for (let seq = 1; seq <= 3; seq++) {
      const hash = await sha256(JSON.stringify([prev, seq, began + seq, "old", "config.set", null, "allowed", null, null]));
      // The last one had no hash yet when that version ended.
      const hashes = seq === 3 ? [null, null] : [prev, hash];
      storage.sql.exec(
        "INSERT INTO audit(at, actor, action, decision, prev_hash, hash) VALUES(?, 'old', 'config.set', 'allowed', ?, ?)",
        began + seq,
        ...hashes,
      );
      prev = hash;
    }
    migrate(storage, "kernel", KERNEL_TABLES.migrations);
  });
  await change(1);
  const { entries } = await admin.ok<{ entries: AuditEntry[] }>("audit.list", {});
  expect(entries.map(({ seq, action }) => [seq, action])).toEqual([
    [5, "config.set"],
    [4, "audit.genesis"],
    [3, "config.set"],
    [2, "config.set"],
    [1, "config.set"],
  ]);
  expect(entries[1]?.detail).toBe(`3 entries of an earlier version, the last with hash ${entries[2]?.hash}`);
  expect(await verify()).toMatchObject({ ok: true, checked: 5 });
  await sql("UPDATE audit SET actor = 'forged' WHERE seq = 2");
  expect((await verify()).broken?.seq).toBe(2);
});

test("[AU4] [S16] after pruning the log begins at an anchor that it names itself", async () => {
  await withAudit(async (audit, clock) => {
    for (let at = 0; at < 100; at++) {
      clock.at += DAY;
      await sealed(audit, entry);
    }
    await audit.prune(clock.at);
    expect((await audit.list(200, undefined, undefined)).count, "entries without a copy are kept").toBe(100);
    audit.setCopied({ seq: 100 });
    expect(audit.nextPrune()).toBeLessThan(clock.at);
    await audit.prune(clock.at);
    expect(audit.nextPrune()).toBeGreaterThan(clock.at);
    const { entries, count, intact } = await audit.list(200, undefined, undefined);
    expect([count, intact]).toEqual([92, true]);
    expect(entries[0]).toMatchObject({ action: "audit.prune", detail: expect.stringMatching(/^entries to 9 were removed/) });
    expect(await audit.verify()).toMatchObject({ checked: 92, done: true });
    expect((await audit.verify()).broken).toBeUndefined();
  });
  // The beginning is removed together with what the log remembers of it.
  await inGateway(({ storage }) => {
    const hash = storage.sql.exec<{ hash: string }>("SELECT hash FROM audit WHERE seq = 20").one().hash;
    storage.sql.exec("DELETE FROM audit WHERE seq <= 20");
    storage.kv.put("audit-anchor", { seq: 20, hash });
  });
  expect((await verify()).broken).toMatchObject({ problem: expect.stringContaining("does not begin where its last pruning ended") });
});

test("[AU4] a log without copies is pruned after twice the time", async () => {
  await withAudit(async (audit, clock) => {
    await sealed(audit, entry);
    clock.at += 2 * LIMITS.auditDays * DAY + 2 * DAY;
    expect(audit.nextPrune()).toBeLessThan(clock.at);
    await audit.prune(clock.at);
    expect((await audit.list(200, undefined, undefined)).entries.map(({ action }) => action)).toEqual(["audit.prune"]);
    expect((await audit.verify()).broken).toBeUndefined();
  });
});

describe("[AU5] [S16] copies in the bucket", () => {
  const keys = async (): Promise<string[]> => (await env.STORAGE.list({ prefix: "audit/" })).objects.map(({ key }) => key);
  const linesOf = async (key: string): Promise<Record<string, unknown>[]> => {
    const object = await env.STORAGE.get(key);
    if (object === null) throw new Error(`there is no ${key}`);
    const text = await new Response(object.body.pipeThrough(new DecompressionStream("gzip"))).text();
    return text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  };

  test("each complete day is a file, which ends with the end of its chain and can be checked without the log", async () => {
    await withAudit(async (audit, clock) => {
      const copies = new AuditCopies(audit, env.STORAGE);
      expect(copies.next()).toBeUndefined();
      await sealed(audit, { ...entry, origin: "client", tool: "lap__Bash", rule: "tool.owner", target: "t", detail: "d", argsHash: "ab" });
      await sealed(audit, entry);
      clock.at += DAY;
      await sealed(audit, entry);
      expect(copies.next()).toBe(Date.UTC(2090, 0, 2));
      await copies.run(clock.at);
      expect(copies.next()).toBe(Date.UTC(2090, 0, 3));
    });
    expect(await keys()).toEqual(["audit/2090-01-01-000000000001.jsonl.gz"]);
    const lines = await linesOf("audit/2090-01-01-000000000001.jsonl.gz");
    expect(lines).toHaveLength(3);
    let prev = "0".repeat(64);
    for (const { prevHash, hash, ...content } of lines.slice(0, 2)) {
      expect(prevHash).toBe(prev);
      expect(await sha256(JSON.stringify([prev, content]))).toBe(hash);
      prev = String(hash);
    }
    expect(lines[2]).toEqual({ chain: { entries: 2, lastSeq: 2, lastHash: prev } });
  });

  test("a gateway that ends between the file and the log's own record writes the same file again", async () => {
    await withAudit(async (audit, clock, { storage }) => {
      await sealed(audit, entry);
      clock.at += DAY;
      await sealed(audit, entry);
      const broken = new AuditCopies(audit, env.STORAGE);
      // The end of the instance: the bucket has the file, and nothing after it ran.
      vi.spyOn(audit, "setCopied").mockImplementationOnce(() => {
        throw new Error("the instance ended");
      });
      await broken.run(clock.at).catch(() => undefined);
      storage.kv.delete("audit-copied");
      const [key = ""] = await keys();
      const before = await env.STORAGE.head(key);
      const next = new AuditCopies(new Audit(storage, { now: () => clock.at }), env.STORAGE);
      await next.run(clock.at);
      const after = await env.STORAGE.head(key);
      expect(await keys()).toEqual([key]);
      expect(after?.etag).toBe(before?.etag);
      expect((await next.compare(clock.at)).broken).toBeUndefined();
    });
  });

  test("a failed copy is tried again, and until then it is visible", async () => {
    await withAudit(async (audit, clock) => {
      let broken = true;
      const put: typeof env.STORAGE.put = (...args: unknown[]) =>
        broken ? Promise.reject(new Error("the bucket is full")) : (Reflect.apply(env.STORAGE.put, env.STORAGE, args) as Promise<R2Object>);
      const bucket = { put, list: env.STORAGE.list.bind(env.STORAGE) } as unknown as R2Bucket;
      const copies = new AuditCopies(audit, bucket);
      await sealed(audit, entry);
      clock.at += DAY;
      const since = clock.at;
      await expect(copies.run(clock.at)).rejects.toThrow("full");
      clock.at += 60_000;
      await expect(copies.run(clock.at)).rejects.toThrow("full");
      expect((await copies.compare(clock.at)).exported).toEqual({ failingSince: since, problem: "the bucket is full" });
      expect(copies.next()).toBeLessThan(clock.at);
      broken = false;
      await copies.run(clock.at);
      expect((await copies.compare(clock.at)).exported).toEqual({ key: "audit/2090-01-01-000000000001.jsonl.gz", lastSeq: 1 });
      expect(copies.next()).toBeUndefined();
    });
  });

  test("[AU5] the newest copy is found, also when the bucket lists the month in pages", async () => {
    await withAudit(async (audit, clock) => {
      const list = (options: R2ListOptions) => env.STORAGE.list({ ...options, limit: 1 });
      const bucket = { put: env.STORAGE.put.bind(env.STORAGE), list } as unknown as R2Bucket;
      const copies = new AuditCopies(audit, bucket);
      for (const day of [1, 2, 3]) {
        await sealed(audit, entry);
        clock.at = Date.UTC(2090, 0, day + 1, 1);
        await copies.run(clock.at);
      }
      expect(await keys()).toHaveLength(3);
      expect((await copies.compare(clock.at)).exported).toEqual({ key: "audit/2090-01-03-000000000003.jsonl.gz", lastSeq: 3 });
    });
  });

  test("[AU6] a log that was emptied with everything that it remembers is found by its copies", async () => {
    await change(1);
    await inGateway(async ({ storage }) => {
      const audit = new Audit(storage, { now: () => Date.now() });
      await new AuditCopies(audit, env.STORAGE).run(Date.now() + 2 * DAY);
      storage.sql.exec("DELETE FROM audit");
      storage.sql.exec("DELETE FROM sqlite_sequence WHERE name = 'audit'");
      for (const key of ["audit-head", "audit-anchor", "audit-copied"]) storage.kv.delete(key);
    });
    await change(2);
    expect((await verify()).broken).toMatchObject({ seq: 1, problem: expect.stringMatching(/differs from the log: the copy audit\//) });
  });

  test("[AU3] [AU5] the check of a broken log says which copy there is to compare it with", async () => {
    await change(1);
    await inGateway(async ({ storage }) => {
      const audit = new Audit(storage, { now: () => Date.now() });
      await audit.seal();
      await new AuditCopies(audit, env.STORAGE).run(Date.now() + 2 * DAY);
    });
    await sql("UPDATE audit SET target = 'x' WHERE seq = 1");
    const [key] = await keys();
    expect(await verify()).toMatchObject({ ok: false, broken: { seq: 1 }, exported: { key } });
  });

  test("[AU6] [AU4] entries that are passed off as pruned before their time are found by their copies", async () => {
    await withAudit(async (audit, clock, { storage }) => {
      for (let at = 0; at < 3; at++) await sealed(audit, entry);
      const last = { seq: 3, hash: audit.hashAt(3) };
      clock.at += DAY;
      const copies = new AuditCopies(audit, env.STORAGE);
      await copies.run(clock.at);
      storage.sql.exec("DELETE FROM audit");
      storage.kv.put("audit-anchor", last);
      storage.kv.put("audit-head", last);
      expect((await audit.verify()).broken, "the chain itself has no break").toBeUndefined();
      expect((await copies.compare(clock.at)).broken).toMatchObject({ seq: 3, problem: expect.stringMatching(/before its time/) });
      clock.at += 91 * DAY;
      expect((await copies.compare(clock.at)).broken).toBeUndefined();
    });
  });

  test("[AU6] a copy that does not say with which entry it ends does not take the place of one that does", async () => {
    await withAudit(async (audit, clock) => {
      await sealed(audit, entry);
      clock.at += DAY;
      const copies = new AuditCopies(audit, env.STORAGE);
      await copies.run(clock.at);
      await env.STORAGE.put("audit/2090-01-01-000000000999.jsonl.gz", "x");
      expect((await copies.compare(clock.at)).broken).toMatchObject({ problem: expect.stringMatching(/does not say/) });
    });
  });
});
