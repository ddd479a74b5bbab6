/** A home moves from one gateway to another on the real wire, with real sessions and the demo model. */
import { env } from "cloudflare:workers";
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { movedState, STAYING } from "../../../src/app/moved-state.lazy.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { ADMIN, client, eventually, fetchWorker, gateway, type Peer, token } from "../../support/gateway.ts";
import { list, stands, submit } from "../jobs/support.ts";
import { again, countRestarts, ending, type Exported, exported, fresh, imported, objects, tablesOf, written } from "./support.ts";

const CANARY = "sk-canary-4711-of-the-move";
const KEYS = ["agent:main:main", "agent:main:cli:dm:one", "agent:work:cli:dm:two"];
let restarts: { count: number };

beforeEach(async () => {
  await fresh();
  restarts = countRestarts();
});
afterEach(() => {
  vi.restoreAllMocks();
});

async function said(peer: Peer, sessionKey: string, message: string): Promise<void> {
  const runId = crypto.randomUUID();
  await peer.ok("chat.send", { sessionKey, message, runId });
  await peer.ok("session.subscribe", { sessionKey });
  const texts = async (): Promise<boolean> => {
    const { state } = await peer.ok<{ state: string }>("session.subscribe", { sessionKey });
    return state === "idle";
  };
  for (let tries = 0; !(await texts()); tries++) {
    if (tries > 500) throw new Error(`no answer to ${message}`);
    await scheduler.wait(5);
  }
}
function rowDatabase(): D1Database {
  if (env.DB === undefined) throw new Error("the tests have a database for rows");
  return env.DB;
}
const BYTES = Uint8Array.from({ length: 700_001 }, (_, at) => (at * 31 + (at >> 8)) & 255);

/** A home of some variety. */
async function home(): Promise<Peer> {
  const peer = await client();
  await peer.ok("agents.create", { agentId: "work" });
  await peer.ok("config.set", { path: "apiKeys.openai", value: CANARY });
  await peer.ok("config.set", { path: "userTimezone", value: "Europe/Amsterdam" });
  for (const key of KEYS) await said(peer, key, `say hello of ${key}`);
  await said(peer, KEYS[1] ?? "", "say more");
  await peer.ok("session.reset", { sessionKey: KEYS[1] });
  await said(peer, KEYS[1] ?? "", "say after the reset");
  await peer.ok("workspace.write", { path: "notes.md", content: "one" });
  await peer.ok("workspace.write", { path: "notes.md", content: "two" });
  await env.STORAGE.put("agents/main/picture.bin", BYTES, { httpMetadata: { contentType: "image/png" }, customMetadata: { by: "x" } });
  await env.STORAGE.put("media/agent%3Amain%3Amain/1.png", new Uint8Array([1, 2, 3]), { httpMetadata: { contentType: "image/png" } });
  await peer.ok("cron.add", {
    name: "daily",
    schedule: { kind: "cron", expr: "0 7 * * *" },
    spec: { mode: "systemEvent", text: "say good morning" },
  });
  await peer.ok("memory.add", { text: "The cat is called Minoes.", requestId: "r1" });
  return peer;
}
async function stoppedHome(): Promise<{ peer: Peer; of: Exported }> {
  const peer = await home();
  await peer.ok("gateway.stop");
  return { peer, of: await exported(peer) };
}
/** The pages as another program may have changed them. */
function withSettings({ pages }: Exported, more: object): readonly string[] {
  let count = 0;
  const changed = pages.map((text) =>
    text.replace(/^\{"kind":"settings".*$/gm, (line) => {
      count += 1;
      const record = JSON.parse(line) as { settings: object };
      return JSON.stringify({ ...record, settings: { ...record.settings, ...more } });
    }),
  );
  expect(count).toBe(1);
  return changed;
}
const histories = async (peer: Peer): Promise<unknown[]> =>
  Promise.all(KEYS.map((sessionKey) => peer.ok("session.preview", { sessionKey, limit: 50 })));

test("[MV1] [MV2] each table of the gateway either moves or stays, with a reason", async () => {
  await client();
  const { tables, fresh: mustBeEmpty, unsettled } = movedState(undefined);
  const there = [...(await tablesOf()).keys()].sort();
  expect([...tables, ...Object.keys(STAYING)].sort()).toEqual(there);
  expect(there).toEqual(expect.arrayContaining([...mustBeEmpty, ...unsettled]));
  const rows = movedState(rowDatabase());
  await rows.rows.migrate(1);
  const { results } = await rowDatabase().prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all<{ name: string }>();
  const own = results.map(({ name }) => name).filter((name) => !/^(_cf_|sqlite_|d1_)/.test(name));
  expect(own.sort()).toEqual([...rows.rows.tables, "gsv_migrations", "memory_changes", "vector_removals"].sort());
});

describe("a home that moves", () => {
  test("[MV5] [MV8] [MV10] [MV11] [MV13] is the same afterwards, and the agent goes on", async () => {
    const { peer, of } = await stoppedHome();
    expect(of.pages.length).toBeGreaterThan(1);
    const before = { objects: await objects(), histories: await histories(peer), tables: await tablesOf() };
    await fresh();
    const there = await imported(of);
    expect(restarts.count).toBe(1);
    expect(await objects()).toEqual(before.objects);
    expect(await histories(there)).toEqual(before.histories);
    const after = await tablesOf();
    // The sessions were told to go on.
    expect([before.tables.get("held_sessions"), after.get("held_sessions")]).toEqual([3, 0]);
    for (const table of movedState(undefined).tables.filter((name) => name !== "held_sessions"))
      expect([table, after.get(table)]).toEqual([table, before.tables.get(table)]);
    expect(await there.ok("gateway.status")).toEqual({});
    await said(there, KEYS[0] ?? "", "say still here");
    const { messages } = await there.ok<{ messages: unknown[] }>("session.preview", { sessionKey: KEYS[0], limit: 1 });
    expect(JSON.stringify(messages)).toContain("still here");
    expect(JSON.stringify(await there.ok("memory.search", { query: "cat" }))).toContain("Minoes");
    expect(await there.ok("config.get", { path: "userTimezone" })).toMatchObject({ value: "Europe/Amsterdam" });
    expect(JSON.stringify(await there.ok("cron.list"))).toContain("good morning");
    expect(JSON.stringify(await there.ok("agents.list"))).toContain("work");
  });

  test("[MV3] leaves its secrets behind, names them, and keeps those that are there", async () => {
    const { of } = await stoppedHome();
    expect(of.pages.join("")).not.toContain(CANARY);
    expect(of.pages.join("")).not.toContain("gsv-sealed:");
    expect(of.home.secrets).toEqual(["apiKeys.openai"]);
    await fresh();
    const target = await client();
    await target.ok("config.set", { path: "apiKeys.anthropic", value: "sk-of-the-new-gateway" });
    const there = await imported(of);
    const secrets = await runInDurableObject(gateway(), (object) => object.secretValues());
    expect(secrets).toEqual(["sk-of-the-new-gateway"]);
    expect(await there.ok("config.get", { path: "userTimezone" })).toMatchObject({ value: "Europe/Amsterdam" });
  });

  test("[MV17] sends no key of the new gateway to an address that the export names, and says which ones were removed", async () => {
    const peer = await home();
    const foreign = "https://foreign.example/v1";
    await peer.ok("config.set", { path: "providers.own", value: { baseUrl: foreign, wire: "openai-completions" } });
    await peer.ok("config.set", { path: "transcription.baseUrl", value: foreign });
    await peer.ok("config.set", { path: "telemetry.otlp.endpoint", value: "https://foreign.example" });
    await peer.ok("gateway.stop");
    const of = await exported(peer);
    await fresh();
    const target = await client();
    const kept = "sk-that-goes-where-it-went";
    await target.ok("config.set", { path: "apiKeys.anthropic", value: kept });
    await target.ok("config.set", { path: "apiKeys.openai", value: "sk-for-openai" });
    await target.ok("config.set", { path: "telemetry.otlp.headers.authorization", value: "Bearer of-the-new-gateway" });
    await target.ok("move.begin", { home: of.home });
    for (let page = 1; page <= of.pages.length; page++) await written(target, of, page);
    const removedSecrets = ["apiKeys.openai", "telemetry.otlp.headers.authorization"];
    expect(await target.ok("move.finish", await ending(of))).toMatchObject({ sessions: 3, removedSecrets });
    expect(await runInDurableObject(gateway(), (object) => object.secretValues())).toEqual([kept]);
    await again();
    const there = await client();
    expect(await there.ok("move.begin", { home: of.home })).toMatchObject({ isDone: true, removedSecrets });
    expect(await there.ok("move.finish", await ending(of))).toMatchObject({ removedSecrets });
    expect(await there.ok("config.get", { path: "transcription.baseUrl" })).toMatchObject({ value: foreign });
  });

  test("[MV17] keeps a key whose own server both gateways name, and says nothing", async () => {
    const own = { baseUrl: "https://own.example/v1", wire: "openai-completions" };
    const peer = await client();
    await peer.ok("config.set", { path: "providers.own", value: own });
    await peer.ok("gateway.stop");
    const of = await exported(peer);
    await fresh();
    const target = await client();
    await target.ok("config.set", { path: "providers.own", value: own });
    await target.ok("config.set", { path: "apiKeys.own", value: "sk-for-the-own-server" });
    await imported(of);
    expect(await runInDurableObject(gateway(), (object) => object.secretValues())).toEqual(["sk-for-the-own-server"]);
    const there = await client();
    expect(await there.ok("move.begin", { home: of.home })).toEqual({ pages: of.pages.length, isDone: true });
  });

  test("[MV17] takes no secret out of an export that another program has made", async () => {
    const { of } = await stoppedHome();
    const foreign = { apiKeys: { anthropic: "sk-of-another-program" }, model: { headers: { "x-a": "of another program" } } };
    const pages = withSettings(of, foreign);
    await fresh();
    await (await client()).ok("config.set", { path: "apiKeys.groq", value: "sk-of-the-new-gateway" });
    const there = await imported({ home: of.home, pages });
    expect(await runInDurableObject(gateway(), (object) => object.secretValues())).toEqual(["sk-of-the-new-gateway"]);
    expect(await there.ok("config.get", { path: "userTimezone" })).toMatchObject({ value: "Europe/Amsterdam" });
  });

  test("[MV17] whose settings contradict themselves is refused with the reason, and is not live", async () => {
    const { of } = await stoppedHome();
    const pages = withSettings(of, { userTimezone: "Mars/Olympus" });
    await fresh();
    const peer = await client();
    const changed: Exported = { ...of, pages };
    await peer.ok("move.begin", { home: of.home });
    for (let page = 1; page <= pages.length; page++) await written(peer, changed, page);
    const refused = await peer.refused("move.finish", await ending(changed));
    expect([refused.reason, refused.message]).toEqual([
      "move.damaged",
      expect.stringMatching(/Mars\/Olympus is not a time zone.*Nothing is live/),
    ]);
    expect((await tablesOf()).get("sessions")).toBe(0);
  });

  test("[MV8] goes on after an interruption at any page, and a page that comes twice changes nothing", async () => {
    const { of } = await stoppedHome();
    const before = await objects();
    await fresh();
    for (let page = 1; page <= of.pages.length; page++) {
      const peer = await client();
      expect(await peer.ok("move.begin", { home: of.home })).toEqual({ pages: page - 1, isDone: false });
      expect(await written(peer, of, page)).toEqual({ pages: page });
      expect(await written(peer, of, page)).toEqual({ pages: page });
      await again();
    }
    const peer = await client();
    await peer.ok("move.finish", await ending(of));
    await again();
    const there = await client();
    expect(await there.ok("move.begin", { home: of.home })).toEqual({ pages: of.pages.length, isDone: true });
    expect(await objects()).toEqual(before);
    expect(await there.ok("move.finish", await ending(of))).toMatchObject({ sessions: 3 });
  });
});

describe("what waited when the source was stopped", () => {
  test("[MV11] messages are answered once, jobs run, and a hook is there without its secret", async () => {
    const peer = await client();
    const [key = ""] = KEYS;
    await said(peer, key, "say before");
    const secret = "whsec_c2VjcmV0LW9mLWEtaG9vay1vZi1hLXRlc3Q=";
    await peer.ok("hook.add", {
      name: "orders",
      form: "standard",
      secret,
      target: { kind: "run", spec: { mode: "task", message: "An order: {{body}}" } },
    });
    await peer.ok("gateway.stop");
    await peer.ok("chat.send", { sessionKey: key, message: "say it waited", messageId: "w1", runId: "w1" });
    const id = await submit({ agent_name: "main", instructions: "say the job is done" });
    const of = await exported(peer);
    expect(of.home.hooks).toEqual(["orders"]);
    expect(of.pages.join("")).not.toContain("c2VjcmV0LW9mLWEtaG9vay1vZi1hLXRlc3Q");
    await fresh();
    const there = await imported(of);
    const texts = async (): Promise<string> => JSON.stringify(await there.ok("session.preview", { sessionKey: key, limit: 20 }));
    await eventually(async () => {
      expect((await texts()).match(/it waited/g)?.length).toBe(2);
    });
    await stands(id, "succeeded");
    expect((await texts()).match(/it waited/g)?.length, "the message and one answer").toBe(2);
    const again = await there.ok("chat.send", { sessionKey: key, message: "say it waited", messageId: "w1", runId: "w1" });
    expect(again).toMatchObject({ duplicate: true });
    expect((await list()).jobs.map(({ job_id }) => job_id)).toEqual([id]);
    expect(JSON.stringify(await there.ok("hook.list"))).toContain("orders");
  });
  test("[MV11] a gateway that is killed right after its tables were written wakes what waits by itself", async () => {
    const peer = await client();
    await peer.ok("gateway.stop");
    await peer.ok("chat.send", { sessionKey: KEYS[0], message: "say it waited", messageId: "w1", runId: "w1" });
    const of = await exported(peer);
    await fresh();
    const target = await client();
    await target.ok("move.begin", { home: of.home });
    for (let page = 1; page <= of.pages.length; page++) await written(target, of, page);
    await target.ok("move.finish", await ending(of));
    expect((await target.refused("move.cancel")).message).toMatch(/complete and live/);
    await again();
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 10_000);
    await runDurableObjectAlarm(gateway());
    const there = await client();
    expect(await there.ok("gateway.status")).toEqual({});
    await eventually(async () => {
      const { messages } = await there.ok<{ messages: unknown[] }>("session.preview", { sessionKey: KEYS[0], limit: 9 });
      expect(JSON.stringify(messages).match(/it waited/g)?.length).toBe(2);
    });
  });
});

describe("an export", () => {
  test("[MV4] needs a gateway that is stopped, and ends when it is resumed", async () => {
    const peer = await home();
    expect((await peer.refused("move.describe")).reason).toBe("move.not_stopped");
    expect((await peer.refused("move.read")).reason).toBe("move.not_stopped");
    await peer.ok("gateway.stop");
    const { next } = await peer.ok<{ next: string }>("move.read");
    await peer.ok("gateway.resume");
    expect((await peer.refused("move.read", { cursor: next })).reason).toBe("move.not_stopped");
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 5000);
    await peer.ok("gateway.stop");
    expect((await peer.refused("move.read", { cursor: next })).reason).toBe("move.changed");
    expect((await peer.refused("move.read", { cursor: "no" })).reason).toBe("protocol.invalid_params");
  });
  test("[MV4] ends when a file changes while it is read in pieces", async () => {
    const peer = await home();
    await peer.ok("gateway.stop");
    let cursor: string | undefined;
    for (;;) {
      const { next } = await peer.ok<{ next?: string }>("move.read", cursor === undefined ? {} : { cursor });
      if (next === undefined) throw new Error("no object was read in pieces");
      cursor = next;
      if (JSON.parse(next).object?.offset > 0) break;
    }
    await env.STORAGE.put(
      "agents/main/picture.bin",
      BYTES.map((byte) => byte ^ 1),
    );
    const refused = await peer.refused("move.read", { cursor });
    expect(refused.reason).toBe("move.changed");
    expect(refused.message).toContain("agents/main/picture.bin");
  });
  test("[MV5] no frame is larger than a frame may be, also for a record that is larger", async () => {
    const peer = await home();
    const text = `\u0001"\\😀`.repeat(150_000);
    await runInDurableObject(gateway(), (_object, { storage }) => {
      storage.sql.exec("INSERT INTO held(channel, sender, account, body) VALUES('a', 'b', 'c', ?)", text);
    });
    await peer.ok("gateway.stop");
    const of = await exported(peer);
    const largest = Math.max(...peer.texts.map((frame) => new TextEncoder().encode(frame).length));
    expect(largest).toBeLessThanOrEqual(LIMITS.frameBytes);
    expect(of.pages.some((page) => page.length > LIMITS.frameBytes)).toBe(true);
  });
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
