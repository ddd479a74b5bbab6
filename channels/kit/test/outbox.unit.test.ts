/** The outbox: sent once and in order, unknown instead of a blind resend, live texts. The test controls time and randomness. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { KIT } from "../src/limits.ts";
import { CALM, World } from "./world.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

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

test("[P9] [P12] a stored message that can't be read is tried again with each alarm, not at once, and holds back its conversation alone", async () => {
  const world = new World();
  world.atRest = true;
  world.connected = false;
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.settle();
  world.db.query("UPDATE outbox SET body = 'damaged'");
  world.connected = true;
  world.host.changed();
  world.account.send(world.message("d2", "ben", "Hello."));
  await world.pass(HOUR);
  assert.deepEqual(
    world.shown.map(({ peer }) => peer),
    ["ben"],
  );
  const failures = world.logs.filter((line) => line.includes("outbox_failed")).length;
  assert.ok(failures >= 2 && failures <= HOUR / 5_000, `${failures} in an hour`);
  assert.equal(world.account.status().outboxWaiting, 1);
});

for (const [what, extraMs, state] of [
  ["is tried again within a day", 0, "waiting"],
  ["fails visibly after a day", 1, "failed"],
] as const)
  test(`[P9] a delivery that the platform does not take now ${what}`, async () => {
    const world = new World();
    world.sendOutcome = () => ({ kind: "retry", error: "the platform is busy" });
    world.account.send(world.message("d1", "anna", "Hello."));
    await world.settle();
    const [row] = world.db.query<{ first_at: number; attempts: number }>("SELECT first_at, attempts FROM outbox");
    assert.equal(row?.attempts, 1);
    world.connected = false;
    await world.pass(row.first_at + KIT.sendMaxMs + extraMs - world.now);
    world.connected = true;
    world.host.changed();
    await world.settle();
    const [later] = world.db.query<{ state: string; attempts: number }>("SELECT state, attempts FROM outbox");
    assert.equal(later?.state ?? world.reports.at(-1)?.state, state);
    assert.equal(later?.attempts ?? 2, 2);
  });

test("[P9] an unknown outcome is not resent once the platform has forgotten the nonce, and is shown as unknown", async () => {
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

test("[P9] a crash during a send is an unknown outcome", async () => {
  const world = new World();
  world.faults = { fails: 0, answerLost: 0, dies: 1 };
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.settle();
  assert.equal(world.crashes, 1);
  world.faults = { fails: 0, answerLost: 0, dies: 0 };
  await world.pass(MINUTE);
  assert.equal(world.shown.length, 1);
  assert.equal(world.reports.at(-1)?.state, "sent");
});

test("[P9] a crash during a send is never repeated on a platform without nonces", async () => {
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

test("[P9] after ten attempts a delivery fails visibly, and the next one is sent", async () => {
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

test("[P9] a full outbox refuses a delivery, and the gateway may repeat it", () => {
  const world = new World();
  world.connected = false;
  world.db.query(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${KIT.outboxRows - 1})
     INSERT INTO outbox(delivery, part, peer, body, state, attempts, first_at, next_at) SELECT 'k' || i, 0, 'p', '{}', 'waiting', 0, 0, 9e15 FROM n`,
  );
  assert.equal(world.account.send(world.message("d1", "anna", "the last one")).status, "queued");
  assert.deepEqual(world.account.send(world.message("d2", "anna", "one too many")), {
    status: "refused",
    error: "too many messages are queued for the platform",
    retryable: true,
  });
});
test("[P9] a delivery with a part of unknown outcome is unknown, although its later parts are sent", async () => {
  const world = new World();
  world.recognisesNonceMs = 0;
  let parts = 0;
  world.sendOutcome = () => (++parts === 1 ? { kind: "unsure", error: "the connection broke" } : { kind: "sent", messageId: `m${parts}` });
  world.account.send(world.message("d1", "anna", "word ".repeat(100)));
  await world.pass(MINUTE);
  assert.equal(parts, 3);
  assert.deepEqual(world.reports, [{ deliveryId: "d1", state: "unknown", messageIds: ["m2", "m3"], error: "the connection broke" }]);
});
test("[P9] the platform learns the number of each attempt and the time of the first", async () => {
  const world = new World();
  const began = world.now;
  const tries: (readonly [number, number])[] = [];
  world.sendOutcome = ({ attempt, firstTriedAt }) => {
    tries.push([attempt, firstTriedAt - began]);
    return tries.length < 3 ? { kind: "retry", error: "502" } : undefined;
  };
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(MINUTE);
  assert.deepEqual(tries, [
    [1, 0],
    [2, 0],
    [3, 0],
  ]);
});
test("[P3][P9] after a lost connection nothing more is tried until it is back", async () => {
  const world = new World();
  let tries = 0;
  world.sendOutcome = () => {
    tries += 1;
    world.connected = false;
    return { kind: "sent", messageId: `m${tries}` };
  };
  for (const id of ["d1", "d2"]) world.account.send(world.message(id, "anna", id));
  await world.pass(MINUTE);
  assert.equal(tries, 1);
  world.connected = true;
  world.host.changed();
  await world.pass(MINUTE);
  assert.equal(tries, 2);
});
test("[P3] a conversation that waits for a free slot gets it without an alarm", async () => {
  const world = new World();
  for (let n = 1; n <= 3 * KIT.peersAtOnce; n++) world.account.send(world.message(`d${n}`, `peer${n}`, "Hello."));
  await world.settle();
  assert.equal(world.shown.length, 3 * KIT.peersAtOnce);
});
test("[P9] a platform that does not answer costs few alarms, however many messages are queued", async () => {
  const world = new World();
  world.atRest = true;
  world.gate = new Promise(() => {});
  for (let n = 0; n < 3 * KIT.peersAtOnce; n++) world.account.send(world.message(`d${n}`, `peer${n}`, "Hello."));
  await world.ring(25_000);
  assert.ok(world.rings <= 5, `${world.rings} alarms`);
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

test("[P7] a long text is sent in parts: the first is the reply, the last has the buttons", async () => {
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

test("[P7] files follow the text, each a message of its own: with its name, and recorded speech as a voice note", async () => {
  const world = new World();
  const parts: unknown[] = [];
  world.sendOutcome = ({ text, file }) => {
    parts.push([text, file]);
    return undefined;
  };
  const media = [
    { type: "document" as const, mimeType: "text/csv", r2Key: "media/a", filename: "costs.csv" },
    { type: "audio" as const, mimeType: "audio/ogg", r2Key: "media/b" },
    { type: "audio" as const, mimeType: "audio/opus", r2Key: "media/c" },
    { type: "audio" as const, mimeType: "audio/mpeg", r2Key: "media/d" },
    { type: "document" as const, mimeType: "audio/ogg", r2Key: "media/e" },
    { type: "image" as const, mimeType: "image/png", filename: "not stored.png" },
  ];
  world.account.send(world.message("d1", "anna", "Here.", { media }));
  await world.pass(MINUTE);
  assert.deepEqual(parts, [
    ["Here.", undefined],
    ["", { kind: "document", mimeType: "text/csv", r2Key: "media/a", filename: "costs.csv", voice: false }],
    ["", { kind: "audio", mimeType: "audio/ogg", r2Key: "media/b", voice: true }],
    ["", { kind: "audio", mimeType: "audio/opus", r2Key: "media/c", voice: true }],
    ["", { kind: "audio", mimeType: "audio/mpeg", r2Key: "media/d", voice: false }],
    ["", { kind: "document", mimeType: "audio/ogg", r2Key: "media/e", voice: false }],
  ]);
});

test("buttons become lines of text on a platform without buttons", async () => {
  const world = new World();
  world.account.send(world.message("d1", "anna", "Do it?", { actions: [{ id: "yes", label: "approve K7Q2" }] }));
  await world.pass(MINUTE);
  assert.equal(world.shown[0]?.text, "Do it?\n\n- approve K7Q2");
  // [AP14] The text of a question says already what to write.
  const actions = [{ id: "allow K7Q2A", label: "Allow once" }];
  world.account.send(world.message("d2", "anna", 'Write "allow K7Q2A".', { actions }));
  await world.pass(MINUTE);
  assert.equal(world.shown[1]?.text, 'Write "allow K7Q2A".');
});

test("an empty message fails visibly", async () => {
  const world = new World();
  world.account.send(world.message("d1", "anna", "  "));
  await world.pass(MINUTE);
  assert.deepEqual(world.reports, [{ deliveryId: "d1", state: "failed", messageIds: [], error: "the message is empty" }]);
});

test("[P7] the answer replaces its live text by an edit, also after a restart", async () => {
  const world = new World();
  world.host.changed();
  await world.account.start({});
  const live = (text: string) => world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text });
  live("He");
  live("Hello wo");
  await world.pass(KIT.liveEveryMs);
  live("Hello world");
  await world.pass(KIT.liveEveryMs);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Hello world"],
  );
  world.kill();
  world.account.send(world.message("d1", "anna", "Hello world."));
  live("Hello world, again");
  await world.pass(MINUTE);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Hello world."],
  );
});

test("[P7] an answer that arrives while its live text is being sent replaces it", async () => {
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

test("[P9][K22] a crash while the live text is sent: the answer replaces that text", async () => {
  const world = new World();
  await world.account.start({});
  world.faults = { ...CALM, dies: 1 };
  world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text: "Hel" });
  await world.settle();
  world.faults = CALM;
  assert.deepEqual([world.crashes, world.shown.map(({ text }) => text)], [1, ["Hel"]]);
  world.account.send(world.message("d1", "anna", "Hello."));
  await world.pass(MINUTE);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Hello."],
  );
});

test("[P7] typing is repeated while the agent works, and ends", async () => {
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
  // Without an end signal it stops by itself.
  world.account.typing({ kind: "dm", id: "anna" }, true);
  await world.pass(HOUR);
  assert.equal(world.typed.at(-1), "anna:false");
  assert.ok(world.typed.length < after + 40);
});

test("[P7] typing that begins again lasts longer, and is not shown twice", async () => {
  const world = new World();
  const anna = { kind: "dm", id: "anna" } as const;
  world.account.typing(anna, true);
  world.account.typing(anna, true);
  await world.pass(KIT.typingEveryMs * 10);
  assert.equal(world.typed.length, 11);
  world.account.typing(anna, true);
  await world.pass(KIT.typingMaxMs - KIT.typingEveryMs);
  assert.equal(world.typed.at(-1), "anna:true");
  await world.pass(KIT.typingEveryMs);
  assert.equal(world.typed.at(-1), "anna:false");
});

test("[P7] typing that ends and begins again at once is repeated once in each interval", async () => {
  const world = new World();
  const anna = { kind: "dm", id: "anna" } as const;
  for (const active of [true, false, true]) world.account.typing(anna, active);
  await world.pass(KIT.typingEveryMs * 5);
  assert.equal(world.typed.filter((line) => line === "anna:true").length, 2 + 5);
});

test("[P7] a live text is renewed once in each interval, with the newest words", async () => {
  const world = new World();
  await world.account.start({});
  const live = (text: string) => world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text });
  const texts = (): string[] => world.shown.map(({ text }) => text);
  live("one");
  await world.settle();
  assert.deepEqual(texts(), ["one"]);
  live("one two");
  live("one two three");
  await world.pass(KIT.liveEveryMs - 1);
  assert.deepEqual(texts(), ["one"]);
  await world.pass(1);
  assert.deepEqual(texts(), ["one two three"]);
});

test("[P7] a live text without words, or without a connection, is not shown", async () => {
  const world = new World();
  await world.account.start({});
  const live = (text: string) => world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text });
  live("  \n ");
  await world.pass(MINUTE);
  world.connected = false;
  live("Hello");
  await world.pass(MINUTE);
  assert.equal(world.shown.length, 0);
  world.connected = true;
  live("Hello wo");
  await world.pass(MINUTE);
  assert.deepEqual(
    world.shown.map(({ text }) => text),
    ["Hello wo"],
  );
});

for (const [late, shown] of [
  [0, ["Hello."]],
  [1, ["Hel", "Hello."]],
] as const)
  test(`[P9][K22] after a crash the platform is asked for the live text while it knows the nonce: ${late} ms after that`, async () => {
    const world = new World();
    await world.account.start({});
    world.faults = { ...CALM, dies: 1 };
    world.account.live({ deliveryId: "d1", peer: { kind: "dm", id: "anna" }, text: "Hel" });
    await world.settle();
    world.faults = CALM;
    await world.pass(world.recognisesNonceMs / 2 + late);
    world.account.send(world.message("d1", "anna", "Hello."));
    await world.settle();
    assert.deepEqual(
      world.shown.map(({ text }) => text),
      shown,
    );
  });

test("old rows are pruned", async () => {
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
