/**
 * The deployed channel on the real runtime against a fake WhatsApp that speaks the real wire. Tests share one world; tests that break
 * links or servers have their own.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { getMediaKeys, type MediaType } from "@whiskeysockets/baileys";
import { open } from "../src/media.ts";
import { impostorOf, serverIdentity } from "../../fakes/whatsapp/noise-server.ts";
import { FakeWhatsApp } from "../../fakes/whatsapp/server.ts";
import { type Built, buildWorker } from "./build.ts";
import { World } from "./world.ts";

const ANN = { pn: "15550002222", lid: "900000002222", name: "Ann" };
const BOB = { pn: "15550003333", lid: "900000003333", name: "Bob" };
const ANN_PEER = { kind: "dm", id: `${ANN.pn}@s.whatsapp.net` } as const;
const ANN_BY_LID = { kind: "dm", id: `${ANN.lid}@lid` } as const;
const GROUP = "120363000000000001@g.us";
const GROUP_PEER = { kind: "group", id: GROUP } as const;
const BUDGET_GZIP_BYTES = 600 * 1024;

let built: Built;
before(async () => {
  built = await buildWorker();
});
after(() => built.remove());

async function linked(world: World): Promise<void> {
  await world.start(built.script);
  world.fake.addPeer(ANN);
  world.fake.addPeer(BOB);
  world.fake.addGroup(GROUP, "Trip 2026", [ANN.pn, BOB.pn, world.fake.account.pn]);
  await world.startAccount();
  await world.pair();
}
const textOf = (message: { conversation?: unknown; extendedTextMessage?: { text?: unknown } | null } | undefined): unknown =>
  message?.extendedTextMessage?.text || message?.conversation;

test("[X17] the Worker is within its budget", () => {
  assert(built.gzipBytes <= BUDGET_GZIP_BYTES, `${built.gzipBytes} bytes gzipped`);
});

describe("a linked account", () => {
  const world = new World();
  const { fake } = world;
  const shown = (pn: string, id: string | undefined) =>
    world.until(`${pn} sees ${id}`, () => fake.shown(pn).find((message) => message.id === id));
  const sent = async (deliveryId: string): Promise<string> => {
    const report = await world.reported(deliveryId);
    assert.equal(report.state, "sent", report.error);
    const [id] = report.messageIds ?? [];
    assert(id !== undefined);
    return id;
  };
  before(() => linked(world));
  after(() => world.end());

  test("[P12] links by a QR code and reconnects after the restart that WhatsApp asks for (515)", async () => {
    assert.equal(fake.noted("linked").at(-1)?.["deviceSignature"], true);
    assert.equal(fake.noted("connected").at(-1)?.["origin"], "https://web.whatsapp.com");
    await world.until("the gateway hears of it", () => world.statuses.some(({ connected }) => connected));
    const status = await world.statusWhere(({ connected }) => connected);
    assert.deepEqual([status.connected, status.authenticated, status.mode, status.error], [true, true, "open", undefined]);
    assert.deepEqual([status.extra?.["phone"], status.extra?.["lid"]], [`+${fake.account.pn}`, `${fake.account.lid}@lid`]);
    assert.equal((await world.login()).state, "connected");
  });

  test("[P2] a DM by number is durable, handed over, then marked as read", async () => {
    const id = await fake.say(ANN.pn, "hello from Ann");
    const inbound = await world.received(id);
    assert.equal(inbound.message.text, "hello from Ann");
    assert.deepEqual(inbound.peer, { ...ANN_PEER, name: "Ann" });
    assert.deepEqual(inbound.senderIds, { phone: `+${ANN.pn}`, lid: `${ANN.lid}@lid` });
    await world.until("read", () => fake.noted("receipt").some(({ type, ids }) => type === "read" && (ids as string[]).includes(id)));
  });

  test("[F92] messages that the gateway takes while WhatsApp is away are marked as read later, in few receipts", async () => {
    const before = fake.noted("flushed").length;
    const from = fake.noted("receipt").length;
    const ids: string[] = [];
    world.away = true;
    for (let n = 0; n < 40; n++) ids.push(await fake.say(ANN.pn, `burst ${n}`));
    await world.until("all are in the inbox", () =>
      ids.every((id) => fake.noted("receipt").some((note) => (note["ids"] as string[]).includes(id))),
    );
    fake.refuseLogin = "503";
    fake.drop();
    world.away = false;
    for (const id of ids) await world.received(id);
    await world.connected(before);
    const read = () =>
      fake
        .noted("receipt")
        .slice(from)
        .filter(({ type }) => type === "read");
    await world.until("all are read", () => ids.every((id) => read().some((note) => (note["ids"] as string[]).includes(id))));
    assert(read().length < ids.length / 2, `${read().length} receipts`);
  });

  test("[X15] a DM by LID stays a LID", async () => {
    const silent = await fake.say(BOB.pn, "who am I", { byLid: true, tellOther: false });
    const inbound = await world.received(silent);
    assert.equal(inbound.peer.id, `${BOB.lid}@lid`);
    assert.equal(inbound.senderIds?.lid, `${BOB.lid}@lid`);
    const told = await world.received(await fake.say(ANN.pn, "and me", { byLid: true }));
    assert.deepEqual(told.senderIds, { phone: `+${ANN.pn}`, lid: `${ANN.lid}@lid` });
    assert.equal(told.peer.id, ANN_BY_LID.id);
  });

  test("[P9] answers by number and by LID, with marks, long ones in parts", async () => {
    await world.send({ deliveryId: "d1", peer: ANN_PEER, text: "**bold** and `code`" });
    const first = await shown(ANN.pn, await sent("d1"));
    assert.equal(textOf(first.message), "*bold* and `code`");
    await world.send({ deliveryId: "d2", peer: ANN_BY_LID, text: `by LID, long: ${"é ".repeat(3_000)}` });
    const report = await world.reported("d2");
    assert.equal(report.messageIds?.length, 2);
    for (const id of report.messageIds ?? []) await shown(ANN.pn, id);
    // The owner's phone shows them, too.
    assert(fake.phone.shown.some(({ id }) => id === first.id));
  });

  test("[P2] a quote arrives with its text and author, and an answer quotes", async () => {
    const id = await fake.say(ANN.pn, "the question");
    await world.received(id);
    await world.send({ deliveryId: "q1", peer: ANN_PEER, text: "the answer", replyToId: id });
    const answer = await shown(ANN.pn, await sent("q1"));
    const context = answer.message.extendedTextMessage?.contextInfo;
    assert.deepEqual([context?.stanzaId, context?.quotedMessage?.conversation], [id, "the question"]);
    const back = await fake.say(ANN.pn, {
      extendedTextMessage: {
        text: "why?",
        contextInfo: {
          stanzaId: answer.id,
          participant: `${fake.account.pn}@s.whatsapp.net`,
          quotedMessage: { conversation: "the answer" },
        },
      },
    });
    const inbound = await world.received(back);
    assert.deepEqual([inbound.repliedToAgent, inbound.message.replyToText, inbound.message.replyToId], [true, "the answer", answer.id]);
  });

  test("[S7] a group: sender, mention of the agent, and an answer", async () => {
    const plain = await world.received(await fake.say(ANN.pn, "among us", { group: GROUP }));
    assert.deepEqual([plain.peer.kind, plain.peer.id, plain.sender?.id, plain.wasMentioned], ["group", GROUP, `${ANN.lid}@lid`, false]);
    for (const self of [`${fake.account.lid}@lid`, `${fake.account.pn}@s.whatsapp.net`]) {
      const text = { extendedTextMessage: { text: "@agent hi", contextInfo: { mentionedJid: [self] } } };
      const mention = await world.received(await fake.say(ANN.pn, text, { group: GROUP }));
      assert.deepEqual([mention.wasMentioned, mention.mentionedIds, mention.peer.name], [true, [self], "Trip 2026"]);
      await world.send({ deliveryId: `g-${self}`, peer: GROUP_PEER, text: "hi all", replyToId: mention.message.id });
    }
    const id = await sent(`g-${fake.account.lid}@lid`);
    for (const { pn } of [ANN, BOB]) {
      const message = await shown(pn, id);
      assert.deepEqual([message.chat, textOf(message.message)], [GROUP, "hi all"]);
    }
  });

  test("[P2] reactions, edits and deletions", async () => {
    const id = await fake.say(ANN.pn, "first");
    const key = { remoteJid: ANN_PEER.id, id, fromMe: true };
    const reaction = await world.received(await fake.say(ANN.pn, { reactionMessage: { key, text: "👍" } }));
    assert.deepEqual([reaction.message.reaction, reaction.message.replyToId], ["👍", id]);
    const edit = await world.received(
      await fake.say(ANN.pn, { protocolMessage: { type: 14, key, editedMessage: { conversation: "second" } } }),
    );
    assert.deepEqual([edit.message.editOf, edit.message.text], [id, "second"]);
    const gone = await world.received(await fake.say(ANN.pn, { protocolMessage: { type: 0, key } }));
    assert.deepEqual([gone.message.editOf, gone.message.deleted], [id, true]);
  });

  test("[TH17] only the author can edit a message", async () => {
    const id = await fake.say(ANN.pn, "as Ann wrote it", { group: GROUP });
    await world.received(id);
    const edit = {
      protocolMessage: { type: 14, key: { remoteJid: GROUP, id, fromMe: true }, editedMessage: { conversation: "as Bob would have it" } },
    };
    const forged = await fake.say(BOB.pn, edit, { group: GROUP });
    await world.received(await fake.say(ANN.pn, edit, { group: GROUP }));
    assert.equal(
      world.inbound.some(({ message }) => message.id === forged),
      false,
    );
    const { extra } = await world.status();
    assert.match(JSON.stringify(extra?.["ignored"]), /"forgedEdit":1/);
  });

  test("[W24] voice notes in both directions", async () => {
    const voice = randomBytes(200_000);
    const id = await fake.sayFile(ANN.pn, voice, { kind: "audio", mimetype: "audio/ogg; codecs=opus", more: { ptt: true, seconds: 4 } });
    const [media] = (await world.received(id)).message.media ?? [];
    assert.deepEqual([media?.type, media?.mimeType, media?.size, media?.duration], ["audio", "audio/ogg; codecs=opus", voice.length, 4]);
    assert((await world.get(media?.r2Key ?? "")).equals(voice));
    await world.put("media/s/out.ogg", voice);
    await world.send({
      deliveryId: "v1",
      peer: ANN_PEER,
      text: "",
      media: [{ type: "audio", mimeType: "audio/ogg", r2Key: "media/s/out.ogg" }],
    });
    const { message } = await shown(ANN.pn, await sent("v1"));
    assert.match(message.audioMessage?.mimetype ?? "", /^audio\/ogg/);
    assert((await fileOf(message.audioMessage, "audio")).equals(voice));
  });

  test("[P2] files in both directions, with names and captions", async () => {
    const bytes = randomBytes(50_000);
    const id = await fake.sayFile(ANN.pn, bytes, {
      kind: "document",
      mimetype: "application/pdf",
      more: { fileName: "a.pdf", caption: "read this" },
    });
    const { message: inbound } = await world.received(id);
    assert.deepEqual([inbound.text, inbound.media?.[0]?.filename], ["read this", "a.pdf"]);
    assert((await world.get(inbound.media?.[0]?.r2Key ?? "")).equals(bytes));
    await world.put("media/s/out.png", bytes);
    await world.send({
      deliveryId: "f1",
      peer: ANN_PEER,
      text: "look",
      media: [{ type: "image", mimeType: "image/png", r2Key: "media/s/out.png" }],
    });
    await sent("f1");
    const [words, picture] = (await world.reported("f1")).messageIds ?? [];
    assert.equal(textOf((await shown(ANN.pn, words)).message), "look");
    const { message } = await shown(ANN.pn, picture);
    assert((await fileOf(message.imageMessage, "image")).equals(bytes));
  });
  async function fileOf(
    part: { directPath?: string | null; mediaKey?: Uint8Array | null } | null | undefined,
    type: MediaType,
  ): Promise<Buffer> {
    const sealed = fake.files.get(part?.directPath ?? "");
    assert(sealed && part?.mediaKey);
    return Buffer.from(open(sealed, await getMediaKeys(part.mediaKey, type), undefined));
  }

  test("[S18] a damaged file becomes a note, and no byte of it is kept", async () => {
    const id = await fake.sayFile(ANN.pn, randomBytes(1_000), { kind: "image", mimetype: "image/png" });
    const path = [...fake.files.keys()].at(-1) ?? "";
    fake.files.get(path)?.writeUInt8(0, 5);
    fake.files.get(path)?.writeUInt8(1, 6);
    const { message } = await world.received(id);
    assert.match(message.text, /could not be fetched: it is damaged/);
    assert.equal(message.media?.[0]?.r2Key, undefined);
  });

  test("[P10] typing is shown and ended, and the number is never online", async () => {
    await world.typing(ANN_PEER, true);
    await world.until("composing", () => fake.noted("typing").some(({ state }) => state === "composing"));
    await world.typing(ANN_PEER, false);
    await world.until("paused", () => fake.noted("typing").some(({ state }) => state === "paused"));
    assert.equal(
      fake.noted("presence").some(({ type }) => type === "available"),
      false,
    );
  });

  test("[P2] an undecryptable message is requested again and arrives once", async () => {
    const id = await fake.say(ANN.pn, "whole at last", { damaged: true });
    const inbound = await world.received(id);
    assert.equal(inbound.message.text, "whole at last");
    assert.equal(fake.noted("sent-again").filter((note) => note["id"] === id).length, 1);
    assert.equal(world.inbound.filter(({ message }) => message.id === id).length, 1);
  });

  test("[P2] messages that the owner writes on the phone are not for the agent", async () => {
    const id = await fake.sayToSelf("note to self");
    await world.received(await fake.say(ANN.pn, "after the note"));
    assert.equal(
      world.inbound.some(({ message }) => message.id === id),
      false,
    );
  });

  test("[P10] the status shows the last activity and the round-trip time", async () => {
    const status = await world.statusWhere(({ inboxWaiting, roundTripMs }) => inboxWaiting === 0 && roundTripMs !== undefined);
    assert((status.silentMs ?? Number.NaN) >= 0 && (status.silentMs ?? Number.NaN) < 30_000, String(status.silentMs));
    assert((status.roundTripMs ?? Number.NaN) >= 0 && (status.roundTripMs ?? Number.NaN) < 10_000, String(status.roundTripMs));
    assert.deepEqual([status.inboxWaiting, status.outboxWaiting], [0, 0]);
    assert.deepEqual(status.capabilities?.peerKinds, ["dm", "group"]);
  });

  test("[P9] a connection cut during a send: retried and shown once", async () => {
    const before = fake.noted("flushed").length;
    fake.dropAfterNextMessage = true;
    await world.send({ deliveryId: "drop", peer: ANN_PEER, text: "exactly once" });
    await world.connected(before);
    const id = await sent("drop");
    const message = await shown(ANN.pn, id);
    assert.equal(message.copies, 2, "the second try must have reached the phone for this to prove anything");
    assert.equal(fake.shown(ANN.pn).filter((other) => textOf(other.message) === "exactly once").length, 1);
  });

  test("[W23] messages of an offline period arrive later, in order, marked, once", async () => {
    const before = fake.noted("flushed").length;
    await world.stop();
    await world.until("the socket is closed", () => fake.connections === 0);
    const ids: string[] = [];
    for (const text of ["one", "two", "three"]) ids.push(await fake.say(ANN.pn, text));
    await world.startAccount();
    await world.connected(before);
    await world.received(ids[2] ?? "");
    const came = world.inbound.filter(({ message }) => ids.includes(message.id));
    assert.deepEqual(
      came.map(({ message, backlog }) => [message.text, backlog]),
      [
        ["one", true],
        ["two", true],
        ["three", true],
      ],
    );
  });

  test("[P12] 440: another program took over the link; the channel reconnects and reports a possible gap", async () => {
    const before = fake.noted("flushed").length;
    fake.disconnect(440);
    await world.connected(before);
    const { gap } = await world.statusWhere(({ connected }) => connected);
    assert.match(gap?.why ?? "", /another program/);
    await world.received(await fake.say(ANN.pn, "after the takeover"));
  });

  test("[P12] never two sockets at once", () => {
    assert.equal(Math.max(...fake.noted("connected").map(({ at_once }) => Number(at_once))), 1);
  });

  test("[P12] killed and restarted: the same link continues, and messages of the meantime arrive once", async () => {
    await world.kill();
    const id = await fake.say(BOB.pn, "while it was dead");
    const logins = fake.noted("registering").length;
    const before = fake.noted("flushed").length;
    await world.boot();
    await world.startAccount();
    await world.connected(before);
    await world.received(id);
    await world.send({ deliveryId: "back", peer: ANN_PEER, text: "I am back" });
    await shown(ANN.pn, await sent("back"));
    assert.equal(world.inbound.filter(({ message }) => message.id === id).length, 1);
    assert.equal(fake.noted("registering").length, logins);
  });

  test("[P9] [F80] a phone that could not decrypt a message gets it again, also after a restart", async () => {
    const id = (await world.reported("d1")).messageIds?.[0] ?? "";
    const before = fake.noted("flushed").length;
    await world.kill();
    await world.boot();
    await world.startAccount();
    await world.connected(before);
    const { copies } = await shown(ANN.pn, id);
    fake.askAgain(ANN.pn, id);
    await world.until("it comes again", () => fake.shown(ANN.pn).some((message) => message.id === id && message.copies > copies));
  });

  test("[S5] [S17] no text, key or person is in the runtime's output", async () => {
    // libsignal prints a session with its keys when it closes it, so Ann starts a new session.
    fake.peers.get(ANN.pn)?.forgetBot();
    await world.received(await fake.say(ANN.pn, "a new beginning"));
    const { output } = world;
    assert.match(output, /"component":"channel-whatsapp"/);
    for (const line of output.split("\n").filter((text) => text.trim() !== "")) assert.match(line, /^\{"ts":"|^workerd\//, line);
    for (const secret of [
      "privKey",
      "Closing session",
      "hello from Ann",
      "exactly once",
      "note to self",
      ANN.pn,
      ANN.lid,
      fake.account.pn,
      "Ann",
      fake.rootHex,
    ])
      assert.equal(output.includes(secret), false, secret);
  });

  test("[F91] [S5] a message without encryption is dropped in whatever name, counted and told", async () => {
    const self = `${fake.account.pn}@s.whatsapp.net`;
    const ids = [
      fake.sayPlaintext({ from: ANN_PEER.id }, "/status"),
      fake.sayPlaintext({ from: self, recipient: self }, "/status"),
      fake.sayPlaintext({ from: GROUP, participant: ANN_PEER.id }, "@agent /status"),
    ];
    for (const id of ids)
      await world.until(`WhatsApp's acknowledgement of ${id}`, () => fake.noted("ack").some((note) => note["id"] === id));
    await world.received(await fake.say(ANN.pn, "with encryption"));
    assert.deepEqual(
      world.inbound.filter(({ message }) => ids.includes(message.id)),
      [],
    );
    const { connected, error, extra } = await world.status();
    assert.equal(connected, true);
    assert.match(JSON.stringify(extra?.["ignored"]), /"unencrypted":3/);
    assert.match(error ?? "", /3 messages came without encryption/);
    await world.until("the gateway hears of it", () => world.statuses.some((state) => /without encryption/.test(state.error ?? "")));
  });

  test("[P2] self-chat, when enabled: the owner talks to the agent in the chat with their own number", async () => {
    const before = fake.noted("flushed").length;
    await world.startAccount({ selfChat: true });
    await world.connected(before);
    const own = await world.received(await fake.sayToSelf("do this"));
    assert.deepEqual([own.fromOwner, own.peer.kind, own.message.text], [true, "dm", "do this"]);
    await world.send({ deliveryId: "self", peer: own.peer, text: "done" });
    await sent("self");
    await world.until("the phone shows it", () => fake.phone.shown.some(({ message }) => textOf(message) === "done"));
    assert.equal(
      world.inbound.some(({ message }) => message.text === "done"),
      false,
    );
  });

  test("[P12] a permanently refused login (403) is not retried until a person asks", async () => {
    fake.refuseLogin = "403";
    fake.drop();
    await world.until("told", () => world.statuses.some(({ mode, error }) => mode === "stopped" && /\(403\)/.test(error ?? "")));
    assert.equal((await world.status()).authenticated, true);
    const before = fake.noted("flushed").length;
    await world.startAccount({ selfChat: true });
    await world.connected(before);
  });

  test("[P12] 401: the phone unlinked the device; the keys are deleted, and the status says what to do", async () => {
    fake.disconnect(401);
    await world.until("told", () => world.statuses.some(({ authenticated, error }) => !authenticated && /Log in again/.test(error ?? "")));
    const status = await world.status();
    assert.deepEqual([status.connected, status.authenticated, status.mode], [false, false, "stopped"]);
    const connects = fake.noted("connected").length;
    await world.startAccount();
    assert.equal(fake.noted("connected").length, connects);
  });

  test("[P12] links again by a pairing code, again by force, then logs out", async () => {
    assert.equal((await world.login({ phone: "no number" })).state, "failed");
    const login = await world.login({ phone: "+1 555 000 1111" });
    assert.equal(login.state, "code", login.message);
    assert.match(login.code ?? "", /^[0-9A-Z]{4}-[0-9A-Z]{4}$/);
    const before = fake.noted("flushed").length;
    await fake.linking.type(login.code ?? "");
    await world.connected(before);
    await world.received(await fake.say(ANN.pn, "a new link"));
    const forced = await world.login({ force: true });
    assert.equal(forced.state, "qr", forced.message);
    await world.until("the old link is taken off the phone's list", () => fake.noted("logout").length === 1);
    const relinked = fake.noted("flushed").length;
    fake.linking.scan(forced.qr ?? "");
    await world.connected(relinked);
    await world.received(await fake.say(ANN.pn, "a third link"));
    const after = await world.logout();
    assert.deepEqual([after.connected, after.authenticated, after.logoutUnconfirmed], [false, false, undefined]);
    await world.until("WhatsApp heard of it", () => fake.noted("logout").length === 2);
    assert.equal(fake.bot, undefined);
  });

  test("[CH26] a logout without a connection says that WhatsApp did not confirm it, and deletes the keys", async () => {
    await world.pair();
    await world.stop();
    const after = await world.logout();
    assert.deepEqual([after.authenticated, after.logoutUnconfirmed], [false, true]);
    // Nothing is left to log out.
    assert.equal((await world.logout()).logoutUnconfirmed, undefined);
  });
});

test("[S5] a server with another certificate is refused", async () => {
  const world = new World();
  // Only WhatsApp's own root is pinned, as in a deployment.
  world.noiseRoot = "none";
  try {
    await world.start(built.script);
    await world.startAccount();
    const login = await world.login();
    assert.equal(login.state, "failed", login.message);
    assert.equal(world.fake.noted("registering").length, 0);
    assert.equal((await world.status()).connected, false);
  } finally {
    await world.end();
  }
});

for (const [what, identity] of [
  ["with a recorded chain and another key", impostorOf(serverIdentity())],
  ["with an expired certificate", serverIdentity({ until: -3_600 })],
  ["with a certificate of the future", serverIdentity({ from: 3_600 })],
] as const)
  test(`[F91] [S5] a server ${what} is refused`, async () => {
    const world = new World();
    world.fake.identity = identity;
    try {
      await world.start(built.script);
      await world.startAccount();
      const login = await world.login();
      assert.equal(login.state, "failed", login.message);
      assert.match(login.message, /could not prove that it is WhatsApp \(495\)/);
      assert.equal(world.fake.noted("registering").length, 0);
    } finally {
      await world.end();
    }
  });

test("[P12] the fake can be controlled over HTTP, and it explains invalid requests", async () => {
  const fake = await new FakeWhatsApp().listen();
  try {
    const wish = async (path: string, body: object): Promise<[number, unknown]> => {
      const response = await fetch(fake.url.replace("ws:", "http:").replace("/ws/chat", path), {
        method: "POST",
        body: JSON.stringify(body),
      });
      return [response.status, await response.json()];
    };
    assert.deepEqual(await wish("/people", { pn: "15550009999", name: "Zoe" }), [200, { ok: true }]);
    assert.deepEqual(await wish("/shown", { pn: "15550009999" }), [200, []]);
    assert.deepEqual(await wish("/say", { from: "15550009999", text: "hi" }), [400, { error: "no device is linked" }]);
    assert.deepEqual(await wish("/say", { from: "15550009999" }), [400, { error: '"text" is missing: a text is needed' }]);
    assert.equal((await wish("/constructor", {}))[0], 404);
    assert.equal(((await wish("/about", {}))[1] as { noiseRoot?: string }).noiseRoot, fake.rootHex);
  } finally {
    await fake.close();
  }
});
