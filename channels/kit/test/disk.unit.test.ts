/** A disk that fails at any statement: nothing is lost, no message is shown twice, and the end of each delivery is told as it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { seeded } from "../../../test/seeded.ts";
import { sized } from "../../../test/sizes.ts";
import { KIT } from "../src/limits.ts";
import { CALM, type Faults, World } from "./world.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const anna = { kind: "dm", id: "anna" } as const;

const seen = ({ shown }: World): string[] => shown.map(({ text }) => text);
const ends = ({ reports }: World): (readonly [string, string])[] => reports.map(({ deliveryId, state }) => [deliveryId, state]);
/** On this disk no delivery can be ended. */
const noEnd = (statement: string): boolean => statement.startsWith("DELETE FROM outbox");
/** An account without a connection to keep, so that hours cost few alarms. */
function resting(recognisesNonceMs: number): World {
  const world = new World();
  world.atRest = true;
  world.recognisesNonceMs = recognisesNonceMs;
  return world;
}

for (const nonceMs of [0, 300_000]) {
  const platform = nonceMs === 0 ? "without nonces" : "with nonces";
  test(`[P9] a message that was sent is not sent again while that cannot be written, on a platform ${platform}`, async () => {
    const world = resting(nonceMs);
    world.diskFails = noEnd;
    world.account.send(world.message("d1", "anna", "Hello."));
    world.account.send(world.message("d2", "anna", "Later."));
    world.account.send(world.message("d3", "ben", "Hello, Ben."));
    // Another conversation goes on; its end cannot be written either.
    await world.pass(10 * MINUTE);
    assert.deepEqual(seen(world), ["Hello.", "Hello, Ben."]);
    assert.deepEqual(world.reports, []);
    const failures = world.logs.filter((line) => line.includes("outbox_failed")).length;
    // Two conversations, and work looks at the outbox twice.
    assert.ok(failures <= 5 * ((10 * MINUTE) / KIT.restMs), `${failures} failures in ten minutes`);
    world.diskFails = undefined;
    // A success needs no connection to be written.
    world.connected = false;
    await world.pass(MINUTE);
    assert.deepEqual(ends(world).toSorted(), [
      ["d1", "sent"],
      ["d3", "sent"],
    ]);
    world.connected = true;
    world.host.changed();
    await world.pass(MINUTE);
    assert.deepEqual(seen(world), ["Hello.", "Hello, Ben.", "Later."]);
  });

  test(`[P9] more conversations than outcomes are kept: none is sent to twice, on a platform ${platform}`, async () => {
    const world = resting(nonceMs);
    world.diskFails = noEnd;
    const count = KIT.unwrittenOutcomes + 3 * KIT.peersAtOnce;
    for (let n = 0; n < count; n++) world.account.send(world.message(`d${n}`, `peer${n}`, `to ${n}`));
    await world.pass(10 * MINUTE);
    assert.ok(world.shown.length > KIT.unwrittenOutcomes, `${world.shown.length} shown`);
    world.diskFails = undefined;
    await world.pass(HOUR);
    assert.deepEqual(seen(world).toSorted(), Array.from({ length: count }, (_, n) => `to ${n}`).toSorted());
    assert.equal(world.account.status().outboxWaiting, 0);
    const sent = world.reports.filter(({ state }) => state === "sent").length;
    // The memory is bounded: what is beyond it counts as interrupted.
    assert.ok(sent >= KIT.unwrittenOutcomes && sent < count, `${sent} sent`);
    assert.equal(world.reports.length, count);
  });

  test(`[P9] one failure at each statement of a delivery: it is shown once and reported as sent, on a platform ${platform}`, async () => {
    let isOver = false;
    for (let at = 0; !isOver; at++) {
      const world = resting(nonceMs);
      await world.settle();
      let statements = 0;
      let failed = "";
      world.diskFails = (statement) => {
        if (statements++ !== at) return false;
        failed = statement;
        return true;
      };
      const message = world.message("d1", "anna", "Hello.");
      try {
        world.account.send(message);
      } catch {
        world.account.send(message);
      }
      await world.pass(30 * MINUTE);
      isOver = failed === "";
      assert.deepEqual([seen(world), new Set(world.reports.map(({ state }) => state))], [["Hello."], new Set(["sent"])], failed);
    }
  });
}

test("[CH23] a text that waited for a delivery is shown when its outcome is written later, or is found to be unknown", async () => {
  const world = resting(0);
  await world.account.start({});
  const live = (deliveryId: string, id: string) => world.account.live({ deliveryId, peer: { kind: "dm", id }, text: `to ${id} so far` });
  world.connected = false;
  for (const [id, peer] of [
    ["d1", "anna"],
    ["d3", "ben"],
  ] as const)
    world.account.send(world.message(id, peer, "Hello."));
  await world.settle();
  // This instance knows nothing of the attempt.
  world.db.query("UPDATE outbox SET state = 'trying', attempts = 1, first_at = ? WHERE delivery = 'd3'", world.now);
  world.diskFails = noEnd;
  world.connected = true;
  world.host.changed();
  await world.settle();
  live("d2", "anna");
  live("d4", "ben");
  await world.pass(KIT.liveEveryMs);
  assert.deepEqual(seen(world), ["Hello."]);
  world.diskFails = undefined;
  await world.pass(MINUTE);
  assert.deepEqual(seen(world).toSorted(), ["Hello.", "to anna so far", "to ben so far"]);
});

for (const [nonceMs, state] of [
  [0, "unknown"],
  [2 * HOUR, "sent"],
] as const)
  test(`[P9] a crash while a success cannot be written: shown once, and ${state} with nonces of ${nonceMs} ms`, async () => {
    const world = resting(nonceMs);
    world.diskFails = noEnd;
    world.account.send(world.message("d1", "anna", "Hello."));
    await world.pass(10 * MINUTE);
    world.diskFails = undefined;
    world.kill();
    await world.pass(HOUR);
    assert.deepEqual([seen(world), ends(world)], [["Hello."], [["d1", state]]]);
  });

test("[P9] what did not reach the platform is tried again, also when that could not be written, and after ten attempts it fails", async () => {
  const world = resting(0);
  let tries = 0;
  world.sendOutcome = () => {
    tries += 1;
    return { kind: "retry", error: "502" };
  };
  let failures = 0;
  world.diskFails = (statement) => statement.startsWith("UPDATE outbox SET state = 'waiting'") && failures++ % 3 !== 2;
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(3 * HOUR);
  assert.deepEqual([tries, ends(world)], [KIT.sendTries, [["d1", "failed"]]]);
});

test("[P9][ST9] an attempt that was held before it was sent is not unknown when that cannot be written", async () => {
  const world = resting(0);
  await world.account.start({});
  let open: (() => void) | undefined;
  world.account.live({ deliveryId: "d1", peer: anna, text: "so far", askFrom: world.now + LIMITS.sendPermitMs });
  await world.settle();
  world.db.query("UPDATE live SET message = ''");
  world.recognisesNonceMs = HOUR;
  world.kill();
  world.gate = new Promise((resolve) => {
    open = resolve;
  });
  world.account.send(world.message("d1", "anna", "the answer", { askFrom: world.now + LIMITS.sendPermitMs }));
  for (let turns = 0; turns < 20; turns++) await Promise.resolve();
  world.stopped = true;
  world.account.recheck();
  world.diskFails = (statement) => statement.startsWith("UPDATE outbox SET state = 'waiting', attempts");
  world.gate = undefined;
  open?.();
  await world.pass(MINUTE);
  assert.equal(world.db.query("SELECT 1 FROM outbox WHERE state = 'trying'").length, 1);
  world.diskFails = undefined;
  await world.pass(MINUTE);
  const rows = world.db.query<object>("SELECT state, attempts, first_at, unsure FROM outbox");
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [{ state: "waiting", attempts: 0, first_at: 0, unsure: 0 }],
  );
});

test("[P9] an unknown outcome and then a day without a connection: unknown, not failed", async () => {
  const world = resting(2 * DAY);
  world.nextPosts.push("answerLost");
  world.account.send(world.message("d1", "anna", "word ".repeat(100)));
  await world.settle();
  world.connected = false;
  world.account.send(world.message("d2", "anna", "Later."));
  await world.pass(DAY + HOUR);
  assert.equal(world.shown.length, 1);
  assert.deepEqual(world.reports, [
    {
      deliveryId: "d1",
      state: "unknown",
      messageIds: [],
      error: "the platform could not be reached for a day; the outcome of an earlier attempt is unknown",
    },
    { deliveryId: "d2", state: "failed", messageIds: [], error: "the platform could not be reached for a day" },
  ]);
});
test("[P9] a success that cannot be written for a day is a success", async () => {
  const world = resting(0);
  const began = world.now;
  let failures = 0;
  // After the day the disk fails once more: at the success, and not at the deadline that is looked at next.
  world.diskFails = (statement) => noEnd(statement) && (world.now <= began + DAY + MINUTE || failures++ === 0);
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.settle();
  world.now += DAY - 10 * MINUTE;
  await world.pass(HOUR);
  assert.ok(failures >= 2, `${failures} attempts to write it`);
  assert.deepEqual(ends(world), [["d1", "sent"]]);
});
test("[P9] a call that hangs after the connection was lost costs few alarms, however old the deliveries behind it are", async () => {
  const world = resting(0);
  world.connected = false;
  for (const id of ["d1", "d2"]) world.account.send(world.message(id, "anna", id));
  await world.pass(DAY - 10_000);
  world.connected = true;
  world.gate = new Promise(() => {});
  world.host.changed();
  await world.ring(1_000);
  world.connected = false;
  const { rings } = world;
  await world.ring(30_000);
  assert.ok(world.rings - rings <= 5, `${world.rings - rings} alarms`);
});
test("[P9] an interrupted attempt that this instance knows nothing of ends as unknown after a day without a connection", async () => {
  const world = resting(0);
  world.connected = false;
  world.account.send(world.message("d1", "anna", "Hello."));
  world.db.query("UPDATE outbox SET state = 'trying', attempts = 1, first_at = ?", world.now);
  await world.pass(DAY + HOUR);
  assert.deepEqual(ends(world), [["d1", "unknown"]]);
});
test("[P9] an unknown outcome and then failures until the tries are spent: unknown, not failed", async () => {
  const world = resting(DAY);
  world.nextPosts.push("answerLost", ...Array<keyof Faults>(20).fill("fails"));
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(3 * HOUR);
  assert.deepEqual([seen(world), ends(world)], [["Hello."], [["d1", "unknown"]]]);
});
test("[P9] an unknown outcome and then a refusal: unknown, not failed, and the later parts are not tried", async () => {
  const world = resting(HOUR);
  world.nextPosts.push("answerLost");
  const tried: string[] = [];
  world.sendOutcome = ({ partId }) => {
    tried.push(partId);
    return tried.length > 1 ? { kind: "failed", error: "403" } : undefined;
  };
  world.account.send(world.message("d1", "anna", "word ".repeat(100)));
  await world.pass(HOUR);
  assert.deepEqual(tried, ["d1/0", "d1/0"]);
  assert.deepEqual(world.reports, [
    { deliveryId: "d1", state: "unknown", messageIds: [], error: "403; the outcome of an earlier attempt is unknown" },
  ]);
  assert.equal(world.account.status().outboxWaiting, 0);
});
test("[P9] an unknown outcome and then a success: sent", async () => {
  const world = resting(HOUR);
  world.nextPosts.push("answerLost", "fails");
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(HOUR);
  assert.deepEqual([seen(world), ends(world)], [["Hello."], [["d1", "sent"]]]);
});
test("[P9] a delivery whose first part is unknown does not become failed by the refusal of a later one", async () => {
  const world = resting(0);
  let parts = 0;
  world.sendOutcome = () => (++parts === 1 ? { kind: "unsure", error: "the connection broke" } : { kind: "failed", error: "403" });
  world.account.send(world.message("d1", "anna", "word ".repeat(100)));
  await world.pass(MINUTE);
  assert.equal(parts, 2);
  assert.deepEqual(world.reports, [{ deliveryId: "d1", state: "unknown", messageIds: [], error: "403" }]);
});

for (const atRest of [true, false])
  test(`[P2] one failure at each statement after a message is stored: it is accepted without a redelivery, at rest: ${atRest}`, async () => {
    // A resident account never ends; what concerns the message comes first.
    for (let at = 0; at < 40; at++) {
      const world = new World();
      world.atRest = atRest;
      // The platform is made before.
      const { host } = world;
      let statements = 0;
      let failed = "";
      let isStored = false;
      world.diskFails = (statement) => {
        isStored ||= statement === "COMMIT";
        if (!isStored || statement === "COMMIT" || statements++ !== at) return false;
        failed = statement;
        return true;
      };
      assert.equal(host.take(world.item("anna", "1")), true, failed);
      await world.pass(20 * MINUTE);
      world.diskFails = undefined;
      assert.deepEqual([world.accepted.length, world.account.status().inboxWaiting], [1, 0], failed);
    }
  });
test("[P2][P12] a message is accepted when the alarm cannot be computed and the instance dies", async () => {
  const world = new World();
  world.atRest = true;
  const { host } = world;
  world.diskFails = (statement) => statement.startsWith("SELECT peer, next_at");
  assert.equal(host.take(world.item("anna", "1")), true);
  await world.settle();
  assert.ok(world.alarmAt !== undefined && world.alarmAt <= world.now + KIT.restMs);
  world.diskFails = undefined;
  world.kill();
  await world.pass(35_000);
  assert.equal(world.accepted.length, 1);
});
test("[P2] a redelivery begins the work again that its first copy could not begin", async () => {
  const world = new World();
  world.atRest = true;
  const { host } = world;
  world.diskFails = (statement) => statement.startsWith("SELECT peer, next_at");
  host.take(world.item("anna", "1"));
  await world.settle();
  world.diskFails = undefined;
  assert.equal(host.take(world.item("anna", "1")), false);
  await world.settle();
  assert.equal(world.accepted.length, 1);
});
test("[P9] a delivery is taken, and the gateway is told so, when the alarm cannot be computed", async () => {
  const world = resting(0);
  await world.settle();
  world.diskFails = (statement) => statement.startsWith("SELECT peer, next_at");
  assert.deepEqual(world.account.send(world.message("d1", "anna", "Hello.")), { status: "queued" });
  await world.settle();
  world.diskFails = undefined;
  await world.pass(MINUTE);
  assert.deepEqual(seen(world), ["Hello."]);
});
test("[P12] a connection whose report cannot be stored still starts the work that waited for it", async () => {
  const world = resting(0);
  world.connected = false;
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.settle();
  world.connected = true;
  world.diskFails = (statement) => statement.startsWith("INSERT INTO kv");
  assert.throws(() => world.host.changed());
  await world.settle();
  assert.deepEqual(seen(world), ["Hello."]);
});
for (const setBackMs of [0, DAY])
  test(`[P12] errors in work that is asked for all the time do not put off the alarm, which connects; the clock is set back by ${setBackMs} ms`, async () => {
    const world = new World();
    await world.account.start({});
    world.diskFails = (statement) => statement.startsWith("SELECT peer, next_at");
    world.now += setBackMs;
    world.account.recheck();
    await world.settle();
    world.now -= setBackMs;
    const before = world.connects;
    for (let n = 0; n < 60; n++) {
      world.account.recheck();
      await world.pass(5_000);
    }
    const connects = world.connects - before;
    const least = (60 * 5_000) / (2 * KIT.restMs);
    assert.ok(connects >= least, `${connects} times`);
  });

/** The network and the disk, for one history each. */
const STORMS: readonly { readonly network: Faults; readonly disk: number; readonly refuses: number }[] = [
  { network: CALM, disk: 0.03, refuses: 0 },
  { network: CALM, disk: 0.3, refuses: 0 },
  { network: { fails: 0.2, answerLost: 0.2, dies: 0 }, disk: 0.1, refuses: 0.1 },
  { network: { fails: 0.1, answerLost: 0.1, dies: 0.1 }, disk: 0.05, refuses: 0 },
  { network: { fails: 0.1, answerLost: 0.1, dies: 0.1 }, disk: 0.3, refuses: 0.1 },
];
const HISTORIES = sized(40, 400);
test(`[P2][P3][P9] ${HISTORIES} random histories on a disk that fails: nothing is lost or doubled, and each delivery ends as it is reported`, async () => {
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const world = new World(seed);
    const luck = seeded(seed);
    const storm = STORMS[seed % STORMS.length];
    if (!storm) throw new Error("no storm");
    world.recognisesNonceMs = [0, 300_000, 2 * HOUR, DAY][Math.floor(seed / STORMS.length) % 4] ?? 0;
    world.atRest = luck() < 0.5;
    if (!world.atRest) await world.account.start({});
    const isCalm = storm.network === CALM;
    const inbound: string[] = [];
    const outbound: string[] = [];
    // Calls of the gateway and the platform are repeated until they have returned, in order.
    let calls: { readonly list: string[]; readonly name: string; readonly call: () => unknown }[] = [];
    const callAll = (): void => {
      while (calls[0]) {
        const { list, name, call } = calls[0];
        try {
          call();
        } catch {
          return;
        }
        list.push(name);
        calls = calls.slice(1);
      }
    };
    world.sendOutcome = () => (luck() < storm.refuses && world.faults !== CALM ? { kind: "failed", error: "403" } : undefined);
    for (let step = 0; step < 14; step++) {
      world.faults = storm.network;
      world.diskFails = luck() < 0.7 ? () => luck() < storm.disk : undefined;
      const peer = luck() < 0.5 ? "anna" : "bert";
      const name = `${peer}/${step}`;
      if (luck() < 0.4) calls.push({ list: inbound, name, call: () => world.host.take(world.item(peer, `${step}`)) });
      else {
        // Messages of the system pass those of agents while everything is stopped.
        const isAgents = luck() < 0.5;
        const id = `${name} of ${isAgents ? "an agent" : "the system"}`;
        const more = isAgents ? { askFrom: world.now + LIMITS.sendPermitMs } : {};
        calls.push({ list: outbound, name: id, call: () => world.account.send(world.message(id, peer, id, more)) });
      }
      callAll();
      const act = luck();
      if (!isCalm && act < 0.15) world.kill();
      else if (act < 0.25) world.connected = !world.connected;
      else if (act < 0.35) {
        world.stopped = !world.stopped;
        world.account.recheck();
      }
      await world.pass(Math.floor(luck() * (luck() < 0.8 ? 3_000 : 4 * MINUTE)));
    }
    world.faults = CALM;
    world.diskFails = undefined;
    callAll();
    if (!world.connected) {
      world.connected = true;
      world.host.changed();
    }
    if (world.stopped) {
      world.stopped = false;
      world.account.recheck();
    }
    await world.pass(HOUR);

    const what = `seed ${seed}`;
    const taken = world.accepted.map(({ peer, message }) => `${peer.id}/${message.id}`);
    const states = new Map(world.reports.map(({ deliveryId, state }) => [deliveryId, state]));
    for (const { deliveryId, state } of world.reports) assert.equal(state, states.get(deliveryId), `${what}: ${deliveryId} ends twice`);
    for (const name of outbound) {
      const times = seen(world).filter((text) => text === name).length;
      const state = states.get(name);
      const known = state === "sent" ? times === 1 : state === "failed" ? times === 0 : state === "unknown" && times <= 1 && !isCalm;
      assert.ok(known, `${what}: ${name} was shown ${times} times and is ${state}`);
    }
    for (const peer of ["anna", "bert"]) {
      const of = (names: readonly string[], end = ""): readonly string[] =>
        names.filter((name) => name.startsWith(peer) && name.endsWith(end));
      assert.deepEqual(of(taken), of(inbound), what);
      const shown = seen(world);
      const sent = outbound.filter((name) => shown.includes(name));
      for (const end of ["agent", "system"]) assert.deepEqual(of(shown, end), of(sent, end), what);
    }
    const { inboxWaiting, outboxWaiting } = world.account.status();
    assert.deepEqual([inboxWaiting, outboxWaiting], [0, 0], what);
  }
});
test("[P9] conversations whose outcomes cannot be written never hide the others", async () => {
  const world = resting(0);
  world.diskFails = noEnd;
  // As many as an instance keeps outcomes of. If these were all that one look sees, no other conversation would get its turn.
  const blocked = KIT.unwrittenOutcomes;
  for (let n = 0; n < blocked; n++) world.account.send(world.message(`d${n}`, `peer${n}`, `to ${n}`));
  await world.pass(HOUR);
  assert.equal(seen(world).length, Math.min(blocked, KIT.headRows));
  world.account.send(world.message("other", "anna", "Hello."));
  await world.pass(10 * MINUTE);
  assert.ok(seen(world).includes("Hello."));
});
