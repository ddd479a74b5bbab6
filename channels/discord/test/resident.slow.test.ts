/**
 * The runtime puts an object away 70 s after the last event, whatever its outgoing socket does. Shown here with real time: the alarm
 * keeps the account where it is, and brings it back by itself after a crash.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { World } from "./world.ts";

test("[P12] the socket outlives the 70 s after which an idle object is put away; after a kill the alarm alone brings it back", async () => {
  const world = new World();
  try {
    await world.open();
    const bot = await (await world.bot("resident", { heartbeatMs: 5_000 })).connected();
    const began = Date.now();
    const opened = (): number => bot.discord.log.filter(({ kind }) => kind === "gateway.open").length;
    // Not in the first moments: a runtime that is killed while its first alarm runs may forget it.
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
