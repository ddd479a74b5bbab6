/**
 * Channels under faults, end to end: platform, channel, gateway and model, each in its own process. Every accepted message has one
 * outcome that its sender sees, in order, whatever is killed, cut or lost in between.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Shown } from "../../channels/fakes/example/program.ts";
import { seeded } from "../seeded.ts";
import { ChannelStack } from "./channel-stack.ts";
import { type Json, until } from "./support.ts";

/** Part of every text of these tests, on both sides. */
const MARK = "xylophone";
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
/** A secret in the forms that a log could contain. */
const spellings = (secret: string): string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret),
  Buffer.from(secret).toString("hex"),
  ...[0, 1, 2].map((shift) =>
    Buffer.from("\0".repeat(shift) + secret)
      .toString("base64")
      .slice(shift === 0 ? 0 : 4)
      .replace(/.{0,3}=*$/, ""),
  ),
];
const leaks = (log: string, secrets: readonly string[]): string[] =>
  secrets.filter((secret) => spellings(secret).some((text) => text.length >= 8 && log.includes(text)));

let stack: ChannelStack;
let people = 0;
const person = (): string => `person-${++people}`;
/** Every text that a model received. */
const asked = (text: string): number => stack.model.requests.filter(({ body }) => JSON.stringify(body["messages"]).includes(text)).length;

before(async () => {
  stack = await ChannelStack.start({ owners: ["owner"], allowFrom: ["*"], reaction: "" });
});
after(() => stack.end());

describe("a message from end to end", { concurrency: 1, timeout: 120_000 }, () => {
  it("[P10] message, session, answer; and the owner's commands", async () => {
    await stack.say("owner", "o1", `say good morning ${MARK}`);
    assert.deepEqual(await stack.told("owner", 1), [`good morning ${MARK}`]);
    await stack.say("owner", "o2", "/status");
    const [, status] = await stack.told("owner", 2);
    assert.match(status ?? "", /fake-1/);
    // A running run is stopped and reports it once.
    stack.model.enqueue({ text: `too late ${MARK}`, gate: "never" });
    await stack.say("owner", "o3", `say too late ${MARK}`);
    await until("the model is asked", () => asked("too late") === 1);
    await stack.say("owner", "o4", "/stop");
    const stopped = await stack.told("owner", 3);
    assert.match(stopped.slice(2).join("\n"), /stop/i);
    await stack.say("owner", "o5", "/new");
    await stack.say("owner", "o6", `say afterwards ${MARK}`);
    await until("the new conversation answers", () => stack.program.to("owner").at(-1) === `afterwards ${MARK}`);
    assert.equal(
      stack.program.to("owner").some((text) => text.includes("too late")),
      false,
    );
    // The new conversation has no messages of the old one.
    const last = stack.model.requests.at(-1);
    assert.equal(JSON.stringify(last?.body["messages"]).includes("good morning"), false);
  });

  it("[W4][P10][NT10] the model fails permanently: the sender is told that it failed, and no cause", async () => {
    const ann = person();
    await stack.say(ann, "e1", `[[script {"status":400,"message":"no such thing ${MARK}"}]]`);
    const [text = ""] = await stack.told(ann, 1);
    assert.match(text, /^Something went wrong, and I can't answer this now\./);
    await stack.say(ann, "e2", `[[script {"status":529,"always":true}]]`);
    const [, overloaded = ""] = await stack.told(ann, 2);
    assert.equal(overloaded, text);
    await stack.say(ann, "e3", `say back again ${MARK}`);
    assert.equal((await stack.told(ann, 3))[2], `back again ${MARK}`);
  });

  it("[S7] two senders at once: neither sees the other's messages, and neither does the model on their behalf", async () => {
    const [ann, bob] = [person(), person()];
    const words = new Map([
      [ann, "tangerine"],
      [bob, "quicksilver"],
    ]);
    await Promise.all(
      [...words].flatMap(([who, word]) => range(4).map((n) => stack.say(who, `t${n}-${who}`, `my word is ${word} ${n} ${MARK}`))),
    );
    for (const [who, word] of words) {
      const texts = await stack.told(who, 4);
      const [other = ""] = [...words.values()].filter((each) => each !== word);
      for (const text of texts) {
        assert.ok(text.includes(word), text);
        assert.equal(text.includes(other), false, text);
      }
    }
    for (const { body } of stack.model.requests) {
      const prompt = JSON.stringify(body["messages"]);
      assert.equal(prompt.includes("tangerine") && prompt.includes("quicksilver"), false);
    }
  });
});

describe("kills, cut connections and lost answers", { concurrency: 1, timeout: 600_000 }, () => {
  it("[P2][P3][W23] the gateway is down while fifty messages arrive: fifty answers, in the order of each sender", async () => {
    const five = range(5).map(() => person());
    await stack.killGateway();
    for (const n of range(10)) for (const who of five) await stack.say(who, `f${n}-${who}`, `say answer ${n} ${MARK}`);
    await stack.bootGateway();
    for (const who of five) await stack.told(who, 10);
    await stack.quiet();
    for (const who of five)
      assert.deepEqual(
        stack.program.to(who),
        range(10).map((n) => `answer ${n} ${MARK}`),
      );
  });

  /** The channel's process dies in the moment in which `point` is seen; the message is answered once all the same. */
  const channelDies: readonly (readonly [
    name: string,
    id: string,
    point: (who: string, die: () => void, said: Promise<void>) => Promise<void>,
  ])[] = [
    ["has taken the message", "taken", (_who, die, said) => said.then(die)],
    [
      "has handed the message over",
      "handed",
      async (_who, die) => {
        await until("the model is asked", () => asked("channel handed") > 0);
        die();
      },
    ],
    [
      "has shown the answer, and does not know it",
      "shown",
      async (who, die) =>
        new Promise((seen) => {
          stack.program.onCallback = ({ to }) => {
            if (to !== who) return "take";
            die();
            stack.program.onCallback = () => "take";
            seen();
            return "lose";
          };
        }),
    ],
    [
      "is about to tell how it ended",
      "ended",
      async (who, die) => {
        await stack.told(who, 1);
        die();
      },
    ],
  ];
  for (const [name, id, point] of channelDies)
    it(`[P2][P9] the channel is killed when it ${name}`, async () => {
      const who = person();
      const said = Promise.withResolvers<void>();
      const dead = point(who, () => void process.kill(stack.pids.channel, "SIGKILL"), said.promise);
      await stack.say(who, `c-${id}`, `say after the channel ${id} ${MARK}`);
      said.resolve();
      await dead;
      await stack.killChannel();
      await stack.bootChannel();
      assert.deepEqual(await stack.told(who, 1), [`after the channel ${id} ${MARK}`]);
      // The next answer follows directly, once, so no answer came twice.
      await stack.say(who, `c-${id}-next`, `say next ${MARK}`);
      assert.deepEqual(await stack.told(who, 2), [`after the channel ${id} ${MARK}`, `next ${MARK}`]);
      assert.equal(
        stack.model.requests.filter(({ body }) => JSON.stringify((body["messages"] as Json[]).at(-1)).includes(`channel ${id}`)).length,
        1,
      );
    });

  it("[P2][P9] the gateway is killed while the model speaks, and when its answer is on the way", async () => {
    const [ann, bob] = [person(), person()];
    await stack.say(ann, "g1", `[[script {"text":"spoken ${MARK}","gate":"speak","always":true}]]`);
    await until("the model is asked", () => asked("speak") > 0);
    await stack.killGateway();
    stack.model.openGate("speak");
    await stack.bootGateway();
    assert.deepEqual(await stack.told(ann, 1), [`spoken ${MARK}`]);
    const shot = new Promise<void>((seen) => {
      stack.program.onCallback = ({ to }) => {
        if (to === bob) {
          process.kill(stack.pids.gateway, "SIGKILL");
          stack.program.onCallback = () => "take";
          seen();
        }
        return "take";
      };
    });
    await stack.say(bob, "g2", `say on its way ${MARK}`);
    await shot;
    await stack.killGateway();
    await stack.bootGateway();
    await stack.say(bob, "g3", `say next ${MARK}`);
    assert.deepEqual(await stack.told(bob, 2), [`on its way ${MARK}`, `next ${MARK}`]);
    assert.deepEqual(stack.program.to(ann), [`spoken ${MARK}`]);
  });

  it("[P2][P9] everything is killed in the middle of a run: one answer", async () => {
    const who = person();
    await stack.say(who, "k1", `[[script {"text":"one answer ${MARK}","gate":"all","always":true}]]`);
    await until("the model is asked", () => asked('\\"all\\"') > 0);
    await Promise.all([stack.killGateway(), stack.killChannel()]);
    stack.model.openGate("all");
    await stack.bootGateway();
    await stack.bootChannel();
    assert.deepEqual(await stack.told(who, 1), [`one answer ${MARK}`]);
    await stack.say(who, "k2", `say next ${MARK}`);
    assert.deepEqual(await stack.told(who, 2), [`one answer ${MARK}`, `next ${MARK}`]);
  });

  it("[P2][W3] the gateway accepts the message and its answer is lost: one run", async () => {
    const who = person();
    stack.toGateway.mute = true;
    await stack.say(who, "l1", `say heard once ${MARK}`);
    await until("the run is there", () => asked("heard once") > 0);
    stack.toGateway.mute = false;
    stack.toGateway.cut();
    await stack.told(who, 1);
    await stack.say(who, "l2", `say next ${MARK}`);
    assert.deepEqual(await stack.told(who, 2), [`heard once ${MARK}`, `next ${MARK}`]);
    assert.equal(
      stack.model.requests.filter(({ body }) => JSON.stringify((body["messages"] as Json[]).at(-1)).includes("heard once")).length,
      1,
    );
  });

  it("[P9][W10] the channel accepts the answer and its confirmation is lost: shown once", async () => {
    const who = person();
    stack.toChannel.mute = true;
    await stack.say(who, "l3", `say shown once ${MARK}`);
    await stack.told(who, 1);
    stack.toChannel.mute = false;
    stack.toChannel.cut();
    await stack.say(who, "l4", `say next ${MARK}`);
    assert.deepEqual(await stack.told(who, 2), [`shown once ${MARK}`, `next ${MARK}`]);
  });

  // Seeds that failed once stay in the list.
  const seeds = process.env["GSV_E2E_LONG"] === undefined ? [7] : [7, ...range(20).map((n) => 1_000 + n)];
  for (const seed of seeds)
    it(`[P2][P3][P9][P10] losses on every connection, seed ${seed}: afterwards each message has one answer, in order`, async () => {
      const random = seeded(seed);
      const three = range(3).map(() => person());
      const said: number[] = [];
      for (const wire of [stack.toGateway, stack.toChannel]) Object.assign(wire, { random, losesCalls: 0.08, losesAnswers: 0.15, lost: 0 });
      const lostTwice = new Set<string>();
      stack.program.onCallback = ({ id }: Shown) => {
        const luck = random();
        if (luck < 0.2) return "lose";
        // A refused webhook is sent again.
        if (luck < 0.3 && !lostTwice.has(id)) {
          lostTwice.add(id);
          return "refuse";
        }
        return "take";
      };
      const sayNext = async (): Promise<void> => {
        const n = said.push(said.length) - 1;
        for (const who of three) {
          await stack.say(who, `s${n}-${who}`, `say storm ${n} ${MARK}`);
          // Platforms repeat and delay webhooks.
          if (random() < 0.3)
            await stack.post({ id: `s${Math.floor(random() * (n + 1))}-${who}`, from: who, text: `say storm ${n} ${MARK}` });
        }
      };
      const lost = (): number => stack.toGateway.lost + stack.toChannel.lost;
      const allTold = (): boolean => three.every((who) => stack.program.to(who).length >= said.length);
      for (const _ of range(12)) await sayNext();
      await until("the storm has done its part", () => lost() >= 12 || allTold());
      // How much is lost depends on the pieces in which the system transfers the data.
      while (lost() < 6 && said.length < 18) {
        await sayNext();
        await until("the storm goes on", () => lost() >= 6 || allTold());
      }
      for (const wire of [stack.toGateway, stack.toChannel]) Object.assign(wire, { losesCalls: 0, losesAnswers: 0 });
      stack.program.onCallback = () => "take";
      for (const who of three) await stack.told(who, said.length);
      await stack.quiet();
      assert.ok(lost() >= 6, `only ${lost()} pieces were lost`);
      for (const who of three)
        assert.deepEqual(
          stack.program.to(who),
          said.map((n) => `storm ${n} ${MARK}`),
          `seed ${seed}`,
        );
    });

  it("[P2][P3][P9][P10] gateway or channel is killed at every fifth answer: each message has one answer, in order", async () => {
    const three = range(3).map(() => person());
    const said: number[] = [];
    let kills = 0;
    // Counts since the last kill. An answer that is shown during a restart causes the next kill right after it.
    let seen = 0;
    let rising: Promise<void> | undefined;
    stack.program.onCallback = () => {
      seen += 1;
      if (seen < 5 || rising !== undefined) return "take";
      seen = 0;
      const isChannel = kills % 2 === 0;
      kills += 1;
      process.kill(isChannel ? stack.pids.channel : stack.pids.gateway, "SIGKILL");
      rising = (
        isChannel ? stack.killChannel().then(() => stack.bootChannel()) : stack.killGateway().then(() => stack.bootGateway())
      ).finally(() => {
        rising = undefined;
      });
      return "lose";
    };
    // Ten each, and more until there were four kills: many answers may arrive while the gateway is down.
    while (said.length < 10 || (kills < 4 && said.length < 18)) {
      const from = said.length;
      for (const n of range(from === 0 ? 10 : 2)) said.push(from + n);
      await Promise.all(
        three.map(async (who) => {
          for (const n of said.slice(from)) await stack.say(who, `x${n}-${who}`, `say churn ${n} ${MARK}`);
        }),
      );
      for (const who of three) await stack.told(who, said.length);
    }
    stack.program.onCallback = () => "take";
    await rising;
    await stack.quiet();
    assert.ok(kills >= 4, `${kills} kills`);
    for (const who of three)
      assert.deepEqual(
        stack.program.to(who),
        said.map((n) => `churn ${n} ${MARK}`),
      );
  });

  it("[P2][P10] messages more than a day late begin no run: the sender is told how many, and the agent reads them with the next message", async () => {
    const who = person();
    await stack.killGateway();
    for (const n of range(3)) await stack.say(who, `late-${n}`, `say too old ${n} ${MARK}`);
    await stack.killChannel();
    const then = Date.now() - 25 * 3_600_000;
    stack.alter(
      `UPDATE inbox SET received = ${then}, next_at = ${then}, body = json_set(body, '$.receivedAt', ${then}, '$.message.timestamp', ${then})`,
    );
    await Promise.all([stack.bootGateway(), stack.bootChannel()]);
    const [notice = ""] = await stack.told(who, 1);
    assert.match(notice, /3 messages .* late/);
    assert.equal(asked("too old"), 0);
    await stack.say(who, "late-next", `say next ${MARK}`);
    assert.deepEqual(await stack.told(who, 2), [notice, `next ${MARK}`]);
    const prompt = JSON.stringify(stack.model.requests.at(-1)?.body["messages"]);
    for (const n of range(3)) assert.ok(prompt.includes(`too old ${n}`), prompt);
  });

  it("[P9] an answer with an unknown outcome, whose name the platform has forgotten, is not sent again, and is counted", async () => {
    const who = person();
    const { accounts } = await stack.call("channel.status", { channel: "example" });
    const before = Number((accounts as Json[])[0]?.["undelivered"] ?? 0);
    const dead = new Promise<void>((seen) => {
      stack.program.onCallback = ({ to }) => {
        if (to !== who) return "take";
        process.kill(stack.pids.channel, "SIGKILL");
        stack.program.onCallback = () => "take";
        seen();
        return "lose";
      };
    });
    await stack.say(who, "unknown", `say shown perhaps ${MARK}`);
    await dead;
    await stack.killChannel();
    const { callbacks } = stack.program;
    stack.alter("UPDATE outbox SET first_at = first_at - 3600000 WHERE state = 'trying'");
    await stack.bootChannel();
    await until(
      "it is counted",
      async () => {
        const state = await stack.call("channel.status", { channel: "example" });
        return (state["accounts"] as Json[]).some(({ undelivered }) => undelivered === before + 1);
      },
      undefined,
      100,
    );
    assert.equal(stack.program.callbacks, callbacks);
    await stack.say(who, "unknown-next", `say next ${MARK}`);
    assert.deepEqual(await stack.told(who, 2), [`shown perhaps ${MARK}`, `next ${MARK}`]);
  });

  it("[P9] the platform refuses an answer permanently: the owner sees the failed delivery, and the next answer is sent", async () => {
    const who = person();
    const state = await stack.call("channel.status", { channel: "example" });
    const before = Number((state["accounts"] as Json[])[0]?.["undelivered"] ?? 0);
    stack.program.onCallback = ({ to }) => (to === who ? "gone" : "take");
    await stack.say(who, "u1", `say unwanted ${MARK}`);
    await until(
      "it is counted",
      async () => {
        const { accounts } = await stack.call("channel.status", { channel: "example" });
        return (accounts as Json[]).some((account) => account["undelivered"] === before + 1);
      },
      undefined,
      100,
    );
    await stack.quiet();
    stack.program.onCallback = () => "take";
    await stack.say(who, "u2", `say wanted ${MARK}`);
    assert.deepEqual(await stack.told(who, 1), [`wanted ${MARK}`]);
  });

  it("[S5][S17] no text, token, key or secret of these tests is in any log, and the search would find one", () => {
    const { output } = stack;
    for (const component of ["channel-example", "gateway"])
      assert.ok(output.includes(`"component":"${component}"`), `${component} has logged nothing: the log was not captured`);
    const secrets = [MARK, "tangerine", "quicksilver", stack.token, stack.program.secret, "sk-of-the-fake-provider", "person-1"];
    assert.deepEqual(leaks(output, secrets), []);
    const lines = output.split("\n");
    for (const secret of secrets)
      for (const spelling of spellings(secret).filter((text) => text.length >= 8)) {
        const planted = lines.toSpliced(Math.floor(lines.length / 2), 0, `{"event":"x","detail":"a${spelling}b"}`).join("\n");
        assert.deepEqual(leaks(planted, secrets).includes(secret), true, spelling);
      }
  });
});
