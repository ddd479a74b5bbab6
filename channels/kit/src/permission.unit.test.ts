/** When what agents wrote may leave (gateway rule ST9), without an outbox around it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { KIT } from "./limits.ts";
import { Permission } from "./permission.ts";

/** A gateway whose answers the test gives one by one, and a clock that the test moves. */
function stage() {
  const stored = new Map<string, unknown>();
  const asked: { answer: (may: boolean) => void; fail: () => void }[] = [];
  const state = { now: 1_000_000, released: 0, isFull: false };
  const permission = new Permission({
    kv: {
      get: <T>(name: string) => stored.get(name) as T | undefined,
      put: (name, value) => {
        if (state.isFull) throw new Error("the disk is full");
        stored.set(name, value);
      },
      delete: (name) => void stored.delete(name),
    },
    now: () => state.now,
    random: () => 0,
    after: () => () => undefined,
    transaction: (work) => work(),
    log: () => undefined,
    mayDeliver: () => {
      const { promise, resolve, reject } = Promise.withResolvers<boolean>();
      asked.push({ answer: resolve, fail: () => reject(new Error("no answer")) });
      return promise;
    },
    released: () => void state.released++,
  });
  return { permission, asked, state };
}

test("[ST9] a gateway that does not answer blocks, also what an earlier answer or a later permit of a message would cover", async () => {
  const { permission, asked, state } = stage();
  const first = permission.ask();
  asked[0]?.answer(true);
  assert.equal(await first, true);
  assert.equal(permission.covers(1), true);
  const second = permission.ask();
  asked[1]?.fail();
  assert.equal(await second, false);
  assert.equal(permission.covers(1), false);
  permission.recheck();
  state.now += 2 * LIMITS.sendPermitMs;
  assert.equal(permission.covers(state.now + 1), false);
  assert.equal(permission.covers(0), true);
});

test("[ST9] an answer that may be of before the stop does not count: the gateway is asked again", async () => {
  const { permission, asked } = stage();
  const asking = permission.ask();
  permission.recheck();
  asked[0]?.answer(true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked.length, 2);
  asked[1]?.answer(false);
  assert.equal(await asking, false);
  assert.equal(permission.isHeld, true);
  assert.equal(permission.covers(1), false);
});

test("[ST9] questions that are overtaken again and again end without permission", async () => {
  const { permission, asked } = stage();
  const asking = permission.ask();
  for (let nth = 0; nth < KIT.askTries; nth++) {
    permission.recheck();
    asked[nth]?.answer(true);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(await asking, false);
  assert.equal(asked.length, KIT.askTries);
  assert.equal(permission.isBlocked, true);
});

test("[ST9] an answer that cannot be stored counts as none: nothing leaves, and the gateway is asked again", async () => {
  const { permission, asked, state } = stage();
  state.isFull = true;
  for (const wait of [750, 1_500]) {
    const answer = permission.ask();
    asked.at(-1)?.answer(false);
    assert.equal(await answer, false);
    assert.deepEqual([permission.isBlocked, permission.isHeld, permission.nextAt()], [true, false, state.now + wait]);
  }
  state.isFull = false;
  const answer = permission.ask();
  asked.at(-1)?.answer(false);
  await answer;
  assert.equal(permission.isHeld, true);
  // An answer that is stored ends the growing waits.
  const next = permission.ask();
  asked.at(-1)?.fail();
  await next;
  assert.equal(permission.nextAt(), state.now + 750);
});
