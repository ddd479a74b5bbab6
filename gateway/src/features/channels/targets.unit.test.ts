/** Whom the agent may write to of itself: known people and named ones, never a stranger; names of places are read back as they were written. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { ChannelConfig, Peer } from "../../../../protocol/gen/types.ts";
import type { Known } from "./access.ts";
import { parseTarget, targetName } from "../../tools/message-target.ts";
import { type KnownPlace, mayAddress } from "./targets.ts";

const ANNA: Peer = { kind: "dm", id: "anna" };
const GROUP: Peer = { kind: "group", id: "g1" };
const wrote = (senderId: string, more: Partial<KnownPlace> = {}): KnownPlace => ({ senderId, self: false, ...more });
const rows: readonly (readonly [
  what: string,
  peer: Peer,
  place: KnownPlace | undefined,
  config: ChannelConfig,
  known: Known,
  may: boolean,
])[] = [
  ["a stranger who never wrote", ANNA, undefined, {}, undefined, false],
  ["a stranger who waits to be let in", ANNA, wrote("anna"), {}, undefined, false],
  ["a person who never wrote, policy open", ANNA, undefined, { dmPolicy: "open" }, undefined, false],
  ["a person who never wrote, allowFrom *", ANNA, undefined, { allowFrom: ["*"] }, undefined, false],
  ["a person who wrote, policy open", ANNA, wrote("anna"), { dmPolicy: "open" }, undefined, true],
  ["the same, when the door is shut again", ANNA, wrote("anna"), { dmPolicy: "allowlist" }, undefined, false],
  ["a guest", ANNA, wrote("anna"), {}, "guest", true],
  ["the owner", ANNA, wrote("anna"), {}, "owner", true],
  ["who was turned away later", ANNA, wrote("anna"), { dmPolicy: "open" }, "rejected", false],
  ["an id that the configuration names, who never wrote", ANNA, undefined, { allowFrom: ["anna"] }, undefined, true],
  ["the owner's id, who never wrote", ANNA, undefined, { owners: ["anna"] }, undefined, true],
  [
    "a listed number of a person who wrote",
    ANNA,
    wrote("x", { phone: "+15551234567" }),
    { allowFrom: ["+1 555 123 4567"], dmPolicy: "allowlist" },
    undefined,
    true,
  ],
  ["digits in an id are no number", { kind: "dm", id: "15551234567" }, undefined, { allowFrom: ["+15551234567"] }, undefined, false],
  ["the account's chat with itself", ANNA, wrote("anna", { self: true }), { dmPolicy: "allowlist", selfChat: true }, undefined, true],
  ["a group that it talks in", GROUP, wrote("bob"), {}, undefined, true],
  ["a group that it was never in", GROUP, undefined, {}, undefined, false],
  ["groups are off now", GROUP, wrote("bob"), { groups: "off" }, undefined, false],
  ["another group is allowed now", GROUP, wrote("bob"), { groupAllow: ["g2"] }, undefined, false],
  ["a group that is allowed by name", GROUP, undefined, { groupAllow: ["g1"] }, undefined, true],
];
describe("[X9][TH2] to whom the agent may write on its own initiative", () => {
  for (const [what, peer, place, config, known, may] of rows)
    test(`${what}: ${may ? "yes" : "no"}`, () =>
      assert.equal(
        mayAddress({ channel: "test", peer }, place, config, () => known),
        may,
      ));
});

test("a target has one name, whatever its id contains", () => {
  fc.assert(
    fc.property(fc.constantFrom("dm", "group", "channel", "thread"), fc.string({ minLength: 1, maxLength: 200 }), (kind, id) => {
      fc.pre(id.trim() === id);
      const target = { channel: "test", accountId: "default", peer: { kind, id } };
      assert.deepEqual(parseTarget(targetName(target)), target);
    }),
  );
});
test("a text that names no target is refused", () => {
  for (const text of [
    "",
    "anna",
    "last",
    "test/default",
    "test/default/dm",
    "test/default/dm/",
    "test/default/king/anna",
    "//dm/anna",
    "/default/dm/anna",
    "test//dm/anna",
    `test/default/dm/${"x".repeat(257)}`,
  ])
    assert.equal(parseTarget(text), undefined, text);
  assert.equal(parseTarget(`test/default/dm/${"x".repeat(256)}`)?.peer.id.length, 256);
});
