/** `model.test`: one cheap call of the model that answers, for `gsv doctor`. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createModelClient } from "../../../src/models/model-client.ts";
import { parts } from "../../../src/app/compose.ts";
import { providerInfo } from "../../../src/models/catalog.ts";
import type { ModelClient, ModelOutcome, ModelRequest } from "../../../src/ports/model.ts";
import type { ErrorReason } from "../../../../protocol/gen/errors.ts";
import type { AuditEntry, UsageGetResult } from "../../../../protocol/gen/types.ts";
import { client, fakeSessions, type Peer, seed, eventually } from "../../support/gateway.ts";

const USAGE = { input: 5, output: 1, total: 6 };
const requests: ModelRequest[] = [];
let outcome: ModelOutcome;
/** Runs while the model is called. */
let meanwhile: (request: ModelRequest) => Promise<void>;
let refusal: ModelClient["refusal"];
let admin: Peer;
beforeEach(async () => {
  await reset();
  requests.length = 0;
  meanwhile = () => Promise.resolve();
  refusal = () => undefined;
  // Before the first call of the gateway, which is composed then.
  vi.spyOn(parts, "model").mockReturnValue({
    takesImages: () => false,
    refusal: (...asked) => refusal(...asked),
    call: async (request) => {
      requests.push(request);
      await meanwhile(request);
      return outcome;
    },
  });
  fakeSessions();
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

test("[F5] a key that the provider refuses is a failure with the provider's reason, not an ok", async () => {
  outcome = { kind: "failed", error: { reason: "model.auth", message: "Anthropic refused the key (401)." }, retryable: false };
  await admin.ok("config.set", { path: "model.provider", value: "anthropic" });
  await admin.ok("config.set", { path: "apiKeys.anthropic", value: "sk-ant-wrong-0123456789" });
  expect(await admin.refused("model.test", {})).toMatchObject({ reason: "model.auth", message: "Anthropic refused the key (401)." });
});

test("[F5] an answer names the model that gave it; the call is one, small, without tools, with the provider's key only", async () => {
  outcome = {
    kind: "replied",
    calls: [],
    usage: USAGE,
    message: {
      role: "assistant",
      content: [{ type: "text", text: "ok" }],
      api: "a",
      provider: "anthropic",
      model: "m",
      usage: USAGE,
      stopReason: "stop",
      timestamp: 0,
    },
  };
  await admin.ok("config.set", { path: "model.provider", value: "anthropic" });
  await admin.ok("config.set", { path: "apiKeys.anthropic", value: "sk-ant-right-0123456789" });
  await admin.ok("config.set", { path: "apiKeys.openai", value: "sk-other" });
  const id = providerInfo("anthropic")?.defaultModel;
  expect(await admin.ok("model.test", {})).toMatchObject({ model: { provider: "anthropic", id } });
  expect(requests).toHaveLength(1);
  expect(requests[0]).toMatchObject({
    model: { provider: "anthropic", id },
    tools: [],
    access: { apiKeys: { anthropic: expect.anything() } },
  });
  expect(Object.keys(requests[0]?.access.apiKeys ?? {})).toEqual(["anthropic"]);
  expect(requests[0]?.maxTokens).toBeLessThanOrEqual(256);
});

test("[F5] a key is tested before it is stored: the call has it, and afterwards no call has", async () => {
  outcome = { kind: "failed", error: { reason: "model.auth", message: "refused" }, retryable: false };
  const model = { provider: "anthropic", id: "demo" };
  await admin.ok("config.set", { path: "apiKeys.anthropic", value: "sk-ant-stored-0123456789" });
  expect(await admin.refused("model.test", { model, apiKey: "sk-ant-new-0123456789" })).toMatchObject({ reason: "model.auth" });
  await admin.refused("model.test", { model });
  expect(requests.map(({ access }) => access.apiKeys)).toEqual([
    { anthropic: "sk-ant-new-0123456789" },
    { anthropic: "sk-ant-stored-0123456789" },
  ]);
});

test("[F5] the default agent's own model is tested; a model that was reached and said nothing of use counts as reached", async () => {
  outcome = { kind: "failed", error: { reason: "model.bad_answer", message: "It used up its tokens." }, retryable: false, usage: USAGE };
  await admin.ok("config.set", { path: "agents.list", value: [{ id: "main", model: { provider: "openai", id: "gpt-5.4-mini" } }] });
  expect(await admin.ok("model.test", {})).toMatchObject({ model: { provider: "openai", id: "gpt-5.4-mini" } });
  expect(await admin.ok("model.test", { model: { provider: "groq", id: "x" } })).toMatchObject({ model: { provider: "groq", id: "x" } });
});

test("[F6] providers and their models are listed with what is known of them, and a misspelt provider with the nearest name", async () => {
  await admin.ok("config.set", { path: "apiKeys.openai", value: "sk-0123456789" });
  await admin.ok("config.set", { path: "providers.lab", value: { baseUrl: "http://127.0.0.1:1/v1", wire: "openai-completions" } });
  const { providers } = await admin.ok<{ providers: { provider: string; ready: boolean }[] }>("models.list", {});
  const ready = providers.filter((entry) => entry.ready).map(({ provider }) => provider);
  expect(ready).toEqual(["openai", "ollama", "lmstudio", "llamacpp", "lab"]);
  expect(providers.map(({ provider }) => provider)).toEqual(expect.arrayContaining(["anthropic", "amazon-bedrock", "google-vertex"]));
  expect(providers.map(({ provider }) => provider)).not.toContain("openai-codex");
  const { models } = await admin.ok<{ models: { id: string }[] }>("models.list", { provider: "openai" });
  expect(models.find(({ id }) => id === "gpt-5.4-mini")).toEqual({
    id: "gpt-5.4-mini",
    contextWindow: 400_000,
    maxTokens: 128_000,
    images: true,
    thinking: true,
    price: { input: 0.75, output: 4.5, cacheRead: 0.075, cacheWrite: 0 },
  });
  expect(await admin.ok("models.list", { provider: "ollama" })).toEqual({ models: [] });
  expect(await admin.ok("models.list", { provider: "demo" })).toMatchObject({ models: [{ id: "demo", price: { input: 0, output: 0 } }] });
  expect(await admin.refused("models.list", { provider: "opnai" })).toMatchObject({
    reason: "model.unknown",
    message: expect.stringContaining("Did you mean openai?"),
  });
});

test("[R6] a model that the demo does not have is not tested", async () => {
  const said = await admin.refused("model.test", { model: { provider: "demo", id: "nope" } });
  expect(said).toMatchObject({
    reason: "model.unknown",
    message: 'The provider demo has no model "nope".',
    hint: "Its only model is `demo/demo`.",
  });
  expect(requests).toEqual([]);
  outcome = replied({});
  expect(await admin.ok("model.test", { model: { provider: "demo", id: "demo" } })).toMatchObject({ model: { id: "demo" } });
});

test("[R6] the configured model without its key: the hint ends with the demo model; that of another model does not", async () => {
  const error = { reason: "model.not_configured", message: "No key is set.", hint: "Run `gsv config set apiKeys.p -`." } as const;
  outcome = { kind: "failed", error, retryable: false };
  expect((await admin.refused("model.test", {})).hint).toBe(
    "Run `gsv config set apiKeys.p -`, or use the built-in demo model: `gsv config set model.provider demo`.",
  );
  expect((await admin.refused("model.test", { model: CLAUDE })).hint).toBe("Run `gsv config set apiKeys.p -`.");
});

test("a key with a character that no key has is refused before the model is called, without the key", async () => {
  const said = await admin.refused("model.test", { apiKey: "\u201csk-ant-new-0123456789\u201d" });
  expect(said).toMatchObject({ reason: "model.auth", message: expect.stringContaining("a typographic quotation mark") });
  expect(JSON.stringify(said)).not.toContain("0123456789");
  expect(requests).toEqual([]);
});

const CLAUDE = { provider: "anthropic", id: "claude-haiku-4-5" };
const usage = () => admin.ok<UsageGetResult>("usage.get", { by: "model", days: 1 });
const replied = (used: object): ModelOutcome => ({
  kind: "replied",
  calls: [],
  usage: { ...USAGE, ...used },
  message: { role: "assistant", content: [], api: "a", provider: "p", model: "m", usage: USAGE, stopReason: "stop", timestamp: 0 },
});
const failed = (reason: ErrorReason): ModelOutcome => ({
  kind: "failed",
  error: { reason, message: "No." },
  retryable: false,
});

test("[SP11] the call is in the usage with what the provider counted; a refused key counts nothing, one without an answer its worst cost", async () => {
  outcome = replied({ costUsd: 0.005 });
  await admin.ok("model.test", { model: CLAUDE });
  const counted = { key: "anthropic/claude-haiku-4-5", calls: 1, input: 5, output: 1, costUsd: expect.closeTo(0.005, 9) };
  expect((await usage()).rows).toMatchObject([counted]);
  outcome = failed("model.auth");
  await admin.refused("model.test", { model: CLAUDE, apiKey: "sk-ant-other-0123456789" });
  expect((await usage()).rows).toMatchObject([{ ...counted, calls: 2 }]);
  outcome = failed("model.timeout");
  await admin.refused("model.test", { model: CLAUDE });
  const worst = (await usage()).rows[0]?.costUsd ?? 0;
  expect(worst).toBeGreaterThan(0.006);
  expect(worst).toBeLessThan(0.015);
  outcome = replied({});
  await admin.ok("config.set", { path: "providers.lab", value: { baseUrl: "http://127.0.0.1:1/v1", wire: "openai-completions" } });
  await admin.ok("model.test", { model: { provider: "lab", id: "small" } });
  await admin.ok("model.test", { model: { provider: "demo", id: "demo" } });
  const { rows } = await admin.ok<UsageGetResult>("usage.get", { by: "session", days: 1 });
  expect(rows).toMatchObject([{ key: "gateway", calls: 4, unpricedTokens: 6 }]);
});

test("[SP12] of an absurd count of the provider no more is believed than the call can have used", async () => {
  outcome = replied({ input: 1e9, total: 1e9, costUsd: 1000 });
  await admin.ok("model.test", { model: CLAUDE });
  const [row] = (await usage()).rows;
  expect(row?.costUsd).toBeGreaterThan(0.005);
  expect(row?.costUsd).toBeLessThan(0.01);
  expect(row?.input).toBeLessThan(5_000);
});

test("[P10] [SP11] what to do is the hint: for a key, for a key's characters and for a provider that there is not", async () => {
  refusal = createModelClient().refusal;
  const refused = (provider: string, apiKey?: string) =>
    admin.refused("model.test", { model: { provider, id: "m" }, ...(apiKey === undefined ? {} : { apiKey }) });
  expect(await refused("openai")).toMatchObject({
    reason: "model.not_configured",
    message: "No key is set for OpenAI.",
    hint: "Run `gsv config set apiKeys.openai -`.",
  });
  expect(await refused("openai", "\u201csk\u201d")).toMatchObject({
    reason: "model.auth",
    message: "The model was not called: the key contains a typographic quotation mark, which no key has.",
    hint: "Copy the key again from the provider's page.",
  });
  expect(await refused("opnai")).toMatchObject({
    reason: "model.unknown",
    message: 'Unknown provider "opnai".',
    hint: expect.stringMatching(/^List the providers: `gsv provider list`\. For your own server: `gsv config set providers\.opnai /),
  });
  // [SP11] None of these got as far as a call, so none is counted as one.
  expect([requests, (await usage()).rows]).toEqual([[], []]);
});

test("[SP11] the cost is set aside before the call, and one that does not fit a limit is not made", async () => {
  outcome = replied({ costUsd: 0.001 });
  await admin.ok("config.set", { path: "limits.dayCostUsd", value: 0.001 });
  expect(await admin.refused("model.test", { model: CLAUDE })).toMatchObject({
    reason: "budget.day",
    hint: expect.stringContaining("`gsv config set limits.dayCostUsd "),
  });
  expect([requests, (await usage()).rows]).toEqual([[], []]);
  await admin.ok("config.set", { path: "limits.dayCostUsd", value: 0.0025 });
  await admin.ok("model.test", { model: CLAUDE });
  await admin.ok("model.test", { model: CLAUDE });
  expect(await admin.refused("model.test", { model: CLAUDE })).toMatchObject({ reason: "budget.day" });
  expect(requests).toHaveLength(2);
});

test("[SP11] [ST6] while everything is stopped no model is called, not even the demo or with another key", async () => {
  outcome = replied({});
  await admin.ok("gateway.stop", {});
  for (const params of [{}, { model: CLAUDE }, { model: CLAUDE, apiKey: "sk-ant-other-0123456789" }])
    expect(await admin.refused("model.test", params)).toMatchObject({ reason: "gateway.stopped" });
  expect(requests).toEqual([]);
  await admin.ok("gateway.resume", {});
  expect(await admin.ok("model.test", { model: CLAUDE })).toMatchObject({ model: CLAUDE });
});

test("[SP11] a call that is cut off after the provider has counted a part counts its worst cost and is a failure", async () => {
  const part = { ...USAGE, costUsd: 0.000001 };
  for (const reason of ["model.timeout", "model.bad_answer"] as const) {
    outcome = { kind: "failed", error: { reason, message: "It broke off." }, retryable: true, usage: part };
    expect(await admin.refused("model.test", { model: CLAUDE })).toMatchObject({ reason });
  }
  const { rows } = await usage();
  expect(rows).toMatchObject([{ calls: 2 }]);
  expect(rows[0]?.costUsd).toBeGreaterThan(0.002);
});

test("[SP11] a call of which text has arrived, or whose connection was lost, counts its worst cost whatever ended it", async () => {
  meanwhile = async ({ onText }) => onText("o");
  outcome = failed("model.overloaded");
  await admin.refused("model.test", { model: CLAUDE });
  meanwhile = () => Promise.resolve();
  outcome = failed("model.unreachable");
  await admin.refused("model.test", { model: CLAUDE });
  const before = (await usage()).rows[0]?.costUsd ?? 0;
  expect(before).toBeGreaterThan(0.002);
  outcome = failed("model.overloaded");
  await admin.refused("model.test", { model: CLAUDE });
  expect((await usage()).rows).toMatchObject([{ calls: 3, costUsd: expect.closeTo(before, 9) }]);
});

test("[SP11] [ST6] a stop aborts a call that has begun", async () => {
  meanwhile = ({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  outcome = failed("model.unreachable");
  const refused = admin.refused("model.test", { model: CLAUDE });
  await eventually(() => expect(requests).toHaveLength(1));
  await admin.ok("gateway.stop", {});
  expect(await refused).toMatchObject({ reason: "gateway.stopped" });
});

test("[SP11] at most four calls are open at once", async () => {
  let isHeld = true;
  meanwhile = async () => {
    while (isHeld) await scheduler.wait(2);
  };
  outcome = replied({ costUsd: 0.001 });
  const four = Array.from({ length: 4 }, () => admin.ok("model.test", { model: CLAUDE }));
  await eventually(() => expect(requests).toHaveLength(4));
  expect(await admin.refused("model.test", { model: CLAUDE })).toMatchObject({ reason: "limit.rate" });
  isHeld = false;
  expect(await Promise.all(four)).toHaveLength(4);
  await admin.ok("model.test", { model: CLAUDE });
});

test("[SP11] a key that was pasted as a model's id is in neither usage nor audit", async () => {
  const stored = "sk-ant-stored-0123456789";
  await admin.ok("config.set", { path: "apiKeys.anthropic", value: stored });
  outcome = failed("model.auth");
  for (const id of [stored, "sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"])
    await admin.refused("model.test", { model: { provider: "anthropic", id } });
  const page = await admin.ok<{ entries: AuditEntry[] }>("audit.list", { action: "model.test" });
  const text = JSON.stringify([await usage(), page]);
  expect(page.entries).toHaveLength(2);
  expect(text).not.toMatch(/0123456789/);
});

test("[SP11] each call has its entry in the audit before it begins, without the key; a refused one says why", async () => {
  const entries = async (): Promise<AuditEntry[]> =>
    (await admin.ok<{ entries: AuditEntry[] }>("audit.list", { action: "model.test" })).entries;
  // The call never returns.
  meanwhile = () => Promise.reject(new Error("lost"));
  expect(await admin.refused("model.test", { model: CLAUDE, apiKey: "sk-ant-other-0123456789" })).toMatchObject({ reason: "internal" });
  const allowed = { target: "anthropic/claude-haiku-4-5", decision: "allowed" };
  expect(await entries()).toMatchObject([allowed]);
  await admin.ok("gateway.stop", {});
  await admin.refused("model.test", { model: CLAUDE });
  const all = await entries();
  expect(all).toMatchObject([{ target: "anthropic/claude-haiku-4-5", decision: "denied", detail: "gateway.stopped" }, allowed]);
  expect(JSON.stringify(all)).not.toContain("0123456789");
});
