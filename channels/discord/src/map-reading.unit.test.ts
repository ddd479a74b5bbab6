import assert from "node:assert/strict";
import { test } from "node:test";
import { asArray, asId, asNumber, asObject, asTime, cleanText, idAtTime, isNewerId, timeOfId } from "./map-reading.ts";

test("[X16] values of Discord are read as what they must be, or not at all", () => {
  assert.deepEqual([asObject({ a: 1 }), asObject([]), asObject(null), asObject("x")], [{ a: 1 }, undefined, undefined, undefined]);
  assert.deepEqual([asArray([1, 2, 3], 2), asArray({}, 2)], [[1, 2], []]);
  assert.deepEqual(
    [0, 1, 5, 6, Number.NaN, Number.POSITIVE_INFINITY, "3"].map((value) => asNumber(value, 1, 5)),
    [undefined, 1, 5, undefined, undefined, undefined, undefined],
  );
  assert.equal(asNumber(Number.POSITIVE_INFINITY, 0, Number.POSITIVE_INFINITY), undefined);
  assert.deepEqual(
    ["12345", "1".repeat(20), "1234", "1".repeat(21), "01234", 12345].map((value) => asId(value)),
    ["12345", "1".repeat(20), undefined, undefined, undefined, undefined],
  );
});
test("[X16] a time is a text of at most 64 characters, not before 1970", () => {
  const long = (length: number): string => `2026-01-01T00:00:00.${"0".repeat(length - "2026-01-01T00:00:00.Z".length)}Z`;
  assert.equal(asTime(long(64)), Date.UTC(2026, 0, 1));
  assert.equal(asTime(long(65)), undefined);
  assert.equal(asTime("1970-01-01T00:00:00Z"), 0);
  assert.equal(asTime("1969-12-31T23:59:59Z"), undefined);
  for (const value of ["soon", 5, null]) assert.equal(asTime(value), undefined);
});
test("texts lose controls and keep their lines", () => {
  assert.equal(cleanText(" a\r\nb\u0000\tc\r", 100), "a\nb\tc");
  assert.equal(cleanText("abc", 2), "ab");
  assert.equal(cleanText(5, 2), "");
});
test("ids are ordered by time", () => {
  assert.equal(timeOfId(idAtTime(1_700_000_000_000)), 1_700_000_000_000);
  assert.deepEqual([isNewerId("20000", "3000"), isNewerId("3000", "20000"), isNewerId("3000", "3000")], [true, false, false]);
});
