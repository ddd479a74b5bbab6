/** State with tables of a feature that this version does not know: one of a newer version, or one that was removed. */
import { reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, expect, test } from "vitest";
import { instance } from "../../src/app/instance.ts";
import { all, levelsOf, type Migration, migrateAll, run } from "../../src/platform/sql.ts";
import { SqlStore } from "../../src/session/store/sql-store.ts";
import { evict } from "../support/evict.ts";
import { fetchWorker, gateway, seed } from "../support/gateway.ts";

beforeEach(async () => {
  await reset();
  await seed();
  instance.opened = undefined;
});
const addOwner = (owner: string, version: number) => (_object: unknown, state: DurableObjectState) =>
  run(state.storage.sql, "INSERT INTO schema_version(owner, version) VALUES(?, ?)", owner, version);

test("[UP17] [UP2] [P22] tables of a feature that this version does not have: a start is refused with its sentence", async () => {
  await runInDurableObject(gateway(), addOwner("futurefeature", 3));
  await evict(gateway());
  const response = await fetchWorker("http://localhost/health?start", undefined, { ENVIRONMENT: "embedded" });
  expect(await response.json()).toMatchObject({
    reason: "storage.newer_version",
    detail:
      "A newer version of GSV has written this state: the futurefeature tables have version 3, and this program does not know them. Nothing was changed.",
  });
});

test("[UP17] an owner that earlier versions had and removed is left alone; every other unknown one is refused before anything is changed", async () => {
  const notes: readonly Migration[] = [{ name: "notes", up: (sql) => void sql.exec("CREATE TABLE notes(id INTEGER PRIMARY KEY) STRICT") }];
  await runInDurableObject(env.SESSION.getByName("owners"), (_session, { storage }) => {
    migrateAll(storage, [["kept", []]]);
    for (const [owner, version] of [
      ["removed", 2],
      ["future", 1],
    ] as const)
      run(storage.sql, "INSERT INTO schema_version(owner, version) VALUES(?, ?)", owner, version);
    expect(() => migrateAll(storage, [["notes", notes]], ["removed"])).toThrow("the future tables have version 1");
    expect(() => migrateAll(storage, [["notes", notes]], ["future"])).toThrow("the removed tables have version 2");
    expect(all(storage.sql, "SELECT name FROM sqlite_master WHERE name = 'notes'")).toEqual([]);
    migrateAll(storage, [["notes", notes]], ["removed", "future"]);
    expect(levelsOf(storage)).toEqual({ future: 1, notes: 1, removed: 2 });
  });
});

test("[UP17] a known owner of a newer version is refused before the tables of the others are changed", async () => {
  await runInDurableObject(env.SESSION.getByName("order"), (_session, { storage }) => {
    const up: Migration["up"] = () => undefined;
    migrateAll(storage, [
      [
        "last",
        [
          { name: "1", up },
          { name: "2", up },
        ],
      ],
    ]);
    expect(() =>
      migrateAll(storage, [
        ["first", [{ name: "1", up }]],
        ["last", [{ name: "1", up }]],
      ]),
    ).toThrow("knows up to 1");
    expect(levelsOf(storage)).toEqual({ last: 2 });
  });
});

test("[UP17] a conversation with tables that this version does not know is refused", async () => {
  const stub = env.SESSION.getByName("newer-conversation");
  await runInDurableObject(stub, (_session, { storage }) => new SqlStore(storage).transaction(() => undefined));
  await runInDurableObject(stub, addOwner("futurefeature", 1));
  await runInDurableObject(stub, (_session, { storage }) =>
    expect(() => new SqlStore(storage).load()).toThrow("the futurefeature tables have version 1"),
  );
});
