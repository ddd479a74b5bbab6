/** Sinks by session: delivery, removal during a delivery, and the bound. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MAX_SINKS_PER_SESSION, type Sink, Subscriptions } from "./subscriptions.ts";

const EVENTS = [{ event: "chat", payload: { state: "final" } }] as const;

describe("[C5] subscriptions", () => {
  test("all sinks of the session get the events, and no other sink", () => {
    const subscriptions = new Subscriptions();
    const told: string[] = [];
    for (const [key, name] of [
      ["a", "1"],
      ["a", "2"],
      ["b", "3"],
    ] as const)
      subscriptions.add(key, { deliver: (from, events) => told.push(`${name} ${from} ${events.length}`) });
    subscriptions.publish("a", EVENTS);
    subscriptions.publish("c", EVENTS);
    assert.deepEqual(told, ["1 a 1", "2 a 1"]);
  });
  test("a sink that is added twice is told once, and a sink that is removed during a delivery is not told", () => {
    const subscriptions = new Subscriptions();
    const told: string[] = [];
    const second: Sink = { deliver: () => told.push("second") };
    const first: Sink = {
      deliver: () => {
        told.push("first");
        subscriptions.remove("a", second);
      },
    };
    for (const sink of [first, second, first]) assert.equal(subscriptions.add("a", sink), true);
    subscriptions.publish("a", EVENTS);
    subscriptions.publish("a", EVENTS);
    assert.deepEqual(told, ["first", "first"]);
  });
  test("[P19] a session has a bounded number of sinks", () => {
    const subscriptions = new Subscriptions();
    const sinks = Array.from({ length: MAX_SINKS_PER_SESSION }, (): Sink => ({ deliver: () => undefined }));
    for (const sink of sinks) assert.equal(subscriptions.add("a", sink), true);
    assert.equal(subscriptions.add("a", { deliver: () => undefined }), false);
    const [known] = sinks;
    assert.ok(known);
    assert.equal(subscriptions.add("a", known), true);
    subscriptions.remove("a", known);
    assert.equal(subscriptions.add("a", { deliver: () => undefined }), true);
  });
});
