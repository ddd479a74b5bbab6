/** [LM13] to [LM18] Memories with an embedding service, through the real gateway: settings, vectors in recall, kills, money, forgetting. */
import { env } from "cloudflare:workers";
import { reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { MemoryAddResult, MemoryListResult, MemorySearchResult, UsageGetResult } from "../../../../protocol/gen/types.ts";
import { answerFor, meaningOf } from "../../../../test/fakes/meaning.ts";
import { parts } from "../../../src/app/compose.ts";
import { Alarms } from "../../../src/kernel/alarms.ts";
import { client, fakeSessions, gateway, type Peer, seed, until, eventually } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

const KEY = "sk-owners-embedding-key-1234";
let owner: Peer;
let calls = 0;
let sent: { readonly model: string; readonly input: readonly string[]; readonly authorization: string | null }[];
let down: boolean;
/** Runs between a request and its answer. */
let meanwhile: () => Promise<unknown>;
beforeEach(async () => {
  await reset();
  sent = [];
  down = false;
  meanwhile = () => Promise.resolve();
  vi.spyOn(parts, "embedding").mockImplementation(() => ({
    ai: undefined,
    fetch: async (_url, { body, headers }) => {
      const { model, input } = JSON.parse(String(body)) as { model: string; input: string[] };
      sent.push({ model, input, authorization: new Headers(headers).get("Authorization") });
      await meanwhile();
      if (down) throw new TypeError(`connect failed with ${KEY}`);
      return Response.json(answerFor(input, model.endsWith("large") ? 3072 : 1536));
    },
  }));
  fakeSessions();
  await seed();
  owner = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});
const set = (path: string, value: unknown) => owner.ok("config.set", { path, value });
const add = (text: string, agentId = "main") => owner.ok<MemoryAddResult>("memory.add", { text, agentId, requestId: `r${++calls}` });
const list = () => owner.ok<MemoryListResult>("memory.list", { agentId: "main" });
const search = (query: string) => owner.ok<MemorySearchResult>("memory.search", { query, agentId: "main" });
const found = async (query: string): Promise<string[]> => (await search(query)).memories.map(({ memory }) => memory.text);
const states = async (): Promise<(string | undefined)[]> => (await list()).memories.map(({ embedding }) => embedding);
const useOpenAi = async (): Promise<void> => {
  await set("apiKeys.openai", KEY);
  await set("memory.embeddings.provider", "openai");
};
/** Until no step is due: the alarm fires by itself, too. */
const settled = () =>
  eventually(async () => {
    await runDurableObjectAlarm(gateway());
    const row = await env.DB?.prepare("SELECT count(*) AS n FROM long_term_memory WHERE embedding_state <> 'done'").first<{
      n: number;
    }>();
    expect(row?.n).toBe(0);
  });
/** Until the last step has failed with this. */
const failedWith = (problem: RegExp) =>
  eventually(async () => {
    await runDurableObjectAlarm(gateway());
    expect((await list()).embeddings?.problem).toMatch(problem);
  });

describe("with the built-in table", () => {
  test("[LM13] nothing is sent anywhere, and no memory waits", async () => {
    await add("The car is red.");
    await found("the automobile colour");
    await runDurableObjectAlarm(gateway());
    expect([sent, await states(), (await list()).embeddings]).toEqual([[], [undefined], undefined]);
  });
});

describe("with an embedding service", () => {
  test("[LM13] [LM15] a memory gets its vector in the background, and a question without its words finds it", async () => {
    await useOpenAi();
    await add("My vehicle wartburg zq.");
    await add("The cake bakes slowly.");
    await settled();
    expect(await states()).toEqual(["done", "done"]);
    expect(sent.flatMap(({ input }) => input).sort()).toEqual(["My vehicle wartburg zq.", "The cake bakes slowly."]);
    expect(sent.every(({ authorization }) => authorization === `Bearer ${KEY}`)).toBe(true);
    expect((await found("automobile parked"))[0]).toBe("My vehicle wartburg zq.");
    expect(sent.at(-1)?.input).toEqual(["automobile parked"]);
    const before = sent.length;
    await found("automobile");
    await found('"exact text" here');
    expect(sent.length, "one word and exact texts are found by words alone").toBe(before);
  });
  test("[LM15] a service that is down keeps the row, which words find; its pause is shown, and later it is embedded", async () => {
    await useOpenAi();
    down = true;
    await add("The zebra eats grass.");
    await failedWith(/^The embedding service could not be reached\.$/);
    const { embeddings } = await list();
    expect(embeddings).toMatchObject({ model: "openai/text-embedding-3-small", waiting: 1, refused: 0 });
    expect(embeddings?.nextAt).toBeGreaterThan(Date.now());
    expect(await states()).toEqual(["pending"]);
    expect(await found("zebra grass")).toEqual(["The zebra eats grass."]);
    await evict(gateway());
    owner = await client();
    expect((await list()).embeddings?.nextAt, "a restart forgets no pause").toBe(embeddings?.nextAt);
    down = false;
    vi.spyOn(Date, "now").mockReturnValue((embeddings?.nextAt ?? 0) + 1);
    await settled();
    expect(await states()).toEqual(["done"]);
  });
  test("[LM15] a service that does not answer holds up no alarm", async () => {
    await useOpenAi();
    let isReleased = false;
    let firing = 0;
    const { fire } = Alarms.prototype;
    vi.spyOn(Alarms.prototype, "fire").mockImplementation(async function (this: Alarms) {
      firing++;
      await fire.call(this).finally(() => firing--);
    });
    meanwhile = async () => void (await until("the release", () => isReleased || undefined));
    await add("The zebra eats grass.");
    await eventually(() => expect(sent).toHaveLength(1));
    await until("the end of the alarm", () => firing === 0);
    const alarm = await eventually(async () => {
      const armed = await runInDurableObject(gateway(), (_instance, { storage }) => storage.getAlarm());
      expect(armed).not.toBeNull();
      return armed;
    });
    expect(alarm, "no step begins beside the one that runs").toBeGreaterThan(Date.now());
    await runDurableObjectAlarm(gateway());
    isReleased = true;
    await settled();
    expect(sent).toHaveLength(1);
  });
  test("[LM15] after a failure a change of the key begins again at once", async () => {
    await useOpenAi();
    down = true;
    await add("The zebra eats grass.");
    await failedWith(/could not be reached/);
    down = false;
    await set("apiKeys.openai", "sk-another-key-5678");
    await settled();
    expect(sent.at(-1)?.authorization).toBe("Bearer sk-another-key-5678");
  });
  test("[LM15] a question that the service does not answer is searched by its words, with a note and without secrets", async () => {
    await useOpenAi();
    await add("The zebra eats grass.");
    await settled();
    down = true;
    const { memories, notes } = await search("zebra grass");
    expect(memories.map(({ memory }) => memory.text)).toEqual(["The zebra eats grass."]);
    expect(notes).toEqual(["The embedding service could not be reached. Memories were found without it."]);
    expect(JSON.stringify(owner.texts)).not.toContain(KEY);
  });
  test("[LM17] another model makes all vectors again, and compares none with the earlier ones", async () => {
    await useOpenAi();
    await add("My vehicle wartburg zq.");
    await settled();
    expect((await found("automobile parked"))[0]).toBe("My vehicle wartburg zq.");
    down = true;
    await set("memory.embeddings.model", "text-embedding-3-large");
    await failedWith(/could not be reached/);
    expect((await list()).embeddings?.waiting).toBe(1);
    sent = [];
    await found("automobile parked");
    expect(sent, "there is no vector that the question could be compared with").toEqual([]);
    await evict(gateway());
    owner = await client();
    down = false;
    await set("memory.embeddings.model", "text-embedding-3-small");
    await settled();
    await set("memory.embeddings.model", "text-embedding-3-large");
    await eventually(async () => {
      await runDurableObjectAlarm(gateway());
      expect((await list()).memories[0]?.embedding).toBe("done");
      expect(sent.some(({ model, input }) => model === "text-embedding-3-large" && input.includes("My vehicle wartburg zq."))).toBe(true);
    });
    expect((await found("automobile parked"))[0]).toBe("My vehicle wartburg zq.");
    expect(sent.at(-1)).toMatchObject({ model: "text-embedding-3-large", input: ["automobile parked"] });
  });
  test("[LM16] a memory that is forgotten while its vector is made leaves no trace in rows and index", async () => {
    await useOpenAi();
    await add("The attic has a window.");
    await settled();
    await found("attic window");
    let gone = "";
    meanwhile = async () => {
      meanwhile = () => Promise.resolve();
      await until("the id", () => gone);
      await (await client()).ok("memory.forget", { ids: [gone], agentId: "main" });
    };
    gone = (await add("The xylophonecanary is in the attic.")).memory.id;
    await eventually(() => expect(sent.flatMap(({ input }) => input)).toContain("The xylophonecanary is in the attic."));
    await eventually(async () => expect((await list()).memories).toHaveLength(1));
    await settled();
    await found("attic window");
    const left = await env.DB?.prepare("SELECT count(*) AS n FROM long_term_memory WHERE id = ?").bind(gone).first<{ n: number }>();
    expect(left?.n).toBe(0);
    const rows = await runInDurableObject(env.SEARCH.getByName("main"), (_instance, { storage: { sql } }) => ({
      vectors: sql.exec("SELECT source FROM row_vectors").toArray().length,
      texts: JSON.stringify(sql.exec("SELECT text FROM docs").toArray()),
      sources: JSON.stringify(sql.exec("SELECT name FROM sources").toArray()),
    }));
    expect(rows.vectors).toBe(1);
    expect(rows.texts).not.toContain("canary");
    expect(rows.sources).not.toContain(gone);
  });
  test("[LM18] requests are in the usage, and nothing is sent when a limit is used up", async () => {
    await useOpenAi();
    await add("The zebra eats grass.");
    await settled();
    const usage = await owner.ok<UsageGetResult>("usage.get", { by: "model", days: 1 });
    const tokens = 5 * meaningCount();
    expect(usage.rows).toMatchObject([{ key: "openai/text-embedding-3-small", calls: sent.length, input: tokens, unpricedTokens: 0 }]);
    expect(usage.rows[0]?.costUsd).toBeCloseTo((tokens * 0.02) / 1e6, 12);
    await set("limits.dayCostUsd", 0);
    const before = sent.length;
    await add("The lion eats meat.");
    await failedWith(/Today's limit is reached/);
    const { memories, notes } = await search("lion meat");
    expect([memories[0]?.memory.text, sent.length]).toEqual(["The lion eats meat.", before]);
    expect(notes[0]).toMatch(/Today's limit is reached/);
  });
  test("[LM18] [ST6] while everything is stopped nothing is sent and no alarm is due; after a resume it goes on", async () => {
    await useOpenAi();
    await add("The zebra eats grass.");
    await settled();
    await owner.ok("gateway.stop", {});
    const before = sent.length;
    await add("The lion eats meat.");
    await runDurableObjectAlarm(gateway());
    const { memories, notes } = await search("lion meat");
    expect([memories[0]?.memory.text, await states(), sent.length]).toEqual(["The lion eats meat.", ["pending", "done"], before]);
    expect(notes[0]).toMatch(/GSV is stopped/);
    // Of others, such as the daily copy of the audit.
    const alarm = await runInDurableObject(gateway(), (_, state) => state.storage.getAlarm());
    expect((alarm ?? Number.POSITIVE_INFINITY) - Date.now()).toBeGreaterThan(60_000);
    await owner.ok("gateway.resume", {});
    await settled();
    expect(sent.slice(before).map(({ input }) => input)).toEqual([["The lion eats meat."]]);
  });
  const meaningCount = (): number => sent.reduce((sum, { input }) => sum + input.length, 0);
  test("[LM13] Workers AI is refused where it is not bound, whatever way it is set", async () => {
    const refused = await owner.refused("config.set", { path: "memory.embeddings.provider", value: "workers-ai" });
    expect(refused).toMatchObject({ reason: "config.invalid" });
    expect(refused.message).toMatch(/works only on Cloudflare/);
    const { config, version } = await owner.ok<{ config: Record<string, unknown>; version: number }>("config.get", {});
    const edited = { ...config, memory: { embeddings: { provider: "workers-ai" } } };
    expect((await owner.refused("config.replace", { config: edited, version })).message).toMatch(/works only on Cloudflare/);
  });
  test("[LM13] [LM14] with Workers AI, which is bound on Cloudflare", async () => {
    await evict(gateway());
    const run = vi.fn(async (_model: string, { text }: { readonly text: readonly string[] }) => ({
      data: text.map((one) => meaningOf(one, 768)),
    }));
    vi.spyOn(parts, "embedding").mockImplementation(() => ({ ai: { run }, fetch: () => Promise.reject(new Error("not this way")) }));
    owner = await client();
    await set("memory.embeddings.provider", "workers-ai");
    await add("My vehicle wartburg zq.");
    await settled();
    expect((await found("automobile parked"))[0]).toBe("My vehicle wartburg zq.");
    expect(run.mock.calls.at(-1)).toEqual(["@cf/baai/bge-base-en-v1.5", { text: ["automobile parked"] }]);
  });
});
