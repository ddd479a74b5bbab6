import assert from "node:assert/strict";
import { test } from "node:test";
import { isSelf, parseJid, phoneOf, selfOf } from "./jid.ts";

test("[X16] an id has a known form or is refused", () => {
  assert.deepEqual(parseJid("31612345678:12@s.whatsapp.net"), { kind: "phone", user: "31612345678", id: "31612345678@s.whatsapp.net" });
  assert.deepEqual(parseJid("9000000@hosted.lid"), { kind: "lid", user: "9000000", id: "9000000@lid" });
  assert.deepEqual(parseJid("status@broadcast"), { kind: "status", user: "status", id: "status@broadcast" });
  assert.equal(parseJid("120@g.us")?.kind, "group");
  assert.equal(parseJid("x@newsletter")?.kind, "newsletter");
  assert.deepEqual(parseJid("x@example.org"), { kind: "other", user: "x", id: "x@example.org" });
  // `status` has no form of its own, and an object that reads as an id is no text.
  const disguised = { toString: () => "31612345678@s.whatsapp.net" };
  for (const text of [
    undefined,
    null,
    5,
    disguised,
    ["120@g.us"],
    "",
    "x",
    "@lid",
    "x@",
    "ann@s.whatsapp.net",
    "ann@lid",
    `${"x".repeat(65)}@g.us`,
  ])
    assert.equal(parseJid(text), undefined, String(text));
});
test("a phone number has at most 15 digits", () => {
  assert.equal(phoneOf(parseJid(`${"1".repeat(15)}@c.us`)), `+${"1".repeat(15)}`);
  assert.equal(phoneOf(parseJid(`${"1".repeat(16)}@c.us`)), undefined);
  assert.equal(phoneOf(parseJid("9000000@lid")), undefined);
  assert.equal(phoneOf(undefined), undefined);
});
test("the account knows itself by its number and by its lid", () => {
  const self = selfOf({ id: "31612345678:3@s.whatsapp.net", lid: "9000000:3@lid" });
  assert.deepEqual(self, { phone: "31612345678@s.whatsapp.net", lid: "9000000@lid" });
  assert.deepEqual([selfOf(undefined), selfOf({ id: "9000000@lid", lid: null })], [{}, { lid: "9000000@lid" }]);
  const is = (text: string): boolean => isSelf(parseJid(text), self);
  assert.deepEqual(["31612345678@s.whatsapp.net", "9000000@lid", "31612345679@s.whatsapp.net", "x"].map(is), [true, true, false, false]);
  assert.equal(isSelf(undefined, {}), false);
});
