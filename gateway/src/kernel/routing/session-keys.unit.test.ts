import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { SessionAddress } from "../../ports/sessions.ts";
import { buildKey, canonicalKey, decodeSegment, encodeSegment, isOwnersOwn, MAX_KEY_LENGTH, normaliseId } from "./session-keys.ts";

const RUNS = { numRuns: 20_000 };
/** Ids as platforms may have them, with many characters that are dangerous in keys. */
const peer = fc
  .oneof(
    fc.string({ unit: "grapheme", maxLength: 20 }),
    fc.string({ unit: "binary", maxLength: 20 }),
    fc.stringMatching(/^[:%/. a-zA-Z0-9@+_~-]{1,12}$/),
    fc.constantFrom(
      "main",
      "dm",
      "group",
      "cron",
      "agent",
      "%3A",
      "a:b",
      ":",
      "a%3Ab",
      "__proto__",
      "..",
      "MAIN",
      "Main",
      "15551234567@lid",
      "+15551234567",
    ),
  )
  .filter((text) => text !== "" && text.isWellFormed());
const agentId = fc.stringMatching(/^[a-z0-9_-]{1,20}$/);
const channel = fc.stringMatching(/^[a-z][a-z0-9_-]{0,10}$/);
const accountId = fc.stringMatching(/^[a-z0-9_-]{1,12}$/).filter((id) => !["dm", "group", "channel", "thread"].includes(id));
const address: fc.Arbitrary<SessionAddress> = fc.oneof(
  fc.record({ form: fc.constant("main" as const), agentId }, { noNullPrototype: true }),
  fc.record({ form: fc.constant("peer" as const), agentId, peer }, { noNullPrototype: true }),
  fc.record({ form: fc.constant("cron" as const), agentId, jobId: peer }, { noNullPrototype: true }),
  fc.record(
    {
      form: fc.constant("channel" as const),
      agentId,
      channel,
      kind: fc.constantFrom("dm" as const, "group" as const, "channel" as const, "thread" as const),
      peer,
    },
    { noNullPrototype: true },
  ),
  fc.record({ form: fc.constant("account" as const), agentId, channel, accountId, peer }, { noNullPrototype: true }),
);
const mainKey = fc.oneof(fc.constant("main"), fc.stringMatching(/^[A-Za-z0-9:% ]{1,10}$/));
const keyOf = (of: SessionAddress, main: string): string => {
  const built = buildKey(of, main);
  assert.ok(built.ok, built.ok ? "" : built.problem);
  return built.key;
};

describe("[S7][X15] session keys", () => {
  test("build, parse, build: the same key and the same address", () => {
    fc.assert(
      fc.property(address, mainKey, (of, main) => {
        const key = keyOf(of, main);
        const parsed = canonicalKey(key, main);
        assert.ok(parsed.ok, parsed.ok ? "" : `${key}: ${parsed.problem}`);
        assert.equal(parsed.key, key);
        assert.deepEqual(parsed.address, of);
      }),
      RUNS,
    );
  });

  test("two addresses never share a key", () => {
    fc.assert(
      fc.property(address, address, mainKey, (one, two, main) => {
        if (JSON.stringify(one) === JSON.stringify(two)) return;
        assert.notEqual(keyOf(one, main), keyOf(two, main));
      }),
      RUNS,
    );
  });

  test("peers that differ only in case or in the spelling of a colon have two keys", () => {
    fc.assert(
      fc.property(peer, (id) => {
        const key = (text: string): string => keyOf({ form: "channel", agentId: "main", channel: "x", kind: "dm", peer: text }, "main");
        for (const other of [id.toLowerCase(), id.toUpperCase(), encodeURIComponent(id), `${id}:`, id.replace(/[^0-9]/g, "")])
          if (other !== id && other !== "") assert.notEqual(key(id), key(other));
      }),
      RUNS,
    );
  });

  test("a group is never a main conversation", () => {
    fc.assert(
      fc.property(address, mainKey, (of, main) => {
        if (of.form === "main") return;
        assert.notEqual(keyOf(of, main), keyOf({ form: "main", agentId: of.agentId }, main));
        assert.equal(isOwnersOwn(of), of.form === "channel" && of.channel === "cli" && of.kind === "dm");
      }),
      RUNS,
    );
  });

  test("[S8] of the command line's conversations only the direct ones are the owner's own", () => {
    const of = (channel: string, kind: "dm" | "group") => {
      const named = canonicalKey(`agent:main:${channel}:${kind}:x`, "main");
      assert.ok(named.ok);
      return isOwnersOwn(named.address);
    };
    assert.deepEqual([of("cli", "dm"), of("cli", "group"), of("chat", "dm")], [true, false, false]);
  });

  test("canonicalising is idempotent and never throws, for any text", () => {
    const anything = fc.oneof(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.stringMatching(/^agent(:[a-zA-Z%:3A@. ]{0,6}){0,6}$/),
      fc
        .array(fc.constantFrom("agent", "main", "dm", "group", "cron", "cli", "%3A", "%", "", "A"), { maxLength: 7 })
        .map((parts) => parts.join(":")),
    );
    fc.assert(
      fc.property(anything, mainKey, (raw, main) => {
        const once = canonicalKey(raw, main);
        if (!once.ok) return;
        const twice = canonicalKey(once.key, main);
        assert.ok(twice.ok);
        assert.equal(twice.key, once.key);
        assert.match(once.key, /^agent(:[A-Za-z0-9+\-_@.%]+){2,5}$/);
        assert.ok(once.key.length <= 512);
      }),
      RUNS,
    );
  });

  test("main and the configured main key are aliases", () => {
    for (const raw of ["main", "home", "agent:main:main", "agent:main:home", "AGENT:Main:main", " main "]) {
      const found = canonicalKey(raw, "home");
      assert.equal(found.ok && found.key, "agent:main:home", raw);
    }
  });

  test("white space does not make room for a longer text than a key may have", () => {
    assert.equal(canonicalKey(`main${" ".repeat(MAX_KEY_LENGTH - 4)}`, "home").ok, true);
    assert.equal(canonicalKey(`main${" ".repeat(MAX_KEY_LENGTH - 3)}`, "home").ok, false);
  });
  test("a key has at most its length, with the characters that are escaped", () => {
    const build = (chars: number) => buildKey({ agentId: "main", form: "peer", peer: `:${"x".repeat(chars)}` }, "main");
    const rest = "agent:main:dm:%3A".length;
    const most = build(MAX_KEY_LENGTH - rest);
    assert.equal(most.ok && most.key.length, MAX_KEY_LENGTH);
    const over = build(MAX_KEY_LENGTH - rest + 1);
    assert.match(over.ok ? "" : over.problem, /the key would be longer than/);
  });
  test("an ambiguous key is refused", () => {
    for (const raw of [
      "agent:main:whatsapp:group:dm:a",
      "agent:main:x:channel:dm:a",
      "agent:main",
      "agent:",
      ":",
      "",
      "main:main",
      "other",
      "agent:main:a:b:c:d:e",
      "agent:main:x:dm:",
      "agent:main:x:who:y",
      "agent:main:x:dm:%",
      "agent:main:x:dm:%ff",
      "x".repeat(600),
    ])
      assert.equal(canonicalKey(raw, "main").ok, false, raw);
  });

  test("segments decode to their original text", () => {
    fc.assert(
      fc.property(peer, (text) => {
        const segment = encodeSegment(text);
        assert.match(segment ?? "", /^[A-Za-z0-9+\-_@.%]+$/);
        assert.equal(decodeSegment(segment ?? ""), text);
      }),
      RUNS,
    );
    assert.equal(encodeSegment("\ud800"), undefined);
  });

  test("ids of agents and accounts are normalised", () => {
    assert.equal(normaliseId("My Agent!", "main"), "my-agent-");
    assert.equal(normaliseId("  ", "main"), "main");
    assert.equal(normaliseId("x".repeat(100), "main").length, 64);
  });
});

test("[S7] a key with an empty part, or with a part that can't be decoded, says so", () => {
  for (const raw of ["agent:main:", "agent:main:dm:", "agent:main::x", "agent:main:dm:%", "agent:main:dm:%zz"]) {
    const found = canonicalKey(raw, "main");
    assert.match(found.ok ? "" : JSON.stringify(found), /a part of the key is empty, or has a `%`/, raw);
  }
});
