/** Four answers to one person on the built Worker, of which the first one's first post fails. Shared by the fast and the slow tests. */
import assert from "node:assert/strict";
import { ALICE, DM } from "../../fakes/discord/fake-discord.ts";
import type { Bot, World } from "./world.ts";

export const POST = "^POST /channels/\\d+/messages$";
const peer = { kind: "dm", id: ALICE.id } as const;
const ANSWERS = ["first", "second", "third", "fourth"];

export const FAULTS: Readonly<Record<string, (bot: Bot) => void>> = {
  "a 502": ({ discord }) => discord.failNext(POST, 502),
  "a connection cut before": ({ discord }) => discord.cutNext(POST),
  "a connection cut after": ({ discord }) => discord.loseAnswers(POST),
};

const posts = ({ discord }: Bot): number =>
  discord.log.filter(({ kind, method, path }) => kind === "rest" && method === "POST" && String(path).endsWith("/messages")).length;
const posted = (world: World, bot: Bot): Promise<true> => world.until(() => posts(bot) > 0 || undefined, "the first post");
const live = (world: World, bot: Bot, deliveryId: string, text: string): Promise<unknown> =>
  world.call("live", { accountId: bot.accountId, live: { deliveryId, peer, text } });

/** Returns when the first post has reached Discord. */
export async function sendFirst(world: World, bot: Bot, isLive: boolean): Promise<void> {
  if (isLive) {
    await live(world, bot, "first", "first so far");
    await posted(world, bot);
  }
  await bot.send({ peer, text: "first answer" }, "first");
  await posted(world, bot);
}
export async function sendRest(world: World, bot: Bot): Promise<void> {
  for (const name of ANSWERS.slice(1)) {
    await live(world, bot, name, `${name} so far`);
    await bot.send({ peer, text: `${name} answer` }, name);
  }
}
export async function areInOrder(bot: Bot): Promise<void> {
  for (const name of ANSWERS) await bot.report(name);
  assert.deepEqual(
    bot.discord.sent(DM).map(({ content }) => content),
    ANSWERS.map((name) => `${name} answer`),
    bot.accountId,
  );
}
