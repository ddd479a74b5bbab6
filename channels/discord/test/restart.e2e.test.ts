/** The Discord channel across a SIGKILL of workerd, with its state on disk. */
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { ALICE, DM } from "../../fakes/discord/fake-discord.ts";
import { World } from "./world.ts";

const world = new World();
before(() => world.open());
after(() => world.close());

it("[W25][P2] killed during a stream of messages: each is handed over once, in order", async () => {
  const [resumed, lost] = await Promise.all([world.bot("resumed"), world.bot("lost")]);
  await Promise.all([resumed.connected(), lost.connected()]);
  const texts = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, index) => `m${from + index}`);
  for (const content of texts(0, 10)) resumed.discord.say({ content });
  lost.discord.say({ content: "m0" });
  await resumed.received(({ message }) => message.text === "m9", "the first messages");
  await lost.received(({ message }) => message.text === "m0", "the first message");

  // The gateway is away, so these messages are only in the inbox at the kill.
  resumed.away = true;
  for (const content of texts(10, 20)) resumed.discord.say({ content });
  await lost.send({ peer: { kind: "dm", id: ALICE.id }, text: "on its way" }, "before");
  await lost.report("before");
  await world.kill();
  for (const content of texts(20, 30)) resumed.discord.say({ content });
  lost.discord.gateway.forgetSessions();
  for (const content of texts(1, 4)) lost.discord.say({ content, unheard: true });
  resumed.away = false;

  await world.boot();
  await Promise.all([resumed.start(), lost.start()]);
  await resumed.received(({ message }) => message.text === "m29", "the last message");
  await lost.received(({ message }) => message.text === "m3", "the missed messages");
  assert.deepEqual(
    resumed.inbound.map(({ message }) => message.text),
    texts(0, 30),
  );
  assert.equal(resumed.discord.log.filter(({ kind }) => kind === "gateway.identify").length, 1);
  assert.equal(resumed.discord.log.filter(({ kind }) => kind === "gateway.resumed").length, 1);
  assert.deepEqual(
    lost.inbound.map(({ message, backlog = false }) => [message.text, backlog]),
    [["m0", false], ...texts(1, 4).map((text) => [text, true])],
  );
  // A repeated delivery is not sent again.
  await lost.send({ peer: { kind: "dm", id: ALICE.id }, text: "on its way" }, "before");
  await lost.send({ peer: { kind: "dm", id: ALICE.id }, text: "last" }, "after");
  await lost.report("after");
  assert.deepEqual(
    lost.discord.sent(DM).map(({ content }) => content),
    ["on its way", "last"],
  );
});

it("[P12][W25] a new instance does not retry what only a person can fix, and says why", async () => {
  const bot = await world.bot("refused");
  await bot.connected();
  bot.discord.gateway.kick(4004);
  const stopped = await world.until(() => bot.states.find(({ extra }) => extra?.["socket"] === "stopped"), "the stop");
  await world.kill();
  await world.boot();
  const before = bot.discord.log.length;
  assert.deepEqual([(await bot.status()).error, (await bot.status()).extra?.["socket"]], [stopped.error, "stopped"]);
  assert.equal(bot.discord.log.length, before);
  await bot.start();
  const identified = () => bot.discord.log.filter(({ kind }) => kind === "gateway.identify").length;
  await bot.discord.until(() => identified() === 2, "another try");
});
