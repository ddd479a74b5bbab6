/** The order of answers that are shown as they are generated, on the built Worker: the first post of the first answer fails. */
import { after, before, it } from "node:test";
import { areInOrder, FAULTS, POST, sendFirst, sendRest } from "./answers-in-order.ts";
import { World } from "./world.ts";

const world = new World();
before(() => world.open());
after(() => world.close());

for (const [what, fault] of Object.entries(FAULTS))
  for (const isLive of [false, true])
    it(`[F90] [CH23] [P3] ${what} at the first post of the first answer${isLive ? ", its live text" : ""}: the order stays`, async () => {
      const bot = await world.bot(`${what.replaceAll(" ", "-")}-${isLive ? "live" : "plain"}`);
      await bot.connected();
      fault(bot);
      await sendFirst(world, bot, isLive);
      await sendRest(world, bot);
      await areInOrder(bot);
    });

it("[F90] [CH23] [P3] a SIGKILL at the first post of the first answer: the order stays", async () => {
  const bot = await world.bot("killed");
  await bot.connected();
  const gate = bot.discord.hold(POST);
  await sendFirst(world, bot, false);
  await world.kill();
  gate();
  await world.boot();
  await bot.start();
  await sendRest(world, bot);
  await areInOrder(bot);
});
