import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configWith } from "../../test/models/support.ts";
import { knownProviders, modelInfo } from "./catalog.ts";
import { modelLimits, normalizeBaseUrl, resolveModelId, resolveTarget, takesImages } from "./resolve.ts";

const none = { apiKeys: {}, headers: {} };
const keys = (apiKeys: Record<string, string>, headers: Record<string, string> = {}) => ({ apiKeys, headers });
const get = (
  ref: { provider: string; id: string },
  model: Record<string, unknown> = ref,
  access = keys({ [ref.provider]: "k" }),
  more: Record<string, unknown> = {},
) => resolveTarget(ref, configWith(model, more), access);
const error = (result: ReturnType<typeof resolveTarget>) => {
  assert.ok(!result.ok);
  return result.error;
};
const value = (result: ReturnType<typeof resolveTarget>) => {
  assert.ok(result.ok, JSON.stringify(result));
  return result.value;
};

describe("resolving a model's server", () => {
  it("[P4.2] every known provider resolves, with a usable address", () => {
    const cloud = { cloudflareAccountId: "acc", cloudflareGatewayId: "gate", awsRegion: "eu-west-1", azureResource: "res" };
    for (const provider of knownProviders()) {
      const target = value(get({ provider, id: "some-model" }, undefined, undefined, { cloud }));
      assert.match(target.baseUrl, /^https?:\/\/[a-z0-9.:-]+(\/[A-Za-z0-9._/-]*)?$/, provider);
    }
  });
  it("[P4.4] a missing key names the exact command", () => {
    const { reason, hint } = error(get({ provider: "openai", id: "gpt-4.1" }, undefined, none));
    assert.equal(reason, "model.not_configured");
    assert.match(hint ?? "", /`gsv config set apiKeys\.openai -`/);
  });
  it("[P5.6] image support comes from the settings first, then from the table", () => {
    const own = { provider: "custom", id: "m", baseUrl: "http://127.0.0.1:8080" };
    const ref = { provider: "custom", id: "m" };
    const sees = (model: Record<string, unknown>, more: Record<string, unknown> = {}): boolean => takesImages(ref, configWith(model, more));
    assert.equal(sees(own), false);
    assert.equal(sees({ ...own, images: true }), true);
    const providers = { custom: { baseUrl: "http://127.0.0.1:8080", wire: "openai-completions", images: true } };
    assert.equal(sees({ provider: "demo", id: "demo" }, { providers }), true);
    const claude = { provider: "anthropic", id: "claude-sonnet-4-5" };
    assert.equal(takesImages(claude, configWith(claude)), true);
    assert.equal(takesImages(claude, configWith({ ...claude, images: false })), false);
  });
  it("a custom server needs no key and gets none", () => {
    const target = value(get({ provider: "custom", id: "m" }, { provider: "custom", id: "m", baseUrl: "http://127.0.0.1:8080" }, none));
    assert.deepEqual([target.wire, target.baseUrl, target.apiKey], ["openai-completions", "http://127.0.0.1:8080/v1", undefined]);
    assert.equal(value(get({ provider: "ollama", id: "qwen3" }, undefined, none)).baseUrl, "http://127.0.0.1:11434/v1");
  });
  it("resolves a custom provider by its name", () => {
    const providers = {
      lab: {
        baseUrl: "https://lab.example/anthropic/v1/",
        wire: "anthropic-messages",
        contextWindow: 5000,
        price: { input: 1, output: 2 },
      },
    };
    const target = value(get({ provider: "lab", id: "m" }, { provider: "demo", id: "demo" }, none, { providers }));
    assert.deepEqual(
      [target.wire, target.baseUrl, target.info.contextWindow, target.info.price],
      ["anthropic-messages", "https://lab.example/anthropic", 5000, { input: 1, output: 2 }],
    );
  });
  it("an own address of a known provider speaks what such servers speak, a cloud's own address its own wire", () => {
    const wire = (provider: string): string =>
      value(get({ provider, id: "m" }, { provider, id: "m", baseUrl: "https://lab.example/v1" }, none)).wire;
    for (const provider of ["openai", "mistral", "google", "custom", "groq"]) assert.equal(wire(provider), "openai-completions", provider);
    assert.equal(wire("anthropic"), "anthropic-messages");
    assert.equal(wire("google-vertex"), "google-vertex");
    assert.equal(wire("azure-openai-responses"), "azure-openai-responses");
  });
  it("the demo costs nothing, takes every file, and has a wide window", () => {
    const demo = { provider: "demo", id: "demo" };
    assert.deepEqual(modelLimits(demo, configWith({})), {
      contextWindow: 1_000_000,
      maxTokens: 100_000,
      price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    });
    assert.equal(takesImages(demo, configWith({})), true);
  });
  it("[S5] headers are only sent to the provider that they were set for", () => {
    const access = keys({ openai: "k", groq: "g" }, { "x-secret": "s" });
    assert.deepEqual(value(get({ provider: "openai", id: "m" }, { provider: "openai", id: "m" }, access)).headers, { "x-secret": "s" });
    assert.deepEqual(value(get({ provider: "groq", id: "m" }, { provider: "openai", id: "m" }, access)).headers, {});
  });
  it("a key in a header is enough", () => {
    value(get({ provider: "openai", id: "m" }, undefined, keys({}, { Authorization: "Bearer x" })));
  });
  it("a provider that is not built in gets advice what to use instead", () => {
    for (const provider of ["openai-codex", "github-copilot", "radius"]) {
      const { reason, message, hint } = error(get({ provider, id: "m" }));
      assert.equal(reason, "model.unknown");
      assert.match(message, /is not built in\. It needs .*login.*\.$/);
      assert.match(hint ?? "", /^Use /);
      assert.ok(!knownProviders().includes(provider));
    }
  });
  it("[P4.2] a cloud's address is made of the account, region, resource or project", () => {
    const address = (provider: string, cloud: object, key = "k") =>
      value(get({ provider, id: "m" }, undefined, keys({ [provider]: key }), { cloud })).baseUrl;
    assert.equal(address("amazon-bedrock", {}), "https://bedrock-runtime.us-east-1.amazonaws.com");
    assert.equal(address("amazon-bedrock", { awsRegion: "eu-west-1" }), "https://bedrock-runtime.eu-west-1.amazonaws.com");
    assert.equal(address("azure-openai-responses", { azureResource: "mine" }), "https://mine.openai.azure.com/openai/v1");
    assert.equal(address("google-vertex", {}), "https://aiplatform.googleapis.com/v1/publishers/google");
    const file = JSON.stringify({ client_email: "a@b", private_key: "p", project_id: "proj" });
    assert.equal(
      address("google-vertex", { vertexLocation: "europe-west4" }, file),
      "https://europe-west4-aiplatform.googleapis.com/v1/projects/proj/locations/europe-west4/publishers/google",
    );
    assert.equal(
      address("google-vertex", { vertexProject: "other" }, file),
      "https://aiplatform.googleapis.com/v1/projects/other/locations/global/publishers/google",
    );
    assert.equal(
      address("cloudflare-workers-ai", { cloudflareAccountId: "acc" }),
      "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1",
    );
  });
  it("[F6] a cloud without its account says which setting to set, with its command", () => {
    for (const [provider, setting] of [
      ["cloudflare-workers-ai", "cloudflareAccountId"],
      ["cloudflare-ai-gateway", "cloudflareAccountId"],
      ["azure-openai-responses", "azureResource"],
    ] as const) {
      const { reason, hint = "" } = error(get({ provider, id: "m" }));
      assert.equal(reason, "model.not_configured");
      assert.ok(hint.includes(`\`gsv config set cloud.${setting} VALUE\``), hint);
      assert.ok(hint.includes(`\`gsv config set apiKeys.${provider} -\``), hint);
    }
  });
  it("[P4.2] Workers AI needs neither account nor key where it is bound, and both elsewhere", () => {
    const ref = { provider: "cloudflare-workers-ai", id: "@cf/openai/gpt-oss-20b" };
    const bound = resolveTarget(ref, configWith(ref), none, { workersAi: true });
    assert.equal(value(bound).bound, true);
    assert.match(error(resolveTarget(ref, configWith(ref), none)).hint ?? "", /cloud\.cloudflareAccountId.*apiKeys\.cloudflare-workers-ai/);
    const own = resolveTarget(ref, configWith(ref, { cloud: { cloudflareAccountId: "acc" } }), keys({ [ref.provider]: "t" }), {
      workersAi: true,
    });
    assert.deepEqual([value(own).bound, value(own).apiKey], [undefined, "t"], "a key of one's own is used");
  });
  it("names from Object.prototype are unknown providers", () => {
    for (const provider of ["no-such-provider", "constructor", "__proto__", "toString"])
      assert.equal(error(get({ provider, id: "m" }, { provider: "demo", id: "demo" }, none)).reason, "model.unknown", provider);
  });
  it("[F48] a model without its provider is told how both are named", () => {
    const { reason, message, hint } = error(get({ provider: "claude-sonnet-5", id: "demo" }, undefined, none));
    assert.equal(reason, "model.unknown");
    assert.equal(message, '"claude-sonnet-5" is a model of anthropic, and not a provider.');
    assert.equal(hint, "Name both: `gsv model use anthropic/claude-sonnet-5`.");
    assert.match(error(get({ provider: "no-such-model", id: "demo" }, undefined, none)).message, /^Unknown provider/);
  });
  it("a provider without a configured model gets its default model", () => {
    assert.equal(value(get({ provider: "anthropic", id: "demo" })).id, "claude-sonnet-5");
    assert.equal(resolveModelId({ provider: "openai", id: "demo" }), "gpt-5.4-mini");
    assert.equal(resolveModelId({ provider: "demo", id: "stored-by-an-earlier-version" }), "demo");
    assert.match(error(get({ provider: "nvidia", id: "demo" })).hint ?? "", /gsv config set model\.id/);
  });
  it("[F48] Ollama without a model says how to get one and how to set it", () => {
    const { reason, message, hint } = error(get({ provider: "ollama", id: "demo" }, undefined, none));
    assert.equal(reason, "model.not_configured");
    assert.equal(message, "No model is set for Ollama.");
    assert.match(hint ?? "", /`ollama list`.*`ollama pull \w+`.*`gsv config set model\.id ID`/);
  });
  it("a subscription's login token is refused before it is sent anywhere", () => {
    assert.equal(
      error(get({ provider: "anthropic", id: "claude-sonnet-5" }, undefined, keys({ anthropic: "sk-ant-oat01-abc" }))).reason,
      "model.auth",
    );
  });
  it("normalises addresses", () => {
    assert.equal(normalizeBaseUrl("http://h:1", "openai-completions"), "http://h:1/v1");
    assert.equal(normalizeBaseUrl("http://h:1/v1/", "openai-completions"), "http://h:1/v1");
    assert.equal(normalizeBaseUrl("https://h/v1", "anthropic-messages"), "https://h");
    for (const bad of ["nonsense", "ftp://h", "http://user:pass@h", "http://h/?key=1", "http://h/#x"])
      assert.equal(normalizeBaseUrl(bad, "openai-completions"), undefined, bad);
  });
});

describe("a model's limits and features", () => {
  it("limits come from the settings first, then from the table, then from safe defaults", () => {
    assert.deepEqual(modelLimits({ provider: "openai", id: "gpt-4o" }, configWith({ provider: "openai", id: "gpt-4o" })), {
      contextWindow: 128_000,
      maxTokens: 16_384,
      price: { input: 2.5, output: 10, cacheRead: 1.25, cacheWrite: 0 },
    });
    assert.equal(
      modelLimits({ provider: "openai", id: "gpt-4o" }, configWith({ provider: "openai", id: "gpt-4o", contextWindow: 9000 }))
        .contextWindow,
      9000,
    );
    assert.equal(
      modelLimits({ provider: "groq", id: "gpt-4o" }, configWith({ provider: "openai", id: "gpt-4o", contextWindow: 9000 })).contextWindow,
      128_000,
      "settings of the main model don't apply to a fallback",
    );
    assert.deepEqual(modelLimits({ provider: "no-such-provider", id: "x" }, configWith({})), { contextWindow: 128_000, maxTokens: 8192 });
  });
  it("dated snapshots have the properties of their model", () => {
    assert.deepEqual(
      modelInfo("anthropic", "claude-haiku-4-5-20251001", "anthropic-messages"),
      modelInfo("anthropic", "claude-haiku-4-5", "anthropic-messages"),
    );
    assert.equal(modelInfo("openai", "gpt-4o-2024-11-20", "openai-completions").maxTokens, 16_384);
  });
  it("[R7] a window that needs a beta header is not assumed", () => {
    for (const id of ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929"])
      assert.equal(modelInfo("anthropic", id, "anthropic-messages").contextWindow, 200_000);
    assert.equal(modelInfo("anthropic", "claude-sonnet-4-6", "anthropic-messages").contextWindow, 1_000_000);
  });
  it("a model's price tiers are above its price, and most models have none", () => {
    const { price, priceTiers } = modelInfo("openai", "gpt-5.6-sol", "openai-responses");
    assert.deepEqual(price, { input: 4, output: 20, cacheRead: 0.4, cacheWrite: 5 });
    assert.deepEqual(priceTiers, [{ inputTokensAbove: 272_000, input: 8, output: 30, cacheRead: 0.8, cacheWrite: 10 }]);
    assert.equal(modelInfo("anthropic", "claude-haiku-4-5", "anthropic-messages").priceTiers, undefined);
  });
  it("Claude's thinking mode follows its version, for ids that are newer than the table", () => {
    const thinking = (id: string) => modelInfo("anthropic", id, "anthropic-messages").thinking;
    assert.deepEqual(
      [
        "claude-3-5-haiku-20241022",
        "claude-3-7-sonnet-20250219",
        "claude-sonnet-4-20250514",
        "claude-opus-4-1",
        "claude-opus-4-6",
        "claude-opus-7",
      ].map(thinking),
      ["none", "budget", "budget", "budget", "adaptive", "adaptive"],
    );
  });
});
