/**
 * A home that moves to another gateway is the same there, without its secrets, and what waited goes on. The wire and the sessions are
 * real; the model is the demo model.
 */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { movedState, STAYING } from "../../../src/app/moved-state.lazy.ts";
import { client, eventually, gateway, type Peer } from "../../support/gateway.ts";
import { list, stands, submit } from "../jobs/support.ts";
import {
  again,
  CANARY,
  countRestarts,
  ending,
  type Exported,
  exported,
  fresh,
  home,
  imported,
  KEYS,
  objects,
  rowDatabase,
  said,
  stoppedHome,
  tablesOf,
  written,
} from "./support.ts";

let restarts: { count: number };

beforeEach(async () => {
  await fresh();
  restarts = countRestarts();
});
afterEach(() => {
  vi.restoreAllMocks();
});

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
