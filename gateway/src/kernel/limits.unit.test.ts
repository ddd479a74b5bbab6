import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addressGroup, FailureWindow, MAX_ADDRESSES } from "./limits.ts";

test("an IPv4 address counts alone, and an IPv6 address with its /64", () => {
  for (const [address, group] of [
    [" 192.0.2.1 ", "192.0.2.1"],
    ["::FFFF:192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002::1", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:db8::", "2001:db8:0:0::/64"],
    ["2001::2:3:4:5:6:7", "2001:0:2:3::/64"],
    ["::1", "0:0:0:0::/64"],
    ["::", "0:0:0:0::/64"],
    ["::1:2:3:4:5:6:7", "0:1:2:3::/64"],
    ["unknown", "unknown"],
  ] as const)
    assert.equal(addressGroup(address), group, address);
});

describe("failures", () => {
  test("of an address are over the limit after the most of a minute", () => {
    const failures = new FailureWindow(2);
    assert.deepEqual(
      [0, 0, 59_999].map((now) => failures.failed("a", now)),
      [false, false, true],
    );
    assert.equal(failures.failed("b", 59_999), false);
    assert.deepEqual(
      [60_000, 60_000, 60_000].map((now) => failures.failed("a", now)),
      [false, false, true],
    );
    // A clock that goes back begins a new minute.
    assert.equal(failures.failed("a", 1), false);
  });
  test("are remembered of as many addresses as fit; the oldest is forgotten first", () => {
    const failures = new FailureWindow(1);
    for (let at = 0; at < MAX_ADDRESSES; at++) failures.failed(`a${at}`, 0);
    assert.ok(failures.failed("a0", 1));
    failures.failed("new", 1);
    assert.ok(failures.failed("a1", 1) && !failures.failed("a0", 1));
  });
});
