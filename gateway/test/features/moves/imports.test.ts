/**
 * An import into a fresh gateway: refused, converted, closed to all else meanwhile, given up, and live only when it is whole. The wire
 * and the sessions are real; the model is the demo model.
 */
import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ADMIN, client, fetchWorker, gateway, token } from "../../support/gateway.ts";
import {
  again,
  countRestarts,
  ending,
  type Exported,
  fresh,
  imported,
  KEYS,
  objects,
  rowDatabase,
  said,
  stoppedHome,
  tablesOf,
  written,
} from "./support.ts";

beforeEach(async () => {
  await fresh();
  countRestarts();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("an import", () => {
  test("[MV6] is refused by a gateway that was used, which stays as it was", async () => {
    const { of } = await stoppedHome();
    await fresh();
    const peer = await client();
    const refused = async (what: RegExp): Promise<void> => {
      const error = await peer.refused("move.begin", { home: of.home });
      expect([error.reason, error.message]).toEqual(["move.not_fresh", expect.stringMatching(what)]);
      expect(await peer.ok("gateway.status")).toEqual({});
    };
    await env.STORAGE.put("agents/main/own.md", "mine");
    await refused(/the file agents\/main\/own\.md/);
    await env.STORAGE.delete("agents/main/own.md");
    await env.STORAGE.put("agents/main/SOUL.md", "edited");
    await refused(/the file agents\/main\/SOUL\.md/);
    await env.STORAGE.delete("agents/main/SOUL.md");
    await peer.ok("memory.add", { text: "A memory.", requestId: "r1" });
    await refused(/memories or events/);
    await rowDatabase().prepare("DELETE FROM long_term_memory").run();
    await said(peer, "agent:main:cli:dm:x", "say hi");
    await refused(/an entry in sessions/);
  });

  test("[MV7] of newer or older state is refused with a sentence, before anything is written", async () => {
    const { of } = await stoppedHome();
    await fresh();
    const peer = await client();
    const begin = (levels: Record<string, number>) =>
      peer.refused("move.begin", { home: { ...of.home, levels: { ...of.home.levels, ...levels } } });
    for (const levels of [{ sessions: 99 }, { session: 99 }, { "session state": 99 }, { unknown: 1 }]) {
      const error = await begin(levels);
      expect([error.reason, error.message]).toEqual(["move.newer_state", expect.stringMatching(/newer version.*Nothing was imported\.$/)]);
    }
    const older = await begin({ "memory rows": 1 });
    expect([older.reason, older.message]).toEqual(["move.older_state", expect.stringMatching(/older version.*Nothing was imported\.$/)]);
    expect(await peer.ok("gateway.status")).toEqual({});
    expect(await peer.ok("move.cancel")).toEqual({ wasBegun: false });
  });

  test("[MV7] older tables of a session are converted by its own migrations at its first use", async () => {
    const { of } = await stoppedHome();
    const page = of.pages.map((text) =>
      text
        .split("\n")
        .filter((line) => !line.includes('"table":"media"'))
        .map((line) => line.replace('"levels":{"session":3}', '"levels":{"session":2}'))
        .join("\n"),
    );
    expect(page.join("")).toContain('"levels":{"session":2}');
    await fresh();
    const there = await imported({ home: of.home, pages: page });
    await said(there, KEYS[0] ?? "", "say converted");
    const levels = await runInDurableObject(env.SESSION.getByName(KEYS[0] ?? ""), (_object, { storage }) =>
      storage.sql.exec("SELECT version FROM schema_version WHERE owner = 'session'").one(),
    );
    expect(levels).toEqual({ version: 3 });
  });

  test("[MV7] older tables of the gateway are converted by their own migrations before they are live", async () => {
    const { of } = await stoppedHome();
    // As before the two newest migrations of the sessions feature, which add columns, and that of the changes feature, which adds a table.
    const added: Readonly<Record<string, readonly string[]>> = { held_sessions: ["had"], sessions: ["mode", "mode_until"] };
    const pages = of.pages.map((text) =>
      text
        .split("\n")
        .filter((line) => !line.includes('"table":"undone"'))
        .map((line) => {
          const newer = added[/"table":"(\w+)"/.exec(line)?.[1] ?? ""];
          if (newer === undefined) return line;
          const value = JSON.parse(line) as { record: { columns: string[]; rows: unknown[][] } };
          const { columns, rows } = value.record;
          expect(columns.slice(-newer.length)).toEqual(newer);
          const older = (row: readonly unknown[]) => row.slice(0, -newer.length);
          return JSON.stringify({ ...value, record: { ...value.record, columns: older(columns), rows: rows.map(older) } });
        })
        .join("\n"),
    );
    const levels = { ...of.home.levels, sessions: 2, changes: 1 };
    await fresh();
    const older: Exported = { home: { ...of.home, levels }, pages };
    const peer = await client();
    await peer.ok("move.begin", { home: older.home });
    for (let page = 1; page <= pages.length; page++) await written(peer, older, page);
    await peer.ok("move.finish", await ending(older));
    expect(
      await runInDurableObject(gateway(), (_object, { storage }) => storage.sql.exec("SELECT key, told, had FROM held_sessions").toArray()),
    ).toEqual([...KEYS].sort().map((key) => ({ key, told: 1, had: 0 })));
    const converter = env.SESSION.getByName(`move:${of.home.moveId}`);
    expect(await runInDurableObject(converter, (_object, { storage }) => storage.sql.databaseSize)).toBeLessThan(20_000);
    await again();
    const there = await client();
    expect(await there.ok("move.begin", { home: older.home })).toMatchObject({ isDone: true });
    await said(there, KEYS[0] ?? "", "say converted");
    expect(JSON.stringify(await there.ok("cron.list"))).toContain("good morning");
  });

  test("[MV9] lets nothing else happen meanwhile", async () => {
    const { of } = await stoppedHome();
    await fresh();
    const peer = await client();
    await peer.ok("move.begin", { home: of.home });
    for (const [method, params] of [
      ["chat.send", { sessionKey: "main", message: "hi" }],
      ["gateway.resume", {}],
      ["workspace.write", { path: "a.md", content: "a" }],
      ["move.describe", {}],
    ] as const)
      expect([method, (await peer.refused(method, params)).reason]).toEqual([method, "move.in_progress"]);
    expect((await peer.refused("move.begin", { home: { ...of.home, moveId: "f".repeat(32) } })).reason).toBe("move.in_progress");
    expect(await peer.ok("gateway.status")).toHaveProperty("stopped");
    const { token: bearer } = await token("client");
    for (const path of ["/run", "/jobs", "/media?sessionKey=main"]) {
      const init = {
        method: "POST",
        headers: { Authorization: `Bearer ${bearer}` },
        body: JSON.stringify({ agent_name: "main", instructions: "say x" }),
      };
      const response = await fetchWorker(`http://gsv.test${path}`, init);
      expect([path, response.status, await response.json()]).toEqual([path, 409, expect.objectContaining({ reason: "move.in_progress" })]);
    }
    await runInDurableObject(gateway(), async (object) => {
      await expect(object.channelInbound({ channel: "test", accountId: "a" } as never, {} as never)).rejects.toThrow(/is being imported/);
    });
  });

  test("[MV9] refuses every request over HTTP: no machine joins, and no job is submitted, shown or cancelled", async () => {
    const { of } = await stoppedHome();
    await fresh();
    const peer = await client();
    const { secret } = await peer.ok<{ secret: string }>("invite.create", { kind: "node" });
    const job = `/jobs/${"0".repeat(32)}`;
    const asked: readonly (readonly [method: string, path: string, body?: object])[] = [
      ["POST", "/join", { secret, nonce: "a1".repeat(32), kind: "node", nodeId: "laptop" }],
      ["POST", "/jobs", { agent_name: "main", instructions: "say x" }],
      ["GET", "/jobs"],
      ["GET", job],
      ["DELETE", job],
      ["POST", "/hooks/orders", {}],
    ];
    const answers = async (): Promise<readonly (readonly [string, number, string | undefined])[]> => {
      const found: (readonly [string, number, string | undefined])[] = [];
      for (const [method, path, body] of asked) {
        const response = await fetchWorker(`http://gsv.test${path}`, {
          method,
          headers: { ...(path === "/join" ? {} : { Authorization: `Bearer ${ADMIN}` }), "webhook-signature": "v1,x" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        found.push([`${method} ${path}`, response.status, (await response.json<{ reason?: string }>()).reason]);
      }
      return found;
    };
    const closed = asked.map(([method, path]) => [`${method} ${path}`, 409, "move.in_progress"]);
    await peer.ok("move.begin", { home: of.home });
    expect(await answers()).toEqual(closed);
    expect((await tablesOf()).get("agent_jobs")).toBe(0);
    for (let page = 1; page <= of.pages.length; page++) await written(peer, of, page);
    await peer.ok("move.finish", await ending(of));
    expect(await answers(), "until it has begun again").toEqual(closed);
    await again();
    await (await client()).ok("move.begin", { home: of.home });
    expect((await answers()).map(([, status]) => status)).toEqual([200, 202, 200, 404, 404, 401]);
  });

  test("[MV9] stays closed between its end and the restart of the gateway, whose features know the old tables", async () => {
    const { of } = await stoppedHome();
    await fresh();
    const peer = await client();
    await peer.ok("move.begin", { home: of.home });
    for (let page = 1; page <= of.pages.length; page++) await written(peer, of, page);
    await peer.ok("move.finish", await ending(of));
    for (const [method, params] of [
      ["gateway.resume", {}],
      ["chat.send", { sessionKey: "main", message: "hi" }],
      ["config.set", { path: "userTimezone", value: "UTC" }],
      ["cron.list", {}],
      ["move.describe", {}],
    ] as const)
      expect([method, (await peer.refused(method, params)).reason]).toEqual([method, "move.in_progress"]);
    expect(await peer.ok("gateway.status")).toHaveProperty("stopped");
    await runInDurableObject(gateway(), async (object) => {
      await expect(object.channelInbound({ channel: "test", accountId: "a" } as never, {} as never)).rejects.toThrow(/is being imported/);
    });
    await again();
    const there = await client();
    expect(JSON.stringify(await there.ok("cron.list"))).toContain("good morning");
    expect(await there.ok("config.get", { path: "userTimezone" })).toMatchObject({ value: "Europe/Amsterdam" });
  });

  test("[MV10] that is not whole, or not the same, is not live", async () => {
    const { of } = await stoppedHome();
    await fresh();
    const peer = await client();
    expect((await peer.refused("move.write", { moveId: of.home.moveId, page: 1, part: 0, parts: 1, text: "" })).reason).toBe("move.none");
    await peer.ok("move.begin", { home: of.home });
    const write = (text: string, page = 1) => peer.refused("move.write", { moveId: of.home.moveId, page, part: 0, parts: 1, text });
    expect((await write("x", 2)).reason).toBe("move.damaged");
    for (const bad of ["no json", '{"kind":"other"}', '{"kind":"of","owner":"other:x","record":{"kind":"value","key":"a","json":"1"}}'])
      expect([bad, (await write(bad)).reason]).toEqual([bad, "move.damaged"]);
    const tokens = '{"kind":"of","owner":"gateway","record":{"kind":"rows","table":"tokens","columns":["id"],"rows":[["x"]]}}\n';
    const changed: Exported = { ...of, pages: [tokens + (of.pages[0] ?? ""), ...of.pages.slice(1)] };
    for (let page = 1; page <= changed.pages.length; page++) await written(peer, changed, page);
    expect((await peer.refused("move.finish", await ending(of))).reason).toBe("move.damaged");
    expect((await peer.refused("move.finish", await ending(changed))).reason).toBe("move.damaged");
    expect((await tablesOf()).get("sessions")).toBe(0);
    expect(await peer.ok("gateway.status")).toHaveProperty("stopped");
  });
  test("[MV10] whose objects are gone by its end is not live", async () => {
    const { of } = await stoppedHome();
    await fresh();
    const peer = await client();
    await peer.ok("move.begin", { home: of.home });
    for (let page = 1; page <= of.pages.length; page++) await written(peer, of, page);
    await env.STORAGE.delete("agents/main/picture.bin");
    const refused = await peer.refused("move.finish", await ending(of));
    expect([refused.reason, refused.message]).toEqual(["move.damaged", expect.stringMatching(/has \d+ files, and the export has \d+/)]);
  });

  test("[MV12] that is given up leaves a fresh gateway, into which the same home can be imported", async () => {
    const { of } = await stoppedHome();
    const before = await objects();
    await fresh();
    let peer = await client();
    await said(peer, "agent:main:cli:dm:x", "say hi");
    await peer.ok("session.delete", { sessionKey: "agent:main:cli:dm:x" });
    const clean = await objects();
    await peer.ok("move.begin", { home: of.home });
    for (let page = 1; page < of.pages.length; page++) await written(peer, of, page);
    expect(await peer.ok("move.cancel")).toEqual({ wasBegun: true });
    expect(await peer.ok("gateway.status")).toEqual({});
    const left = await objects();
    expect([...left.keys()].filter((key) => !key.endsWith("workspace.json"))).toEqual(
      [...clean.keys()].filter((key) => !key.endsWith("workspace.json")),
    );
    expect(await runInDurableObject(env.SESSION.getByName(KEYS[0] ?? ""), (_object, { storage }) => storage.sql.databaseSize)).toBeLessThan(
      20_000,
    );
    await again();
    peer = await imported(of);
    expect(await objects()).toEqual(before);
    expect(await peer.ok("move.cancel")).toEqual({ wasBegun: false });
  });

  test("[MV16] no method of a move works with another token than an admin's", async () => {
    const { token: bearer } = await token("client");
    const peer = await client(bearer);
    for (const method of ["move.describe", "move.read", "move.begin", "move.write", "move.finish", "move.cancel"])
      expect([method, (await peer.refused(method, {})).reason]).toEqual([method, "auth.forbidden"]);
  });
});
