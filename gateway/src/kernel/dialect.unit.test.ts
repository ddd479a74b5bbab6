import assert from "node:assert/strict";
import { test } from "node:test";
import { inDialect } from "./dialect.ts";
import type { NewEvent } from "./subscriptions.ts";

const chat = (payload: object): NewEvent => ({ event: "chat", payload });

test("[C7] a client of this implementation gets each event unchanged", () => {
  for (const state of ["delta", "final", "aborted", "error"]) {
    const event = chat({ state, text: "x" });
    assert.equal(inDialect("current", event), event);
  }
});
test("[C7] the reference's client gets no text twice, and an abort as an error that it knows", () => {
  assert.deepEqual(inDialect("reference", chat({ state: "delta", text: "Hel" })), chat({ state: "delta", text: "" }));
  assert.deepEqual(inDialect("reference", chat({ state: "aborted" })), chat({ state: "error", error: "Stopped." }));
  assert.deepEqual(inDialect("reference", chat({ state: "aborted", error: "By Ann." })), chat({ state: "error", error: "By Ann." }));
  for (const event of [chat({ state: "final", text: "Hello" }), chat({ other: "delta" })])
    assert.equal(inDialect("reference", event), event);
});
test("[C7] other events are the same in both dialects", () => {
  const event: NewEvent = { event: "session", payload: { state: "delta", text: "x" } };
  assert.equal(inDialect("reference", event), event);
});
test("[C7] a payload without a state is left alone", () => {
  for (const payload of [null, undefined, "text", 5]) {
    const event: NewEvent = { event: "chat", payload };
    assert.equal(inDialect("reference", event), event);
  }
});
