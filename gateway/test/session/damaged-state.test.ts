/** A session whose rows are damaged: it says so, changes nothing, and stops no other session. Real sessions, demo model. */
import { env } from "cloudflare:workers";
import { reset, runInDurableObject } from "cloudflare:test";
import { beforeEach, expect, test, vi } from "vitest";
import { client, type Peer, seed, until } from "../support/gateway.ts";

let admin: Peer;
beforeEach(async () => {
  await reset();
  await seed();
  admin = await client();
});

const KEY = "agent:main:main";
const OTHER = { sessionKey: "agent:main:cli:dm:other" };
const ended = (sessionKey: string): Promise<unknown> =>
  until("the answer", () =>
    admin.events("chat").find(({ payload }) => {
      const { state, sessionKey: key } = payload as { state: string; sessionKey: string };
      return state === "final" && key === sessionKey;
    }),
  );

test.each([
  ["truncated JSON", (body: string) => body.slice(0, body.length / 2)],
  ["no version", (body: string) => JSON.stringify({ ...JSON.parse(body), v: undefined })],
  ["a half-converted row of version 1", (body: string) => JSON.stringify({ ...JSON.parse(body), v: 1 })],
])("[P22] [P19] %s: a coded error, the rows stay, and other sessions go on", async (_what, damage) => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  await admin.ok("chat.send", { sessionKey: "main", message: "hello" });
  await ended(KEY);
  const rows = (change?: (body: string) => string): Promise<string> =>
    runInDurableObject(env.SESSION.getByName(KEY), (_session, ctx) => {
      const { sql } = ctx.storage;
      const { body } = sql.exec<{ body: string }>("SELECT body FROM parts WHERE id = 1").one();
      if (change) sql.exec("UPDATE parts SET body = ? WHERE id = 1", change(body));
      return sql.exec<{ body: string }>("SELECT body FROM parts WHERE id = 1").one().body;
    });
  const damaged = await rows(damage);
  await runInDurableObject(env.SESSION.getByName(KEY), (_session, ctx) => ctx.abort("as after a restart")).catch(() => undefined);
  for (const [method, params] of [
    ["session.get", { sessionKey: KEY }],
    ["chat.send", { sessionKey: KEY, message: "again" }],
    ["session.reset", { sessionKey: KEY }],
  ] as const)
    expect(["internal", "storage.newer_version"], method).toContain((await admin.refused(method, params)).reason);
  expect(await rows()).toBe(damaged);
  await admin.ok("chat.send", { ...OTHER, message: "hello" });
  await ended(OTHER.sessionKey);
});

test("[P10] a full disk is named with what to do, in place of an internal error, and the message is taken once there is space", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  await admin.ok("chat.send", { sessionKey: "main", message: "hello" });
  await ended(KEY);
  const inSession = (statement: string): Promise<unknown> =>
    runInDurableObject(env.SESSION.getByName(KEY), (_session, ctx) => ctx.storage.sql.exec(statement).toArray());
  // What SQLite throws on a full disk.
  const full = "SELECT RAISE(ABORT, 'database or disk is full: SQLITE_FULL')";
  await inSession(`CREATE TRIGGER full BEFORE INSERT ON log BEGIN ${full}; END`);
  const message = { sessionKey: KEY, message: "again", messageId: "m-again" };
  expect(await admin.refused("chat.send", message)).toMatchObject({ reason: "storage.full", hint: expect.stringContaining("df -h") });
  await inSession("DROP TRIGGER full");
  expect(await admin.ok("chat.send", message)).toMatchObject({ status: "started" });
});
