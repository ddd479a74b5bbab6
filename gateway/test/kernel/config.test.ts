import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { checkGsvConfig } from "../../../protocol/gen/validators/checks.js";
import { client, fakeSessions, gateway, node, type Peer, port, seed, token } from "../support/gateway.ts";
import { evict } from "../support/evict.ts";

const SECRET = "sk-ant-canary-0123456789";
let admin: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("[S5][A2][X3] secrets are write-only", () => {
  beforeEach(async () => {
    await admin.ok("config.set", { path: "apiKeys.anthropic", value: SECRET });
    await admin.ok("config.set", { path: "model.headers", value: { "X-Key": `${SECRET}-header` } });
    await admin.ok("config.set", { path: "systemPrompt", value: `never say ${SECRET} aloud` });
  });

  test("config.get masks them, by path and by value", async () => {
    const texts = [
      await admin.call("config.get"),
      await admin.call("config.get", { path: "apiKeys" }),
      await admin.call("config.get", { path: "apiKeys.anthropic" }),
      await admin.call("config.get", { path: "model" }),
      await admin.call("config.get", { path: "systemPrompt" }),
      await gateway().configGet(undefined),
      await gateway().configGet("apiKeys.anthropic"),
    ].map((answer) => JSON.stringify(answer));
    for (const text of texts) {
      expect(text).toContain("[redacted]");
      expect(text).not.toContain(SECRET);
    }
  });

  test("a run's context contains no secrets; only a model call gets its key", async () => {
    const context = await port().runContext("agent:main:main", undefined);
    expect(context).not.toBeNull();
    expect(JSON.stringify(context)).not.toContain(SECRET);
    expect(context?.config.apiKeys).toEqual({});
    expect(await gateway().modelAccess(["anthropic"])).toEqual({
      apiKeys: { anthropic: SECRET },
      headers: { "X-Key": `${SECRET}-header` },
    });
    expect((await gateway().modelAccess(["openai"]))?.apiKeys).toEqual({});
  });

  test("[S17][A4] the log hides their values, even right after a wake", async () => {
    const lines: string[] = [];
    for (const level of ["warn", "error"] as const) vi.spyOn(console, level).mockImplementation((line: string) => void lines.push(line));
    await evict(gateway(), { webSockets: "hibernate" });
    vi.restoreAllMocks();
    for (const level of ["warn", "error"] as const) vi.spyOn(console, level).mockImplementation((line: string) => void lines.push(line));
    fakeSessions(() => ({
      send: async () => {
        throw new Error(`refused with key ${SECRET}`);
      },
    }));
    expect((await admin.refused("chat.send", { sessionKey: "main", message: "hi" })).reason).toBe("internal");
    expect(lines.join("\n")).toContain("session_call_failed");
    expect(lines.join("\n")).not.toContain(SECRET);
  });

  test("a mask that an editor sends back changes nothing; a mask for an unset value is refused", async () => {
    const { config } = await admin.ok<{ config: { apiKeys: Record<string, string> } }>("config.get");
    await admin.ok("config.set", { path: "apiKeys", value: { ...config.apiKeys, openai: "sk-other-key" } });
    expect((await gateway().modelAccess(["anthropic", "openai"]))?.apiKeys).toEqual({ anthropic: SECRET, openai: "sk-other-key" });
    expect((await admin.refused("config.set", { path: "apiKeys.google", value: "[redacted]" })).reason).toBe("config.invalid");
  });
});

describe("[X4][A3][W20] names with a meaning in JavaScript", () => {
  const NAMES = ["__proto__", "constructor", "prototype"];
  test.each([
    "__proto__.polluted",
    "constructor.prototype.polluted",
    "model.__proto__.polluted",
    "apiKeys.__proto__",
    "apiKeys.constructor",
    'apiKeys["__proto__"]',
    "session.identityLinks.prototype",
  ])("%s is no setting", async (path) => {
    expect((await admin.refused("config.set", { path, value: "yes" })).reason).toBe("config.unknown_path");
    expect((await admin.refused("config.get", { path })).reason).toBe("config.unknown_path");
    expect((await admin.refused("config.unset", { path })).reason).toBe("config.unknown_path");
    expect((await admin.refused("config.get", { path: "model.polluted" })).reason).toBe("config.unknown_path");
    await runInDurableObject(gateway(), () => {
      expect(Reflect.get({}, "polluted")).toBeUndefined();
    });
  });

  test("inside a value they are refused as well", async () => {
    for (const name of NAMES) {
      admin.send(`{"type":"req","id":"${name}","method":"config.set","params":{"path":"apiKeys","value":{"${name}":"yes"}}}`);
      expect(await admin.answer(name)).toMatchObject({ ok: false, error: { reason: "config.unknown_path" } });
    }
    admin.send(
      '{"type":"req","id":"deep","method":"config.set","params":{"path":"toolApproval.rules","value":[{"id":"a","tool":"x","decision":"ask","when":[{"path":"p","op":"equals","value":{"__proto__":{"polluted":"yes"}}}]}]}}',
    );
    expect(await admin.answer("deep")).toMatchObject({ ok: false });
    await runInDurableObject(gateway(), () => {
      expect(Reflect.get({}, "polluted")).toBeUndefined();
    });
  });

  test("`toString` is an ordinary name", async () => {
    const server = { baseUrl: "http://127.0.0.1:1/v1", wire: "openai-completions" };
    await admin.ok("config.set", { path: "providers.toString", value: server });
    await admin.ok("config.set", { path: "apiKeys.toString", value: "sk-odd-name" });
    expect((await gateway().modelAccess(["toString"]))?.apiKeys).toEqual({ toString: "sk-odd-name" });
    expect((await admin.ok("config.get", { path: "apiKeys.valueOf" }))["value"]).toBeUndefined();
    expect((await admin.refused("config.set", { path: "apiKeys.valueOf", value: "x" })).reason).toBe("config.invalid");
  });
});

describe("paths", () => {
  test.each([
    ["model.providr", "model.provider"],
    ["apiKey.anthropic", "apiKeys.anthropic"],
    ["modle.provider", "model.provider"],
    ["timeouts.toolms", "timeouts.toolMs"],
    ["userTimeZone", "userTimezone"],
    ["session.resetPolicy", "session.defaultResetPolicy"],
    ["fallback", "model.fallbacks"],
  ])("%s: did you mean %s?", async (wrong, right) => {
    const error = await admin.refused("config.set", { path: wrong, value: "x" });
    expect(error.reason).toBe("config.unknown_path");
    expect(error.message).toContain(`Did you mean ${right}?`);
  });

  test("nested values are checked too, and the error says what is allowed", async () => {
    const refused: readonly (readonly [string, unknown, string])[] = [
      ["limits.stepsPerRun", 0, "from 1 to 1000"],
      ["limits.stepsPerRun", "0", "limits.stepsPerRun: expected a whole number from 1 to 1000, got a smaller one."],
      ["limits.stepsPerRun", 1.5, "whole number"],
      ["limits.stepsPerRun", "many", "whole number"],
      ["model.thinkLevel", "extreme", '"none", "minimal", "low"'],
      ["model.baseUrl", "ftp://x", "http://"],
      ["model.fallbacks", [{ provider: "a" }], "model.fallbacks[0].id: missing"],
      ["model.fallbacks", '[{"provider":"a"}]', "model.fallbacks[0].id: missing"],
      ["model.fallbacks", "openai/gpt", "Write lists and objects as JSON."],
      ["model.fallbacks", {}, "list"],
      ["session.mainKey", "", "1 to 64"],
      ["userTimezone", "Mars/Olympus", "time zone"],
      ["model", "gpt", "object"],
      ["agents.list", [{ id: "A B" }], "matches"],
      ["agents.list", [{ id: "a" }, { id: "a" }], "two agents"],
      ["model", { provider: "x", providre: "y" }, "Did you mean model.provider?"],
      ["apiKeys", null, "object"],
    ];
    for (const [path, value, says] of refused) {
      const error = await admin.refused("config.set", { path, value });
      expect(error.reason, path).toMatch(/^config\.(invalid|unknown_path)$/);
      expect(error.message, path).toContain(says);
    }
    expect(await admin.ok("config.get")).toMatchObject({ config: { model: { provider: "demo" } } });
  });

  test("text is parsed as JSON only when the parsed value fits", async () => {
    await admin.ok("config.set", { path: "limits.stepsPerRun", value: "7" });
    await admin.ok("config.set", { path: "compaction.enabled", value: "false" });
    await admin.ok("config.set", { path: "model.fallbacks", value: '[{"provider":"openai","id":"gpt"}]' });
    await admin.ok("config.set", { path: "apiKeys.openai", value: 12345 });
    expect(await admin.ok("config.get")).toMatchObject({
      config: { limits: { stepsPerRun: 7 }, compaction: { enabled: false }, model: { fallbacks: [{ provider: "openai", id: "gpt" }] } },
    });
    expect((await gateway().modelAccess(["openai"]))?.apiKeys).toEqual({ openai: "12345" });
    expect((await admin.refused("config.set", { path: "compaction.enabled", value: "yes" })).reason).toBe("config.invalid");
  });

  test("list positions, names with dots, unset back to the default", async () => {
    await admin.ok("config.set", { path: "agents.list[0].id", value: "work" });
    await admin.ok("config.set", { path: "agents.list.0.default", value: true });
    await admin.ok("config.set", { path: 'session.identityLinks["a.b"]', value: ["+31612345678"] });
    expect((await admin.refused("config.set", { path: "agents.list[7].id", value: "x" })).reason).toBe("config.invalid");
    expect(await admin.ok("config.get", { path: "agents.list[0]" })).toMatchObject({ value: { id: "work", default: true } });
    expect(await admin.ok("config.get", { path: 'session.identityLinks["a.b"]' })).toMatchObject({ value: ["+31612345678"] });
    await admin.ok("config.set", { path: "model.provider", value: "anthropic" });
    expect(await admin.ok("config.unset", { path: "model.provider" })).toMatchObject({ wasSet: true });
    expect(await admin.ok("config.unset", { path: "model.provider" })).toMatchObject({ wasSet: false });
    expect(await admin.ok("config.get", { path: "model.provider" })).toMatchObject({ value: "demo" });
    expect((await admin.refused("config.unset", { path: "agents.list[0].id" })).reason).toBe("config.invalid");
  });

  test("[P19] a configuration that would be too large is refused", async () => {
    for (let at = 0; at < 4; at++)
      await admin.call("config.set", { path: `agents.list[${at}]`, value: { id: `a${at}`, systemPrompt: "x".repeat(60_000) } });
    expect(
      (await admin.refused("config.set", { path: "agents.list[4]", value: { id: "a4", systemPrompt: "x".repeat(60_000) } })).reason,
    ).toBe("config.too_large");
  });
});

describe("a change applies immediately", () => {
  test("the version of a run's context changes only with configuration and machines", async () => {
    const first = await port().runContext("agent:main:main", undefined);
    if (first === null) throw new Error("no context");
    expect(checkGsvConfig(first.config)).toBe(true);
    expect(await port().runContext("agent:main:main", first.version)).toBeNull();
    await admin.ok("config.set", { path: "model.provider", value: "anthropic" });
    const second = await port().runContext("agent:main:main", first.version);
    expect(second?.config.model.provider).toBe("anthropic");
    await admin.ok("config.set", { path: "model.provider", value: "anthropic" });
    expect(await port().runContext("agent:main:main", second?.version)).toBeNull();
    const lap = await node("lap");
    const third = await port().runContext("agent:main:main", second?.version);
    expect(third?.tools.map((tool) => tool.definition.name)).toEqual(["lap__Bash", "lap__Read"]);
    expect(third?.tools[0]).toMatchObject({ target: { kind: "node", nodeId: "lap" }, ledger: true });
    expect(third?.nodes).toMatchObject([{ nodeId: "lap", online: true }]);
    lap.socket.close(1000);
    await admin.event("presence", ({ online }) => online === false);
    const fourth = await port().runContext("agent:main:main", third?.version);
    // [OM1] Its calls may wait for it.
    expect(fourth?.tools).toMatchObject([
      { definition: { name: "lap__Bash" }, isAway: true },
      { definition: { name: "lap__Read" }, isAway: true },
    ]);
    expect(fourth?.nodes).toMatchObject([{ nodeId: "lap", online: false }]);
    await admin.ok("node.forget", { nodeId: "lap" });
    expect((await port().runContext("agent:main:main", fourth?.version))?.nodes).toEqual([]);
  });

  test("the agent of a session is found by its key", async () => {
    await admin.ok("config.set", { path: "agents.list", value: [{ id: "work", systemPrompt: "Work." }] });
    expect((await port().runContext("agent:work:main", undefined))?.agent).toMatchObject({ id: "work", systemPrompt: "Work." });
    expect((await port().runContext("agent:other:main", undefined))?.agent).toEqual({ id: "other" });
  });

  test("it survives a restart of the object", async () => {
    await admin.ok("config.set", { path: "userTimezone", value: "Europe/Amsterdam" });
    await evict(gateway(), { webSockets: "hibernate" });
    expect(await admin.ok("config.get", { path: "userTimezone" })).toMatchObject({ value: "Europe/Amsterdam" });
  });

  test("a read-only client may read but not change", async () => {
    const peer = await client((await token("client")).token);
    await peer.ok("config.get");
    expect((await peer.refused("config.set", { path: "model.provider", value: "x" })).reason).toBe("auth.forbidden");
  });
});

test("[SP3] a limit in dollars warns while the usual model has no price, and so does the choice of such a model", async () => {
  await admin.ok("config.set", { path: "providers.mine", value: { baseUrl: "http://127.0.0.1:9/v1", wire: "openai-completions" } });
  const set = (path: string, value: unknown) => admin.ok<{ warnings?: readonly string[] }>("config.set", { path, value });
  expect(await set("model", { provider: "mine", id: "x" })).not.toHaveProperty("warnings");
  const warning = expect.stringMatching(/^`mine\/x` has no known price, so limits\.dayCostUsd does not limit its calls\./);
  expect((await set("limits.dayCostUsd", 5)).warnings).toEqual([warning]);
  expect((await set("model.id", "x")).warnings).toEqual([warning]);
  expect(await set("limits.dayTokens", 1000)).not.toHaveProperty("warnings");
  expect(await set("model.price", { input: 1, output: 4 })).not.toHaveProperty("warnings");
  expect(await set("limits.dayCostUsd", 6)).not.toHaveProperty("warnings");
});

describe("[CF1] [CF2] the whole configuration", () => {
  type Shown = { config: Record<string, unknown>; version: number };
  const read = (): Promise<Shown> => admin.ok<Shown>("config.get");

  test("is replaced by an edited copy: masked secrets are kept, defaults are not stored, and the audit names the settings", async () => {
    await admin.ok("config.set", { path: "apiKeys.anthropic", value: SECRET });
    const { config, version } = await read();
    const edited = { ...config, userTimezone: "Europe/Berlin", limits: { ...(config["limits"] as object), runCostUsd: 3 } };
    const replaced = await admin.ok("config.replace", { config: edited, version });
    expect(replaced).toEqual({ ok: true, version: version + 1, changed: expect.arrayContaining(["userTimezone", "limits.runCostUsd"]) });
    expect((await gateway().modelAccess(["anthropic"]))?.apiKeys).toEqual({ anthropic: SECRET });
    expect(await admin.ok("config.unset", { path: "limits.dayCostUsd" })).toMatchObject({ wasSet: false });
    await evict(gateway(), { webSockets: "hibernate" });
    expect((await read()).config["userTimezone"]).toBe("Europe/Berlin");
    const { entries } = await admin.ok<{ entries: { target: string; decision: string }[] }>("audit.list", { action: "config.replace" });
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({ decision: "allowed", target: expect.stringMatching(/limits\.runCostUsd/) });
    expect(JSON.stringify(entries)).not.toContain("Berlin");
  });

  test("is unchanged after an error, and after a change in between", async () => {
    const { config, version } = await read();
    const wrong = { ...config, userTimezone: "Europe/Berlin", limits: { runMs: "soon" } };
    const refused = await admin.refused("config.replace", { config: wrong, version });
    expect(refused).toMatchObject({ reason: "config.invalid", message: expect.stringContaining("limits.runMs") });
    expect(await read()).toEqual({ config, version });
    await admin.ok("config.set", { path: "userTimezone", value: "Europe/Paris" });
    const late = await admin.refused("config.replace", { config: { ...config, userTimezone: "Europe/Rome" }, version });
    expect(late).toMatchObject({ reason: "config.changed", code: 514, hint: expect.stringContaining("gsv config edit") });
    expect((await read()).config["userTimezone"]).toBe("Europe/Paris");
  });

  test("[PO6] with a rule that can never apply is refused as a whole", async () => {
    const { config, version } = await read();
    const rules = [{ id: "x", tool: "gsv__Nothing", decision: "deny" }];
    const refused = await admin.refused("config.replace", { config: { ...config, userTimezone: "UTC", toolApproval: { rules } }, version });
    expect(refused.reason).toBe("config.invalid");
  });
});
