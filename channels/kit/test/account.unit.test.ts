import assert from "node:assert/strict";
import { test } from "node:test";
import { KIT } from "../src/limits.ts";
import { nonceOf } from "../src/outbox.ts";
import { CALM, type Faults, World } from "./world.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

// ---------------------------------------------------------------- what comes in

test("[P2] a message is durable before take returns, and handed over once", async () => {
  const world = new World();
  assert.equal(world.host.take(world.item("anna", "1")), true);
  assert.equal(world.host.take(world.item("anna", "1")), false);
  await world.pass(1000);
  assert.deepEqual(
    world.accepted.map(({ message }) => message.id),
    ["1"],
  );
  assert.equal(world.handovers, 1);
  assert.deepEqual(world.acknowledged, [{ ack: "1" }]);
  assert.equal(world.host.take(world.item("anna", "1")), false);
  await world.pass(HOUR);
  assert.equal(world.handovers, 1);
});

test("[P2] the same id of another conversation is another message", async () => {
  const world = new World();
  assert.equal(world.host.take(world.item("anna", "1")), true);
  assert.equal(world.host.take(world.item("bert", "1")), true);
  await world.pass(1000);
  assert.equal(world.accepted.length, 2);
});

test("[P2][W23] while the gateway is away fifty messages wait, and come in order", async () => {
  const world = new World();
  world.faults = { fails: 1, answerLost: 0, dies: 0 };
  for (let n = 1; n <= 50; n++) world.host.take(world.item(n % 2 === 0 ? "anna" : "bert", String(n)));
  await world.pass(10 * MINUTE);
  assert.equal(world.accepted.length, 0);
  assert.equal(world.account.status().inboxWaiting, 50);
  world.faults = { fails: 0, answerLost: 0, dies: 0 };
  await world.pass(KIT.retryMaxMs * 1.3);
  assert.equal(world.accepted.length, 50);
  for (const peer of ["anna", "bert"]) {
    const ids = world.accepted.filter((inbound) => inbound.peer.id === peer).map(({ message }) => Number(message.id));
    assert.deepEqual(
      ids,
      ids.toSorted((left, right) => left - right),
    );
  }
  // They came late, and say so.
  assert.ok(world.accepted.every(({ backlog }) => backlog === true));
  assert.equal(world.account.status().inboxWaiting, 0);
});

test("[P3] one conversation never waits for another", async () => {
  const world = new World();
  const inner = world.outcomeOf;
  world.outcomeOf = (inbound) => {
    if (inbound.peer.id === "stuck") throw new Error("no connection");
    return inner(inbound);
  };
  world.host.take(world.item("stuck", "1"));
  for (let n = 1; n <= 20; n++) world.host.take(world.item(`peer${n}`, "1"));
  await world.pass(5000);
  assert.equal(world.accepted.filter(({ peer }) => peer.id !== "stuck").length, 20);
});

test("[P2] a gateway that was away for days gets everything; what came too late to be answered is told, once for each conversation", async () => {
  const world = new World();
  world.faults = { fails: 1, answerLost: 0, dies: 0 };
  for (const id of ["1", "2", "3"]) world.host.take(world.item("anna", id));
  world.host.take(world.item("ben", "1"));
  await world.pass(25 * HOUR);
  assert.equal(world.accepted.length, 0);
  world.outcomeOf = ({ peer, message }) => ({
    outcome: "accepted",
    ...(peer.id === "anna" && message.id !== "3" ? { unanswered: "late" } : {}),
  });
  world.faults = { fails: 0.2, answerLost: 0.5, dies: 0.1 };
  await world.pass(HOUR);
  world.faults = CALM;
  await world.pass(HOUR);
  assert.deepEqual(
    world.accepted.filter(({ peer }) => peer.id === "anna").map(({ message }) => message.id),
    ["1", "2", "3"],
  );
  assert.equal(world.account.status().inboxWaiting, 0);
  assert.equal(world.account.status().tooLate, 2);
  assert.deepEqual(
    world.shown.map(({ peer, text }) => [peer, text.slice(0, 40)]),
    [["anna", "2 messages reached me more than a day la"]],
  );
});

test("[P10] also of a conversation with a long name it is told again, when it happens again", async () => {
  const world = new World();
  world.outcomeOf = () => ({ outcome: "accepted", unanswered: "late" });
  for (const id of ["1", "2"]) {
    world.host.take(world.item("x".repeat(200), id));
    await world.pass(HOUR);
  }
  assert.equal(world.shown.length, 2);
});

test("[P2] what the gateway answers at once is sent, also when the answer came twice", async () => {
  const world = new World();
  world.outcomeOf = ({ message, peer }) => ({
    outcome: "held",
    replies: [{ deliveryId: `in:${message.id}`, kind: "notice", peer, text: "You have to be let in first." }],
  });
  world.faults = { fails: 0, answerLost: 0.5, dies: 0 };
  world.host.take(world.item("stranger", "1"));
  await world.pass(HOUR);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["You have to be let in first."],
  );
});

test("a full inbox takes nothing more, and the platform sees that", () => {
  const world = new World();
  world.db.query(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${KIT.inboxRows})
     INSERT INTO inbox(key, peer, body, files, received, attempts, next_at) SELECT 'k' || i, 'p', '{}', '{}', 0, 0, 9e15 FROM n`,
  );
  assert.throws(() => world.host.take(world.item("anna", "1")), /full/);
  world.db.query("DELETE FROM inbox");
  assert.equal(world.host.take(world.item("anna", "1")), true);
});

test("[P19] one conversation that floods takes no place of others; what is not taken of it is counted", async () => {
  const world = new World();
  world.db.query(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${KIT.peerRows})
     INSERT INTO inbox(key, peer, body, files, received, attempts, next_at) SELECT 'k' || i, 'dm:mallory', '{}', '{}', 0, 0, 9e15 FROM n`,
  );
  assert.equal(world.host.take(world.item("mallory", "1")), false);
  assert.equal(world.host.take(world.item("mallory", "1")), false);
  assert.equal(world.host.take(world.item("mallory", "2")), false);
  assert.equal(world.account.status().extra?.["notTakenInFloods"], 2);
  assert.equal(world.host.take(world.item("anna", "1")), true);
  await world.pass(1000);
  assert.deepEqual(
    world.accepted.map(({ peer }) => peer.id),
    ["anna"],
  );
});

// ---------------------------------------------------------------- what goes out

test("[P9] a delivery is durable before send answers, and sent once", async () => {
  const world = new World();
  const message = world.message("d1", "anna", "Hello.");
  assert.deepEqual(world.account.send(message), { status: "queued" });
  assert.deepEqual(world.account.send(message), { status: "queued", duplicate: true });
  await world.pass(1000);
  assert.deepEqual(world.account.send(message), { status: "queued", duplicate: true });
  await world.pass(HOUR);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Hello."],
  );
  assert.deepEqual(world.reports, [{ deliveryId: "d1", state: "sent", messageIds: ["m1"] }]);
});

test("[P9] nothing is lost while the platform is away", async () => {
  const world = new World();
  world.connected = false;
  for (let n = 1; n <= 5; n++) world.account.send(world.message(`d${n}`, "anna", `answer ${n}`));
  await world.pass(HOUR);
  assert.equal(world.shown.length, 0);
  world.kill();
  world.connected = true;
  world.host.changed();
  await world.pass(MINUTE);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    [1, 2, 3, 4, 5].map((n) => `answer ${n}`),
  );
});

test("[P9] what may have arrived is not sent again once the platform forgets, and is shown as unknown", async () => {
  const world = new World();
  world.recognisesNonceMs = 0;
  world.sendOutcome = () => ({ kind: "unsure", error: "the connection broke" });
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(HOUR);
  world.sendOutcome = undefined;
  await world.pass(HOUR);
  assert.equal(world.shown.length, 0);
  assert.deepEqual(world.reports, [{ deliveryId: "d1", state: "unknown", messageIds: [], error: "the connection broke" }]);
  assert.equal(world.account.status().undelivered, 1);
});

test("[P9] a life that ends in the middle of a send is a send that may have arrived", async () => {
  const world = new World();
  world.faults = { fails: 0, answerLost: 0, dies: 1 };
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.settle();
  assert.equal(world.lives, 1);
  world.faults = { fails: 0, answerLost: 0, dies: 0 };
  await world.pass(MINUTE);
  assert.equal(world.shown.length, 1);
  assert.equal(world.reports.at(-1)?.state, "sent");
});

test("[P9] and where the platform recognises nothing, it is not sent a second time", async () => {
  const world = new World();
  world.recognisesNonceMs = 0;
  world.faults = { fails: 0, answerLost: 0, dies: 1 };
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.settle();
  world.faults = { fails: 0, answerLost: 0, dies: 0 };
  await world.pass(HOUR);
  assert.equal(world.shown.length, 1);
  assert.equal(world.reports.at(-1)?.state, "unknown");
});

test("[P9] after ten tries a delivery fails visibly, and the next one goes", async () => {
  const world = new World();
  world.sendOutcome = ({ text }) => (text === "bad" ? { kind: "retry", error: "the platform is down" } : undefined);
  world.account.send(world.message("d1", "anna", "bad"));
  world.account.send(world.message("d2", "anna", "good"));
  await world.pass(2 * HOUR);
  assert.deepEqual(
    world.reports.map(({ deliveryId, state }) => [deliveryId, state]),
    [
      ["d1", "failed"],
      ["d2", "sent"],
    ],
  );
});

test("[P9] a refusal ends the delivery at once, with its later parts", async () => {
  const world = new World();
  let tries = 0;
  world.sendOutcome = () => {
    tries += 1;
    return { kind: "failed", error: "the conversation is gone" };
  };
  world.account.send(world.message("d1", "anna", "word ".repeat(200)));
  await world.pass(MINUTE);
  assert.equal(tries, 1);
  assert.deepEqual(world.reports, [{ deliveryId: "d1", state: "failed", messageIds: [], error: "the conversation is gone" }]);
  assert.equal(world.account.status().outboxWaiting, 0);
});

test("[P7] a long text comes in parts, the first one as the reply, buttons on the last", async () => {
  const world = new World();
  world.buttons = true;
  const parts: { text: string; replyToId?: string | undefined; actions: number }[] = [];
  world.sendOutcome = ({ text, replyToId, actions }) => {
    parts.push({ text, replyToId, actions: actions?.length ?? 0 });
    return undefined;
  };
  const actions = [{ id: "yes", label: "Yes" }];
  world.account.send(world.message("d1", "anna", "word ".repeat(100).trim(), { replyToId: "q1", actions }));
  await world.pass(MINUTE);
  assert.ok(parts.length > 2);
  assert.deepEqual(
    parts.map(({ replyToId }) => replyToId),
    ["q1", ...parts.slice(1).map(() => undefined)],
  );
  assert.deepEqual(
    parts.map((part) => part.actions),
    [...parts.slice(1).map(() => 0), 1],
  );
  assert.equal(parts.map(({ text }) => text).join(" "), "word ".repeat(100).trim());
  assert.equal(world.reports.length, 1);
});

test("buttons stand in the text where there are none", async () => {
  const world = new World();
  world.account.send(world.message("d1", "anna", "Do it?", { actions: [{ id: "yes", label: "approve K7Q2" }] }));
  await world.pass(MINUTE);
  assert.equal(world.shown[0]?.text, "Do it?\n\n- approve K7Q2");
});

test("a message of nothing fails visibly", async () => {
  const world = new World();
  world.account.send(world.message("d1", "anna", "  "));
  await world.pass(MINUTE);
  assert.deepEqual(world.reports, [{ deliveryId: "d1", state: "failed", messageIds: [], error: "there was nothing to send" }]);
});

test("[P7] a shown answer becomes the answer by an edit, also over a restart", async () => {
  const world = new World();
  world.host.changed();
  await world.account.start({});
  const live = (text: string) => world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text });
  live("He");
  live("Hello wo");
  await world.pass(KIT.liveEveryMs);
  live("Hello world");
  await world.pass(KIT.liveEveryMs);
  assert.equal(world.shown.length, 1);
  world.kill();
  world.account.send(world.message("d1", "anna", "Hello world."));
  live("Hello world, again");
  await world.pass(MINUTE);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Hello world."],
  );
});

test("[P7] an answer that comes while its beginning is being shown replaces it", async () => {
  const world = new World();
  await world.account.start({});
  world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text: "Hel" });
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(MINUTE);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Hello."],
  );
});

test("[P9][K22] the life ends while the first words are shown: they become the answer, and stay beside nothing", async () => {
  const world = new World();
  await world.account.start({});
  world.faults = { ...CALM, dies: 1 };
  world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text: "Hel" });
  await world.settle();
  world.faults = CALM;
  assert.deepEqual([world.lives, world.shown.map(({ text }) => text)], [1, ["Hel"]]);
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(MINUTE);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Hello."],
  );
});

test("[P7] typing is kept up while the agent works, and ends", async () => {
  const world = new World();
  world.account.typing({ kind: "dm", id: "anna" }, true);
  await world.pass(30_000);
  const shown = world.typed.length;
  assert.ok(shown >= 3, `${shown} times`);
  world.account.typing({ kind: "dm", id: "anna" }, false);
  await world.settle();
  assert.equal(world.typed.at(-1), "anna:false");
  const after = world.typed.length;
  await world.pass(HOUR);
  assert.equal(world.typed.length, after);
  // Nobody says that it is over: it ends by itself.
  world.account.typing({ kind: "dm", id: "anna" }, true);
  await world.pass(HOUR);
  assert.equal(world.typed.at(-1), "anna:false");
  assert.ok(world.typed.length < after + 40);
});

test("what is remembered is forgotten in time", async () => {
  const world = new World();
  world.host.take(world.item("anna", "1"));
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(MINUTE);
  world.now += KIT.rememberMs + HOUR;
  await world.account.alarm();
  assert.equal(world.db.query("SELECT 1 FROM seen").length, 0);
  assert.equal(world.db.query("SELECT 1 FROM deliveries").length, 0);
});

test("[S17] no message text gets into the log", async () => {
  const world = new World(7);
  world.faults = { fails: 0.3, answerLost: 0.2, dies: 0 };
  for (let n = 0; n < 20; n++) {
    world.host.take(world.item("anna", String(n), "CANARY-TEXT"));
    world.account.send(world.message(`d${n}`, "anna", "CANARY-TEXT"));
  }
  await world.pass(2 * HOUR);
  assert.ok(world.logs.length > 0);
  assert.ok(!world.logs.join("\n").includes("CANARY"));
});

// ---------------------------------------------------------------- histories

test("[P12] another configuration: the old socket is closed before there is a new one, also when the alarm comes in between", async () => {
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

test("[S5] a start names only what changes: a token given once is still there after a stop; null takes it away", async () => {
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

test("[S5] a logout where there is no login forgets the configuration, with the token in it", async () => {
  const world = new World();
  await world.account.start({ token: "SECRET" });
  await world.account.logout();
  assert.equal(world.sockets.now, 0);
  assert.deepEqual(world.configs.at(-1), {});
  assert.equal(JSON.stringify(world.db.query("SELECT * FROM kv")).includes("SECRET"), false);
});

test("[P12] after a restart whoever looks at the state makes it connect, without waiting for the alarm", async () => {
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

test("[P7] since when there is a connection: not from before a break, and not from before a restart", async () => {
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

test("[P9] a stopped account sends nothing, also where there is no connection to close; started again it goes on", async () => {
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

test("[P9] a new life connects with the first thing that it has to do, not only with its alarm", async () => {
  const world = new World();
  await world.account.start({});
  world.kill();
  const before = world.sockets.now;
  world.account.send(world.message("d1", "anna", "at once"));
  await world.settle();
  assert.equal(world.sockets.now, before + 1);
  assert.equal(world.shown.length, 1);
});

test("nonces differ and fit", () => {
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
test("[P2][P3][P9] 120 histories: in whatever way calls fail and lives end, nothing is lost, doubled or out of order", async () => {
  const histories = 120 * Number(process.env["GSV_SIM_FACTOR"] ?? 1);
  for (let seed = 1; seed <= histories; seed++) {
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
        // A platform brings a message again until it has been acknowledged.
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

test("[P12] a platform that only a person can bring back is not kept alive; what waits for it fails visibly after a day", async () => {
  const world = new World();
  await world.account.start({});
  await world.pass(5 * MINUTE);
  assert.ok((world.alarmAt ?? 0) > world.now, "a connection is looked after");
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
test("[P9] a stopped account says so too of what nobody could send for a day", async () => {
  const world = new World();
  await world.account.start({});
  await world.account.stop();
  world.connected = false;
  world.account.send(world.message("d1", "anna", "hello"));
  await world.pass(25 * HOUR);
  assert.equal(world.reports[0]?.state, "failed");
  assert.equal(world.alarmAt, undefined);
});

// ---------------------------------------------------------------- lives that end, and calls without an answer

const never = (): Promise<void> => new Promise(() => {});
test("[P12] a life that ends while a message is being handed over: the next one begins by itself, also where no connection is kept", async () => {
  const world = new World();
  world.atRest = true;
  world.gate = never();
  world.host.take(world.item("anna", "1"));
  // The alarm of the beginning comes and goes while the gateway has not answered yet.
  await world.ring(1_000);
  world.gate = undefined;
  world.kill();
  await world.pass(35_000);
  assert.deepEqual(
    world.accepted.map(({ message }) => message.id),
    ["1"],
  );
});
test("[P12][P9] and while a message is being sent, or its end is being told", async () => {
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
test("a gateway that does not answer costs a few alarms, however many wait for it", async () => {
  const world = new World();
  world.atRest = true;
  world.gate = never();
  for (let n = 0; n < 3 * KIT.peersAtOnce; n++) world.host.take(world.item(`peer${n}`, "1"));
  world.host.changed();
  await world.ring(25_000);
  assert.ok(world.rings <= 5, `${world.rings} alarms`);
});
test("[P3] whoever waits for a place gets the first that is free", async () => {
  const world = new World();
  world.gate = never();
  for (let n = 0; n < KIT.peersAtOnce - 1; n++) world.host.take(world.item(`slow${n}`, "1"));
  await world.ring(1_000);
  world.gate = undefined;
  for (let n = 0; n < 5; n++) world.host.take(world.item(`peer${n}`, "1"));
  await world.ring(1_000);
  assert.equal(world.accepted.length, 5);
});
test("[P2] when there is no room for what the gateway answers, it is asked again later, not without pause", async () => {
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
test("[P3][P12] the alarm waits for no call: while one hangs, the next alarm comes, and other conversations go on", async () => {
  const world = new World();
  world.faults = { fails: 1, answerLost: 0, dies: 0 };
  world.host.take(world.item("anna", "1"));
  world.account.send(world.message("d1", "ben", "hello"));
  await world.settle();
  world.faults = CALM;
  // The second try of the message hangs; that of the answer is due a moment later.
  world.hangs = ({ peer }) => peer.id === "anna";
  world.now += 2_000;
  let ended = false;
  void world.account.alarm().then(() => {
    ended = true;
  });
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(ended, "the alarm is over");
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["hello"],
  );
  assert.ok((world.alarmAt ?? Number.POSITIVE_INFINITY) <= world.now + KIT.leaseMs);
});
test("[P9][P10] nor does it keep the gateway from hearing how a delivery ended", async () => {
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
test("[P2][P9] a clock that is set back stops nobody for the difference", async () => {
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
