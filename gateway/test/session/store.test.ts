/** The session's tables on real SQLite, by the contract that the simulator's disk keeps too. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { SqlStore } from "../../src/session/store/sql-store.ts";
import { storeCases } from "./store-contract.ts";

describe("the store in SQLite", () => {
  for (const [index, { name, run }] of storeCases.entries()) {
    it(name, async () => {
      await runInDurableObject(env.SESSION.getByName(`store-${index}`), (_session, ctx) => run(new SqlStore(ctx.storage)));
    });
  }
  it("[W20] a mere read makes no table", async () => {
    await runInDurableObject(env.SESSION.getByName("store-read"), (_session, ctx) => {
      const store = new SqlStore(ctx.storage);
      store.load();
      store.seen("k");
      expect(ctx.storage.sql.exec("SELECT name FROM sqlite_master").toArray()).toEqual([]);
    });
  });
  it("what one life wrote, another reads", async () => {
    const stub = env.SESSION.getByName("store-lives");
    await runInDurableObject(stub, (_session, ctx) =>
      storeCases.find((entry) => entry.name.startsWith("the state comes back"))?.run(new SqlStore(ctx.storage)),
    );
    await runInDurableObject(stub, (_session, ctx) => expect(new SqlStore(ctx.storage).load()?.label).toBe("ü"));
  });
});
