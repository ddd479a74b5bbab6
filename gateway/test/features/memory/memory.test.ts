/** Long-term memory through the real gateway: its methods, what its tools may do, and that forgetting leaves nothing. */
import { env } from "cloudflare:workers";
import { reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Memory, MemoryAddResult, MemoryListResult, MemorySearchResult } from "../../../../protocol/gen/types.ts";
import type { Recalled, Remembered, Remembering } from "../../../src/ports/long-term-memory.ts";
import type { Result } from "../../../src/ports/result.ts";
import { composeNativeTools } from "../../../src/app/native-tools.ts";
import { client, fakeSessions, gateway, node, type Peer, port, seed, silent, token } from "../../support/gateway.ts";
import { value } from "../../support/workspace.ts";
import { evict } from "../../support/evict.ts";

let owner: Peer;
let calls = 0;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  owner = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});
const own = { label: "self", source: "the agent's own words" } as const;
const world = { label: "world", source: "a mail" } as const;
const remember = (text: string, more: Partial<Remembering> = {}): Promise<Result<Remembered>> =>
  port().remember({ agentId: "main", text, taint: own, sessionKey: "agent:main:main", callId: `c${++calls}`, now: Date.now(), ...more });
const recall = async (query: string, agentId = "main", limit?: number): Promise<Recalled> =>
  value(await port().recall({ agentId, query, snippetChars: 600, ...(limit === undefined ? {} : { limit }) }));
const texts = async (query: string, agentId?: string, limit?: number): Promise<string[]> =>
  (await recall(query, agentId, limit)).hits.map((hit) => (hit.kind === "memory" ? hit.text : `file: ${hit.hit.path}`));
const add = (text: string, more: Record<string, unknown> = {}) =>
  owner.ok<MemoryAddResult>("memory.add", { text, requestId: `r${++calls}`, ...more });
const list = (more: Record<string, unknown> = {}) => owner.ok<MemoryListResult>("memory.list", more);
const define = (id: string, memory: string) =>
  owner.ok("agents.define", {
    text: `metadata: { id: ${id}, name: ${id} }\ncore_context: { system_prompt: Hi }\nmemory_config: ${memory}\n`,
  });
/** Everything that an agent's index holds, as text. */
const indexed = (agentId = "main"): Promise<string> =>
  runInDurableObject(env.SEARCH.getByName(agentId), (_instance, { storage: { sql } }) => {
    const tables = sql
      .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'")
      .toArray();
    const rows = tables.flatMap(({ name }) => sql.exec(`SELECT * FROM "${name}"`).toArray());
    const texts = rows
      .flatMap((row) => Object.values(row))
      .map((cell) => (cell instanceof ArrayBuffer ? new TextDecoder("latin1").decode(cell) : String(cell)));
    return texts.join("\n");
  });

describe("what an agent remembers", () => {
  test("[LM1] [LM3] is recalled by that agent alone, in any form of its words", async () => {
    await define("anna", "{ long_term_enabled: true }");
    value(await remember("The customer prefers linen towels."));
    value(await remember("The password of the shed is under the mat.", { agentId: "anna" }));
    expect(await texts("Which towel would customers prefer?")).toEqual(["The customer prefers linen towels."]);
    expect(await texts("towels", "anna")).toEqual([]);
    expect(await texts("shed", "anna")).toEqual(["The password of the shed is under the mat."]);
    expect(await texts("shed")).toEqual([]);
  });
  test("[LM1] stands beside files, and an evicted index finds it again", async () => {
    value(await remember("The zebra is called Zoe."));
    await env.STORAGE.put("agents/main/MEMORY.md", "- The zebra eats grass.\n");
    expect((await texts("zebra")).sort()).toEqual(["The zebra is called Zoe.", "file: MEMORY.md"]);
    await evict(env.SEARCH.getByName("main"));
    expect((await texts("zebra")).sort()).toEqual(["The zebra is called Zoe.", "file: MEMORY.md"]);
    const found = await owner.ok<MemorySearchResult>("memory.search", { query: "zebra" });
    expect(
      found.memories.map(({ memory }) => memory.text),
      "rows only",
    ).toEqual(["The zebra is called Zoe."]);
  });
  test("[LM2] a call that is repeated after a kill makes one row", async () => {
    const first = value(await remember("once", { callId: "same" }));
    await evict(gateway());
    const again = value(await remember("once", { callId: "same" }));
    expect([again.id, first.isNew, again.isNew]).toEqual([first.id, true, false]);
    expect((await list()).memories).toHaveLength(1);
  });
  test("[LM6] a newer fact takes the place of the older one, which the owner still sees", async () => {
    const older = value(await remember("Anna lives in Lund."));
    expect(await texts("Where does Anna live?")).toEqual(["Anna lives in Lund."]);
    const newer = value(await remember("Anna lives in Malmö.", { supersedes: older.id.toLowerCase() }));
    expect(newer.superseded).toBe(true);
    expect(await texts("Where does Anna live?")).toEqual(["Anna lives in Malmö."]);
    expect((await list()).memories.map(({ id }) => id)).toEqual([newer.id]);
    expect((await list({ superseded: true })).memories.map(({ id, supersededBy }) => [id, supersededBy])).toEqual([
      [newer.id, undefined],
      [older.id, newer.id],
    ]);
    for (const supersedes of ["nonsense", "01ARZ3NDEKTSV4RRFFQ69G5FAV"])
      expect(await remember("x", { supersedes })).toMatchObject({ ok: false, error: { reason: "memory.unknown" } });
  });
  test("[LM9] top_k and min_score of the definition limit what a recall gives", async () => {
    await define("few", "{ long_term_enabled: true, top_k: 2 }");
    await define("sure", "{ long_term_enabled: true, min_score: 0.9 }");
    for (const agentId of ["few", "sure"])
      for (const fact of [
        "The red kite nests early.",
        "A kite was seen.",
        "The kite festival is in May, with many other things to see there.",
      ])
        value(await remember(fact, { agentId }));
    expect(await texts("red kite nests", "few")).toHaveLength(2);
    expect(await texts("red kite nests", "few", 50)).toHaveLength(2);
    expect(await texts("red kite nests", "few", 1)).toEqual(["The red kite nests early."]);
    expect(await texts("red kite nests", "sure")).toEqual(["The red kite nests early."]);
  });
  test("[LM9] min_score keeps the best memory, also when it is the only one", async () => {
    await define("one", "{ long_term_enabled: true, min_score: 0.3 }");
    value(await remember("The boiler is a Vaillant.", { agentId: "one" }));
    for (const query of ["boiler", "Which boiler is it?", "+boiler"])
      expect(await texts(query, "one"), query).toEqual(["The boiler is a Vaillant."]);
  });
  test("[LM7] keeps the label of its conversation, which the recall passes on", async () => {
    value(await remember("The invoice number is 77.", { taint: world }));
    value(await remember("The garden is large."));
    const tools = composeNativeTools(env.STORAGE, { log: silent });
    const context = {
      identity: { key: "agent:main:main", ref: "r", agentId: "main", isOwnersSession: true },
      callId: "c",
      now: Date.now(),
      userTimezone: "UTC",
      gateway: port(),
    };
    const labelOf = async (query: string) => {
      const outcome = await tools.run("recall_memory", { query }, context);
      return outcome.ok ? outcome.taint : outcome.error;
    };
    expect(await labelOf("invoice")).toEqual({ label: "world", source: "a memory, written after a mail" });
    expect(await labelOf("garden")).toMatchObject({ label: "self" });
    expect((await list()).memories.map(({ label, labelSource }) => `${label} ${labelSource}`)).toEqual([
      "self the agent's own words",
      "world a mail",
    ]);
    const guest = { ...context, identity: { ...context.identity, isOwnersSession: false } };
    for (const name of ["remember", "recall_memory"])
      expect(await tools.run(name, { text: "x", query: "x" }, guest)).toMatchObject({ ok: false, error: { reason: "auth.forbidden" } });
    // The agent comes from the identity, whatever the arguments say.
    const kept = await tools.run("remember", { text: "mine", agentId: "other", tenantId: "t" }, context);
    expect(kept).toMatchObject({ ok: true });
    expect(await texts("mine")).toEqual(["mine"]);
    expect(await tools.run("remember", { text: "  " }, context)).toMatchObject({ ok: false, error: { reason: "tool.bad_args" } });
    expect(await tools.run("remember", { text: "é".repeat(4097) }, context)).toMatchObject({
      ok: false,
      error: { reason: "memory.too_large" },
    });
  });
});

describe("the owner", () => {
  test("[LM2] a request id counts for its token, and with another text it is refused", async () => {
    const other = await client((await token("client")).token);
    const first = await add("Fact of program one.", { requestId: "1" });
    const second = await other.ok<MemoryAddResult>("memory.add", { text: "Fact of program two.", requestId: "1" });
    expect(second).toMatchObject({ added: true, memory: { text: "Fact of program two." } });
    expect(await add("Fact of program one.", { requestId: "1" })).toMatchObject({ added: false, memory: { id: first.memory.id } });
    expect((await owner.refused("memory.add", { text: "Another fact.", requestId: "1" })).reason).toBe("task.key_reused");
    expect((await list()).memories.map(({ text }) => text)).toEqual(["Fact of program two.", "Fact of program one."]);
  });
  test("[LM2] a retry finds the row that an earlier version has written; another text under its id is a new row", async () => {
    const earlier = value(await remember("Of an earlier version.", { sessionKey: "", callId: "1" }));
    expect(await add("Of an earlier version.", { requestId: "1" })).toMatchObject({ added: false, memory: { id: earlier.id } });
    expect(await add("A new fact.", { requestId: "1" })).toMatchObject({ added: true, memory: { text: "A new fact." } });
  });
  test("[LM2] a request id with another older memory or other metadata is refused, and nothing is superseded", async () => {
    const { memory: older } = await add("It is in the attic.");
    const first = await add("It is in the cellar.", { requestId: "1", metadata: { room: "cellar" } });
    for (const more of [
      { supersedes: older.id },
      { supersedes: "01ARZ3NDEKTSV4RRFFQ69G5FAV" },
      { metadata: {} },
      { metadata: { room: "a" } },
    ]) {
      const asked = { text: "It is in the cellar.", requestId: "1", metadata: { room: "cellar" }, ...more };
      expect((await owner.refused("memory.add", asked)).reason, JSON.stringify(more)).toBe("task.key_reused");
    }
    expect((await list()).memories.map(({ id }) => id)).toEqual([first.memory.id, older.id]);
    const newer = { requestId: "2", supersedes: older.id.toLowerCase() };
    expect(await add("It is sold.", newer)).toMatchObject({ added: true });
    expect(await add("It is sold.", newer)).toMatchObject({ added: false });
  });
  test("[LM2] a retry of a text with half of a surrogate pair is the same request", async () => {
    const odd = { requestId: "1", metadata: { note: "\udc00" } };
    const first = await add("a\ud800b", odd);
    expect(first).toMatchObject({ added: true, memory: { text: "a\ufffdb" } });
    expect(await add("a\ud800b", odd)).toMatchObject({ added: false, memory: { id: first.memory.id } });
  });
  test("[LM2] a request id that reads like another token with its request is a request of its own", async () => {
    const { token: secret, tokenId } = await token("client");
    const other = await client(secret);
    await other.ok("memory.add", { text: "The same fact.", requestId: "1" });
    expect(await add("The same fact.", { requestId: `${tokenId}/1` })).toMatchObject({ added: true });
  });
  test("[LM10] adds once per request, lists by pages, and each change is in the audit", async () => {
    const asked = { metadata: { room: "cellar" }, requestId: "one" };
    const first = await add("The boiler is from 2019.", asked);
    expect(first).toMatchObject({ added: true, memory: { author: "owner", label: "owner", metadata: { room: "cellar" } } });
    expect(await add("The boiler is from 2019.", asked)).toMatchObject({ added: false, memory: { id: first.memory.id } });
    for (let number = 0; number < 4; number++) await add(`fact ${number}`);
    const page = await list({ limit: 3 });
    expect([page.memories.length, page.more]).toEqual([3, true]);
    const rest = await list({ limit: 3, before: page.memories.at(-1)?.id });
    expect([rest.memories.map(({ text }: Memory) => text), rest.more]).toEqual([["fact 0", "The boiler is from 2019."], false]);
    await owner.ok("memory.forget", { ids: [first.memory.id] });
    const { entries } = await owner.ok<{ entries: { action: string; target?: string }[] }>("audit.list", {});
    expect(entries.filter(({ action }) => action.startsWith("memory.")).map(({ action }) => action)).toContain("memory.forget");
    expect(entries.find(({ action }) => action === "memory.forget")).toMatchObject({ target: "main", detail: first.memory.id });
  });
  test("[LM10] needs the scope operate, and an agent that exists", async () => {
    const machine = await node("lap");
    for (const [method, params] of [
      ["memory.list", {}],
      ["memory.search", { query: "x" }],
      ["memory.add", { text: "x", requestId: "r" }],
      ["memory.forget", { ids: ["01ARZ3NDEKTSV4RRFFQ69G5FAV"] }],
    ] as const)
      expect((await machine.refused(method, params)).reason, method).toBe("auth.forbidden");
    expect((await owner.refused("memory.add", { text: "x", requestId: "r", agentId: "none" })).reason).toBe("agent.unknown");
    expect((await owner.refused("memory.list", { agentId: "none" })).reason).toBe("agent.unknown");
    expect((await owner.refused("memory.search", { agentId: "none", query: "x" })).reason).toBe("agent.unknown");
    expect((await owner.refused("memory.search", { query: "-x" })).reason).toBe("search.bad_query");
  });
});

describe("forgetting", () => {
  const CANARY = "xylophonecanary";
  test("[LM8] leaves nothing that was made of a memory, down to the index's own tables", async () => {
    const { memory } = await add(`The ${CANARY} is in the attic.`);
    await add("The attic has a window.");
    expect(await texts(CANARY)).toHaveLength(1);
    expect(await indexed()).toContain("canary");
    expect(await owner.ok("memory.forget", { ids: [memory.id, "nonsense"] })).toEqual({ ok: true, forgotten: 1 });
    expect(await indexed()).not.toContain("canary");
    expect(await indexed()).toContain("window");
    expect(await texts(CANARY)).toEqual([]);
    expect(await texts("attic")).toEqual(["The attic has a window."]);
    expect(await owner.ok("memory.forget", { ids: [memory.id] })).toEqual({ ok: true, forgotten: 0 });
  });
  test("[LM8] that is cut after the row is gone is finished by the index itself, and no recall shows it before", async () => {
    const { memory } = await add(`The ${CANARY} is in the attic.`);
    expect(await texts(CANARY)).toHaveLength(1);
    const index = env.SEARCH.getByName("main");
    await index.memoriesWillChange();
    await env.DB?.prepare("DELETE FROM long_term_memory WHERE id = ?").bind(memory.id).run();
    // The gateway is killed here.
    await evict(index);
    expect(await runDurableObjectAlarm(index)).toBe(true);
    expect(await indexed()).not.toContain("canary");
  });
  test("[LM8] that is cut before the row is gone changes nothing", async () => {
    await add(`The ${CANARY} is in the attic.`);
    expect(await texts(CANARY)).toHaveLength(1);
    const index = env.SEARCH.getByName("main");
    await index.memoriesWillChange();
    await evict(index);
    await runDurableObjectAlarm(index);
    expect(await texts(CANARY)).toHaveLength(1);
  });
});
