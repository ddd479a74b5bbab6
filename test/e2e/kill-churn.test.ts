/**
 * Churn: one run of many steps on a real node, while workerd, the node and sometimes everything is killed repeatedly, at times that a
 * seed decides. Each step's command writes its number to a file.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { seeded } from "../seeded.ts";
import { LONG, resultTexts, Rig } from "./kill-support.ts";
import { type NodeProcess, textOf, until } from "./support.ts";

const STEPS = 20;
const SESSIONS = 4;
const MESSAGES = LONG ? 40 : 12;
const MIN_PAUSE_MS = 700;
const MAX_PAUSE_MS = 2_000;
const SEEDS = LONG ? Array.from({ length: 10 }, (_, i) => i + 1) : [1];

describe("churn", () => {
  let rig: Rig;
  let node: NodeProcess;
  before(async () => {
    rig = await Rig.start();
    node = rig.realNode("box");
    await rig.isOnline("box");
  });
  after(async () => {
    await rig.end();
  });

  for (const seed of SEEDS) {
    it(`[P6] [P12] [K10] [K16] a run of ${STEPS} steps under kills of workerd and node, every ${MIN_PAUSE_MS} to ${MAX_PAUSE_MS} ms (seed ${seed})`, async (t) => {
      await rig.calm();
      await rig.isOnline("box");
      const random = seeded(seed);
      const cell = rig.cell(`churn ${seed}`);
      const file = cell.name;
      rig.model.serve(cell.name, {
        answer: ({ results }) =>
          results.length < STEPS
            ? {
                text: `Step ${results.length}. `,
                toolCalls: [
                  {
                    name: "box__Bash",
                    arguments: { command: `echo ${results.length} >> ${file}; sleep 0.3; echo step ${results.length} done` },
                  },
                ],
              }
            : { text: "all steps done" },
      });
      const kills = rig.kills;
      await rig.with((client) => cell.say(client));
      const isOver = async (): Promise<boolean> => {
        const { events } = await cell.look();
        return events.some(({ state }) => state === "final" || state === "error" || state === "aborted");
      };
      let nodeKills = 0;
      for (let turn = 0; !(await isOver()); turn++) {
        await new Promise((wake) => setTimeout(wake, MIN_PAUSE_MS + random() * (MAX_PAUSE_MS - MIN_PAUSE_MS)));
        if (turn % 2 === 1) {
          await node.kill();
          node = rig.realNode("box");
          nodeKills += 1;
        } else if (rig.isTired) await rig.powerCut();
        else {
          rig.shoot();
          await rig.risen();
        }
        assert.ok(turn < 200, "the run gets nowhere");
      }
      const seen = await cell.judge();
      assert.equal(seen.text, "all steps done");
      const results = resultTexts(seen.messages);
      const outcomes = seen.events.filter(({ tool }) => tool?.phase === "ended").map(({ tool }) => tool?.outcome);
      assert.equal(results.length, STEPS);
      // A command that no process tracks may still be running.
      await until(
        "the last command has ended",
        async () => (await rig.with((client) => client.call("session.stats", { sessionKey: cell.sessionKey })))["state"] === "idle",
      );
      for (let step = 0; step < STEPS; step++) {
        const times = node.lines(file).filter((line) => line === String(step)).length;
        const told = `step ${step} ran ${times} times, and the model was told ${outcomes[step]}: ${results[step]}`;
        if (outcomes[step] === "ok") assert.equal(times, 1, told);
        else if (outcomes[step] === "unknown") assert.ok(times <= 1, told);
        else assert.equal(times, 0, told);
      }
      t.diagnostic(
        `${rig.kills - kills} kills of the gateway, ${nodeKills} of the node, ${outcomes.filter((outcome) => outcome !== "ok").length} of ${STEPS} steps not ok`,
      );
      rig.checkLog();
    });
  }

  it(`[P1] [P3] [P4] ${SESSIONS} sessions with ${MESSAGES} messages each, while workerd is killed repeatedly: each message is one turn, in order`, async (t) => {
    await rig.calm();
    const random = seeded(42);
    const cells = Array.from({ length: SESSIONS }, (_, i) => rig.cell(`storm ${i}`));
    for (const cell of cells) rig.model.serve(cell.name, { answer: ({ text }) => ({ text: `about ${text.replace(/.*#/s, "")}` }) });
    const kills = rig.kills;
    let sent = 0;
    const senders = cells.map(async (cell) => {
      for (let i = 0; i < MESSAGES; i++) {
        await rig.insist(cell.word());
        sent += 1;
      }
    });
    for (let goal = 5; goal < SESSIONS * MESSAGES; goal += 5 + Math.floor(random() * 10)) {
      await until(`${goal} messages are accepted`, () => sent >= goal);
      if (rig.isTired) await rig.powerCut();
      else {
        rig.shoot();
        await rig.risen();
      }
    }
    await Promise.all(senders);
    for (const cell of cells) {
      const { ends } = await cell.judge();
      assert.deepEqual(
        ends.map(textOf),
        cell.said.map((_, i) => `about ${i}`),
      );
    }
    t.diagnostic(`${rig.kills - kills} kills of the gateway`);
    rig.checkLog();
  });
});
