import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { providerInfo } from "./catalog.ts";
import { modelNamed, patchedModel } from "./choose.ts";

const model = (text: string, current?: { provider: string; id: string }): string => {
  const meant = modelNamed(text, current);
  return meant.ok ? `${meant.model.provider}/${meant.model.id}` : meant.message;
};
const claude = { provider: "anthropic", id: "claude-sonnet-5" };
const demo = { provider: "demo", id: "demo" };

describe("[R6] [F36] a model that is named without its provider", () => {
  it("is the current provider's where it has it, else that of the only provider that has it", () => {
    assert.equal(model("openai/o3", claude), "openai/o3");
    assert.equal(model("o3", claude), "openai/o3");
    assert.equal(model("o3", demo), "openai/o3");
    assert.equal(model("o3"), "openai/o3");
    assert.equal(model("claude-haiku-4-5", claude), "anthropic/claude-haiku-4-5");
    assert.equal(model("gpt-4o-2024-11-20"), "openai/gpt-4o-2024-11-20");
  });
  it("is its maker's, not a reseller's with the same id", () => {
    assert.equal(model("claude-opus-5", demo), "anthropic/claude-opus-5");
    assert.equal(model("gpt-5.4-mini", claude), "openai/gpt-5.4-mini");
    assert.equal(model("amazon.nova-lite-v1:0", demo), "amazon-bedrock/amazon.nova-lite-v1:0");
  });
  it("of several providers that have it is the current one's, or asked for", () => {
    assert.equal(model("claude-opus-5", { provider: "opencode", id: "x" }), "opencode/claude-opus-5");
    assert.equal(model("kimi-k3", { provider: "moonshotai-cn", id: "x" }), "moonshotai-cn/kimi-k3");
    assert.equal(model("kimi-k3", claude), "moonshotai, moonshotai-cn have a model kimi-k3. Say which: `/model moonshotai/kimi-k3`.");
  });
  it("may be any model of a server of one's own", () => {
    assert.equal(model("llama3.2", { provider: "ollama", id: "demo" }), "ollama/llama3.2");
    assert.equal(model("tuned", { provider: "my-server", id: "x" }), "my-server/tuned");
  });
  it("is asked for when no provider is known to have it", () => {
    for (const current of [undefined, claude, demo])
      assert.match(model("no-such-model", current), /^No known provider has a model no-such-model\. Name it as provider\/id/);
    assert.match(model("two words", claude), /^Name it as provider\/id/);
  });
});

describe("[F34] half a model's name", () => {
  it("keeps the other half", () => {
    assert.deepEqual(patchedModel({ id: "claude-haiku-4-5" }, claude), { provider: "anthropic", id: "claude-haiku-4-5" });
    assert.deepEqual(patchedModel({ provider: "anthropic" }, claude), claude);
    assert.deepEqual(patchedModel({}, claude), claude);
    assert.deepEqual(patchedModel({ provider: "openai", id: "o3" }, undefined), { provider: "openai", id: "o3" });
  });
  it("a provider that does not have the current model gets its usual one", () => {
    assert.deepEqual(patchedModel({ provider: "openai" }, claude), { provider: "openai", id: providerInfo("openai")?.defaultModel });
    assert.deepEqual(patchedModel({ provider: "anthropic" }, demo), { provider: "anthropic", id: providerInfo("anthropic")?.defaultModel });
    assert.deepEqual(patchedModel({ provider: "demo" }, claude), demo);
    assert.deepEqual(patchedModel({ provider: "ollama" }, { provider: "lmstudio", id: "qwen3" }), { provider: "ollama", id: "qwen3" });
  });
  it("a provider that has the current model too keeps it", () => {
    assert.deepEqual(patchedModel({ provider: "openai" }, { provider: "my-proxy", id: "gpt-5" }), { provider: "openai", id: "gpt-5" });
  });
  it("needs the current model", () => {
    assert.equal(patchedModel({ provider: "openai" }, undefined), undefined);
    assert.equal(patchedModel({ id: "o3" }, undefined), undefined);
  });
});
