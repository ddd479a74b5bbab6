import assert from "node:assert/strict";
import { test } from "node:test";
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { providerInfo } from "../../models/catalog.ts";
import { readPath, setPath } from "./change.ts";

const modelOf = (config: GsvConfig): unknown => {
  const read = readPath(config, "model");
  assert.ok(read.ok);
  return read.value.value;
};

test("[F5] the shown model is the one that is used: a provider's usual one, until another is set", () => {
  const changed = setPath({}, "model.provider", "anthropic");
  assert.ok(changed.ok);
  const usual = providerInfo("anthropic")?.defaultModel;
  assert.match(usual ?? "", /^claude/);
  assert.deepEqual(modelOf(changed.value.config), { provider: "anthropic", id: usual, fallbacks: [] });
  assert.deepEqual(modelOf({ model: { provider: "anthropic", id: "claude-haiku-4-5" } }), {
    provider: "anthropic",
    id: "claude-haiku-4-5",
    fallbacks: [],
  });
  assert.deepEqual(modelOf({}), { provider: "demo", id: "demo", fallbacks: [] });
});

test("[F5] a provider without a usual model shows none", () => {
  assert.deepEqual(modelOf({ model: { provider: "ollama" } }), { provider: "ollama", fallbacks: [] });
});
