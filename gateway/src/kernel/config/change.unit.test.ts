/** What a change of the settings may not do beyond their types, and what a refusal says. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asAgentId, type GsvConfig } from "../../../../protocol/gen/types.ts";
import { setPath, unsetPath } from "./change.ts";
import { effective, masked } from "./effective.ts";

const told = (set: GsvConfig, path: string, value: unknown): string => {
  const outcome = setPath(set, path, value);
  return outcome.ok ? "accepted" : `${outcome.error.reason}: ${outcome.error.message}`;
};

describe("a path that is none", () => {
  const isNone = (text: string, message: string): void => assert.equal(told({}, text, 1), `config.unknown_path: ${message}`);
  test("is repeated when it is short and plain, so that a secret or a text of another kind is not", () => {
    isNone(".model", ".model is not a setting.");
    isNone(".model x", "This is not a setting.");
    isNone(`.${"a".repeat(79)}`, `.${"a".repeat(79)} is not a setting.`);
    isNone(`.${"a".repeat(80)}`, "This is not a setting.");
  });
  test("has a reason of its own, also as a name inside a value", () => {
    assert.match(told({}, "model", { providr: "openai" }), /^config\.unknown_path: There is no setting model\.providr\./);
    assert.match(told({}, "model", { maxTokens: "many" }), /^config\.invalid: model\.maxTokens: /);
  });
});

describe("a change is refused", () => {
  test("that leaves a gap in a list", () => {
    const refused = setPath({}, "agents.list[1].id", "a");
    assert.ok(!refused.ok);
    assert.deepEqual(refused.error, {
      reason: "config.invalid",
      message: "agents.list.1.id would leave a gap in a list.",
      hint: "Use the position after the last item.",
    });
    assert.equal(told({ agents: { list: [{ id: asAgentId("a") }] } }, "agents.list[1].id", "b"), "accepted");
  });
  test("[P10] by a rule beyond the schema: the next step shows the one setting", () => {
    const refused = setPath({}, "userTimezone", "Berlin");
    assert.ok(!refused.ok);
    assert.equal(refused.error.hint, "Show the current value for comparison: `gsv config get userTimezone`.");
  });
  test("that names no time zone, one agent twice, or a pattern that names no machine's tool", () => {
    assert.equal(
      told({}, "userTimezone", "Europe/Nowhere"),
      "config.invalid: Europe/Nowhere is not a time zone; name one such as Europe/Berlin or UTC.",
    );
    assert.equal(told({}, "userTimezone", "UTC"), "accepted");
    assert.equal(told({}, "agents.list", [{ id: "a" }, { id: "b" }, { id: "a" }]), "config.invalid: There are two agents with the id a.");
    assert.equal(told({}, "agents.list", [{ id: "a" }, { id: "b" }]), "accepted");
    assert.match(told({}, "channels.x.guestTools", ["lap__Read", "["]), /^config\.invalid: channels\.x\.guestTools: "\[" does not name /);
    assert.equal(told({}, "channels.x.guestTools", ["lap__Read"]), "accepted");
  });
  test("that links a person to no one; such a link of an earlier version blocks no other change", () => {
    assert.match(told({}, "session.identityLinks", { ann: ["5"] }), /^config\.invalid: session\.identityLinks: "5" of ann is neither /);
    const old: GsvConfig = { session: { identityLinks: { ann: ["5"] } } };
    assert.equal(told(old, "userTimezone", "UTC"), "accepted");
    assert.match(told(old, "session.identityLinks.bob", ["6"]), /"6" of bob/);
  });
  test("that has another type; where text was given for a list or an object, it says how those are written", () => {
    assert.match(told({}, "model.fallbacks", "x"), /got a string.*\. Write lists and objects as JSON\.$/);
    assert.match(told({}, "model", "x"), / Write lists and objects as JSON\.$/);
    for (const [path, value] of [
      ["model", 5],
      ["model.maxTokens", "many"],
    ] as const)
      assert.doesNotMatch(told({}, path, value), /as JSON/);
  });
  test("[A3] that gives an entry no name, or one that JavaScript gives a meaning", () => {
    assert.equal(told({}, "apiKeys", { "": "sk-1" }), 'config.unknown_path: apiKeys[""] is not a valid name.');
    assert.match(told({}, "apiKeys", JSON.parse('{"__proto__":"sk-1"}')), /^config\.unknown_path: .*nothing can be called __proto__\.$/);
  });
  test("that contains broken text", () => {
    assert.equal(told({}, "session.mainKey", "\ud800"), "config.invalid: session.mainKey: expected valid Unicode text.");
  });
  test("that puts a mask where no secret is stored", () => {
    const refused = setPath({}, "apiKeys.openai", "********");
    assert.ok(!refused.ok);
    assert.equal(refused.error.message, "apiKeys.openai is only a mask, and no secret is stored there.");
    assert.equal(refused.error.hint, "Give the secret itself.");
  });
  test("that makes the settings larger than they may be", () => {
    const agents = Array.from({ length: 4 }, (_, at) => ({ id: asAgentId(`a${at}`), systemPrompt: "x".repeat(60_000) }));
    const base = (rest: number): GsvConfig => ({ agents: { list: agents }, systemPrompt: "x".repeat(rest) });
    const room = LIMITS.configBytes - JSON.stringify(base(0)).length;
    assert.ok(room > 0 && room < 65_536);
    assert.equal(told({ agents: { list: agents } }, "systemPrompt", "x".repeat(room)), "accepted");
    assert.equal(
      told({ agents: { list: agents } }, "systemPrompt", "x".repeat(room + 1)),
      `config.too_large: The configuration would become larger than ${LIMITS.configBytes} bytes.`,
    );
  });
});

test("removing says whether there was something to remove", () => {
  const found = (set: GsvConfig): unknown => {
    const outcome = unsetPath(set, "userTimezone");
    return outcome.ok && [outcome.value.wasSet, outcome.value.changed, outcome.value.config];
  };
  assert.deepEqual(found({ systemPrompt: "x" }), [false, false, { systemPrompt: "x" }]);
  assert.deepEqual(found({ systemPrompt: "x", userTimezone: "UTC" }), [true, true, { systemPrompt: "x" }]);
});

describe("[S5] the effective settings", () => {
  test("of a store that does not fit the contract are refused", () => {
    assert.throws(() => effective({ limits: 5 } as unknown as GsvConfig), /does not fit the contract/);
  });
  test("hide a secret of at least eight characters inside other texts, too", () => {
    const prompt = (secret: string): unknown => masked({ apiKeys: { openai: secret }, systemPrompt: `a ${secret} b` });
    assert.ok(!JSON.stringify(prompt("12345678")).includes("12345678"));
    assert.ok(JSON.stringify(prompt("1234567")).includes("a 1234567 b"));
  });
});

test("a value of null is refused with the command that removes the setting", () => {
  const refused = setPath({}, "notifications.quietHours", null);
  assert.ok(!refused.ok);
  assert.equal(refused.error.reason, "config.invalid");
  assert.equal(refused.error.hint, "To remove the setting: `gsv config unset notifications.quietHours`.");
});
