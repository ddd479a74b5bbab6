/** The session's tables on real SQLite, by the contract that the simulator's disk keeps too. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { migrate } from "../../src/platform/sql.ts";
import { SESSION_MIGRATIONS, SESSION_TABLES } from "../../src/session/store/schema.ts";
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
  it("[P21] what the first version wrote is carried over to later tables", async () => {
    const stub = env.SESSION.getByName("store-first-version");
    await runInDurableObject(stub, (_session, ctx) => {
      migrate(ctx.storage, SESSION_TABLES, SESSION_MIGRATIONS.slice(0, 1));
      const parts = {
        session: {
          v: 1,
          identity: { key: "agent:main:main", ref: "r", agentId: "main", isMain: true },
          sessionId: "kept",
          outbox: [],
          sealed: [],
          run: { phase: "idle" },
        },
        settings: { model: "demo/demo" },
      };
      for (const [name, body] of Object.entries(parts))
        ctx.storage.sql.exec("INSERT INTO state(name, body) VALUES(?, ?)", name, JSON.stringify(body));
      expect(new SqlStore(ctx.storage).load()).toMatchObject({ sessionId: "kept", settings: { model: "demo/demo" } });
    });
    await runInDurableObject(stub, (_session, ctx) => expect(new SqlStore(ctx.storage).load()?.sessionId).toBe("kept"));
  });
});
