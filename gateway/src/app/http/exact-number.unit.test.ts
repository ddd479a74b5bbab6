import assert from "node:assert/strict";
import { test } from "node:test";
import { isExact, parseExact } from "./exact-number.ts";

const LOST = [
  [
    "1e999",
    "-1e999",
    "1e-400",
    "-1e-400",
    "4e-324",
    "12345678901234567890",
    "-9007199254740993",
    "9007199254740993.0",
    "9007199254740993e0",
  ],
  ["90071992547409930e-1", "12345678901234567890.5", "0.12345678901234567890123", "9007199254740992.5", `1${"0".repeat(100)}1.0`],
  [`0.${"0".repeat(500)}1`, `1${"0".repeat(200_000)}1.5`],
].flat();
const HELD = [
  ["0", "-0", "0.0", "-0e5", "0e999", "0.1", "1.10", "1e3", "1E+3", "1e20", "1.5e300", "5e-324", "-1.7976931348623157e308", "100.00"],
  ["9007199254740991", "9007199254740991.0", "9007199254740992.0", "123.456", "0.30000000000000004", "0.10000000000000001", "2.5e-7"],
  ["0.1000000000000000055511151231257827021181583404541015625"],
].flat();

test("[RT1] a number is exact when it has the written value at the written precision", () => {
  for (const source of LOST) assert.equal(isExact(source, Number(source)), false, source.slice(0, 60));
  for (const source of HELD) assert.equal(isExact(source, Number(source)), true, source);
});
test("[RT1] what JavaScript writes of any number is exact", () => {
  const view = new DataView(new ArrayBuffer(8));
  let seed = 7;
  for (let round = 0; round < 20_000; round++) {
    for (const at of [0, 4]) {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      view.setUint32(at, seed);
    }
    const value = view.getFloat64(0);
    if (!Number.isFinite(value)) continue;
    // A plain integer beyond 2^53 - 1 is refused in any case: its neighbour could have been meant.
    for (const source of [String(value), value.toExponential(), value.toPrecision(17)])
      if (!/^-?\d+$/.test(source)) assert(isExact(source, value), source);
  }
});
test("[RT1] a body with a number that would be read as another one is told by the path of the number", () => {
  assert.deepEqual(parseExact('{"a":[1,2.5]}'), { value: { a: [1, 2.5] } });
  assert.deepEqual(parseExact('{"payload":{"a b":[1,9007199254740993]}}'), { inexact: 'payload["a b"][1]' });
  assert.deepEqual(parseExact("1e999"), { inexact: "" });
  assert.equal(parseExact("{"), undefined);
});
