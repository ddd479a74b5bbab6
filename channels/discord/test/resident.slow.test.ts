/**
 * The runtime evicts an object 70 s after its last event, even with an open outgoing socket. In real time: the alarm keeps the account
 * in memory, and restores it after a crash.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { World } from "./world.ts";

test("[P12] the socket outlives the 70 s after which an idle object is evicted; after a kill the alarm restores it", async () => {
  const world = new World();
  try {
    await world.open();
    const bot = await (await world.bot("resident", { heartbeatMs: 5_000 })).connected();
    const began = Date.now();
    const opened = (): number => bot.discord.log.filter(({ kind }) => kind === "gateway.open").length;
    // Not at once: a runtime that is killed during its first alarm may lose that alarm.
    await bot.discord.until(({ kind, at }) => kind === "gateway.heartbeat" && at - began > 6_000, "a quiet moment", 0, 30_000);
    await world.kill();
    bot.discord.say({ content: "meanwhile" });
    await world.boot();
    await world.until(() => bot.inbound.find(({ message }) => message.text === "meanwhile"), "what came meanwhile", 60_000);
    const [before, since] = [opened(), Date.now()];
    await bot.discord.until(({ kind, at }) => kind === "gateway.heartbeat" && at - since > 100_000, "100 s", 0, 150_000);
    bot.discord.say({ content: "still there" });
    await bot.received(({ message }) => message.text === "still there", "the last message");
    assert.equal(opened(), before);
  } finally {
    await world.close();
  }
});
