/**
 * The runtime evicts an object 70 s after its last event, even with an open outgoing socket. In real time: the alarm keeps the account
 * in memory, and restores it after a crash.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildWorker } from "./build.ts";
import { World } from "./world.ts";

test("[P12] the socket outlives the 70 s after which an idle object is evicted; after a kill the alarm restores it", async () => {
  const built = await buildWorker();
  const world = new World();
  const { fake } = world;
  try {
    await world.start(built.script);
    fake.addPeer({ pn: "15550002222", lid: "900000002222", name: "Ann" });
    await world.startAccount();
    await world.pair();
    await world.kill();
    await world.boot();
    const before = fake.noted("flushed").length;
    await world.until("the alarm connects", () => fake.noted("flushed").length > before, 60_000);
    const [connects, since] = [fake.noted("connected").length, Date.now()];
    // Only the alarm's pings happen during this time.
    await world.until("100 s have passed", () => fake.log.some(({ kind, at }) => kind === "ping" && at - since > 100_000), 150_000);
    await world.received(await fake.say("15550002222", "still there"));
    assert.equal(fake.noted("connected").length, connects);
  } finally {
    await world.end();
    built.remove();
  }
});
