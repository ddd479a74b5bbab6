/** The session's tables on real SQLite, under the same contract as the simulator's store. */
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
  it("[W20] reading creates no table", async () => {
    await runInDurableObject(env.SESSION.getByName("store-read"), (_session, ctx) => {
      const store = new SqlStore(ctx.storage);
      store.load();
      store.seen("k");
      expect(ctx.storage.sql.exec("SELECT name FROM sqlite_master").toArray()).toEqual([]);
    });
  });
  it("one incarnation reads what another wrote", async () => {
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
  it("[P21] the origin of a version 1 run is read from its message in the log", async () => {
    await runInDurableObject(env.SESSION.getByName("store-version-1"), (_session, { storage }) => {
      migrate(storage, SESSION_TABLES, SESSION_MIGRATIONS);
      const put = (seq: number, run: string, origin: string): void => {
        const body = JSON.stringify({ messageId: run, origin, message: { role: "user", content: "hi", timestamp: 0 } });
        storage.sql.exec("INSERT INTO log(seq, kind, run, at, body) VALUES(?, 'user', ?, 0, ?)", seq, run, body);
      };
      put(1, "before", "client:laptop");
      put(2, "now", "session:agent:work:main;hops=2");
      const run = { phase: "thinking", runId: "now", ordinal: 2 };
      const session = { v: 1, identity: { key: "agent:main:main", isMain: true }, outbox: [], sealed: [], run };
      storage.sql.exec("INSERT INTO parts(id, body) VALUES(1, ?)", JSON.stringify(session));
      const waiting = {
        messageId: "w",
        runId: "w",
        origin: "node:lap",
        directives: {},
        message: { role: "user", content: "x", timestamp: 0 },
      };
      storage.sql.exec("INSERT INTO queue(id, run, bytes, body) VALUES(1, 'w', 5, ?)", JSON.stringify(waiting));
      const store = new SqlStore(storage);
      expect(store.load()?.run).toMatchObject({ runId: "now", origin: { kind: "session", sessionKey: "agent:work:main", hops: 2 } });
      expect(store.queueFront().head?.incoming.origin).toEqual({ kind: "node_event", nodeId: "lap" });
      expect(store.queued()[0]?.origin).toEqual({ kind: "node_event", nodeId: "lap" });
      expect(store.rowAt(1)).toMatchObject({ origin: { kind: "client", clientId: "laptop" } });
    });
  });
});
