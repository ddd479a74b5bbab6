/** Packs through the real gateway: on, off, settings, agents, tools and topics, with a pack that is only a test's. */
import { env } from "cloudflare:workers";
import { createExecutionContext, createMessageBatch, getQueueResult, reset, runInDurableObject } from "cloudflare:test";
import { Type } from "typebox";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { DomainEvent, EventEnvelope } from "../../../../protocol/gen/types.ts";
import { PACKS } from "../../../packs/index.ts";
import { parts } from "../../../src/app/compose.ts";
import { composeNativeTools } from "../../../src/app/native-tools.ts";
import worker from "../../../src/app/worker.ts";
import { headerSecret, type PackContext, type PackDefinition, packList } from "../../../src/packs/pack.ts";
import { packTool, packTopic } from "../../../src/packs/schema.ts";
import type { NativeOutcome } from "../../../src/ports/native-tools.ts";
import { succeed } from "../../../src/ports/result.ts";
import { client, fakeSessions, gateway, type Peer, port, seed, silent, eventually } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

const agent = (id: string, more = "") => ({
  id,
  name: id,
  subAgents: [],
  text: `metadata: { id: ${id}, name: ${id} }\ncore_context: { system_prompt: { file: ./role.prompt.md } }\n${more}`,
  files: { "role.prompt.md": `You are ${id}.` },
});
const seen: PackContext[] = [];
const handled: string[] = [];
const farm: PackDefinition = {
  name: "farm",
  doc: "Fields.",
  queue: "farm-actions",
  settings: { place: { doc: "Where.", problem: (value) => (/^[a-z]+$/.test(value) ? undefined : "it is no place.") } },
  secrets: { token: headerSecret("A token.") },
  load: async () => ({
    agents: [agent("farmer", "tools: { allowed: [farm_fields] }\nevents: { emit: [farm_*] }\n")],
    tools: [
      packTool({
        name: "farm_fields",
        description: "Lists fields.",
        policyClass: "read_private",
        input: Type.Object({ size: Type.Integer({ minimum: 1 }) }, { additionalProperties: false }),
        run: async ({ size }, context, callId) => {
          seen.push(context);
          return succeed({ size, callId });
        },
      }),
      packTool({
        name: "farm_slow",
        description: "Never ends.",
        policyClass: "read_private",
        timeoutMs: 20,
        input: Type.Object({}, { additionalProperties: false }),
        run: async (_args, context) => {
          await slow(context);
          return succeed("done");
        },
      }),
      packTool({
        name: "farm_deep",
        description: "Answers deeply.",
        policyClass: "read_private",
        input: Type.Object({ levels: Type.Integer() }, { additionalProperties: false }),
        run: async ({ levels }) => succeed(JSON.parse("[".repeat(levels) + "]".repeat(levels))),
      }),
    ],
    topics: [
      packTopic({
        name: "farm_actions",
        version: 1,
        doc: "farm_actions: {field}.",
        needsApproval: false,
        payload: Type.Object({ field: Type.String() }),
        text: ({ field }) => `Plough ${field}.`,
        handle: async ({ field }, context, { idempotency_key: key }) => {
          if (field === "slow") await slow(context);
          handled.push(`${field} ${key}`);
          return succeed(undefined);
        },
      }),
      packTopic({
        name: "farm_sales",
        version: 1,
        doc: "farm_sales: {field}.",
        needsApproval: true,
        payload: Type.Object({ field: Type.String() }),
        text: ({ field }) => `Sell ${field}.`,
        handle: async ({ field }) => {
          handled.push(`sold ${field}`);
          return succeed(undefined);
        },
      }),
    ],
  }),
};
/** What the slow tool and the slow handler did after their time. */
const late: string[] = [];
async function slow(context: PackContext): Promise<void> {
  await new Promise((resolve) => void context.signal.addEventListener("abort", resolve));
  for (const [what, work] of [
    ["fetch", () => context.fetch("https://farm.example/", { method: "POST" })],
    ["wait", () => context.wait(1)],
  ] as const)
    late.push(
      await work().then(
        () => `${what} done`,
        () => `${what} refused`,
      ),
    );
}
const hill: PackDefinition = {
  ...farm,
  name: "hill",
  load: async () => ({
    agents: [{ ...agent("fold"), name: "sheep", text: agent("fold").text.replace("name: fold", "name: sheep") }],
    tools: [],
    topics: [],
  }),
};
const broken: PackDefinition = { ...farm, name: "broken", load: () => Promise.reject(new Error("no such module")) };

let owner: Peer;
let sent: [string, EventEnvelope][] = [];
beforeEach(async () => {
  await reset();
  sent = [];
  seen.length = 0;
  handled.length = 0;
  late.length = 0;
  vi.spyOn(parts, "packs").mockReturnValue(packList([farm]));
  vi.spyOn(parts, "eventQueue").mockImplementation((_env, name = "domain-events") => ({
    send: async (envelope) => void sent.push([name, envelope]),
  }));
  fakeSessions();
  await seed();
  owner = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});
async function restart(packs: readonly PackDefinition[]): Promise<void> {
  vi.mocked(parts.packs).mockReturnValue(packList(packs));
  await evict(gateway());
  owner = await client();
}
const set = (path: string, value: unknown) => owner.ok("config.set", { path, value });
const refusal = async (path: string, value: unknown) => (await owner.refused("config.set", { path, value })).message;
const names = async (): Promise<string[]> =>
  (await owner.ok<{ tools: { name: string }[] }>("tools.list", {})).tools.map(({ name }) => name);
const agents = async (): Promise<string[]> =>
  (await owner.ok<{ agents: { agentId: string }[] }>("agents.list", {})).agents.map(({ agentId }) => agentId);
const tools = composeNativeTools(env.STORAGE, { log: silent });
const run = (name: string, args: Record<string, unknown>, isOwnersSession = true): Promise<NativeOutcome> =>
  tools.run(name, args, {
    identity: { key: "agent:farmer:main", ref: "ref", agentId: "farmer", isOwnersSession },
    callId: "c1",
    runId: "r1",
    now: Date.now(),
    userTimezone: "UTC",
    gateway: port(),
  });
const reason = (outcome: NativeOutcome) => (outcome.ok ? "ok" : outcome.error.reason);
const context = async (key = "agent:farmer:main") => {
  const found = await port().runContext(key, undefined);
  return { tools: (found?.packTools ?? []).map(({ definition }) => definition.name), version: found?.version, defined: found?.defined };
};

test("[PK6] each pack of this program can be turned on, all of them together, and their agents are valid definitions", async () => {
  vi.mocked(parts.packs).mockReturnValue(PACKS);
  await evict(gateway());
  owner = await client();
  const all = PACKS.map(({ name }) => name);
  // Their secrets go into HTTP headers (PK5).
  for (const { secrets } of PACKS)
    for (const { problem } of Object.values(secrets)) expect(problem("ab\u2013c")).toMatch(/typographic dash/);
  await set("packs.enabled", all);
  const bundled = (await Promise.all(PACKS.map((pack) => pack.load()))).flatMap((pack) => pack.agents.map(({ id }) => id));
  expect(await agents()).toEqual(["main", ...bundled]);
});

describe("a pack", () => {
  test("[PK2] that is off has no tools, topics and agents; turned on it has, also after an eviction; and turned off again it has none", async () => {
    const off = async () => {
      expect(await names()).not.toContain("farm_fields");
      expect(await agents()).toEqual(["main"]);
      expect((await context("agent:main:main")).tools).toEqual([]);
      expect(await run("farm_fields", { size: 1 })).toMatchObject({
        ok: false,
        error: {
          reason: "tool.unknown",
          message: expect.stringMatching(/^The pack farm is off\. Turn it on: `gsv config set packs\.enabled/),
        },
      });
      const text = "metadata: { id: x, name: x }\ncore_context: { system_prompt: Hi }\n";
      const { problems } = await owner.ok<{ problems: { path: string }[] }>("agents.validate", {
        text: `${text}tools: { allowed: [farm_fields] }\nevents: { emit: [farm_actions] }\n`,
      });
      expect(problems.map(({ path }) => path)).toEqual(["tools.allowed[0]", "events.emit[0]"]);
    };
    await off();
    const before = (await context("agent:main:main")).version;
    expect(await set("packs.enabled", ["farm"])).toMatchObject({
      warnings: [
        expect.stringMatching(
          /^The pack farm is on, and its tools fail until packs\.settings\.farm\.place and packs\.secrets\.farm\.token are set/,
        ),
      ],
    });
    expect((await context("agent:main:main")).version).not.toBe(before);
    for (const _ of ["at once", "after an eviction"]) {
      expect(await names()).toContain("farm_fields");
      expect(await agents()).toEqual(["main", "farmer"]);
      const listed = await owner.ok<{ agents: { name?: string }[] }>("agents.list", {});
      expect(listed.agents.map(({ name }) => name)).toEqual([undefined, "farmer"]);
      const { tools: offered, defined } = await context();
      expect(offered).toEqual(["farm_fields", "farm_slow", "farm_deep"]);
      expect(defined?.definition.core_context.system_prompt).toBe("You are farmer.");
      expect(await run("farm_fields", { size: 2 })).toEqual({ ok: true, result: { size: 2, callId: "c1" } });
      await evict(gateway());
      owner = await client();
    }
    await set("packs.enabled", []);
    await off();
  });
  test("[EV1] an agent is told of the topics that its events.emit fits, and of no other", async () => {
    await set("packs.enabled", ["farm"]);
    expect((await context()).defined?.emits).toEqual(["farm_actions: {field}.", "farm_sales: {field}."]);
    expect((await context("agent:main:main")).defined).toBeUndefined();
    const { description } = tools.entries.find(({ definition }) => definition.name === "emit_event")?.definition ?? {};
    expect(description).not.toContain("human_review");
  });
  test("[PK2] an unknown name is refused with the names that exist", async () => {
    const error = await owner.refused("config.set", { path: "packs.enabled", value: ["frm"] });
    expect([error.reason, error.message]).toEqual(["config.invalid", "There is no pack frm. Did you mean farm? Packs are farm."]);
  });
  test("[PK3] that cannot be loaded is not on, and stops nothing else", async () => {
    await set("packs.enabled", ["farm"]);
    vi.mocked(parts.packs).mockReturnValue(packList([broken, { ...farm }]));
    await runInDurableObject(gateway(), (_gateway, { storage }) => void storage.kv.put("config:packs", { enabled: ["farm", "broken"] }));
    await evict(gateway());
    owner = await client();
    expect(await names()).toContain("farm_fields");
    expect(await agents()).toEqual(["main", "farmer"]);
    await set("userTimezone", "Europe/Berlin");
    await set("packs.enabled", ["farm"]);
    expect(await refusal("packs.enabled", ["farm", "broken"])).toBe(
      "The pack broken could not be loaded. The log of the gateway says why.",
    );
  });
  test("[PK5] has the settings and secrets that it declares, checked; its code gets its secrets, and no one else does", async () => {
    expect(await refusal("packs.settings.farm.size", "1")).toBe("There is no setting packs.settings.farm.size. The pack has place.");
    expect(await refusal("packs.settings.farm.place", "9")).toBe("packs.settings.farm.place: it is no place.");
    expect(await refusal("packs.secrets.farm.token", " ")).toBe("packs.secrets.farm.token: it is empty.");
    for (const [token, kind] of [
      ["\u201cabc\u201d", "a typographic quotation mark"],
      ["ab\u200bc", "an invisible character"],
      ["ab\nc", "a line break"],
      ["sch\u00fctzen", "a character outside ASCII"],
    ] as const)
      expect(await refusal("packs.secrets.farm.token", token)).toBe(
        `packs.secrets.farm.token: it contains ${kind}, which cannot be sent in an HTTP header. Copy it again from where it was created.`,
      );
    expect(await refusal("packs.settings.barn.place", "a")).toMatch(/There is no pack barn/);
    await set("packs.settings.farm.place", "hill");
    await set("packs.secrets.farm.token", "a-secret-of-the-farm");
    await set("packs.enabled", ["farm"]);
    await run("farm_fields", { size: 1 });
    expect(seen.map(({ settings, secrets }) => [settings, secrets])).toEqual([[{ place: "hill" }, { token: "a-secret-of-the-farm" }]]);
    expect(JSON.stringify(await owner.ok("config.get", {}))).not.toContain("a-secret-of-the-farm");
    expect(JSON.stringify(await port().runContext("agent:main:main", undefined))).not.toContain("a-secret-of-the-farm");
    const stored = await runInDurableObject(gateway(), (_gateway, { storage }) => JSON.stringify(storage.kv.get("config:packs")));
    expect(stored).not.toContain("a-secret-of-the-farm");
  });
  test("[PK6] an agent of a pack is not changed, undefined or deleted, gets no heartbeat, and takes no name of the owner's", async () => {
    const own = (id: string, name: string) => ({ text: `metadata: { id: ${id}, name: ${name} }\ncore_context: { system_prompt: Hi }\n` });
    // From before the program had the pack.
    await restart([]);
    await owner.ok("agents.define", own("mine", "farmer"));
    await restart([farm]);
    expect(await refusal("packs.enabled", ["farm"])).toMatch(/agent with the name farmer, which your agent mine has/);
    await owner.ok("agents.define", own("mine", "farmer"));
    await owner.ok("agents.delete", { agentId: "mine" });
    await restart([]);
    await owner.ok("agents.create", { agentId: "farmer" });
    await restart([farm]);
    expect(await refusal("packs.enabled", ["farm"])).toMatch(/has an agent farmer, and so have you/);
    await owner.ok("agents.delete", { agentId: "farmer" });
    await set("packs.enabled", ["farm"]);
    for (const [method, params] of [
      ["agents.define", own("farmer", "farmer")],
      ["agents.undefine", { agentId: "farmer" }],
      ["agents.delete", { agentId: "farmer" }],
      ["heartbeat.set", { agentId: "farmer", every: "30m" }],
    ] as const)
      expect((await owner.refused(method, params)).reason, method).toBe("agent.kept");
    expect((await owner.refused("agents.create", { agentId: "farmer" })).reason).toBe("agent.exists");
    expect(await refusal("agents.list", [{ id: "farmer" }])).toBe("agents.list: the pack farm has the agent farmer. Choose another id.");
  });
  test("[PK6] an agent of a pack has no first meeting", async () => {
    await set("packs.enabled", ["farm"]);
    expect((await context()).defined?.isOfPack).toBe(true);
    const { agents: listed } = await owner.ok<{ agents: { agentId: string; commissioned: boolean }[] }>("agents.list", {});
    expect(listed.map(({ agentId, commissioned }) => [agentId, commissioned])).toEqual([
      ["main", false],
      ["farmer", true],
    ]);
  });
  test("[PK6] the owner makes no agent with the id of a pack's agent, or with its name, also while the pack is off", async () => {
    const own = (id: string, name: string) => ({ text: `metadata: { id: ${id}, name: ${name} }\ncore_context: { system_prompt: Hi }\n` });
    await restart([hill]);
    const isRefused = async (agentId: string) => {
      expect(await owner.refused("agents.create", { agentId })).toMatchObject({
        reason: "agent.exists",
        message: `The pack hill has the agent ${agentId}.`,
      });
      for (const [id, name, path] of [
        [agentId, "wool", "id"],
        ["wool", agentId, "name"],
      ] as const) {
        const { reason: why, message } = await owner.refused("agents.define", own(id, name));
        expect([why, message]).toEqual([
          "agent.definition_invalid",
          expect.stringContaining(`metadata.${path}: The pack hill has the agent ${agentId}.`),
        ]);
      }
    };
    for (const agentId of ["fold", "sheep"]) {
      await isRefused(agentId);
      const problem = `agents.list: the pack hill has the agent ${agentId}. Choose another id.`;
      for (const [path, value] of [
        ["agents.list", [{ id: agentId }]],
        ["agents.list[0]", { id: agentId }],
        ["agents", { list: [{ id: agentId }] }],
      ] as const)
        expect(await refusal(path, value), path).toBe(problem);
      const { config, version } = await owner.ok<{ config: object; version: number }>("config.get", {});
      const replaced = await owner.refused("config.replace", { config: { ...config, agents: { list: [{ id: agentId }] } }, version });
      expect(replaced.message).toBe(problem);
    }
    // From before the program had the pack: it stays the owner's, can be changed, and must have another name before the pack is turned on.
    await restart([]);
    await owner.ok("agents.create", { agentId: "sheep" });
    await restart([hill]);
    await set("agents.list[0].description", "Woolly.");
    expect(await refusal("packs.enabled", ["hill"])).toMatch(/agent with the name sheep, which your agent sheep has/);
    await owner.ok("agents.delete", { agentId: "sheep" });
    await set("packs.enabled", ["hill"]);
    expect((await owner.refused("agents.create", { agentId: "sheep" })).message).toBe("The pack hill has the agent sheep.");
    expect((await owner.refused("agents.define", own("sheep", "wool"))).message).toMatch(/metadata\.id: The pack hill has the agent sheep/);
    expect((await owner.refused("agents.define", own("wool", "sheep"))).reason).toBe("agent.definition_invalid");
    expect(await agents()).toEqual(["main", "fold"]);
  });
  test("[PK7] its tools are for the owner's conversations, and check their arguments", async () => {
    await set("packs.enabled", ["farm"]);
    expect(reason(await run("farm_fields", { size: 1 }, false))).toBe("tool.unknown");
    const outcome = await run("farm_fields", { size: 0, more: 1 });
    expect(outcome).toMatchObject({ ok: false, error: { reason: "tool.bad_args", message: expect.stringMatching(/size/) } });
    expect(seen).toEqual([]);
  });
  test("[PK7] a tool that has no time left is stopped: it sends nothing any more, and its result does not count", async () => {
    await set("packs.enabled", ["farm"]);
    const fetched = vi.spyOn(parts, "fetch");
    const outcome = await run("farm_slow", {});
    expect(outcome).toMatchObject({
      ok: false,
      error: { reason: "tool.timeout", message: expect.stringMatching(/farm_slow.*0\.02 seconds/) },
    });
    await eventually(() => expect(late).toEqual(["fetch refused", "wait refused"]));
    expect(fetched.mock.calls.filter(([, { signal }]) => signal?.aborted !== true)).toEqual([]);
  });
  test("[PK7] an answer that is nested too deeply is a failure with a reason", async () => {
    await set("packs.enabled", ["farm"]);
    expect(reason(await run("farm_deep", { levels: 64 }))).toBe("ok");
    expect(reason(await run("farm_deep", { levels: 65 }))).toBe("pack.rejected");
  });
  test("[PK2] an agent of one that is off is refused with the name of the pack", async () => {
    for (const [method, params] of [
      ["agents.get", { agentId: "farmer" }],
      ["job.submit", { task: { agent_name: "farmer", instructions: "Look." } }],
    ] as const) {
      const { reason: why, hint } = await owner.refused(method, params);
      expect([why, hint]).toEqual(["agent.unknown", expect.stringMatching(/^The pack farm is off\. Turn it on: `gsv config set/)]);
    }
  });
  test("[PK4] [PK8] its events go over its own queue to its handler, once; while it is off they are dead letters", async () => {
    await set("packs.enabled", ["farm"]);
    const emit = async (field: string, topic = "farm_actions"): Promise<string> => {
      const emitted = await tools.run(
        "emit_event",
        { topic, payload: { field } },
        {
          identity: { key: "agent:farmer:main", ref: "ref", agentId: "farmer", isOwnersSession: true },
          callId: field,
          runId: "r1",
          now: Date.now(),
          userTimezone: "UTC",
          gateway: port(),
        },
      );
      if (!emitted.ok) throw new Error(emitted.error.message);
      return (emitted.result as { id: string }).id;
    };
    const deliver = async (body: unknown) => {
      const batch = createMessageBatch("farm-actions", [{ id: "m", timestamp: Date.now(), attempts: 1, body }]);
      const ctx = createExecutionContext();
      await worker.queue(batch, env, ctx);
      return (await getQueueResult(batch, ctx)).explicitAcks.length;
    };
    const show = async (id: string) => (await owner.ok<{ event: DomainEvent }>("events.show", { id })).event;
    const first = await emit("north");
    expect(sent.map(([queue, { topic }]) => [queue, topic])).toEqual([["farm-actions", "farm_actions"]]);
    expect([await deliver(sent[0]?.[1]), await deliver(sent[0]?.[1])]).toEqual([1, 1]);
    expect(handled).toEqual([`north ${first}`]);
    expect((await show(first)).status).toBe("done");
    const second = await emit("south");
    await set("packs.enabled", []);
    await deliver(sent[1]?.[1]);
    expect(await show(second)).toMatchObject({
      status: "dead",
      reason: "There is no topic farm_actions. The pack farm is off. Turn it on: `gsv config set packs.enabled '[\"farm\"]'`.",
    });
    expect((await owner.refused("events.replay", { id: second })).message).toMatch(/The pack farm is off\. Turn it on/);
    await set("packs.enabled", ["farm"]);
    await owner.ok("events.replay", { id: second });
    await deliver(sent[2]?.[1]);
    expect(handled).toEqual([`north ${first}`, `south ${second}`]);
    // What waits for the owner's word goes on waiting.
    const third = await emit("west", "farm_sales");
    await deliver(sent[3]?.[1]);
    await set("packs.enabled", []);
    const approve = { id: third, decision: "approve" };
    expect(await owner.refused("events.resolve", approve)).toMatchObject({
      reason: "event.wrong_state",
      message: expect.stringMatching(/The pack farm is off\. Turn it on/),
    });
    expect((await show(third)).status).toBe("waiting_approval");
    await set("packs.enabled", ["farm"]);
    await owner.ok("events.resolve", approve);
    await deliver(sent[4]?.[1]);
    expect(handled.at(-1)).toBe("sold west");
  });
});
