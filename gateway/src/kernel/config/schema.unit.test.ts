/** Which settings exist, and what a wrong name is told. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatPath, parsePath } from "./paths.ts";
import { fit, locate, recordedPath } from "./schema.ts";

describe("a path", () => {
  for (const [text, segments] of [
    ["model.provider", ["model", "provider"]],
    [" agents.list[0].id ", ["agents", "list", "0", "id"]],
    ['session.identityLinks["a.b"]', ["session", "identityLinks", "a.b"]],
    ['["a\\"b"]', ['a"b']],
    ["a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p", [..."abcdefghijklmnop"]],
    ["a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q", undefined],
    ["", undefined],
    [".a", undefined],
    ["a..b", undefined],
    ["a[x]", undefined],
    ['a[""]', undefined],
    ['a["\\x"]', undefined],
    ["a.__proto__", undefined],
    ['["constructor"].a', undefined],
    ["prototype", undefined],
  ] as const)
    test(JSON.stringify(text), () => assert.deepEqual(parsePath(text), segments));
});

describe("[P5.1] a name that is no setting", () => {
  const told = (segments: readonly string[]): string => {
    const found = locate(segments);
    return found.ok ? "" : found.problem;
  };
  for (const [text, problem] of [
    ["model.providr", "There is no setting model.providr. Did you mean model.provider?"],
    ["modl.provider", "There is no setting modl.provider. Did you mean model.provider?"],
    ["model.timezone", "There is no setting model.timezone. Did you mean userTimezone?"],
    ["reset.mode", "There is no setting reset.mode. Did you mean session.defaultResetPolicy.mode?"],
    ["session.mode", "There is no setting session.mode. Did you mean session.defaultResetPolicy.mode?"],
    ["embeddings.model", "There is no setting embeddings.model. Did you mean memory.embeddings.model?"],
    ["timezone", "There is no setting timezone. Did you mean userTimezone?"],
    ["approvalMode", "There is no setting approvalMode. Did you mean toolApproval.mode?"],
    ["heartbeat.every", "There is no setting heartbeat.every. Did you mean agents.defaultHeartbeat.every?"],
    ["model.url", "There is no setting model.url. Did you mean model.baseUrl?"],
    // A name alone that several settings have, or that another one only looks like.
    ["baseUrl", "There is no setting baseUrl. Did you mean model.baseUrl or transcription.baseUrl?"],
    ["mode", "There is no setting mode. Did you mean toolApproval.mode?"],
    // Nothing is near: neither another group's setting, nor one that has a part of the name, nor one that does not exist.
    ["memory.enabled", /^There is no setting memory\.enabled\. memory has /],
    ["model.model", /^There is no setting model\.model\. model has provider, /],
    ["tools.allow", /^There is no setting tools\.allow\. Settings are /],
    ["discord.token", /^There is no setting discord\.token\. Settings are /],
    ["log.level", /^There is no setting log\.level\. Settings are /],
    ["agent.name", /^There is no setting agent\.name\. agents has /],
    ["user.name", /^There is no setting user\.name\. Settings are /],
    ["limits.run", /^There is no setting limits\.run\. limits has /],
    ["to", /^There is no setting to\. Settings are /],
    ["runCostUsd", "There is no setting runCostUsd. Did you mean limits.runCostUsd?"],
    ["limits.dayCost", "There is no setting limits.dayCost. Did you mean limits.dayCostUsd?"],
    ["model.provider.x", "There is no setting model.provider.x: model.provider is a single value."],
    ["agents.list.x.id", "There is no setting agents.list.x.id: agents.list is a list, name a position such as agents.list.0."],
    ["limits.zzzzzzzz.x", /^There is no setting limits\.zzzzzzzz\.x\. limits has .*\bdayCostUsd\b/],
    ["zzzzzzzz", /^There is no setting zzzzzzzz\. Settings are model, .*\buserTimezone\.$/],
    // Nothing reads these, so no one is told to use them.
    ["maxRunsPerJobHistory", /^There is no setting maxRunsPerJobHistory\. Settings are /],
  ] as const)
    test(text, () => {
      const segments = parsePath(text);
      assert.ok(segments);
      // The second time from what was remembered.
      for (const found of [told(segments), told(segments)])
        if (typeof problem === "string") assert.equal(found, problem);
        else assert.match(found, problem);
    });
  test("[A3] that JavaScript gives a meaning", () => {
    assert.equal(told(["__proto__"]), "There is no setting __proto__: nothing can be called __proto__.");
    assert.equal(told(["model", "constructor"]), "There is no setting model.constructor: nothing can be called constructor.");
    assert.equal(told(["agents", "list", "prototype"]), "There is no setting agents.list.prototype: nothing can be called prototype.");
  });
  test("[P19] is shown with at most 120 characters", () => {
    const name = "z".repeat(120);
    assert.ok(told([name]).startsWith(`There is no setting ${name}. `));
    assert.ok(told([`${name}z`]).startsWith(`There is no setting ${"z".repeat(117)}.... `));
  });
  test("positions of a list end with its most", () => {
    const exists = (position: string): boolean => locate(["channels", "x", "owners", position]).ok;
    const most = Array.from({ length: 2_000 }, (_, at) => at).findIndex((at) => !exists(String(at)));
    assert.ok(most > 0);
    const owners = locate(["channels", "x", "owners"]);
    assert.ok(owners.ok);
    const fits = (count: number): boolean =>
      fit(
        owners.cell,
        Array.from({ length: count }, (_, at) => `a${at}`),
        ["x"],
      ).ok;
    assert.deepEqual([fits(most), fits(most + 1)], [true, false]);
    for (const position of ["-1", "x", "1.5", "", "0000000"]) assert.equal(exists(position), false, position);
  });
});

describe("[S5] a path as the audit keeps it", () => {
  for (const [text, kept] of [
    ["model.provider", "model.provider"],
    ["channels.x.owners[0]", "channels.x.owners.0"],
    ["apiKeys.anthropic", "apiKeys.anthropic"],
    ["apiKeys.sk-secret", "apiKeys.*"],
    [`apiKeys.${"a".repeat(33)}`, "apiKeys.*"],
    [`apiKeys.${"a".repeat(32)}`, `apiKeys.${"a".repeat(32)}`],
    ["sk-secret", "*"],
    ["model.sk-secret.x", "model.*"],
    ["a..b", "*"],
  ] as const)
    test(text.slice(0, 40), () => assert.equal(recordedPath(text), kept));
  test("a formatted path has no dot or bracket of a name's own", () =>
    assert.equal(formatPath(["a.b", "c", "0", 'd"', "e f"]), '["a.b"].c.0["d\\""]["e f"]'));
});
