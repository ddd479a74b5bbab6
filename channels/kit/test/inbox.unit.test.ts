/** The inbox: durable before it acknowledges, one handover in order, bounded. The test controls time and randomness. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { KIT } from "../src/limits.ts";
import { CALM, World } from "./world.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

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

test("[P2] the platform notes a receipt before it is acknowledged; a message without a receipt has nothing to note", async () => {
  const world = new World();
  const { receipt: _none, ...plain } = world.item("anna", "2");
  world.host.take(world.item("anna", "1"));
  world.host.take(plain);
  await world.pass(1000);
  assert.equal(world.accepted.length, 2);
  assert.deepEqual([world.settled, world.acknowledged.length], [[{ ack: "1" }], 2]);
});

test("[P2] [P12] a stored message that can't be read is tried again with each alarm, not at once, and holds back its conversation alone", async () => {
  const world = new World();
  world.atRest = true;
  world.faults = { ...CALM, fails: 1 };
  world.host.take(world.item("anna", "1"));
  await world.settle();
  world.faults = CALM;
  world.db.query("UPDATE inbox SET body = 'damaged'");
  const failures = (): number => world.logs.filter((line) => line.includes("inbox_failed")).length;
  await world.pass(MINUTE);
  world.host.take(world.item("ben", "2"));
  await world.settle();
  assert.deepEqual(
    world.accepted.map(({ message }) => message.id),
    ["2"],
  );
  await world.pass(HOUR);
  assert.ok(failures() >= 2 && failures() <= HOUR / 5_000, `${failures()} in an hour`);
  assert.equal(world.db.query("SELECT id FROM inbox").length, 1);
});

const withFiles = (world: World, ...names: readonly string[]) => ({
  ...world.item("anna", "1"),
  files: names.map((filename, index) => ({ index, mimeType: "text/plain", kind: "document" as const, filename, reference: filename })),
});
test("[P2][P12] after a crash the files that are stored are not fetched again", async () => {
  const world = new World();
  const fetched: string[] = [];
  world.fetchFile = ({ filename = "" }) => {
    fetched.push(filename);
    if (fetched.length === 2) world.kill();
    return filename;
  };
  world.host.take(withFiles(world, "a.txt", "b.txt"));
  await world.pass(5 * MINUTE);
  assert.deepEqual([world.crashes, fetched], [1, ["a.txt", "b.txt", "b.txt"]]);
  assert.deepEqual(
    world.accepted.map(({ message }) => message.media?.map(({ filename, r2Key, size }) => [filename, r2Key, size])),
    [
      [
        ["a.txt", "media/0", 5],
        ["b.txt", "media/1", 5],
      ],
    ],
  );
});
test("[P2] a file that cannot be fetched is given up after four attempts, and the message says so", async () => {
  const world = new World();
  let tries = 0;
  world.fetchFile = () => {
    tries += 1;
    throw new Error("the link has expired");
  };
  world.host.take(withFiles(world, "a.txt"));
  await world.pass(HOUR);
  assert.equal(tries, KIT.fileTries);
  assert.deepEqual(
    world.accepted.map(({ message }) => [message.text, message.media?.map(({ r2Key }) => r2Key)]),
    [['message 1\n\n[The file "a.txt" could not be fetched: the link has expired]', [undefined]]],
  );
});

test("[P2] a file that the gateway does not want is not fetched", async () => {
  const world = new World();
  world.host.take(withFiles(world, "a.txt"));
  await world.pass(MINUTE);
  assert.deepEqual([world.offered.length, world.fetches], [1, 0]);
  assert.deepEqual(
    world.accepted.map(({ message }) => message.media),
    [[{ type: "document", mimeType: "text/plain", filename: "a.txt" }]],
  );
});
test("[P2] the gateway learns the name of a file that has one", async () => {
  const world = new World();
  world.fetchFile = () => "bytes";
  const item = withFiles(world, "a.txt", "b.txt");
  const [first, second] = item.files;
  assert.ok(first && second);
  const { filename: _none, ...unnamed } = second;
  world.host.take({ ...item, files: [first, unnamed] });
  await world.pass(MINUTE);
  assert.deepEqual(world.offered, [
    { mimeType: "text/plain", index: 0, filename: "a.txt" },
    { mimeType: "text/plain", index: 1 },
  ]);
  assert.deepEqual(
    world.accepted.map(({ message }) => message.media?.map((media) => ("filename" in media ? media.filename : "none"))),
    [["a.txt", "none"]],
  );
});
for (const [why, change] of [
  ["the gateway does not want it any more", { wantsNoBytes: true }],
  ["this channel cannot fetch files", { hasFiles: false }],
] as const)
  test(`[P2][P10] a file that is not stored is named in the message: ${why}`, async () => {
    const world = new World();
    Object.assign(world, change);
    world.fetchFile = () => "bytes";
    world.host.take(withFiles(world, "a.txt"));
    await world.settle();
    assert.deepEqual(
      world.accepted.map(({ message }) => message.text),
      [`message 1\n\n[The file "a.txt" could not be fetched: ${why}]`],
    );
  });
for (const length of [150, 151])
  test(`[P10] the notice about late messages has an id of its own for each message: a key of ${length} characters`, async () => {
    const world = new World();
    world.outcomeOf = () => ({ outcome: "accepted", unanswered: "late" });
    const peer = "x".repeat(length - "dm:/1".length);
    world.host.take(world.item(peer, "1"));
    await world.pass(MINUTE);
    assert.equal(world.reports.length, 1);
    assert.equal(world.reports[0]?.deliveryId === `late:dm:${peer}/1`, length <= 150);
  });

test("[P2] the same id in another conversation is another message", async () => {
  const world = new World();
  assert.equal(world.host.take(world.item("anna", "1")), true);
  assert.equal(world.host.take(world.item("bert", "1")), true);
  await world.pass(1000);
  assert.equal(world.accepted.length, 2);
});

test("[P2][W23] fifty messages wait while the gateway is away and arrive in order", async () => {
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
  // They are marked as backlog.
  assert.ok(world.accepted.every(({ backlog }) => backlog === true));
  assert.equal(world.account.status().inboxWaiting, 0);
});

test("[P3] a conversation that waits for a free slot gets it without an alarm", async () => {
  const world = new World();
  for (let n = 1; n <= 3 * KIT.peersAtOnce; n++) world.host.take(world.item(`peer${n}`, "1"));
  await world.settle();
  assert.equal(world.accepted.length, 3 * KIT.peersAtOnce);
});

for (const late of [0, 1])
  test(`[P2] a message is backlog when it waited for more than five minutes: ${late} ms more`, async () => {
    const world = new World();
    const open = world.now + KIT.retryMaxMs + late;
    world.holds = () => (world.now < open ? open - world.now : undefined);
    world.host.take(world.item("anna", "1"));
    await world.pass(HOUR);
    assert.deepEqual(
      world.accepted.map(({ backlog }) => backlog === true),
      [late > 0],
    );
  });

test("[F94] a gateway that asks for a retry without a time gets it after the usual wait", async () => {
  const world = new World();
  let busy = true;
  world.outcomeOf = () => ({ outcome: busy ? "later" : "accepted" });
  world.host.take(world.item("anna", "1"));
  await world.settle();
  busy = false;
  await world.pass(2 * KIT.retryMinMs);
  assert.deepEqual([world.handovers, world.account.status().inboxWaiting], [2, 0]);
});

test("[P2][P19] a file that the platform announces as too large is not fetched; one of the largest size is", async () => {
  const world = new World();
  const fetched: (string | undefined)[] = [];
  world.fetchFile = ({ filename = "" }) => {
    fetched.push(filename);
    return filename;
  };
  const item = withFiles(world, "largest.txt", "larger.txt");
  world.host.take({ ...item, files: item.files.map((file, index) => ({ ...file, sizeBytes: LIMITS.mediaBytes + index })) });
  await world.pass(MINUTE);
  assert.deepEqual(fetched, ["largest.txt"]);
  assert.deepEqual(
    world.accepted.map(({ message }) => message.text),
    [`message 1\n\n[The file "larger.txt" could not be fetched: it is larger than ${LIMITS.mediaBytes} bytes]`],
  );
});
test("[P2][P19] a file whose download announces too many bytes is not read; one of the largest size is", async () => {
  const world = new World();
  world.fetchFile = ({ filename = "" }) => filename;
  world.announced = ({ filename }) => LIMITS.mediaBytes + (filename === "larger.txt" ? 1 : 0);
  world.host.take(withFiles(world, "largest.txt", "larger.txt"));
  await world.pass(MINUTE);
  assert.deepEqual(
    world.accepted.map(({ message }) => message.media?.map(({ filename, size }) => [filename, size])),
    [
      [
        ["largest.txt", "largest.txt".length],
        ["larger.txt", undefined],
      ],
    ],
  );
  assert.deepEqual(
    world.accepted.map(({ message }) => message.text),
    [`message 1\n\n[The file "larger.txt" could not be fetched: it is larger than ${LIMITS.mediaBytes} bytes]`],
  );
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

test("[P2] a gateway that was away for days gets everything; unanswered old messages are reported once for each conversation", async () => {
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

test("[P10] a conversation with a long id gets a second notice when it happens again", async () => {
  const world = new World();
  world.outcomeOf = () => ({ outcome: "accepted", unanswered: "late" });
  for (const id of ["1", "2"]) {
    world.host.take(world.item("x".repeat(200), id));
    await world.pass(HOUR);
  }
  assert.deepEqual(
    world.shown.map(({ text }) => text.slice(0, 17)),
    ["A message reached", "A message reached"],
  );
});

test("[P2] replies in the gateway's answer are sent once, also when the answer arrives twice", async () => {
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

test("a full inbox takes no message, and the platform sees that", () => {
  const world = new World();
  world.db.query(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${KIT.inboxRows})
     INSERT INTO inbox(key, peer, body, files, received, attempts, next_at) SELECT 'k' || i, 'p', '{}', '{}', 0, 0, 9e15 FROM n`,
  );
  assert.throws(() => world.host.take(world.item("anna", "1")), /full/);
  world.db.query("DELETE FROM inbox");
  assert.equal(world.host.take(world.item("anna", "1")), true);
});

test("[P19] a flood in one conversation does not fill the inbox of others; dropped messages are counted", async () => {
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

test("[F94] a message that the gateway holds back is handed over when the gateway said, not after a growing wait", async () => {
  const world = new World();
  const open = world.now + 47_000;
  world.holds = () => (world.now < open ? open - world.now : undefined);
  world.host.take(world.item("anna", "1"));
  await world.pass(46_900);
  assert.deepEqual([world.accepted.length, world.handovers], [0, 1]);
  await world.pass(200);
  assert.deepEqual([world.accepted.length, world.handovers], [1, 2]);
});
