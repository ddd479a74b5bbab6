/** The order of answers that are shown as they are generated, on the built Worker: the first post of the first answer fails. */
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { ALICE, DM } from "../../fakes/discord/fake-discord.ts";
import { type Bot, World } from "./world.ts";

const world = new World();
before(() => world.open());
after(() => world.close());

const POST = "^POST /channels/\\d+/messages$";
const peer = { kind: "dm", id: ALICE.id } as const;
const ANSWERS = ["first", "second", "third", "fourth"];
const live = (bot: Bot, deliveryId: string, text: string): Promise<unknown> =>
  world.call("live", { accountId: bot.accountId, live: { deliveryId, peer, text } });
const posts = (bot: Bot): number =>
  bot.discord.log.filter(({ kind, method, path }) => kind === "rest" && method === "POST" && String(path).endsWith("/messages")).length;

async function inOrder(bot: Bot): Promise<void> {
  for (const name of ANSWERS) await bot.report(name);
  assert.deepEqual(
    bot.discord.sent(DM).map(({ content }) => content),
    ANSWERS.map((name) => `${name} answer`),
  );
}
async function rest(bot: Bot): Promise<void> {
  for (const name of ANSWERS.slice(1)) {
    await live(bot, name, `${name} so far`);
    await bot.send({ peer, text: `${name} answer` }, name);
  }
}

const FAULTS: Readonly<Record<string, (bot: Bot) => void>> = {
  "a 502": ({ discord }) => discord.failNext(POST, 502),
  "a connection cut before": ({ discord }) => discord.cutNext(POST),
  "a connection cut after": ({ discord }) => discord.loseAnswers(POST),
};
for (const [what, fault] of Object.entries(FAULTS))
  for (const isLive of [false, true])
    it(`[F90] [CH23] [P3] ${what} at the first post of the first answer${isLive ? ", its live text" : ""}: the order stays`, async () => {
      const bot = await world.bot(`${what.replaceAll(" ", "-")}-${isLive ? "live" : "plain"}`);
      await bot.connected();
      fault(bot);
      if (isLive) {
        await live(bot, "first", "first so far");
        await world.until(() => posts(bot) > 0 || undefined, "the first post");
      }
      await bot.send({ peer, text: "first answer" }, "first");
      await world.until(() => posts(bot) > 0 || undefined, "the first post");
      await rest(bot);
      await inOrder(bot);
    });

it("[F90] [CH23] [P3] a SIGKILL at the first post of the first answer: the order stays", async () => {
  const bot = await world.bot("killed");
  await bot.connected();
  const gate = bot.discord.hold(POST);
  await bot.send({ peer, text: "first answer" }, "first");
  await world.until(() => posts(bot) > 0 || undefined, "the first post");
  await world.kill();
  gate();
  await world.boot();
  await bot.start();
  await rest(bot);
  await inOrder(bot);
});
