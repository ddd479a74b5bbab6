/** Names of providers and keys are checked when they are set; what an earlier version stored stays and blocks nothing. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asAgentId, type GsvConfig } from "../../../../protocol/gen/types.ts";
import { sentence } from "../../ports/result.ts";
import { resolveTarget } from "../../models/resolve.ts";
import { setPath } from "./change.ts";
import { effective } from "./effective.ts";

const refusal = (config: GsvConfig, path: string, value: unknown): string => {
  const outcome = setPath(config, path, value);
  return outcome.ok ? "accepted" : `${outcome.error.reason}: ${sentence(outcome.error)}`;
};

describe("[F6] providers and keys", () => {
  test("a misspelt provider is refused with the nearest one, wherever a model is named", () => {
    const model = { provider: "anthorpic", id: "x" };
    for (const [path, value, at] of [
      ["model.provider", "anthorpic", "model.provider"],
      ["model", { provider: "anthorpic" }, "model.provider"],
      ["model.fallbacks", [model], "model.fallbacks[0].provider"],
      ["model.tiers.sub", model, "model.tiers.sub.provider"],
      ["compaction.model", model, "compaction.model.provider"],
      ["agents.list", [{ id: "a", model }], "agents.list[0].model.provider"],
    ] as const)
      assert.equal(
        refusal({}, path, value),
        `config.invalid: ${at}: There is no provider "anthorpic". Did you mean anthropic? List the providers: \`gsv provider list\`.`,
      );
  });

  test("[R6] the demo has one model, wherever a model is named; a change of the provider alone keeps the id, which the demo ignores", () => {
    const model = { provider: "demo", id: "nope" };
    for (const [path, value, at] of [
      ["model", model, "model.id"],
      ["model.fallbacks", [model], "model.fallbacks[0].id"],
      ["model.tiers.sub", model, "model.tiers.sub.id"],
      ["agents.list", [{ id: "a", model }], "agents.list[0].model.id"],
    ] as const)
      assert.equal(
        refusal({}, path, value),
        `config.invalid: ${at}: The provider demo has no model "nope". Its only model is \`demo/demo\`.`,
      );
    assert.match(refusal({ model: { provider: "demo" } }, "model.id", "gpt-5"), /no model "gpt-5"/);
    assert.equal(refusal({}, "model.id", "gpt-5"), "accepted", "its provider may be set next");
    assert.equal(refusal({ model: { provider: "openai", id: "gpt-5" } }, "model.provider", "demo"), "accepted");
    assert.equal(refusal({ model }, "model.maxTokens", 5), "accepted", "one of an earlier version blocks no other change");
    assert.equal(refusal({}, "model", { provider: "demo", id: "demo" }), "accepted");
  });

  test("a name that is near none lists the providers, and says what to do for one's own server", () => {
    assert.match(refusal({}, "model.provider", 5), /There is no provider "5"\. Built in are anthropic, .* first set `model\.baseUrl`/);
    assert.match(refusal({}, "model.provider", "openai-codex"), /is not built in\. It needs the login of a ChatGPT subscription\. Use /);
  });

  test("the demo, built-in providers, and servers of one's own are accepted", () => {
    for (const provider of ["demo", "anthropic", "ollama", "amazon-bedrock", "google-vertex", "cloudflare-workers-ai"])
      assert.equal(refusal({}, "model.provider", provider), "accepted");
    const lab = { baseUrl: "http://127.0.0.1:1/v1", wire: "openai-completions" } as const;
    assert.equal(refusal({ providers: { lab } }, "model.provider", "lab"), "accepted");
    assert.equal(refusal({ providers: { lab } }, "apiKeys.lab", "key"), "accepted");
    assert.match(refusal({ providers: { lab } }, "model.provider", "lap"), /Did you mean lab\?/);
    assert.equal(refusal({ model: { baseUrl: lab.baseUrl } }, "model.provider", "mine"), "accepted");
    assert.equal(refusal({ model: { baseUrl: lab.baseUrl, provider: "mine" } }, "apiKeys.mine", "key"), "accepted");
  });

  test("the command that the model's error names for one's own server is accepted", () => {
    const resolved = resolveTarget({ provider: "lab", id: "m" }, effective({}), { apiKeys: {}, headers: {} });
    const [, value = ""] = /`gsv config set providers\.lab '(.+?)'`/.exec(resolved.ok ? "" : (resolved.error.hint ?? "")) ?? [];
    assert.equal(refusal({}, "providers.lab", JSON.parse(value)), "accepted");
  });

  test("a misspelt or empty key is refused", () => {
    assert.match(
      refusal({}, "apiKeys.opnai", "sk-1"),
      /^config\.invalid: apiKeys\.opnai: There is no provider "opnai"\. Did you mean openai\?/,
    );
    for (const empty of ["", "  "])
      assert.match(refusal({}, "apiKeys.openai", empty), /apiKeys\.openai: the key is empty\..* `gsv config unset apiKeys\.openai`\.$/);
  });

  test("a key with characters that no HTTP header takes is refused by their kind, without the key; a stored one blocks nothing", () => {
    for (const [key, kind] of [
      ["\u201csk-secret\u201d", "a typographic quotation mark"],
      ["sk\u2013secret", "a typographic dash"],
      ["sk-secret\u200b", "an invisible character"],
      ["sk-secret\u0007", "an invisible character"],
      ["sk-se\ncret", "a line break"],
      ["sk-secr\u00e9t", "a character outside ASCII"],
    ] as const) {
      const said = `the key contains ${kind}, which no key has. Copy the key again from the provider's page.`;
      assert.equal(refusal({}, "apiKeys.openai", key), `config.invalid: apiKeys.openai: ${said}`);
      assert.equal(refusal({ apiKeys: { openai: key } }, "userTimezone", "Europe/Berlin"), "accepted");
    }
    assert.equal(refusal({}, "apiKeys.openai", "sk-secret\n"), "accepted");
    assert.equal(refusal({}, "apiKeys.google-vertex", '{\n\t"type": "service_account"\r\n}'), "accepted");
  });

  test("wrong types are refused with a clear text", () => {
    assert.match(refusal({}, "model.provider", ["openai"]), /model\.provider: expected a string of 1 to 64 characters, got a list of 1\./);
    assert.match(
      refusal({}, "apiKeys.openai", { key: "x" }),
      /apiKeys\.openai: expected a string of at most 8192 characters, got an object\./,
    );
    assert.match(refusal({}, "model.maxTokens", "many"), /model\.maxTokens: expected a whole number from 1 to 10000000, got a string/);
  });

  test("what was stored before stays, and blocks no other change", () => {
    const old: GsvConfig = {
      model: { provider: "anthorpic", id: "x" },
      apiKeys: { opnai: "sk-1", openai: "" },
      agents: { list: [{ id: asAgentId("a"), model: { provider: "gone", id: "x" } }] },
    };
    assert.equal(refusal(old, "userTimezone", "Europe/Berlin"), "accepted");
    assert.equal(refusal(old, "model.id", "y"), "accepted");
    assert.equal(refusal(old, "apiKeys.anthropic", "sk-2"), "accepted");
    assert.equal(refusal(old, "apiKeys.opnai", "sk-2"), "accepted");
  });
});
