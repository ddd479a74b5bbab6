/** The order of a conversation while answers are shown as they are generated: losses and crashes at the first post of an answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seeded } from "../../../test/seeded.ts";
import { sized } from "../../../test/sizes.ts";
import { KIT } from "../src/limits.ts";
import { type Faults, World } from "./world.ts";

const MINUTE = 60_000;
const FAULTS: readonly (keyof Faults)[] = ["fails", "answerLost", "dies"];
const ANSWERS = [1, 2, 3, 4];

/** Four answers to one person, generated one after the other. The first one's first post ends as `fault` says. */
async function fourAnswers(seed: number, fault: keyof Faults): Promise<World> {
  const world = new World(seed);
  const random = seeded(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  await world.account.start({});
  for (let posts = 1 + below(3); posts > 0; posts--) world.nextPosts.push(fault);
  for (const n of ANSWERS) {
    const deliveryId = `d${n}`;
    for (let texts = below(4); texts > 0; texts--) {
      world.account.live({ deliveryId, peer: { kind: "dm", id: "anna" }, text: `answer ${n} so far` });
      await world.pass(below(2 * KIT.liveEveryMs));
    }
    // The gateway's queue: the call is repeated until an instance has answered it.
    world.account.send(world.message(deliveryId, "anna", below(2) === 0 ? `answer ${n}` : `answer ${n} ${"word ".repeat(60)}`));
    await world.pass(below(KIT.liveEveryMs));
  }
  await world.pass(MINUTE);
  return world;
}

for (const fault of FAULTS)
  test(`[F90][CH23][P3] answers stay in order when the first post of the first one ${fault}`, async () => {
    for (let seed = 1; seed <= sized(40, 200); seed++) {
      const { shown, reports, db } = await fourAnswers(seed, fault);
      const order = shown.map(({ text }) => /^answer \d/.exec(text)?.[0]).filter((text) => text !== undefined);
      assert.deepEqual(
        order,
        ANSWERS.map((n) => `answer ${n}`),
        `seed ${seed}`,
      );
      assert.ok(!shown.some(({ text }) => text.endsWith("so far")), `seed ${seed}: an answer is unfinished`);
      assert.deepEqual(
        reports.map(({ deliveryId, state }) => [deliveryId, state]),
        ANSWERS.map((n) => [`d${n}`, "sent"]),
        `seed ${seed}`,
      );
      assert.equal(db.query("SELECT 1 FROM outbox").length, 0);
    }
  });

test("[F90][CH23] a text that waited for an earlier answer is shown as soon as that is sent", async () => {
  const world = new World();
  await world.account.start({});
  let isDown = true;
  world.sendOutcome = () => (isDown ? { kind: "retry", error: "502", afterMs: 5_000 } : undefined);
  world.account.send(world.message("d1", "anna", "answer 1"));
  await world.settle();
  world.account.live({ deliveryId: "d2", peer: { kind: "dm", id: "anna" }, text: "answer 2 so far" });
  world.account.live({ deliveryId: "d3", peer: { kind: "dm", id: "bert" }, text: "another conversation" });
  await world.pass(4_000);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["another conversation"],
  );
  isDown = false;
  await world.pass(MINUTE);
  assert.deepEqual(
    world.shown.filter(({ peer }) => peer === "anna").map(({ text }) => text),
    ["answer 1", "answer 2 so far"],
  );
});

test("[F90][CH23] the number of texts that wait is bounded", async () => {
  const world = new World();
  await world.account.start({});
  world.sendOutcome = () => ({ kind: "retry", error: "502", afterMs: MINUTE });
  world.account.send(world.message("first", "anna", "answer 1"));
  await world.settle();
  for (let n = 0; n < KIT.liveTexts + 50; n++)
    world.account.live({ deliveryId: `d${n}`, peer: { kind: "dm", id: "anna" }, text: `text ${n}` });
  world.sendOutcome = undefined;
  await world.pass(2 * MINUTE);
  assert.equal(world.shown.length, 1 + KIT.liveTexts);
});
