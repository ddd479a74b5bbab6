/** What agents wrote stays in the outbox while everything is stopped (gateway rule ST9). The test controls time, crashes and losses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { seeded } from "../../../test/seeded.ts";
import { sized } from "../../../test/sizes.ts";
import { KIT } from "../src/limits.ts";
import { CALM, World } from "./world.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** As the gateway hands it over at this moment. */
const agents = (world: World, id: string, peer: string, text = id, askFrom = world.now + LIMITS.sendPermitMs) =>
  world.account.send(world.message(id, peer, text, { askFrom }));
const notice = (world: World, id: string, peer: string) => world.account.send(world.message(id, peer, id, { kind: "notice" }));
const seen = ({ shown }: World): string[] => shown.map(({ text }) => text);
/** The platform is away when messages are handed over, and back while everything is stopped. */
async function stoppedWith(...ids: readonly string[]): Promise<World> {
  const world = new World();
  // No connection to keep: days cost few alarms.
  world.atRest = true;
  world.connected = false;
  for (const id of ids) agents(world, id, "anna");
  await world.pass(MINUTE);
  world.stopped = true;
  return world;
}
function comeBack(world: World): void {
  world.connected = true;
  world.host.changed();
}
function resume(world: World): void {
  world.stopped = false;
  world.account.recheck();
}

test("[ST9] a message of an agent that is sent at once costs no question to the gateway", async () => {
  const world = new World();
  for (let n = 0; n < 20; n++) {
    agents(world, `d${n}`, `peer ${n % 3}`);
    await world.pass(3_000);
  }
  assert.equal(world.shown.length, 20);
  assert.equal(world.asks, 0);
});

test("[ST9] what agents wrote before the stop does not leave when the platform is back, and leaves after the resume, in order and once", async () => {
  const world = await stoppedWith("d1", "d2", "d3");
  world.account.recheck();
  comeBack(world);
  await world.pass(HOUR);
  assert.deepEqual(seen(world), []);
  assert.equal(world.account.status().outboxWaiting, 3);
  resume(world);
  await world.settle();
  assert.deepEqual(seen(world), ["d1", "d2", "d3"]);
  await world.pass(HOUR);
  assert.deepEqual(
    world.reports.map(({ deliveryId, state }) => [deliveryId, state]),
    ["d1", "d2", "d3"].map((id) => [id, "sent"]),
  );
});

test("[ST9] a channel that was never told of the stop holds them too, and finds the resume by itself", async () => {
  const world = await stoppedWith("d1");
  comeBack(world);
  await world.pass(HOUR);
  assert.deepEqual(seen(world), []);
  assert.ok(world.asks <= 1 + HOUR / KIT.retryMaxMs, `${world.asks} questions in an hour`);
  world.stopped = false;
  await world.pass(KIT.retryMaxMs);
  assert.deepEqual(seen(world), ["d1"]);
});

test("[ST9] a gateway that does not answer lets nothing of agents leave; notices of the system leave", async () => {
  const world = await stoppedWith("d1");
  world.stopped = false;
  world.faults = { ...CALM, fails: 1 };
  comeBack(world);
  await world.pass(10 * MINUTE);
  notice(world, "late", "anna");
  await world.settle();
  assert.deepEqual(seen(world), []);
  world.faults = CALM;
  await world.pass(KIT.retryMaxMs * 2);
  assert.deepEqual(seen(world).toSorted(), ["d1", "late"]);
});

test("[ST9] while everything is stopped, answers of the system pass what is held, to the same conversation too", async () => {
  const world = await stoppedWith("d1", "d2");
  comeBack(world);
  await world.pass(MINUTE);
  notice(world, "Everything is stopped.", "anna");
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), ["Everything is stopped."]);
  resume(world);
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), ["Everything is stopped.", "d1", "d2"]);
});

test("[ST9] after the call to ask again, an earlier send permit is no longer valid", async () => {
  const world = new World();
  let answer: (() => void) | undefined;
  world.sendOutcome = () => ({ kind: "retry", error: "502", afterMs: 500 });
  agents(world, "d1", "anna");
  await world.settle();
  // The retry is due while the permit would be valid.
  world.stopped = true;
  world.account.recheck();
  world.sendOutcome = undefined;
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), []);
  // Nor is a permit that was on its way when the stop came, nor an answer that was.
  agents(world, "d2", "bert");
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), []);
  resume(world);
  await world.settle();
  assert.deepEqual(seen(world), ["d1", "d2"]);
  await world.pass(3 * LIMITS.sendPermitMs);
  world.gate = new Promise((resolve) => {
    answer = resolve;
  });
  agents(world, "d3", "anna", "d3", 1);
  for (let turns = 0; turns < 20; turns++) await Promise.resolve();
  world.stopped = true;
  world.account.recheck();
  world.gate = undefined;
  answer?.();
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), ["d1", "d2"]);
});

test("[ST9] a message that is handed over with an expired permit, or with one of another clock, is asked about", async () => {
  for (const askFrom of [1, 0, 1_700_000_000_000 - 1, 1_700_000_000_000 + HOUR]) {
    const world = new World();
    world.stopped = true;
    agents(world, "d1", "anna", "d1", askFrom);
    await world.pass(MINUTE);
    assert.deepEqual([seen(world), world.asks], [[], 1], String(askFrom));
  }
});

test("[ST9] a long stop fails nothing and counts for no deadline, across restarts", async () => {
  const world = await stoppedWith("d1", "d2");
  world.account.recheck();
  await world.pass(MINUTE);
  for (const isBack of [false, true, false, true]) {
    world.connected = isBack;
    world.host.changed();
    await world.pass(25 * HOUR);
    world.kill();
  }
  assert.deepEqual([seen(world), world.reports], [[], []]);
  // The platform is away for the first hours after the resume, and refuses the first attempts.
  world.connected = false;
  resume(world);
  await world.pass(20 * HOUR);
  let refusals = 2;
  world.sendOutcome = () => (refusals-- > 0 ? { kind: "retry", error: "502" } : undefined);
  comeBack(world);
  await world.pass(HOUR);
  assert.deepEqual(seen(world), ["d1", "d2"]);
  assert.deepEqual(
    world.reports.map(({ state }) => state),
    ["sent", "sent"],
  );
});

test("[ST9] after a stop the platform still has a day, and no more", async () => {
  const world = await stoppedWith("d1");
  world.account.recheck();
  await world.pass(30 * HOUR);
  resume(world);
  await world.pass(DAY - MINUTE);
  assert.deepEqual(world.reports, []);
  await world.pass(2 * MINUTE);
  assert.deepEqual(
    world.reports.map(({ state }) => state),
    ["failed"],
  );
});

test("[ST9] [P9] an attempt with an unknown outcome before a long stop is not repeated after it: it may have arrived", async () => {
  const world = new World();
  world.nextPosts.push("answerLost");
  agents(world, "d1", "anna");
  agents(world, "d2", "anna");
  await world.settle();
  world.stopped = true;
  world.account.recheck();
  await world.pass(HOUR);
  resume(world);
  await world.pass(HOUR);
  assert.deepEqual(seen(world), ["d1", "d2"]);
  assert.deepEqual(
    world.reports.map(({ deliveryId, state }) => [deliveryId, state]),
    [
      ["d1", "unknown"],
      ["d2", "sent"],
    ],
  );
});

test("[P9] nor after a long time without a connection", async () => {
  const world = new World();
  world.nextPosts.push("answerLost");
  world.account.send(world.message("d1", "anna", "d1"));
  await world.settle();
  world.connected = false;
  await world.pass(HOUR);
  comeBack(world);
  await world.pass(HOUR);
  assert.deepEqual(seen(world), ["d1"]);
  assert.deepEqual(
    world.reports.map(({ state }) => state),
    ["unknown"],
  );
});

test("[ST9] a text that is shown while an answer is written is not shown during the stop", async () => {
  const world = new World();
  await world.account.start({});
  const live = (text: string) =>
    world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text, askFrom: world.now + LIMITS.sendPermitMs });
  live("so far");
  await world.settle();
  live("so far, and more");
  world.stopped = true;
  world.account.recheck();
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), ["so far"]);
  // The end of the run says so in its place.
  notice(world, "d1", "anna");
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), ["d1"]);
  assert.equal(world.shown.length, 1);
});

test("[ST9] a stop while the live text of an answer is looked for: the answer is held and loses no attempt", async () => {
  const world = new World();
  await world.account.start({});
  world.nextPosts.push("answerLost");
  world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text: "so far", askFrom: world.now + LIMITS.sendPermitMs });
  await world.settle();
  let open: (() => void) | undefined;
  world.gate = new Promise((resolve) => {
    open = resolve;
  });
  agents(world, "d1", "anna", "the answer");
  for (let turns = 0; turns < 20; turns++) await Promise.resolve();
  world.stopped = true;
  world.account.recheck();
  world.gate = undefined;
  open?.();
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), ["so far"]);
  const rows = world.db.query<object>("SELECT state, attempts, first_at FROM outbox");
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [{ state: "waiting", attempts: 0, first_at: 0 }],
  );
  resume(world);
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), ["the answer"]);
});

test("[ST9] crashes, losses, stops and resumes at any moment: nothing leaves during a stop, all leaves after it, in order and once", async () => {
  for (let seed = 1; seed <= sized(20, 60); seed++) {
    const world = new World(seed);
    world.atRest = true;
    world.recognisesNonceMs = 60 * DAY;
    const random = seeded(seed);
    const below = (limit: number): number => Math.floor(random() * limit);
    const peers = ["anna", "bert"];
    const wrong: string[] = [];
    // What is on its way to the platform at the moment of the stop may arrive; this platform takes it at once.
    let stoppedAt: number | undefined;
    world.sendOutcome = ({ partId, text }) => {
      if (stoppedAt !== undefined && !text.startsWith("note")) wrong.push(`${partId} ${world.now - stoppedAt} ms after the stop`);
      return undefined;
    };
    const given: Record<string, string[]> = { anna: [], bert: [] };
    for (let n = 0; n < 12; n++) {
      const peer = peers[below(2)] ?? "anna";
      const act = below(8);
      world.faults = below(3) === 0 ? { fails: 0.2, answerLost: 0.2, dies: 0.1 } : CALM;
      if (act === 0) world.connected = !world.connected;
      if (act === 1) world.kill();
      if (act === 2 && stoppedAt === undefined) {
        world.stopped = true;
        world.account.recheck();
        await world.settle();
        stoppedAt = world.now;
      } else if (act === 3) {
        world.stopped = false;
        stoppedAt = undefined;
        if (below(2) === 0) world.account.recheck();
      } else {
        // The gateway hands over during a stop too, without a permit.
        agents(world, `m${n}`, peer, `m${n}`, world.stopped ? world.now : world.now + LIMITS.sendPermitMs);
        given[peer]?.push(`m${n}`);
      }
      if (below(3) === 0) notice(world, `note${n}`, peer);
      await world.pass(below(2) === 0 ? below(4_000) : below(HOUR / 2));
    }
    world.faults = CALM;
    world.stopped = false;
    stoppedAt = undefined;
    world.account.recheck();
    comeBack(world);
    await world.pass(3 * HOUR);
    assert.deepEqual(wrong, [], `seed ${seed}`);
    for (const peer of peers) {
      const got = world.shown.filter(({ peer: to, text }) => to === peer && text.startsWith("m")).map(({ text }) => text);
      assert.deepEqual(got, given[peer], `seed ${seed}, ${peer}`);
    }
    assert.equal(world.db.query("SELECT 1 FROM outbox").length, 0, `seed ${seed}`);
  }
});
