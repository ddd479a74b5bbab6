/** A whole account: crashes, calls without an answer, start and stop, and random histories of all of them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { KIT } from "../src/limits.ts";
import { nonceOf } from "../src/nonce.ts";
import { CALM, type Faults, World } from "./world.ts";
import { sized } from "../../../test/sizes.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test("[P12] a new configuration closes the old socket before it opens a new one, also when an alarm fires in between", async () => {
  const world = new World();
  await world.account.start({});
  let release: () => void = () => {};
  world.disconnecting = new Promise((resolve) => {
    release = resolve;
  });
  const started = world.account.start({ other: true });
  const alarm = world.account.alarm();
  release();
  await Promise.all([started, alarm]);
  assert.deepEqual(world.sockets, { now: 1, most: 1 });
});

test("[P12] a connection attempt that never ends is given up: start answers, messages leave, and the next alarm connects", async () => {
  const world = new World();
  world.connecting = new Promise(() => {});
  let hasAnswered = false;
  void world.account.start({}).then(() => {
    hasAnswered = true;
  });
  await world.pass(KIT.connectMs - 1);
  assert.deepEqual([hasAnswered, world.connects], [false, 1]);
  await world.pass(1);
  assert.equal(hasAnswered, true);
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(1_000);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Hello."],
  );
  world.connecting = undefined;
  await world.pass(2 * KIT.residentMs);
  assert.deepEqual(world.sockets, { now: 1, most: 1 });
});

test("[P12] a socket that never closes does not keep a new configuration from its connection", async () => {
  const world = new World();
  await world.account.start({});
  world.disconnecting = new Promise(() => {});
  let hasAnswered = false;
  void world.account.start({ other: true }).then(() => {
    hasAnswered = true;
  });
  await world.pass(KIT.disconnectMs);
  assert.deepEqual([hasAnswered, world.connects, world.configs.at(-1)], [true, 2, { other: true }]);
});

/** Whether a call has answered, and how. */
function answerOf(call: Promise<unknown>): { text: string } {
  const answer = { text: "none" };
  call.then(
    () => (answer.text = "ok"),
    (error: unknown) => (answer.text = error instanceof Error ? error.message : "failed"),
  );
  return answer;
}
const NEVER = new Promise<void>(() => {});

test("[CH26] a stop, a logout and a login answer also when the platform does not", async () => {
  for (const [act, ms, said] of [
    ["stop", KIT.disconnectMs, "ok"],
    ["logout", KIT.logoutMs, "ok"],
    ["login", KIT.loginMs, "logging in took longer than 45 s"],
  ] as const) {
    const world = new World();
    world.hasLogout = true;
    world.loginState = "connected";
    await world.account.start({});
    if (act === "stop") world.disconnecting = NEVER;
    else world.answering = NEVER;
    const answer = answerOf(act === "login" ? world.account.login({ force: false }) : world.account[act]());
    await world.pass(ms - 1);
    assert.equal(answer.text, "none", act);
    await world.pass(1);
    assert.equal(answer.text, said);
    assert.equal(world.account.status().extra?.["started"], act === "login", act);
    assert.equal(world.sockets.now, act === "logout" ? 0 : 1, act);
    if (act === "stop") assert.match(world.logs.join(), /disconnect_failed/);
  }
});

test("[CH26] a logout says what the platform did, and a failure of its own is none of the platform", async () => {
  for (const [answer, said] of [
    ["confirmed", undefined],
    ["unconfirmed", true],
    ["late", true],
    ["broken", "the storage failed"],
  ] as const) {
    const world = new World();
    world.hasLogout = true;
    await world.account.start({});
    if (answer === "late") world.answering = NEVER;
    else if (answer === "broken") world.answering = Promise.reject(new Error("the storage failed"));
    else world.logoutOutcome = answer;
    const call = world.account.logout().then(
      (state) => state.logoutUnconfirmed,
      (error: unknown) => (error instanceof Error ? error.message : "failed"),
    );
    await world.pass(KIT.logoutMs);
    assert.equal(await call, said, answer);
    const { extra, logoutUnconfirmed } = world.account.status();
    assert.deepEqual([extra?.["started"], logoutUnconfirmed], [false, undefined], answer);
  }
});

/** The wait of the command line in a Rust file, in ms. */
function waitOf(path: string, name: string): number {
  const text = readFileSync(join(import.meta.dirname, "../../..", path), "utf8");
  const found = new RegExp(`const ${name}: Duration = Duration::from_secs\\((\\d+)\\);`).exec(text);
  assert.ok(found?.[1], `${path} has no ${name} in seconds`);
  return Number(found[1]) * 1_000;
}

test("[CH26] a start, a stop, a logout and a login of a platform that never answers end before the command line gives up", async () => {
  const wait = waitOf("cli/src/commands/channel_login.rs", "PATIENCE");
  const MARGIN = 5_000;
  for (const [act, limit] of [
    ["start", 28_000],
    ["stop", 20_000],
    ["logout", 25_000],
    ["logout of a platform without one", 25_000],
    ["login", 50_000],
  ] as const) {
    assert.ok(limit <= wait - MARGIN, act);
    const world = new World();
    world.hasLogout = act === "logout";
    world.loginState = "connected";
    await world.account.start({ token: "T" });
    world.connecting = NEVER;
    world.disconnecting = NEVER;
    world.answering = NEVER;
    // An attempt to connect has begun.
    void world.account.alarm();
    await world.pass(0);
    const before = world.connects;
    const { account } = world;
    const answer = answerOf(
      act === "start"
        ? account.start({ token: "OTHER" })
        : act === "stop"
          ? account.stop()
          : act === "login"
            ? account.login({ force: true })
            : account.logout(),
    );
    await world.pass(limit);
    assert.notEqual(answer.text, "none", `${act} within ${limit} ms`);
    if (act === "start") assert.equal(world.connects, before + 1);
  }
});

test("[S5] a logout deletes the token before it asks a platform that may not answer", async () => {
  const world = new World();
  await world.account.start({ token: "SECRET" });
  world.disconnecting = NEVER;
  const answer = answerOf(world.account.logout());
  await world.settle();
  assert.equal(JSON.stringify(world.db.query("SELECT * FROM kv")).includes("SECRET"), false);
  await world.pass(KIT.disconnectMs);
  assert.equal(answer.text, "ok");
  assert.deepEqual([world.configs.at(-1), world.account.status().extra?.["started"]], [{}, false]);
});

test("[P12] a connection that opens after a stop or for an earlier configuration is closed", async () => {
  for (const act of ["stop", "start"] as const)
    for (const ms of [KIT.connectMs, 1_000]) {
      const world = new World();
      let release: () => void = () => {};
      world.connecting = new Promise((resolve) => {
        release = resolve;
      });
      const first = world.account.start({});
      await world.pass(ms);
      world.connecting = undefined;
      const second = act === "stop" ? world.account.stop() : world.account.start({ other: true });
      await world.pass(0);
      release();
      await Promise.all([first, second]);
      await world.settle();
      assert.equal(world.sockets.now, act === "stop" ? 0 : 1, `${act} after ${ms} ms`);
    }
});

test("[P12] attempts to connect that do not end do not pile up, and the account connects when they end", async () => {
  const world = new World();
  let release: () => void = () => {};
  world.connecting = new Promise((resolve) => {
    release = resolve;
  });
  void world.account.start({});
  await world.pass(HOUR);
  assert.ok(world.connects >= 3 && world.connects <= 8, `${world.connects} in an hour`);
  await world.pass(10 * HOUR);
  assert.ok(world.connects >= 12 && world.connects <= 18, `${world.connects} in eleven hours`);
  world.connecting = undefined;
  const before = world.connects;
  release();
  await world.pass(MINUTE);
  assert.ok(world.connects > before);
  assert.deepEqual(world.sockets, { now: 1, most: 1 });
});

test("[S5] start merges settings: a token survives a stop; null removes it", async () => {
  const world = new World();
  await world.account.start({ token: "SECRET", selfChat: true });
  await world.account.stop();
  await world.account.start({});
  assert.deepEqual(world.configs.at(-1), { token: "SECRET", selfChat: true });
  await world.account.start({ selfChat: false });
  assert.deepEqual(world.configs.at(-1), { token: "SECRET", selfChat: false });
  world.kill();
  await world.account.start({ token: null });
  world.account.status();
  assert.deepEqual(world.configs.at(-1), { selfChat: false });
  assert.equal(JSON.stringify(world.account.status()).includes("SECRET"), false);
});

test("[S5] a logout without a login deletes the configuration and its token", async () => {
  const world = new World();
  await world.account.start({ token: "SECRET" });
  await world.account.logout();
  assert.equal(world.sockets.now, 0);
  assert.deepEqual(world.configs.at(-1), {});
  assert.equal(JSON.stringify(world.db.query("SELECT * FROM kv")).includes("SECRET"), false);
});

test("a platform with a logout of its own keeps its configuration for the next login", async () => {
  const world = new World();
  world.hasLogout = true;
  await world.account.start({ selfChat: true });
  const { connected } = await world.account.logout();
  assert.deepEqual([world.logouts, connected, world.sockets.now], [1, false, 0]);
  await world.account.start({});
  assert.deepEqual(world.configs.at(-1), { selfChat: true });
});

test("[P12] after a restart the first status call connects, without waiting for the alarm", async () => {
  const world = new World();
  await world.account.start({});
  world.kill();
  world.sockets.now = 0;
  world.account.status();
  await world.settle();
  assert.equal(world.sockets.now, 1);
  await world.account.stop();
  world.kill();
  world.account.status();
  await world.settle();
  assert.equal(world.sockets.now, 0);
});

test("[P12] a status call of an account that runs, or that is stopped, sets no alarm", async () => {
  const world = new World();
  await world.account.start({});
  await world.pass(MINUTE);
  const set = world.alarmsSet;
  world.account.status();
  await world.settle();
  assert.equal(world.alarmsSet, set);
  await world.account.stop();
  world.kill();
  const after = world.alarmsSet;
  world.account.status();
  await world.settle();
  assert.equal(world.alarmsSet, after);
});

test("[P9] the platform reads a part's file by its delivery; a part without a file has nothing to read", async () => {
  const world = new World();
  const parts: Promise<unknown>[] = [];
  world.sendOutcome = (part) => {
    parts.push(world.host.readFile(part, 5));
    return undefined;
  };
  const media = [{ type: "document" as const, mimeType: "text/csv", r2Key: "media/a" }];
  world.account.send(world.message("d1", "anna", "Here.", { media }));
  await world.pass(MINUTE);
  assert.deepEqual(await Promise.all(parts), [null, null]);
  assert.deepEqual(world.reads, [{ deliveryId: "d1", r2Key: "media/a", maxBytes: 5 }]);
});

test("[P7] connectedSince starts again after a break and after a restart", async () => {
  const world = new World();
  await world.account.start({});
  const since = world.account.status().connectedSince;
  assert.equal(since, world.now);
  await world.pass(HOUR);
  assert.equal(world.account.status().connectedSince, since);
  world.connected = false;
  world.host.changed();
  assert.equal("connectedSince" in world.account.status(), false);
  world.connected = true;
  world.host.changed();
  const again = world.now;
  await world.pass(HOUR);
  assert.equal(world.account.status().connectedSince, again);
  world.kill();
  assert.equal(world.account.status().connectedSince, world.now);
});

test("[P9] a stopped account sends nothing, also on a platform without a connection; it continues after a start", async () => {
  const world = new World();
  await world.account.start({});
  const { connected } = await world.account.stop();
  assert.equal(connected, false);
  world.account.send(world.message("d1", "anna", "waits"));
  await world.pass(HOUR);
  world.kill();
  await world.pass(HOUR);
  assert.deepEqual([world.shown.length, world.account.status().outboxWaiting], [0, 1]);
  await world.account.start({});
  await world.pass(1000);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["waits"],
  );
});

test("[P9] a new instance connects with its first task, not only with its alarm", async () => {
  const world = new World();
  await world.account.start({});
  world.kill();
  const before = world.sockets.now;
  world.account.send(world.message("d1", "anna", "at once"));
  await world.settle();
  assert.equal(world.sockets.now, before + 1);
  assert.equal(world.shown.length, 1);
});

test("[P7] typing is shown only while the platform is connected", async () => {
  const world = new World();
  world.connected = false;
  world.account.typing({ kind: "dm", id: "anna" }, true);
  await world.pass(MINUTE);
  assert.deepEqual(world.typed, []);
});

test("[P10] the reaction in the gateway's answer is shown at the message; without one there is none", async () => {
  const world = new World();
  world.outcomeOf = ({ message }) => ({ outcome: "accepted", ...(message.id === "1" ? { reaction: "eyes" } : {}) });
  for (const id of ["1", "2"]) world.host.take(world.item("anna", id));
  await world.pass(MINUTE);
  assert.deepEqual(world.reactions, ["anna/1 eyes"]);
});

test("[P10] nothing late and no flood: the status has no such numbers", async () => {
  const world = new World();
  await world.account.start({});
  const status = world.account.status();
  assert.equal("tooLate" in status, false);
  assert.deepEqual(status.extra, { started: true });
});

test("[P10] a platform without a login says what to do instead, and whether its token works", async () => {
  const world = new World();
  assert.equal((await world.account.login({ force: false })).state, "connected");
  world.authenticated = false;
  const { state, message } = await world.account.login({ force: false });
  assert.equal(state, "failed");
  assert.match(message ?? "", /Set its token/);
});
test("[P10] a login starts the account and reaches the platform with its options", async () => {
  const world = new World();
  await world.account.stop();
  world.kill();
  world.loginState = "connected";
  assert.equal((await world.account.login({ force: true, phone: "31612345678" })).state, "connected");
  assert.deepEqual(world.logins, [{ force: true, phone: "31612345678" }]);
  assert.equal(world.account.status().extra?.["started"], true);
});

test("[P12] the alarm looks after the connection in every interval", async () => {
  const world = new World();
  await world.account.start({});
  const before = world.connects;
  await world.pass(3 * KIT.residentMs + 1_000);
  assert.ok(world.connects >= before + 3, `${world.connects - before} times`);
});
test("[P12] an alarm that comes early enough is not set again", async () => {
  const world = new World();
  world.atRest = true;
  world.gate = never();
  for (let n = 0; n < 5; n++) world.host.take(world.item(`peer${n}`, "1"));
  assert.equal(world.alarmsSet, 1);
});

test("[P12] a nonce is the same in every version: an instance of a new version repeats what an old one began", () => {
  assert.equal(nonceOf("s1/r1/0"), "BP0fTps5ZftY4SkZ2yBrCanA");
});
test("nonces are distinct and short enough", () => {
  const seen = new Set<string>();
  for (let n = 0; n < 20_000; n++) {
    const nonce = nonceOf(`s1/r${n}/0`);
    assert.match(nonce, /^[A-Za-z0-9]{24}$/);
    seen.add(nonce);
  }
  assert.equal(seen.size, 20_000);
});

const STORMS: readonly Faults[] = [
  { fails: 0.3, answerLost: 0, dies: 0 },
  { fails: 0, answerLost: 0.3, dies: 0 },
  { fails: 0, answerLost: 0, dies: 0.2 },
  { fails: 0.15, answerLost: 0.15, dies: 0.1 },
];
const HISTORIES = sized(32, 120);
test(`[P2][P3][P9] ${HISTORIES} random histories of failures and crashes: nothing is lost, doubled or out of order`, async () => {
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const world = new World(seed);
    await world.account.start({});
    const storm = STORMS[seed % STORMS.length] ?? STORMS[0];
    if (storm) world.faults = storm;
    const inbound: string[] = [];
    const outbound: string[] = [];
    for (let step = 0; step < 12; step++) {
      const peer = world.random() < 0.5 ? "anna" : "bert";
      const id = `${step}`;
      if (world.random() < 0.5) {
        inbound.push(`${peer}/${id}`);
        // A platform redelivers a message until it is acknowledged.
        for (let times = world.random() < 0.3 ? 2 : 1; times > 0; times--) world.host.take(world.item(peer, id));
      } else {
        outbound.push(`${peer}/${id}`);
        const text = world.random() < 0.3 ? `${peer}/${id} ${"word ".repeat(60)}end` : `${peer}/${id} end`;
        for (let times = world.random() < 0.3 ? 2 : 1; times > 0; times--) world.account.send(world.message(`d${id}`, peer, text));
      }
      if (world.random() < 0.2) world.kill();
      if (world.random() < 0.2) world.connected = !world.connected;
      await world.pass(Math.floor(world.random() * 3000));
    }
    world.connected = true;
    world.faults = { fails: 0, answerLost: 0, dies: 0 };
    await world.pass(20 * MINUTE);
    const what = `seed ${seed}`;
    const taken = world.accepted.map(({ peer, message }) => `${peer.id}/${message.id}`);
    assert.deepEqual(taken.toSorted(), inbound.toSorted(), what);
    const seen = world.shown.map(({ text }) => text).join(" ");
    for (const name of outbound) assert.equal(seen.split(`${name} `).length, 2, `${what}: ${name}`);
    assert.equal(seen.split("end").length - 1, outbound.length, what);
    for (const peer of ["anna", "bert"]) {
      assert.deepEqual(
        taken.filter((name) => name.startsWith(peer)),
        inbound.filter((name) => name.startsWith(peer)),
        what,
      );
      const shown = world.shown.filter((message) => message.peer === peer).flatMap(({ text }) => /^(\w+\/\d+) /.exec(text)?.[1] ?? []);
      assert.deepEqual(
        shown,
        outbound.filter((name) => name.startsWith(peer)),
        what,
      );
    }
    assert.equal(world.account.status().inboxWaiting, 0, what);
    assert.equal(world.account.status().outboxWaiting, 0, what);
    const reported = new Map(world.reports.map(({ deliveryId, state }) => [deliveryId, state]));
    assert.equal(reported.size, outbound.length, what);
    for (const state of reported.values()) assert.equal(state, "sent", what);
  }
});

test("[P12] an account that waits for a person is not kept in memory; its queued deliveries fail visibly after a day", async () => {
  const world = new World();
  await world.account.start({});
  await world.pass(5 * MINUTE);
  assert.ok((world.alarmAt ?? 0) > world.now, "the connection has an alarm");
  Object.assign(world, { connected: false, atRest: true });
  await world.pass(MINUTE);
  assert.equal(world.alarmAt, undefined);
  world.account.send(world.message("d1", "anna", "hello"));
  await world.pass(23 * HOUR);
  assert.deepEqual([world.reports.length, world.account.status().outboxWaiting], [0, 1]);
  await world.pass(2 * HOUR);
  assert.deepEqual(
    world.reports.map(({ deliveryId, state }) => [deliveryId, state]),
    [["d1", "failed"]],
  );
  assert.equal(world.alarmAt, undefined);
});
test("[P12] work that fails is tried again after a rest, not at once, and goes on when its cause is gone", async () => {
  const world = new World();
  Object.assign(world, { connected: false, atRest: true });
  world.account.send(world.message("d1", "anna", "hello"));
  await world.pass(23 * HOUR);
  // The delivery fails after a day, and that can't be stored: its time stays in the past.
  world.db.query("CREATE TRIGGER broken BEFORE DELETE ON outbox BEGIN SELECT RAISE(ABORT, 'the disk is broken'); END");
  await world.pass(HOUR);
  await world.pass(HOUR);
  const failures = world.logs.filter((line) => line.includes("work_failed")).length;
  assert.ok(failures >= 2 && failures <= HOUR / KIT.restMs + 1, `${failures} in an hour`);
  world.db.query("DROP TRIGGER broken");
  await world.pass(KIT.restMs);
  assert.deepEqual([world.reports.map(({ state }) => state), world.alarmAt], [["failed"], undefined]);
});
test("[P9] a stopped account reports deliveries that could not be sent for a day", async () => {
  const world = new World();
  await world.account.start({});
  await world.account.stop();
  world.connected = false;
  world.account.send(world.message("d1", "anna", "hello"));
  await world.pass(25 * HOUR);
  assert.equal(world.reports[0]?.state, "failed");
  assert.equal(world.alarmAt, undefined);
});

const never = (): Promise<void> => new Promise(() => {});
test("[P12] a crash during a handover: the next instance starts by itself, also on a platform without a connection", async () => {
  const world = new World();
  world.atRest = true;
  world.gate = never();
  world.host.take(world.item("anna", "1"));
  // The first alarm fires before the gateway has answered.
  await world.ring(1_000);
  world.gate = undefined;
  world.kill();
  await world.pass(35_000);
  assert.deepEqual(
    world.accepted.map(({ message }) => message.id),
    ["1"],
  );
});
test("[P12][P9] a crash during a send or a report: the next instance starts by itself", async () => {
  const world = new World();
  world.atRest = true;
  world.gate = never();
  world.account.send(world.message("d1", "anna", "hello"));
  await world.ring(1_000);
  world.gate = undefined;
  world.kill();
  await world.pass(35_000);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["hello"],
  );
  world.reports.length = 0;
  world.account.send(world.message("d2", "anna", "again"));
  world.sendOutcome = () => {
    world.gate = never();
    return { kind: "sent", messageId: "m9" };
  };
  await world.ring(1_000);
  world.gate = undefined;
  world.kill();
  await world.pass(35_000);
  assert.deepEqual(
    world.reports.map(({ deliveryId, state }) => [deliveryId, state]),
    [["d2", "sent"]],
  );
});
test("a gateway that does not answer costs few alarms, however many messages are queued", async () => {
  const world = new World();
  world.atRest = true;
  world.gate = never();
  for (let n = 0; n < 3 * KIT.peersAtOnce; n++) world.host.take(world.item(`peer${n}`, "1"));
  world.host.changed();
  await world.ring(25_000);
  assert.ok(world.rings <= 5, `${world.rings} alarms`);
});
test("[P3] a waiting conversation gets the first free slot", async () => {
  const world = new World();
  world.gate = never();
  for (let n = 0; n < KIT.peersAtOnce - 1; n++) world.host.take(world.item(`slow${n}`, "1"));
  await world.ring(1_000);
  world.gate = undefined;
  for (let n = 0; n < 5; n++) world.host.take(world.item(`peer${n}`, "1"));
  await world.ring(1_000);
  assert.equal(world.accepted.length, 5);
});
test("[P2] a full outbox for the gateway's replies: the handover is retried with backoff, not in a loop", async () => {
  const world = new World();
  world.connected = false;
  world.outcomeOf = ({ peer }) => ({ outcome: "held", replies: [{ deliveryId: "in:1", kind: "notice", peer, text: "Who are you?" }] });
  world.db.query(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${KIT.outboxRows})
     INSERT INTO outbox(delivery, part, peer, body, state, attempts, first_at, next_at) SELECT 'k' || i, 0, 'p', '{}', 'waiting', 0, 0, 9e15 FROM n`,
  );
  world.host.take(world.item("anna", "1"));
  await world.ring(10_000);
  assert.ok(world.handovers <= 10, `${world.handovers} times`);
  world.db.query("DELETE FROM outbox");
  world.connected = true;
  await world.pass(10 * MINUTE);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Who are you?"],
  );
  assert.equal(world.account.status().inboxWaiting, 0);
});
test("[P3][P12] the alarm waits for no call: while one hangs, alarms fire and other conversations continue", async () => {
  const world = new World();
  world.faults = { fails: 1, answerLost: 0, dies: 0 };
  world.host.take(world.item("anna", "1"));
  world.account.send(world.message("d1", "ben", "hello"));
  await world.settle();
  world.faults = CALM;
  // The second attempt of the message hangs; the one of the answer is due a moment later.
  world.hangs = ({ peer }) => peer.id === "anna";
  world.now += 2_000;
  let ended = false;
  void world.account.alarm().then(() => {
    ended = true;
  });
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(ended, "the alarm has ended");
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["hello"],
  );
  assert.ok((world.alarmAt ?? Number.POSITIVE_INFINITY) <= world.now + KIT.leaseMs);
});
test("[P9][P10] a call that hangs does not delay delivery reports", async () => {
  const world = new World();
  world.now += 24 * HOUR;
  world.sendOutcome = () => {
    world.faults = { fails: 1, answerLost: 0, dies: 0 };
    return { kind: "failed", error: "blocked" };
  };
  world.account.send(world.message("d1", "anna", "hello"));
  await world.settle();
  assert.equal(world.reports.length, 0);
  world.now -= 24 * HOUR;
  world.faults = CALM;
  world.host.changed();
  await world.pass(MINUTE);
  assert.deepEqual(
    world.reports.map(({ deliveryId, state }) => [deliveryId, state]),
    [["d1", "failed"]],
  );
});
test("[P2][P9] a clock that is set back delays no conversation by the difference", async () => {
  const world = new World();
  world.now += 24 * HOUR;
  world.faults = { fails: 1, answerLost: 0, dies: 0 };
  world.host.take(world.item("anna", "1"));
  world.account.send(world.message("d1", "anna", "hello"));
  await world.settle();
  world.now -= 24 * HOUR;
  world.faults = CALM;
  world.host.take(world.item("anna", "2"));
  await world.pass(MINUTE);
  assert.deepEqual(
    world.accepted.map(({ message }) => message.id),
    ["1", "2"],
  );
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["hello"],
  );
});
