/** The Discord channel end to end: the real libraries on workerd against a fake Discord that speaks the wire. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import type { Peer } from "../../../protocol/gen/types.ts";
import { ALICE, BOT, DM, GENERAL, type Note, THREAD } from "../../fakes/discord/fake-discord.ts";
import { type Bot, bundleWorker, World } from "./world.ts";

/** Part of every text; it must not appear in the Worker's output. */
const MARK = "xylophone";
const alice: Peer = { kind: "dm", id: ALICE.id };
const rest = (method: string, path: RegExp) => (note: Note) =>
  note.kind === "rest" && note["method"] === method && path.test(String(note["path"]));
const count = (bot: Bot, kind: string): number => bot.discord.log.filter((note) => note.kind === kind).length;

const world = new World();
before(() => world.open());
after(() => world.close());

describe("messages", { concurrency: 8 }, () => {
  it("[P7] a direct message arrives, and its answer is a reply", async () => {
    const bot = await (await world.bot("dm")).connected();
    const said = bot.discord.say({ content: `hello ${MARK}` });
    const inbound = await bot.received(({ message }) => message.id === said.id, "the message");
    assert.equal(inbound.message.text, `hello ${MARK}`);
    assert.deepEqual(inbound.peer, { kind: "dm", id: ALICE.id, name: "Alice", handle: "alice" });
    assert.deepEqual(inbound.senderIds, { username: "alice" });
    const id = await bot.send({ peer: inbound.peer, text: `**hi** ${MARK} @everyone`, replyToId: inbound.message.id });
    const report = await bot.report(id);
    assert.equal(report.state, "sent");
    const [answer] = bot.discord.sent(DM);
    assert.equal(answer?.content, `**hi** ${MARK} @everyone`);
    assert.deepEqual(report.messageIds, [answer?.id]);
    assert.deepEqual(answer?.["message_reference"], { message_id: said.id, fail_if_not_exists: false });
    const posted = await bot.discord.until(rest("POST", /messages$/), "the request");
    assert.deepEqual((posted["body"] as Record<string, unknown>)["allowed_mentions"], { parse: [], replied_user: false });
  });

  it("[P7] channels and threads are separate conversations, with mentions recognised", async () => {
    const bot = await (await world.bot("places")).connected();
    const called = bot.discord.say({ channel: GENERAL, content: "what is up", mention: true });
    const inbound = await bot.received(({ message }) => message.id === called.id, "the mention");
    assert.deepEqual(
      [inbound.peer, inbound.wasMentioned, inbound.message.text],
      [{ kind: "channel", id: GENERAL, name: "general" }, true, "what is up"],
    );
    const aside = bot.discord.say({ channel: GENERAL, content: "to all", more: { mention_everyone: true } });
    assert.equal((await bot.received(({ message }) => message.id === aside.id, "the aside")).wasMentioned, false);
    const role = bot.discord.say({ channel: GENERAL, content: "you all", more: { mention_roles: ["600000000000000001"] } });
    assert.equal((await bot.received(({ message }) => message.id === role.id, "the role's mention")).wasMentioned, true);
    const inThread = bot.discord.say({ channel: THREAD, content: "plan" });
    assert.deepEqual((await bot.received(({ message }) => message.id === inThread.id, "the thread's")).peer, {
      kind: "thread",
      id: THREAD,
      name: "plans",
    });

    await bot.report(await bot.send({ peer: inbound.peer, text: "the sky" }));
    const [own] = bot.discord.sent(GENERAL);
    assert.ok(own);
    const reply = bot.discord.say({ channel: GENERAL, content: "really?", replyTo: own });
    const answered = await bot.received(({ message }) => message.id === reply.id, "the reply");
    assert.deepEqual([answered.repliedToAgent, answered.message.replyToText], [true, "the sky"]);
    assert.equal(
      bot.inbound.some(({ sender }) => sender?.id === BOT.id),
      false,
    );
  });

  it("[P7] edits, deletions and reactions arrive; bots and webhooks are ignored", async () => {
    const bot = await (await world.bot("changes")).connected();
    await bot.report(await bot.send({ peer: { kind: "channel", id: GENERAL }, text: "mine" }));
    const [own] = bot.discord.sent(GENERAL);
    assert.ok(own);
    bot.discord.say({ channel: GENERAL, content: "beep", user: { ...ALICE, id: "400000000000000002", bot: true } });
    bot.discord.say({ channel: GENERAL, content: "hook", more: { webhook_id: "700000000000000001" } });
    bot.discord.react(own, "👍");
    const said = bot.discord.say({ content: "frist" });
    bot.discord.edit(said, "first");
    bot.discord.remove(said);
    const gone = await bot.received(({ message }) => message.deleted === true, "the deletion");
    assert.equal(gone.message.editOf, said.id);
    assert.deepEqual(
      bot.inbound.filter(({ peer }) => peer.kind === "dm").map(({ message }) => [message.editOf === undefined, message.text]),
      [
        [true, "frist"],
        [false, "first"],
        [false, ""],
      ],
    );
    const reaction = await bot.received(({ message }) => message.reaction !== undefined, "the reaction");
    assert.deepEqual([reaction.message.reaction, reaction.message.replyToId], ["👍", own.id]);
    assert.equal(
      bot.inbound.some(({ message }) => message.text === "beep" || message.text === "hook"),
      false,
    );
  });

  it("[P7][S18][X18] files in both directions; only Discord's hosts are contacted", async () => {
    const bot = await (await world.bot("files")).connected();
    const good = bot.discord.upload("note.txt", new TextEncoder().encode("from alice"), "text/plain");
    const bad = { ...good, filename: "evil.txt", url: "http://169.254.169.254/latest/meta-data" };
    const said = bot.discord.say({ content: "see", attachments: [good, bad] });
    const { message } = await bot.received((inbound) => inbound.message.id === said.id, "the files");
    assert.equal(message.media?.length, 1);
    const [media] = message.media ?? [];
    assert.equal(await world.get(media?.r2Key ?? ""), "from alice");
    assert.match(message.text, /"evil.txt" is not on Discord's servers/);

    await world.put("out/report.txt", new TextEncoder().encode("from the agent"));
    const media1 = { type: "document", mimeType: "text/plain", r2Key: "out/report.txt", filename: "report.txt" } as const;
    assert.equal((await bot.report(await bot.send({ peer: alice, text: "here", media: [media1] }))).state, "sent");
    const [words, file] = bot.discord.sent(DM);
    assert.equal(words?.content, "here");
    assert.deepEqual(file?.["attachments"], [
      {
        filename: "report.txt",
        size: 14,
        content_type: "text/plain",
        text: "from the agent",
      },
    ]);
  });

  it("[P9] a rate limit delays, a lost answer causes no duplicate, a refusal is reported", async () => {
    const bot = await (await world.bot("sends")).connected();
    bot.discord.limit("POST /channels/\\d+/messages", 0.3);
    assert.equal((await bot.report(await bot.send({ peer: alice, text: "one" }))).state, "sent");
    bot.discord.limit("POST /channels/\\d+/messages", 0.2, 1, true);
    bot.discord.loseAnswers("POST /channels/\\d+/messages");
    assert.equal((await bot.report(await bot.send({ peer: alice, text: "two" }))).state, "sent");
    bot.discord.failNext("POST /channels/\\d+/messages", 502);
    assert.equal((await bot.report(await bot.send({ peer: alice, text: "three" }))).state, "sent");
    assert.deepEqual(
      bot.discord.sent(DM).map(({ content }) => content),
      ["one", "two", "three"],
    );
    bot.discord.refuse(GENERAL, 403, 50013);
    const report = await bot.report(await bot.send({ peer: { kind: "channel", id: GENERAL }, text: "four" }));
    assert.equal(report.state, "failed");
    assert.match(report.error ?? "", /may not write here/);
    const nowhere = await bot.report(await bot.send({ peer: { kind: "channel", id: "../users/@me" }, text: "five" }));
    assert.match(nowhere.error ?? "", /not a Discord conversation/);
    // A repeated delivery is the same message.
    await bot.send({ peer: alice, text: "three" }, "d2");
    assert.equal(bot.discord.sent(DM).length, 3);
  });

  it("[P7] an answer is shown while it is generated and ends as one message", async () => {
    const bot = await (await world.bot("live")).connected();
    const show = (text: string): Promise<unknown> =>
      world.call("live", { accountId: "live", live: { deliveryId: "a1", peer: alice, text } });
    await show("The");
    await bot.discord.until(rest("POST", /messages$/), "the first words");
    await show("The an");
    await show("The answ");
    const contentOf = ({ body }: Note): unknown => (body as Record<string, unknown>)["content"];
    const edited = rest("PATCH", /messages\/\d+$/);
    await bot.discord.until((note) => edited(note) && contentOf(note) === "The answ", "the edit");
    assert.equal((await bot.report(await bot.send({ peer: alice, text: "The answer." }, "a1"))).state, "sent");
    assert.deepEqual(
      bot.discord.sent(DM).map(({ content }) => content),
      ["The answer."],
    );
    // Live texts that come too fast are skipped; "The an" may or may not be shown.
    const edits = bot.discord.log.filter(edited).map(contentOf);
    assert.deepEqual(
      edits.filter((text) => text !== "The an"),
      ["The answ", "The answer."],
    );
  });

  it("[P9] when the response to the first live text is lost, the answer is still one message", async () => {
    const bot = await (await world.bot("live-lost")).connected();
    bot.discord.loseAnswers("POST /channels/\\d+/messages");
    const live = { deliveryId: "a1", peer: alice, text: "The" };
    await world.call("live", { accountId: "live-lost", live });
    await bot.discord.until(rest("POST", /messages$/), "the first words");
    assert.equal((await bot.report(await bot.send({ peer: alice, text: "The answer." }, "a1"))).state, "sent");
    assert.deepEqual(
      bot.discord.sent(DM).map(({ content }) => content),
      ["The answer."],
    );
  });

  it("[P7] an invalid event is skipped, and the next message arrives", async () => {
    const bot = await (await world.bot("garbage")).connected();
    const garbage = [
      null,
      5,
      [],
      "x",
      { id: {} },
      { id: "1".repeat(10_000) },
      { author: { id: "__proto__" } },
      { channel_id: "constructor" },
    ];
    for (const type of ["MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION_CREATE", "GUILD_CREATE", "THREAD_LIST_SYNC", "NO_SUCH_EVENT"])
      for (const data of garbage) bot.discord.gateway.dispatch(type, data);
    const said = bot.discord.say({ content: "still there?" });
    await bot.received(({ message }) => message.id === said.id, "the message");
    assert.equal(bot.inbound.length, 1);
    assert.equal(count(bot, "gateway.identify"), 1);
  });

  it("[P7] [F80] typing is shown and ended, and a reaction marks a message as seen", async () => {
    const bot = await (await world.bot("courtesy")).connected();
    bot.answer = () => ({ outcome: "accepted", reaction: "👀" });
    const { id } = bot.discord.say({ content: "are you there" });
    await bot.discord.until(rest("PUT", /reactions/), "the reaction");
    const paths = (method: string, pattern: RegExp) =>
      bot.discord.log
        .filter((note) => note.kind === "rest" && note["method"] === method && pattern.test(String(note["path"])))
        .map((note) => note["path"]);
    assert.deepEqual(paths("PUT", /reactions/), [`/channels/${DM}/messages/${id}/reactions/%F0%9F%91%80/@me`]);
    assert.deepEqual(paths("POST", /typing$/), []);
    await world.call("typing", { accountId: "courtesy", peer: alice, active: true });
    await bot.discord.until(rest("POST", /typing$/), "typing");
    await world.call("typing", { accountId: "courtesy", peer: alice, active: false });
    // A repeated start is a new one only because the first has ended.
    await world.call("typing", { accountId: "courtesy", peer: alice, active: true });
    await world.until(() => (paths("POST", /typing$/).length === 2 ? true : undefined), "typing again");
    await world.call("typing", { accountId: "courtesy", peer: alice, active: false });
    assert.deepEqual(new Set(paths("POST", /typing$/)), new Set([`/channels/${DM}/typing`]));
  });
});

describe("commands and buttons", { concurrency: 2 }, () => {
  it("[P7] a slash command is acknowledged at once, and the answer replaces the acknowledgement", async () => {
    const bot = await (await world.bot("slash")).connected();
    await bot.discord.until(rest("PUT", /^\/applications\/\d+\/commands$/), "the commands");
    bot.answer = ({ peer, message }) => ({
      outcome: "answered",
      replies: [{ deliveryId: `r-${message.id}`, kind: "notice", peer, text: "all is well", replyToId: message.id }],
    });
    const { id, token } = bot.discord.command("model", [{ type: 3, name: "name", value: "demo/one" }], GENERAL);
    const inbound = await bot.received(({ message }) => message.id === `i:${id}`, "the command");
    assert.deepEqual([inbound.message.text, inbound.wasMentioned, inbound.peer.id], ["/model demo/one", true, GENERAL]);
    assert.equal((await bot.report(`r-i:${id}`)).state, "sent");
    const callback = bot.discord.log.find(({ kind }) => kind === "interaction.callback");
    assert.deepEqual(callback?.["body"], { type: 5, data: { flags: 64 } });
    assert.equal(bot.discord.replies.get(token)?.["content"], "all is well");
    assert.equal(bot.discord.sent(GENERAL).length, 0);
  });

  it("[P7] a button triggers its action; a late answer to a command goes to the channel", async () => {
    const bot = await (await world.bot("button")).connected();
    const actions = [
      { id: "approve:1", label: "Yes" },
      { id: "deny:1", label: "No" },
    ];
    await bot.report(await bot.send({ peer: alice, text: "May I?", actions }));
    const [asked] = bot.discord.sent(DM);
    assert.ok(asked);
    bot.discord.press(asked, "approve:1");
    const pressed = await bot.received(({ message }) => message.text === "approve:1", "the action");
    assert.deepEqual([pressed.message.replyToId, pressed.sender?.id], [asked.id, ALICE.id]);
    const callback = await bot.discord.until(({ kind }) => kind === "interaction.callback", "the sign");
    assert.equal((callback["body"] as Record<string, unknown>)["type"], 6);

    bot.discord.failNext("POST /interactions/.*/callback", 404);
    const { id } = bot.discord.command("status");
    await bot.received(({ message }) => message.id === `i:${id}`, "the command");
    assert.equal((await bot.report(await bot.send({ peer: alice, text: "fine", replyToId: `i:${id}` }))).state, "sent");
    assert.equal(bot.discord.sent(DM).at(-1)?.content, "fine");
  });
});

describe("[AP14] a question with buttons", { concurrency: 8 }, () => {
  const actions = [
    { id: "allow K7Q2A", label: "Allow once" },
    { id: "deny K7Q2A", label: "Deny" },
  ];
  it("gets its outcome as its end and loses its buttons; a second press changes nothing there", async () => {
    const bot = await (await world.bot("question")).connected();
    await bot.report(await bot.send({ peer: alice, kind: "approval", text: "May I run ls?", actions }));
    const [asked] = bot.discord.sent(DM);
    assert.ok(asked);
    const { id } = bot.discord.press(asked, "allow K7Q2A");
    const pressed = await bot.received(({ message }) => message.id === `i:${id}`, "the press");
    assert.deepEqual([pressed.message.text, pressed.message.pressed, pressed.sender?.id], ["allow K7Q2A", true, ALICE.id]);
    const callback = await bot.discord.until(({ kind, id: of }) => kind === "interaction.callback" && of === id, "the sign");
    assert.equal((callback["body"] as Record<string, unknown>)["type"], 6);
    const report = await bot.report(await bot.send({ peer: alice, kind: "notice", text: "K7Q2A is allowed.", replyToId: `i:${id}` }));
    assert.deepEqual([report.state, report.messageIds], ["sent", [asked.id]]);
    const [shown, ...others] = bot.discord.sent(DM);
    assert.deepEqual([shown?.content, shown?.["components"], others.length], ["May I run ls?\n\nK7Q2A is allowed.", [], 0]);
  });
  it("whose message is gone gets its outcome as a message", async () => {
    const bot = await (await world.bot("gone")).connected();
    await bot.report(await bot.send({ peer: alice, kind: "approval", text: "May I?", actions }));
    const [asked] = bot.discord.sent(DM);
    assert.ok(asked);
    const { id } = bot.discord.press(asked, "deny K7Q2A");
    await bot.received(({ message }) => message.id === `i:${id}`, "the press");
    bot.discord.failNext("PATCH /channels/", 404);
    await bot.report(await bot.send({ peer: alice, kind: "notice", text: "K7Q2A is denied.", replyToId: `i:${id}` }));
    assert.equal(bot.discord.sent(DM).at(-1)?.content, "K7Q2A is denied.");
  });
});

describe("the connection", { concurrency: 8 }, () => {
  it("[F93] [W25] reconnects that Discord asks for are no failures", async () => {
    const bot = await (await world.bot("asked")).connected();
    for (let n = 0; n < 3; n++) {
      const resumed = count(bot, "gateway.resumed");
      bot.discord.gateway.op(7);
      await bot.discord.until(() => count(bot, "gateway.resumed") > resumed, "resume");
    }
    const waits = world.output
      .split("\n")
      .filter((line) => line.includes('"account":"asked"') && line.includes("gateway_waiting"))
      .map((line) => (JSON.parse(line) as { why: string }).why);
    assert.deepEqual(waits, new Array(3).fill("Discord asked for a new connection"));
    assert.equal(count(bot, "gateway.identify"), 1);
  });

  const survives: readonly (readonly [name: string, break_: (bot: Bot) => void])[] = [
    ["is told to reconnect (op 7)", (bot) => bot.discord.gateway.op(7)],
    ["is closed with 4000", (bot) => bot.discord.gateway.kick(4000)],
    ["is closed with 1001", (bot) => bot.discord.gateway.kick(1001)],
    ["is cut", (bot) => bot.discord.gateway.cut()],
    [
      "falls silent",
      (bot) => {
        bot.discord.gateway.muted = true;
      },
    ],
  ];
  for (const [index, [name, breakIt]] of survives.entries()) {
    it(`[W25] it resumes when it ${name}: nothing is lost or doubled`, async () => {
      const silent = name === "falls silent";
      const bot = await (await world.bot(`resume-${index}`, silent ? { heartbeatMs: 1_000 } : {})).connected();
      bot.discord.say({ content: "before" });
      await bot.received(({ message }) => message.text === "before", "the message before");
      const [opened, closed, resumed] = ["gateway.open", "gateway.close", "gateway.resumed"].map((kind) => count(bot, kind));
      breakIt(bot);
      await bot.discord.until(() => count(bot, "gateway.close") > (closed ?? 0), "the end");
      bot.discord.gateway.muted = false;
      bot.discord.say({ content: "meanwhile" });
      await bot.discord.until(() => count(bot, "gateway.resumed") > (resumed ?? 0), "resume");
      bot.discord.say({ content: "after" });
      await bot.received(({ message }) => message.text === "after", "the message after");
      assert.deepEqual(
        bot.inbound.map(({ message }) => message.text),
        ["before", "meanwhile", "after"],
      );
      assert.equal(count(bot, "gateway.identify"), 1);
      // With heartbeats this close together a slow machine also counts as silence.
      const more = count(bot, "gateway.open") - (opened ?? 0);
      assert.ok(silent ? more >= 1 : more === 1, `${more} sockets more`);
    });
  }

  it("[W25] a new session replaces one that Discord dropped, and missed messages are read from the history first", async () => {
    const bot = await (await world.bot("lost")).connected();
    bot.discord.say({ content: "one" });
    bot.discord.say({ channel: GENERAL, content: "one there" });
    await bot.received(({ message }) => message.text === "one there", "the first messages");
    bot.discord.gateway.forgetSessions();
    bot.discord.gateway.op(9, false);
    for (const content of ["two", "three"]) bot.discord.say({ content, unheard: true });
    bot.discord.say({ channel: GENERAL, content: "two there", unheard: true });
    bot.discord.say({ channel: THREAD, content: "never read before", unheard: true });
    await bot.discord.until(rest("GET", /messages$/), "a look at the history");
    bot.discord.say({ content: "four" });
    await bot.received(({ message }) => message.text === "four", "the live message");
    await bot.received(({ message }) => message.text === "never read before", "the thread's message");
    const texts = (kind: string): unknown =>
      bot.inbound.filter(({ peer }) => peer.kind === kind).map(({ message, backlog = false }) => [message.text, backlog]);
    assert.deepEqual(texts("dm"), [
      ["one", false],
      ["two", true],
      ["three", true],
      ["four", false],
    ]);
    assert.deepEqual(texts("channel"), [
      ["one there", false],
      ["two there", true],
    ]);
    assert.equal(count(bot, "gateway.identify"), 2);
  });

  for (const [code, words] of [
    [4004, /token/],
    [4014, /Message Content Intent/],
  ] as const) {
    it(`[P7] ${code} stops it with an explanation, without retries`, async () => {
      const bot = await world.bot(`fatal-${code}`);
      bot.discord.gateway.refuseWith = code;
      await bot.start();
      const stopped = await world.until(() => bot.states.find(({ extra }) => extra?.["socket"] === "stopped"), "the stop");
      assert.match(stopped.error ?? "", words);
      assert.deepEqual([stopped.connected, stopped.authenticated], [false, false]);
      // The alarm does not start it again; a person does.
      await bot.status();
      assert.equal(count(bot, "gateway.identify"), 1);
      bot.discord.gateway.refuseWith = undefined;
      await bot.start();
      await bot.discord.until(({ kind }) => kind === "gateway.ready", "ready");
    });
  }

  it("[W25] a resumable invalid session (op 9) is resumed at once", async () => {
    const bot = await (await world.bot("doubt")).connected();
    bot.discord.gateway.op(9, true);
    await bot.discord.until(({ kind }) => kind === "gateway.resumed", "resume");
    bot.discord.say({ content: "after" });
    await bot.received(({ message }) => message.text === "after", "the message");
    assert.deepEqual([count(bot, "gateway.identify"), count(bot, "gateway.open")], [1, 1]);
  });

  it("[P7] a revoked token stops it; queued messages are sent after a restart", async () => {
    const bot = await (await world.bot("revoked")).connected();
    bot.discord.failNext("POST /channels/\\d+/messages", 401);
    const id = await bot.send({ peer: alice, text: "waits" });
    const stopped = await world.until(() => bot.states.find(({ extra }) => extra?.["socket"] === "stopped"), "the stop");
    assert.match(stopped.error ?? "", /no longer accepts/);
    assert.equal((await bot.status()).outboxWaiting, 1);
    await bot.start();
    assert.equal((await bot.report(id)).state, "sent");
    assert.deepEqual(
      bot.discord.sent(DM).map(({ content }) => content),
      ["waits"],
    );
  });

  it("[P7] few sessions left: no new one starts, the status says so, sending works", async () => {
    const bot = await world.bot("budget", { identifiesLeft: 50 });
    await bot.start();
    const waiting = await world.until(() => bot.states.find(({ extra }) => extra?.["socket"] === "waiting"), "the wait");
    assert.match(waiting.error ?? "", /sessions that Discord allows/);
    assert.equal(waiting.extra?.["sessionsLeftToday"], 50);
    assert.equal(count(bot, "gateway.identify"), 0);
    assert.equal((await bot.report(await bot.send({ peer: alice, text: "still here" }))).state, "sent");
  });

  it("[P7] the status shows the real state", async () => {
    const bot = await (await world.bot("status", { heartbeatMs: 1_000 })).connected();
    await bot.discord.until(({ kind }) => kind === "gateway.heartbeat", "a heartbeat");
    const state = await world.until(() => bot.states.find(({ connected }) => connected), "the state");
    assert.deepEqual([state.authenticated, state.mode], [true, "gateway"]);
    bot.discord.say({ content: "hello" });
    await bot.received(({ message }) => message.text === "hello", "the message");
    const now = await world.stage.statusWhere("connected", ({ connected }) => connected, "status");
    assert.deepEqual([now.connected, now.error, now.extra?.["servers"], now.extra?.["socket"]], [true, undefined, 1, "connected"]);
    assert.ok((now.silentMs ?? 60_000) < 5_000);
    assert.equal(JSON.stringify(now).includes(bot.discord.token), false);
    await world.call("stop", { accountId: "status" });
    await bot.discord.until(({ kind, code }) => kind === "gateway.close" && code === 1000, "the end");
    assert.equal((await bot.status()).connected, false);
  });

  it("[S5] without a valid token it says what to do", async () => {
    const bot = await world.bot("no-token");
    assert.match((await bot.start({ token: "" })).error ?? "", /There is no bot token/);
    assert.match((await bot.start({ token: "abc" })).error ?? "", /has three parts/);
    const wrong = await bot.start({ token: "MTAw.Fake-1.another-token-of-a-bot" });
    const stopped =
      wrong.error === undefined ? await world.until(() => bot.states.find(({ error }) => error !== undefined), "the stop") : wrong;
    assert.match(stopped.error ?? "", /does not accept the bot's token/);
    assert.equal(count(bot, "gateway.open"), 0);
  });
});

it("[P7] the Worker is within its budget", async () => {
  const gzipped = gzipSync(await bundleWorker(true), { level: 9 }).length;
  assert.ok(gzipped < 120_000, `the Worker has ${gzipped} bytes, gzipped; it may have 120,000`);
});

it("[S5] no token and no message text in the Worker's output", async () => {
  assert.match(world.output, /"component":"channel-discord"/);
  assert.equal(world.output.includes(MARK), false);
  assert.equal(/fake-token|MTAw|aW50ZXJhY3Rpb24/.test(world.output), false);
  assert.equal(/Uncaught|unhandled/i.test(world.output), false, world.output.slice(0, 3_000));
});
