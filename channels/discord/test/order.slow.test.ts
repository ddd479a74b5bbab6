/** The order of answers on the built Worker in 200 seeded runs, twenty accounts at a time. In every second round the Worker is killed. */
import { after, before, it } from "node:test";
import { seeded } from "../../../test/seeded.ts";
import { areInOrder, FAULTS, POST, sendFirst, sendRest } from "./answers-in-order.ts";
import { World } from "./world.ts";

const ROUNDS = 10;
const ACCOUNTS = 20;
const world = new World();
before(() => world.open());
after(() => world.close());

for (let round = 1; round <= ROUNDS; round++) {
  const isKilled = round % 2 === 0;
  it(`[F90] [CH23] [P3] round ${round}: failures of the first post${isKilled ? " and a SIGKILL" : ""} keep the order`, async () => {
    const gates: (() => void)[] = [];
    const account = async (number: number): Promise<Awaited<ReturnType<World["bot"]>>> => {
      const seed = round * 100 + number;
      const random = seeded(seed);
      const faults = Object.values(FAULTS);
      const bot = await world.bot(`seed-${seed}`);
      await bot.connected();
      const fault = faults[Math.floor(random() * (faults.length + (isKilled ? 1 : 0)))];
      if (fault === undefined) gates.push(bot.discord.hold(POST));
      else fault(bot);
      await sendFirst(world, bot, random() < 0.5);
      return bot;
    };
    const bots = await Promise.all(Array.from({ length: ACCOUNTS }, (_, number) => account(number)));
    if (isKilled) {
      await world.kill();
      for (const gate of gates) gate();
      await world.boot();
      await Promise.all(bots.map((bot) => bot.start()));
    }
    await Promise.all(bots.map((bot) => sendRest(world, bot)));
    await Promise.all(bots.map((bot) => areInOrder(bot)));
  });
}
