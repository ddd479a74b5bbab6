/**
 * Discord and WhatsApp end to end: their libraries in the deployed Workers, against fakes that speak their wire, with the real gateway
 * and a model. Covers what the example channel lacks: answers that grow by edits, commands of the platform, logins by QR code.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ALICE, DM, FakeDiscord, GENERAL } from "../../channels/fakes/discord/fake-discord.ts";
import { FakeWhatsApp } from "../../channels/fakes/whatsapp/server.ts";
import { ChannelStack } from "./channel-stack.ts";
import { type Json, until } from "./support.ts";

const NODE = ["nodejs_compat"];

describe("Discord", { concurrency: 1, timeout: 90_000 }, () => {
  let discord: FakeDiscord;
  let stack: ChannelStack;
  const start = (): Promise<Json> => stack.call("channel.start", { channel: "discord" });
  const texts = (channel: string): string[] => discord.sent(channel).map(({ content }) => content);
  const shows = (channel: string, text: string): Promise<unknown> => until(`${text} is shown`, () => texts(channel).includes(text));
  before(async () => {
    discord = await new FakeDiscord().listen();
    const kind = { name: "discord", className: "DiscordAccount", flags: NODE } as const;
    stack = await ChannelStack.start({ owners: [ALICE.id] }, kind, { token: discord.token, apiBase: discord.api });
    await discord.until(({ kind: what }) => what === "gateway.ready", "ready");
  });
  after(async () => {
    await stack.end();
    await discord.close();
  });

  it("[P7][P9][K22] an answer grows by edits; the channel is killed in the middle of it; it ends as one message", async () => {
    stack.model.enqueue({ text: ["The beginning ", "and the end."], midGate: { name: "middle", after: 1 } });
    discord.say({ content: "tell me" });
    await until("its beginning is shown", () => texts(DM).some((text) => text.startsWith("The beginning")));
    await stack.killChannel();
    stack.model.openGate("middle");
    await stack.bootChannel();
    await start();
    await shows(DM, "The beginning and the end.");
    discord.say({ content: "say next" });
    await shows(DM, "next");
    assert.deepEqual(texts(DM), ["The beginning and the end.", "next"]);
  });

  it("[X8] in a group it answers when it is mentioned, and only people whom it knows", async () => {
    const asked = stack.model.requests.length;
    discord.say({ channel: GENERAL, content: "say not meant" });
    discord.say({
      channel: GENERAL,
      content: "say stranger",
      mention: true,
      user: { ...ALICE, id: "400000000000000077", global_name: "Alice" },
    });
    const said = discord.say({ channel: GENERAL, content: "say meant", mention: true });
    await shows(GENERAL, "meant");
    const [answer, ...more] = discord.sent(GENERAL);
    assert.deepEqual(more, []);
    assert.equal((answer?.["message_reference"] as Json | undefined)?.["message_id"], said.id);
    assert.equal(stack.model.requests.length, asked + 1);
  });

  it("[P7][P10] a slash command is answered where it was given; /stop ends a run visibly", async () => {
    const { token } = discord.command("status");
    await until("the answer", () => discord.replies.get(token));
    assert.match(String(discord.replies.get(token)?.["content"]), /fake-1/);
    stack.model.enqueue({ text: "too late", gate: "never" });
    const asked = stack.model.requests.length;
    discord.say({ content: "say too late" });
    await until("the model is asked", () => stack.model.requests.length > asked);
    discord.command("stop");
    await until("it says so", () => texts(DM).some((text) => /stopped/i.test(text)));
    discord.say({ content: "say afterwards" });
    await shows(DM, "afterwards");
    assert.equal(texts(DM).includes("too late"), false);
  });
});

describe("WhatsApp", { concurrency: 1, timeout: 90_000 }, () => {
  const ANN = { pn: "15550002222", lid: "900000002222", name: "Ann" };
  let fake: FakeWhatsApp;
  let stack: ChannelStack;
  const texts = (): string[] =>
    fake.shown(ANN.pn).flatMap(({ message }) => message.extendedTextMessage?.text || message.conversation || []);
  const shows = (text: string): Promise<unknown> => until(`${text} is shown`, () => texts().includes(text));
  /** `since`: links that were made before the end. The new one may be there already. */
  const linkedAgain = async (since: number): Promise<void> => {
    await stack.call("channel.start", { channel: "whatsapp" });
    await until("it is linked again", () => fake.noted("flushed").length > since);
  };
  before(async () => {
    fake = await new FakeWhatsApp().listen();
    fake.addPeer(ANN);
    const texts = { WHATSAPP_URL: fake.url, WHATSAPP_NOISE_ROOT: fake.rootHex };
    stack = await ChannelStack.start(
      {},
      { name: "whatsapp", className: "WhatsAppAccount", flags: NODE, texts, trusted: fake.tls.cert },
      {},
    );
  });
  after(async () => {
    await stack.end();
    await fake.close();
  });

  it("[S6][P7] linked by the QR code that the owner asks for; a stranger waits for the owner's approval", async () => {
    const { login } = (await stack.call("channel.login", { channel: "whatsapp" })) as { login: { state: string; qr?: string } };
    assert.equal(login.state, "qr");
    fake.linking.scan(login.qr ?? "");
    await until("it is linked", () => fake.noted("flushed").length > 0);
    await fake.say(ANN.pn, "say hello");
    await until("the notice", () => texts().some((text) => /does not know you/.test(text)));
    assert.equal(stack.model.requests.length, 0);
    const [code] = /\b[0-9A-Z]{4,}(?:-[0-9A-Z]+)*\b/.exec(texts()[0]?.replace(/^.*the code/s, "") ?? "") ?? [];
    assert.ok(code, texts()[0]);
    await stack.call("pair.approve", { channel: "whatsapp", senderId: code });
    await shows("hello");
  });

  it("[P2][P9] the connection breaks while an answer is sent, and everything is killed in the middle of a run: one answer each", async () => {
    fake.dropAfterNextMessage = true;
    const since = fake.noted("flushed").length;
    await fake.say(ANN.pn, "say over a broken line");
    await shows("over a broken line");
    await until("it is linked again", () => fake.noted("flushed").length > since);
    stack.model.enqueue({ text: "one answer", gate: "all", times: 2 });
    const asked = stack.model.requests.length;
    await fake.say(ANN.pn, "say one answer");
    await until("the model is asked", () => stack.model.requests.length > asked);
    await Promise.all([stack.killGateway(), stack.killChannel()]);
    // Meanwhile a person continues to write.
    await fake.say(ANN.pn, "say while GSV was away");
    stack.model.openGate("all");
    const before = fake.noted("flushed").length;
    await Promise.all([stack.bootGateway(), stack.bootChannel()]);
    await linkedAgain(before);
    await until("all is answered", () => texts().length >= 5);
    await stack.quiet();
    assert.deepEqual(texts().slice(1, 4), ["hello", "over a broken line", "one answer"]);
    assert.equal(texts().length, 5);
    assert.equal(Math.max(...fake.noted("connected").map(({ at_once }) => Number(at_once))), 1);
  });

  it("[S5][S17] no log has texts or names of senders", () => {
    const { output } = stack;
    assert.match(output, /"component":"channel-whatsapp"/);
    for (const secret of [ANN.pn, ANN.lid, fake.account.pn, "broken line", "one answer", "GSV was away", stack.token, "privKey"])
      assert.equal(output.includes(secret), false, secret);
  });
});
