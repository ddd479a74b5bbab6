import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { editDistance, nearest } from "../../../../protocol/runtime/nearest.ts";
import { checkGsvConfig } from "../../../../protocol/gen/validators/checks.js";
import { readPath, setPath, unsetPath } from "./change.ts";
import { HIDDEN } from "../../../../protocol/runtime/secret-shapes.ts";
import { effective, masked, secretValues, withoutSecrets } from "./effective.ts";
import { formatPath, parsePath } from "./paths.ts";
import { getAt, merge, withoutAt } from "./tree.ts";

const name = fc
  .stringMatching(/^[A-Za-z0-9_.@+" -]{1,12}$/)
  .filter((text) => text.trim() !== "" && !["__proto__", "constructor", "prototype"].includes(text));
const value = fc.oneof(fc.jsonValue(), fc.string(), fc.integer(), fc.boolean());
/** Settings of every kind, and much that is none. */
const path = fc.oneof(
  fc.constantFrom(
    "model",
    "model.provider",
    "model.maxTokens",
    "model.fallbacks",
    "limits.stepsPerRun",
    "compaction.enabled",
    "userTimezone",
    "session.mainKey",
    "agents.list[0].id",
    "agents.list[0]",
    "apiKeys",
    "toolApproval.rules",
    "auth.allowedOrigins",
    "model.price.input",
  ),
  name.map((key) => formatPath(["apiKeys", key])),
  name.map((key) => formatPath(["session", "identityLinks", key])),
  fc.string({ maxLength: 30 }),
);

describe("paths", () => {
  test("a formatted path is parsed to the same path", () => {
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 6 }), (segments) =>
        assert.deepEqual(parsePath(formatPath(segments)), segments),
      ),
      { numRuns: 20_000 },
    );
  });
  test("[A3][X4] no text is a path through a prototype", () => {
    const parts = fc
      .array(fc.constantFrom("__proto__", "constructor", "prototype", "model", "[0]", '["__proto__"]', '["\\u005f_proto__"]', ".", "a"), {
        maxLength: 6,
      })
      .map((items) => items.join("."));
    fc.assert(
      fc.property(fc.oneof(parts, fc.string()), (text) => {
        const segments = parsePath(text) ?? [];
        assert.ok(!segments.some((segment) => ["__proto__", "constructor", "prototype"].includes(segment)));
      }),
      { numRuns: 20_000 },
    );
  });
  test("distances", () => {
    assert.equal(editDistance("kitten", "sitting"), 3);
    assert.equal(editDistance("ab", "ba"), 1);
    assert.equal(nearest("providr", ["provider", "id"]), "provider");
    assert.equal(nearest("zzzzzz", ["provider", "id"]), undefined);
    assert.equal(nearest("fallback", ["fallbacks", "id"]), "fallbacks");
    assert.equal(nearest("is", ["id"]), undefined, "each edit makes another name of two letters");
    assert.equal(nearest("auth", ["authorizedOrigins"]), undefined, "a small part of a name is another name");
  });
});

describe("changes", () => {
  test("for any change the configuration fits the contract and no prototype is changed", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(path, value), { maxLength: 6 }), (changes) => {
        let config: GsvConfig = {};
        for (const [at, what] of changes) {
          const change = setPath(config, at, what);
          if (!change.ok) {
            assert.match(change.error.reason, /^config\./);
            continue;
          }
          config = change.value.config;
          assert.ok(checkGsvConfig(config));
          assert.ok(checkGsvConfig(effective(config)));
          assert.equal(Object.getPrototypeOf(config), Object.prototype);
          // What was set is what is read, unless it is a secret.
          const read = readPath(config, at);
          assert.ok(read.ok);
        }
        assert.equal(Reflect.get({}, "polluted"), undefined);
      }),
      { numRuns: 2000 },
    );
  });

  test("unset undoes exactly what set did", () => {
    fc.assert(
      fc.property(path, value, (at, what) => {
        const set = setPath({}, at, what);
        if (!set.ok) return;
        const back = unsetPath(set.value.config, at);
        if (back.ok) assert.deepEqual(back.value.config, {});
      }),
      { numRuns: 5000 },
    );
  });

  test("setting the same again changes nothing", () => {
    const once = setPath({}, "model.provider", "openai");
    assert.ok(once.ok);
    const twice = setPath(once.value.config, "model.provider", "openai");
    assert.ok(twice.ok && !twice.value.changed);
  });
});

describe("[S5][A2] secrets", () => {
  const secret = fc.stringMatching(/^sk-[A-Za-z0-9]{10,30}$/);
  test("no displayed configuration contains a secret", () => {
    fc.assert(
      fc.property(
        fc.dictionary(name, secret, { minKeys: 1, maxKeys: 4, noNullPrototype: true }),
        secret,
        fc.string(),
        (apiKeys, header, text) => {
          const [first = ""] = Object.values(apiKeys);
          const config: GsvConfig = {
            apiKeys,
            model: { headers: { "X-Key": header } },
            systemPrompt: `${text}${first}${text}`,
            agents: { list: [] },
          };
          const values = secretValues(config);
          assert.ok(values.includes(first) && values.includes(header));
          for (const shown of [masked(effective(config)), withoutSecrets(effective(config))])
            for (const hidden of values) assert.ok(!JSON.stringify(shown).includes(hidden));
          const sentBack = setPath(config, "apiKeys", getAt(masked(config), ["apiKeys"]));
          assert.ok(sentBack.ok && !sentBack.value.changed);
          assert.ok(JSON.stringify(masked(config)).includes(HIDDEN));
          // A client that was shown the mark of earlier versions.
          const earlier = setPath(config, "model.headers", { "X-Key": "********" });
          assert.ok(earlier.ok && !earlier.value.changed);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

test("a property is taken out of lists and objects without moving anything; a missing one changes nothing", () => {
  const tree = { list: [{ a: 1, b: 2 }, { a: 3 }], text: "x" };
  assert.deepEqual(withoutAt(tree, ["list", "1", "a"]), { list: [{ a: 1, b: 2 }, {}], text: "x" });
  assert.deepEqual(withoutAt(tree, ["text"]), { list: tree.list });
  for (const missing of [["none"], ["none", "a"], ["list", "2", "a"], ["text", "a"], ["text", "a", "b"]])
    assert.deepEqual(withoutAt(tree, missing), tree, missing.join("."));
});
test("merging: objects by name, everything else replaces, nothing is shared with a prototype", () => {
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: "small" },
      fc.integer(),
      fc.array(fc.integer(), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("a", "b", "toString", "__proto__"), tie("node"), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).node;
  fc.assert(
    fc.property(tree, tree, (base, over) => {
      assert.deepEqual(merge(base, base), base);
      assert.deepEqual(merge(base, undefined), base);
      const merged = merge(base, over);
      assert.deepEqual(merge(merged, over), merged);
    }),
    { numRuns: 20_000 },
  );
});
