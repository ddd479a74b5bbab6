/** What a message costs: rows, transactions, alarms, and nothing that grows with the conversation. Counted on real SQLite. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { ModelOutcome, ModelRequest } from "../../src/ports/model.ts";
import type { SessionIdentity } from "../../src/ports/session.ts";
import { type DriverHost, SessionDriver } from "../../src/session/driver.ts";
import { SessionService } from "../../src/session/session-service.ts";
import { type SessionDatabase, SqlStore } from "../../src/session/store/sql-store.ts";
import { says, Stage, until } from "./support.ts";

interface Cost {
  written: number;
  read: number;
  transactions: number;
  alarms: number;
  /** Calls to the gateway's object. */
  publishes: number;
  contexts: number;
  grants: number;
}
const NOTHING: Cost = { written: 0, read: 0, transactions: 0, alarms: 0, publishes: 0, contexts: 0, grants: 0 };
/** The object's storage, counting. */
function counted(storage: DurableObjectStorage, cost: Cost): SessionDatabase {
  const count = <T extends Record<string, SqlStorageValue>>(cursor: SqlStorageCursor<T>): SqlStorageCursor<T> => {
    // A cursor knows its cost when it is at its end.
    const rows = cursor.toArray();
    cost.written += cursor.rowsWritten;
    cost.read += cursor.rowsRead;
    const again = rows[Symbol.iterator]();
    return new Proxy(cursor, {
      get: (target, name) => (name === "toArray" ? () => rows : name === "next" ? () => again.next() : Reflect.get(target, name)),
    });
  };
  const sql = new Proxy(storage.sql, {
    get: (target, name) =>
      name === "exec"
        ? (statement: string, ...params: SqlStorageValue[]) => count(target.exec(statement, ...params))
        : Reflect.get(target, name),
  });
  return {
    sql,
    kv: storage.kv,
    transactionSync: (work) => {
      cost.transactions += 1;
      return storage.transactionSync(work);
    },
  };
}
const identity: SessionIdentity = { key: "agent:main:cli:dm:cost", ref: "cost", agentId: "main", isOwnersSession: false };

/** Has a conversation in an object of its own and gives the cost of each message. */
function talk(
  name: string,
  messages: number,
  meanwhile: (cost: Cost, index: number) => void,
  answer: (request: ModelRequest) => ModelOutcome = () => says("fine"),
  provider = "demo",
): Promise<void> {
  return runInDurableObject(env.SESSION.getByName(name), async (_session, ctx) => {
    const cost = { ...NOTHING };
    const stage = new Stage();
    stage.auto = answer;
    stage.provider = provider;
    const after: DriverHost["after"] = (ms, work) => {
      const timer = setTimeout(work, ms);
      return () => clearTimeout(timer);
    };
    const host: DriverHost = {
      store: new SqlStore(counted(ctx.storage, cost)),
      wall: () => Date.now(),
      random: Math.random,
      freshId: () => crypto.randomUUID(),
      sha256: async (text) => text,
      setAlarm: () => {
        cost.alarms += 1;
      },
      keep: (work) => ctx.waitUntil(work),
      after,
      log: (event, fields) => {
        throw new Error(`${event} ${JSON.stringify(fields)}`);
      },
    };
    const parts = stage.parts(env.STORAGE);
    const contextVersion = (await parts.gateway.runContext(identity.key, undefined))?.version ?? "";
    const driver = new SessionDriver(host, parts);
    const service = new SessionService(driver, { after, freshId: host.freshId, sha256: async (text) => text });
    for (let index = 0; index < messages; index++) {
      Object.assign(cost, NOTHING);
      const [published, asked, granted] = [stage.publishes.length, stage.contexts, stage.spendAsks.length];
      await service.send({
        identity,
        messageId: `m${index}`,
        runId: `r${index}`,
        text: `message ${index}`,
        origin: { kind: "client", clientId: "test" },
        contextVersion,
      });
      await until("quiet", () => driver.state?.run.phase === "idle" && driver.state.outbox.length === 0);
      meanwhile(
        {
          ...cost,
          publishes: stage.publishes.length - published,
          contexts: stage.contexts - asked,
          grants: stage.spendAsks.length - granted,
        },
        index,
      );
    }
  });
}

describe("[D2] [F62] a plain message", () => {
  it("costs at most three transactions and six rows, and in a busy minute no alarm", async () => {
    const costs: Cost[] = [];
    await talk("cost-one", 6, (cost) => costs.push(cost));
    // The first one makes the tables and sets the alarm.
    for (const cost of costs.slice(1)) {
      expect(cost.written).toBeLessThanOrEqual(6);
      expect(cost.transactions).toBeLessThanOrEqual(3);
      expect(cost.alarms).toBe(0);
    }
    expect(costs[0]?.alarms).toBe(1);
  });
  it("[F65] costs the gateway three calls: the message, its beginning answer and its end; settings are not asked for again", async () => {
    const costs: Cost[] = [];
    await talk("cost-calls", 6, (cost) => costs.push(cost));
    for (const cost of costs.slice(1)) {
      expect(cost.publishes).toBeLessThanOrEqual(3);
      expect(cost.contexts).toBe(0);
    }
  });
  it("[SP1] of a model that costs something asks the spend ledger at the first message only, and writes no row more", async () => {
    // Setting aside and settling per call would be two more calls of the gateway for each message. One grant covers many calls, and
    // what they used waits in the state row, which each commit writes anyway.
    const costs: Cost[] = [];
    await talk("cost-spend", 30, (cost) => costs.push(cost), undefined, "openai");
    expect(costs[0]?.grants).toBe(1);
    expect(costs.slice(1).reduce((sum, { grants }) => sum + grants, 0)).toBe(0);
    for (const cost of costs.slice(1)) {
      expect(cost.written).toBeLessThanOrEqual(6);
      expect(cost.transactions).toBeLessThanOrEqual(3);
      expect(cost.contexts).toBe(0);
    }
  });
  it("[F61] a call of a native tool costs two transactions and four rows more, and one question about changed settings", async () => {
    const costs: Cost[] = [];
    const isAsked = ({ messages }: ModelRequest): boolean => messages.at(-1)?.role === "user";
    await talk(
      "cost-tool",
      6,
      (cost) => costs.push(cost),
      (request) => (isAsked(request) ? says("", [{ name: "gsv__Note", arguments: {} }]) : says("fine")),
    );
    for (const cost of costs.slice(1)) {
      expect(cost.transactions).toBeLessThanOrEqual(5);
      expect(cost.written).toBeLessThanOrEqual(10);
      expect(cost.contexts).toBeLessThanOrEqual(1);
    }
  });
  it("[W19] costs the same after ten as after two thousand messages", async () => {
    const at = new Map<number, Cost>();
    await talk("cost-many", 1_001, (cost, index) => {
      if (index === 9 || index === 1_000) at.set(index, cost);
    });
    const [few, many] = [at.get(9), at.get(1_000)];
    expect(many).toEqual(few);
    expect(many?.read).toBeLessThanOrEqual(5);
  });
});
