import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hasModel, knownProviders, modelEndpoint, modelInfo, modelsOf, providersOf } from "./catalog.ts";

describe("the catalogue", () => {
  it("finds each model that it lists, and no other", () => {
    let count = 0;
    for (const provider of knownProviders())
      for (const id of modelsOf(provider)) {
        count += 1;
        assert.ok(hasModel(provider, id), `${provider} ${id}`);
        assert.ok(modelInfo(provider, id, "openai-completions").contextWindow > 0, `${provider} ${id}`);
      }
    assert.ok(count > 500, String(count));
    assert.ok(modelsOf("anthropic").includes("claude-opus-5"));
    for (const id of ["", " ", "claude", "claude-opus-5 1000000", "claude-opus-5\nx"]) assert.ok(!hasModel("anthropic", id), id);
    assert.deepEqual(modelsOf("ollama"), []);
    assert.ok(providersOf("gpt-4o").includes("openai"));
  });
  it("gives no price where none is known: it is not nothing", () => {
    assert.equal("price" in modelInfo("kimi-coding", "k3-256k", "anthropic-messages"), false);
    assert.ok("price" in modelInfo("anthropic", "claude-opus-5", "anthropic-messages"));
  });
  it("gives what a client must know of a model only for the wire on which the provider serves it", () => {
    const { wire } = modelEndpoint("groq", "llama-3.1-8b-instant") ?? {};
    assert.equal(wire, "openai-completions");
    assert.ok(modelInfo("groq", "llama-3.1-8b-instant", "openai-completions").compat);
    assert.equal("compat" in modelInfo("groq", "llama-3.1-8b-instant", "anthropic-messages"), false);
  });
  it("Claude's thinking levels follow its version, for ids that are newer than the catalogue", () => {
    const found = (id: string) => {
      assert.ok(!hasModel("anthropic", id), id);
      const { thinking, levels } = modelInfo("anthropic", id, "anthropic-messages");
      return levels === undefined ? thinking : { thinking, ...levels };
    };
    for (const [id, expected] of [
      ["claude-haiku-3-6", "none"],
      ["claude-haiku-3-7", "budget"],
      ["claude-haiku-4-5-fast", "budget"],
      ["claude-haiku-4-6", { thinking: "adaptive" }],
      ["claude-haiku-4-7", { thinking: "adaptive", xhigh: "xhigh" }],
      ["claude-sonnet-4-9", { thinking: "adaptive", xhigh: "xhigh" }],
      ["claude-haiku-5", { thinking: "adaptive", xhigh: "xhigh", off: null }],
      ["claude-sonnet-5-5", { thinking: "adaptive", xhigh: "xhigh" }],
      ["claude-next", "none"],
    ] as const)
      assert.deepEqual(found(id), expected, id);
  });
});
