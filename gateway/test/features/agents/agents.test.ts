/** Several agents: listing, creation and session ownership. On the real gateway and bucket, with fake sessions that record requests. */
import { env } from "cloudflare:workers";
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { AgentsGetResult, AgentsListResult } from "../../../../protocol/gen/types.ts";
import type { SessionIdentity } from "../../../src/ports/session.ts";
import { DEFAULT_FILES } from "../../../src/features/agents/default-files.ts";
import { type Asked, client, fakeSessions, last as lastAsked, type Peer, port, seed } from "../../support/gateway.ts";

let admin: Peer;
let asked: Asked[];
beforeEach(async () => {
  await reset();
  asked = fakeSessions().asked;
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});
const agents = async () => (await admin.ok<AgentsListResult>("agents.list")).agents;
const names = async (agent: string): Promise<string[]> =>
  (await env.STORAGE.list({ prefix: `agents/${agent}/` })).objects.map(({ key }) => key.slice(`agents/${agent}/`.length)).sort();
const EVERY_FILE = [...DEFAULT_FILES.map(({ name }) => name), "workspace.json"].sort();

describe("[P3.1] listing agents", () => {
  test("[AG1] main always exists, listed or not, and is the default until another agent is set", async () => {
    expect(await agents()).toEqual([{ agentId: "main", isDefault: true, commissioned: false, sessions: 0 }]);
    await env.STORAGE.put("agents/main/hi.txt", "copied before the first message");
    expect(await agents(), "[AG5] its first meeting is still to come").toMatchObject([{ agentId: "main", commissioned: false }]);
    await admin.ok("config.set", {
      path: "agents.list",
      value: [
        { id: "work", model: { provider: "openai", id: "x" } },
        { id: "main", description: "me" },
      ],
    });
    expect((await agents()).map(({ agentId, isDefault }) => [agentId, isDefault])).toEqual([
      ["main", true],
      ["work", false],
    ]);
    await admin.ok("config.set", { path: "agents.list[0].default", value: true });
    await admin.ok("config.set", { path: "agents.list[1].default", value: true });
    expect(
      (await agents()).map(({ agentId, isDefault }) => [agentId, isDefault]),
      "exactly one",
    ).toEqual([
      ["work", true],
      ["main", false],
    ]);
  });
  test("sessions are counted for their own agent", async () => {
    await admin.ok("agents.create", { agentId: "work" });
    for (const sessionKey of ["main", "agent:main:cli:dm:a", "agent:work:main"]) await admin.ok("chat.send", { sessionKey, message: "hi" });
    expect((await agents()).map(({ agentId, sessions }) => [agentId, sessions])).toEqual([
      ["main", 2],
      ["work", 1],
    ]);
    expect((await agents())[0]?.lastActiveAt).toBeGreaterThan(0);
  });
  test("[R6] an agent whose model has no key is made, with a warning that says how to set it; so is a change of its model", async () => {
    const warning = "No key is set for OpenAI. Run `gsv config set apiKeys.openai -`.";
    expect(await admin.ok("agents.create", { agentId: "work", model: { provider: "openai", id: "x" } })).toMatchObject({
      warnings: [warning],
    });
    expect(await admin.ok("agents.create", { agentId: "own", model: { provider: "ollama", id: "x" } })).not.toHaveProperty("warnings");
    const list = await admin.ok<{ value: { id: string }[] }>("config.get", { path: "agents.list" });
    const at = `agents.list[${list.value.findIndex(({ id }) => id === "work")}]`;
    expect(await admin.ok("config.set", { path: `${at}.model`, value: { provider: "openai", id: "y" } })).toMatchObject({
      warnings: [`work: ${warning}`],
    });
    expect(await admin.ok("config.set", { path: `${at}.description`, value: "d" })).not.toHaveProperty("warnings");
    await admin.ok("config.set", { path: "apiKeys.openai", value: "sk-0123456789" });
    expect(await admin.ok("config.set", { path: `${at}.model.id`, value: "z" })).not.toHaveProperty("warnings");
    expect(await admin.refused("agents.create", { agentId: "toy", model: { provider: "demo", id: "nope" } })).toMatchObject({
      reason: "config.invalid",
      hint: "Its only model is `demo/demo`.",
    });
  });
  test("showing an agent: its files and bindings", async () => {
    await admin.ok("agents.create", {
      agentId: "work",
      systemPrompt: "Be brief.",
      model: { provider: "openai", id: "x" },
      description: "d",
    });
    await admin.ok("config.set", { path: "agents.bindings", value: [{ agentId: "work", match: { channel: "discord" } }] });
    await env.STORAGE.put("agents/work/memory/2026-01-01.md", "x");
    const got = await admin.ok<AgentsGetResult>("agents.get", { agentId: "work" });
    expect(got).toMatchObject({
      agent: {
        agentId: "work",
        description: "d",
        isDefault: false,
        model: { provider: "openai", id: "x" },
        commissioned: false,
        sessions: 0,
      },
      systemPrompt: "Be brief.",
      bindings: [{ agentId: "work", match: { channel: "discord" } }],
    });
    expect(got.files.map(({ path }) => path).sort()).toEqual([...DEFAULT_FILES.map(({ name }) => name), "memory/2026-01-01.md"].sort());
  });
  test("a failing bucket is an error", async () => {
    vi.spyOn(env.STORAGE, "list").mockRejectedValue(new Error("away"));
    expect((await admin.refused("agents.list")).reason).toBe("storage.failed");
  });
});

describe("creating an agent", () => {
  test("[AG3] creates the entry, the files and the first meeting, and is audited", async () => {
    const made = await admin.ok("agents.create", { agentId: "work", description: "for work" });
    expect(made).toEqual({ agent: { agentId: "work", description: "for work", isDefault: false, commissioned: false, sessions: 0 } });
    expect(await names("work")).toEqual(EVERY_FILE);
    expect(await admin.ok("config.get", { path: "agents.list" })).toMatchObject({ value: [{ id: "work", description: "for work" }] });
    const { entries } = await admin.ok<{ entries: { action: string; target?: string; decision: string }[] }>("audit.list", {
      action: "agents.create",
    });
    expect(entries[0]).toMatchObject({ action: "agents.create", target: "work", decision: "allowed" });
  });
  test("without a first meeting, for an agent with imported files", async () => {
    const made = await admin.ok("agents.create", { agentId: "work", bootstrap: false });
    expect(made).toMatchObject({ agent: { commissioned: true } });
    expect(await names("work")).toEqual(EVERY_FILE.filter((name) => name !== "BOOTSTRAP.md"));
  });
  test("existing files stay, and an agent with SOUL.md needs no first meeting", async () => {
    await env.STORAGE.put("agents/work/SOUL.md", "mine");
    await admin.ok("agents.create", { agentId: "work" });
    expect(await (await env.STORAGE.get("agents/work/SOUL.md"))?.text()).toBe("mine");
    expect(await names("work")).not.toContain("BOOTSTRAP.md");
  });
  test("--default replaces the earlier default agent", async () => {
    await admin.ok("agents.create", { agentId: "one", default: true });
    await admin.ok("agents.create", { agentId: "two", default: true });
    expect((await agents()).filter(({ isDefault }) => isDefault).map(({ agentId }) => agentId)).toEqual(["two"]);
    expect(await admin.ok("config.get", { path: "agents.list" })).toMatchObject({ value: [{ id: "one" }, { id: "two", default: true }] });
  });
  test.each(["UPPER", "a b", "a:b", "../x", "", "x".repeat(65), "ü"])("[P3.1] %j is no agent's name", async (agentId) => {
    expect((await admin.refused("agents.create", { agentId })).reason).toBe("protocol.invalid_params");
    expect(await agents()).toHaveLength(1);
  });
  test.each(["main", "work"])("%s is there already", async (agentId) => {
    await admin.call("agents.create", { agentId: "work" });
    expect(await admin.refused("agents.create", { agentId })).toMatchObject({ reason: "agent.exists" });
  });
  test("[P19] the number of agents is bounded", async () => {
    const value = Array.from({ length: LIMITS.agents - 1 }, (_, i) => ({ id: `a${i}` }));
    await admin.ok("config.set", { path: "agents.list", value });
    expect((await admin.refused("agents.create", { agentId: "one-more" })).reason).toBe("agent.limit");
    expect(await names("one-more")).toEqual([]);
  });
  test("[AG3][P12] after any interruption a retry completes it", async () => {
    for (let at = 0; at <= DEFAULT_FILES.length; at++) {
      const agentId = `half${at}`;
      let puts = 0;
      const real = env.STORAGE.put.bind(env.STORAGE);
      const spy = vi.spyOn(env.STORAGE, "put").mockImplementation(((...args: Parameters<typeof real>) => {
        if (puts++ === at) throw new Error("killed");
        return real(...args);
      }) as typeof env.STORAGE.put);
      expect((await admin.refused("agents.create", { agentId })).reason).toBe("storage.failed");
      spy.mockRestore();
      expect((await admin.refused("agents.get", { agentId })).reason).toBe("agent.unknown");
      await admin.ok("agents.create", { agentId, bootstrap: false });
      expect((await names(agentId)).filter((name) => name !== "BOOTSTRAP.md")).toEqual(
        EVERY_FILE.filter((name) => name !== "BOOTSTRAP.md"),
      );
    }
  });
});

describe("[P3.1] session ownership", () => {
  const last = (): SessionIdentity => lastAsked<{ identity: SessionIdentity }>(asked).identity;
  test("a key without an agent gets the default agent and keeps it when the default changes", async () => {
    await admin.ok("chat.send", { sessionKey: "main", message: "hi" });
    expect(last()).toMatchObject({ key: "agent:main:main", agentId: "main", isOwnersSession: true });
    await admin.ok("agents.create", { agentId: "work", default: true });
    await admin.ok("chat.send", { sessionKey: "main", message: "hi" });
    expect(last()).toMatchObject({ key: "agent:work:main", agentId: "work", isOwnersSession: true });
    await admin.ok("chat.send", { sessionKey: "agent:main:main", message: "hi" });
    expect(last().key).toBe("agent:main:main");
  });
  test("an agent's model and prompt apply from its next run, and only to that agent", async () => {
    const before = await port().runContext("agent:work:main", undefined);
    await admin.ok("agents.create", { agentId: "work", model: { provider: "openai", id: "x" }, systemPrompt: "Be brief." });
    const now = await port().runContext("agent:work:main", before?.version);
    expect(now?.agent).toEqual({ id: "work", model: { provider: "openai", id: "x" }, systemPrompt: "Be brief." });
    expect((await port().runContext("agent:main:main", undefined))?.agent).toEqual({ id: "main" });
    await admin.ok("config.set", { path: "agents.list[0].model.id", value: "y" });
    expect((await port().runContext("agent:work:main", now?.version))?.agent.model?.id).toBe("y");
  });
  test.each(["chat.send", "session.prompt", "session.subscribe"] as const)(
    "[AG2] %s to an unknown agent creates nothing",
    async (method) => {
      await admin.ok("agents.create", { agentId: "ghostly" });
      const error = await admin.refused(method, { sessionKey: "agent:ghost:main", ...(method === "chat.send" ? { message: "hi" } : {}) });
      expect(error.reason).toBe("agent.unknown");
      expect(error.hint).toContain("Did you mean ghostly?");
      expect(asked).toEqual([]);
      expect(await admin.ok("sessions.list")).toMatchObject({ count: 0 });
      expect(await names("ghost")).toEqual([]);
    },
  );
  test("[AG2] sessions of a removed agent can be read, followed and reset, but accept no messages", async () => {
    await admin.ok("agents.create", { agentId: "work" });
    await admin.ok("chat.send", { sessionKey: "agent:work:main", message: "hi" });
    await admin.ok("config.unset", { path: "agents.list[0]" });
    const key = { sessionKey: "agent:work:main" };
    for (const method of ["session.get", "session.preview", "session.history", "session.subscribe", "session.reset"] as const)
      expect((await admin.call(method, key)).ok, method).toBe(true);
    expect((await admin.refused("chat.send", { ...key, message: "hi" })).reason).toBe("agent.unknown");
  });
});
