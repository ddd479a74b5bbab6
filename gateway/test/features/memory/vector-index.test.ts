/** [LM20] to [LM23] Memories with a vector index, through the real gateway: it is followed by the alarm, asked by questions, and optional. */
import { env } from "cloudflare:workers";
import { reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { MemoryAddResult, MemoryListResult, MemorySearchResult } from "../../../../protocol/gen/types.ts";
import { answerFor } from "../../../../test/fakes/meaning.ts";
import { parts } from "../../../src/app/compose.ts";
import { client, fakeSessions, gateway, type Peer, seed, eventually } from "../../support/gateway.ts";
import { FakeVectorize } from "../../support/vectorize.ts";
import { evict } from "../../support/evict.ts";

let owner: Peer;
let calls = 0;
let fake: FakeVectorize;
let bound: FakeVectorize | undefined;
beforeEach(async () => {
  await reset();
  fake = new FakeVectorize(1_536);
  bound = fake;
  vi.spyOn(parts, "vectorIndex").mockImplementation(() => bound);
  vi.spyOn(parts, "embedding").mockImplementation(() => ({
    ai: undefined,
    fetch: async (_url, { body }) => Response.json(answerFor((JSON.parse(String(body)) as { input: string[] }).input, 1_536)),
  }));
  fakeSessions();
  await seed();
  owner = await client();
  await owner.ok("config.set", { path: "apiKeys.openai", value: "sk-owners-embedding-key-1234" });
  await owner.ok("config.set", { path: "memory.embeddings.provider", value: "openai" });
});
afterEach(() => {
  vi.restoreAllMocks();
});
const add = async (text: string): Promise<string> => {
  const { memory } = await owner.ok<MemoryAddResult>("memory.add", { text, agentId: "main", requestId: `r${++calls}` });
  return memory.id;
};
const list = () => owner.ok<MemoryListResult>("memory.list", { agentId: "main" });
const search = (query: string) => owner.ok<MemorySearchResult>("memory.search", { query, agentId: "main" });
const found = async (query: string): Promise<string[]> => (await search(query)).memories.map(({ memory }) => memory.text);
const states = async (): Promise<string[]> => {
  const rows = await env.DB?.prepare("SELECT vector_state FROM long_term_memory ORDER BY id").all<{ vector_state: string }>();
  return rows?.results.map(({ vector_state: state }) => state) ?? [];
};
/** What is due in minutes is due now. */
const hurry = () =>
  runInDurableObject(gateway(), (_instance, { storage: { sql } }) => {
    sql.exec("UPDATE memory_vector_index SET due_at = 1");
  });
const until = (isSo: () => Promise<void>) =>
  eventually(async () => {
    fake.settle();
    await hurry();
    await runDurableObjectAlarm(gateway());
    await isSo();
  });
/** Until only the daily look is left: no step runs. */
const idle = () =>
  eventually(async () => {
    const dueAt = await runInDurableObject(gateway(), (_instance, { storage: { sql } }) =>
      Number(sql.exec("SELECT due_at FROM memory_vector_index").one()["due_at"]),
    );
    expect(dueAt).toBeGreaterThan(Date.now() + 3_600_000);
  });
const indexed = (count: number) => until(async () => expect(await states()).toEqual(Array<string>(count).fill("indexed")));

/** Copies of the only row, until the agent has so many. */
const fill = async (count: number): Promise<void> => {
  await env.DB?.prepare(
    `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?)
     INSERT INTO long_term_memory(id, tenant_id, agent_id, content, metadata, source, taint, taint_source, session_key, call_id, created_at, embedding_state)
     SELECT printf('00000000000000000000%06d', x), tenant_id, agent_id, content, metadata, source, taint, taint_source, session_key, 'copy ' || x, created_at, 'none'
     FROM long_term_memory, n WHERE call_id NOT LIKE 'copy %'`,
  )
    .bind(count - 1)
    .run();
};
test("[LM1] [LM20] an agent has more memories only while the vector index finds them", async () => {
  await add("The first.");
  await fill(20_000);
  await owner.ok("config.set", { path: "memory.embeddings.model", value: "text-embedding-3-large" });
  const refused = await owner.refused("memory.add", { text: "One more.", agentId: "main", requestId: "more" });
  expect(refused).toMatchObject({ reason: "memory.full", message: expect.stringMatching(/has 20,000 memories/) });
  await owner.ok("config.set", { path: "memory.embeddings.model", value: "text-embedding-3-small" });
  await owner.ok("memory.add", { text: "One more.", agentId: "main", requestId: "more" });
  await owner.ok("config.set", { path: "memory.embeddings.provider", value: "built-in" });
  expect((await owner.refused("memory.add", { text: "And one.", agentId: "main", requestId: "and" })).reason).toBe("memory.full");
});

describe("with a vector index", () => {
  test("[LM20] [LM21] memories are sent in the background, and a question without their words finds them through the index", async () => {
    const id = await add("My vehicle wartburg zq.");
    await add("The cake bakes slowly.");
    await indexed(2);
    expect(fake.visible.get(id)?.metadata).toEqual({ agent: "main", model: "openai/text-embedding-3-small/1536" });
    expect(JSON.stringify([...fake.visible.values()]), "no text is sent").not.toMatch(/wartburg|cake/);
    expect((await found("automobile parked"))[0]).toBe("My vehicle wartburg zq.");
    await idle();
    // The scan passes over what the index finds.
    const query = vi.spyOn(fake, "query").mockImplementation(async () => ({ matches: [{ id: "none", score: 1 }] }));
    expect(await found("automobile parked")).toEqual([]);
    query.mockRestore();
  });
  test("[LM22] an index that does not answer costs a note, and no memory", async () => {
    await add("My vehicle wartburg zq.");
    await indexed(1);
    await idle();
    fake.fault = () => "refuse";
    const { memories, notes } = await search("automobile parked");
    expect([memories[0]?.memory.text, notes]).toEqual([
      "My vehicle wartburg zq.",
      ["The vector index did not answer. Every memory was compared instead, which takes longer."],
    ]);
    expect((await list()).vectorIndex).toBeUndefined();
    await add("The cake bakes slowly.");
    await until(async () => expect((await list()).vectorIndex).toMatchObject({ waiting: 1, problem: "The vector index did not answer." }));
    fake.fault = () => undefined;
    await indexed(2);
    await idle();
    expect((await list()).vectorIndex).toBeUndefined();
  });
  test("[LM23] forgetting removes the vector, also when the gateway stops before the index has answered", async () => {
    const gone = await add("My vehicle wartburg zq.");
    await add("The cake bakes slowly.");
    await indexed(2);
    fake.fault = () => "refuse";
    await owner.ok("memory.forget", { ids: [gone], agentId: "main" });
    expect(await found("automobile parked")).toEqual([]);
    await evict(gateway());
    expect(fake.visible.has(gone)).toBe(true);
    fake.fault = () => undefined;
    await until(async () => expect([...fake.visible.keys()]).not.toContain(gone));
    expect(fake.visible.size).toBe(1);
    const left = await env.DB?.prepare("SELECT again FROM vector_removals").all<{ again: number }>();
    expect(left?.results, "it is removed once more").toEqual([{ again: 1 }]);
  });
  test("[LM21] [ST6] while everything is stopped the index is not called; after a resume it follows", async () => {
    const gone = await add("My vehicle wartburg zq.");
    await indexed(1);
    await idle();
    await owner.ok("gateway.stop");
    const removals = vi.spyOn(fake, "deleteByIds");
    await owner.ok("memory.forget", { ids: [gone], agentId: "main" });
    for (let round = 0; round < 3; round++) {
      await hurry();
      await runDurableObjectAlarm(gateway());
    }
    expect([removals.mock.calls.length, fake.visible.has(gone)]).toEqual([0, true]);
    await owner.ok("gateway.resume");
    await until(async () => expect([...fake.visible.keys()]).not.toContain(gone));
  });
  test("[LM20] without the binding nothing is sent and everything is found; bound later, the index gets what is there", async () => {
    bound = undefined;
    await evict(gateway());
    owner = await client();
    await add("My vehicle wartburg zq.");
    await eventually(async () => {
      await runDurableObjectAlarm(gateway());
      expect((await found("automobile parked"))[0]).toBe("My vehicle wartburg zq.");
    });
    expect([fake.calls, await states()]).toEqual([[], ["none"]]);
    bound = fake;
    await evict(gateway());
    owner = await client();
    await indexed(1);
    expect((await found("automobile parked"))[0]).toBe("My vehicle wartburg zq.");
    bound = undefined;
    await evict(gateway());
    owner = await client();
    expect((await found("automobile parked"))[0], "unbound again").toBe("My vehicle wartburg zq.");
  });
});
