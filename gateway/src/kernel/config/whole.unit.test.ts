import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { HIDDEN } from "../../../../protocol/runtime/secret-shapes.ts";
import { effective, shown } from "./effective.ts";
import { getAt, setAt, unsetAt } from "./tree.ts";
import { replaceAll } from "./whole.ts";

const SET: GsvConfig = {
  model: { provider: "anthropic", headers: { "X-Key": "header-secret-1" } },
  apiKeys: { anthropic: "sk-ant-0123456789" },
  systemPrompt: "never say sk-ant-0123456789 aloud",
  limits: { dayCostUsd: 20 },
};
const copy = (): unknown => structuredClone(shown(effective(SET)));
const put = (path: string, value: unknown, of = copy()): unknown => setAt(of, path.split("."), value, () => ({}));
const without = (path: string): unknown => unsetAt(copy(), path.split("."));
function stored(edited: unknown) {
  const replaced = replaceAll(SET, edited);
  assert.ok(replaced.ok, JSON.stringify(replaced));
  return replaced.value;
}
function refused(edited: unknown) {
  const replaced = replaceAll(SET, edited);
  assert.ok(!replaced.ok);
  return replaced.error;
}

describe("[CF1] an edited copy of the whole configuration", () => {
  test("without a difference changes nothing: no default that was shown is stored", () => {
    assert.deepEqual(stored(copy()), { config: SET, changed: [] });
  });
  test("stores its differences only, several at once", () => {
    const { config, changed } = stored(put("limits.runCostUsd", 2, put("userTimezone", "Europe/Berlin")));
    assert.deepEqual(config, { ...SET, userTimezone: "Europe/Berlin", limits: { dayCostUsd: 20, runCostUsd: 2 } });
    assert.deepEqual([...changed].toSorted(), ["limits.runCostUsd", "userTimezone"]);
  });
  test("gives a missing setting its default; a default that is missing stays one", () => {
    const { limits: _, ...others } = SET;
    assert.deepEqual(stored(without("limits")), { config: others, changed: ["limits"] }, "all of a group");
    assert.deepEqual(stored(without("limits.runMs")), { config: SET, changed: [] });
  });
  test("is checked as a whole: settings that need each other are set together", () => {
    const agents = { list: [{ id: "work", model: { provider: "mine", id: "m" } }] };
    const provider = { mine: { baseUrl: "http://127.0.0.1:8080/v1", wire: "openai-completions" } };
    assert.equal(refused(put("agents.list", agents.list)).reason, "config.invalid");
    const { config } = stored(put("agents.list", agents.list, put("providers", provider)));
    assert.equal(getAt(config, ["agents", "list", "0", "id"]), "work");
  });
  test("stores nothing when one setting is wrong, and names it and the reason", () => {
    for (const [path, value, reason, says] of [
      ["limits.runMs", "soon", "config.invalid", /limits\.runMs/],
      ["model.providr", "openai", "config.unknown_path", /Did you mean model\.provider\?/],
      ["cron", { enabled: true }, "config.not_served", /cron/],
      ["userTimezone", "Mars/Base", "config.invalid", /Mars\/Base is not a time zone/],
      ["limits", 5, "config.invalid", /limits/],
    ] as const) {
      const error = refused(put(path, value, put("systemPrompt", "new")));
      assert.equal(error.reason, reason, path);
      assert.match(error.message, says);
    }
    for (const edited of [[], "text", null, 5]) assert.equal(refused(edited).reason, "config.invalid");
  });
  test("[X4] has no name with a meaning in JavaScript", () => {
    const edited: unknown = JSON.parse(`{"model": {"__proto__": {"polluted": 1}}}`);
    assert.equal(refused(edited).reason, "config.unknown_path");
    assert.equal(Reflect.get({}, "polluted"), undefined);
  });
});

describe("[CF2] [S5] secrets", () => {
  test("a masked secret is kept beside a new one, and a removed one is gone", () => {
    assert.equal(getAt(copy(), ["apiKeys", "anthropic"]), HIDDEN);
    const { config } = stored(put("apiKeys.openai", "sk-new"));
    assert.deepEqual(config.apiKeys, { anthropic: "sk-ant-0123456789", openai: "sk-new" });
    assert.deepEqual(config.model?.headers, SET.model?.headers);
    assert.equal(stored(without("apiKeys.anthropic")).config.apiKeys, undefined);
  });
  test("a mask where no secret is stored, or inside a changed text, is refused", () => {
    assert.match(refused(put("apiKeys.google", HIDDEN)).message, /only a mask/);
    const shownPrompt = String(getAt(copy(), ["systemPrompt"]));
    assert.ok(shownPrompt.includes(HIDDEN));
    const error = refused(put("systemPrompt", `${shownPrompt} please`));
    assert.equal(error.reason, "config.invalid");
    assert.match(error.message, /^systemPrompt contains/);
  });
});
