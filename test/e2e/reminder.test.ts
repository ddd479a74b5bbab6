/**
 * "Remind me tomorrow at 9" over WhatsApp, on the day before a change of clocks: the real gateway and channel, whose clock the test
 * sets, the fake platform, the fake model's wire.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { FakeWhatsApp } from "../../channels/fakes/whatsapp/server.ts";
import { ChannelStack } from "./channel-stack.ts";
import { canSetClock, Clock } from "./clock.ts";
import { type Json, until } from "./support.ts";

const ZONE = "Europe/Berlin";
const ANN = { pn: "15550002222", lid: "900000002222", name: "Ann" };
const HOUR_MS = 3_600_000;
/** By how much local time is ahead of UTC. */
function offsetMs(at: number): number {
  const parts = new Intl.DateTimeFormat("en", { timeZone: ZONE, timeZoneName: "longOffset" }).formatToParts(at);
  const [, hours = "0"] = /GMT\+(\d\d)/.exec(parts.find(({ type }) => type === "timeZoneName")?.value ?? "") ?? [];
  return Number(hours) * HOUR_MS;
}
/** Midnight, in local time, of the first day after `from` on which the clocks change. */
function dayOfChange(from: number): number {
  for (let day = from - (from % (24 * HOUR_MS)); ; day += 24 * HOUR_MS) {
    if (day > from && offsetMs(day) !== offsetMs(day + 24 * HOUR_MS)) return day - offsetMs(day);
  }
}
/** This hour of local time on that day, when the clocks have changed. */
const nineOf = (midnight: number): number => midnight + 9 * HOUR_MS - (offsetMs(midnight + 9 * HOUR_MS) - offsetMs(midnight));

describe("[SC3] [SC4] a reminder for the morning after the clocks change", { concurrency: 1, timeout: 120_000, skip: !canSetClock }, () => {
  let clock: Clock;
  let fake: FakeWhatsApp;
  let stack: ChannelStack;
  const shown = (text: string): number =>
    fake.shown(ANN.pn).filter(({ message }) => (message.extendedTextMessage?.text ?? message.conversation ?? "").includes(text)).length;
  /** The machine is off until this time. */
  const isNow = async (at: number): Promise<void> => {
    await stack.killChannel();
    await stack.killGateway();
    clock.set(new Date(at));
    stack.env = clock.env;
    await stack.bootGateway();
    await stack.bootChannel();
    await stack.call("channel.start", { channel: "whatsapp" });
  };
  /** Ann asks on the evening before, and the agent makes the job. */
  const asks = async (midnight: number, whom: string, mode: "remind" | "task"): Promise<void> => {
    await isNow(midnight - 4 * HOUR_MS);
    const call = {
      name: "gsv__Cron",
      arguments: { action: "add", name: whom, at: "tomorrow at 9", mode, message: `Call ${whom} now.` },
    };
    stack.model.enqueue({ toolCalls: [call] }, { text: `I will remind you of ${whom} tomorrow at 9.` });
    await fake.say(ANN.pn, `remind me tomorrow at 9 to call ${whom}`);
    await until("it is promised", () => shown(`I will remind you of ${whom}`) === 1);
    const { jobs } = (await stack.call("cron.list")) as { jobs: readonly { readonly state: { readonly nextRunAtMs?: number } }[] };
    assert.deepEqual(
      jobs.map(({ state }) => state.nextRunAtMs),
      [nineOf(midnight)],
    );
    if (mode === "task") stack.model.enqueue({ text: `Call ${whom} now.` });
  };
  const runs = async (): Promise<readonly Json[]> => ((await stack.call("cron.runs", {})) as { runs: readonly Json[] }).runs;

  before(async () => {
    clock = new Clock();
    fake = await new FakeWhatsApp().listen();
    fake.addPeer(ANN);
    const texts = { WHATSAPP_URL: fake.url, WHATSAPP_NOISE_ROOT: fake.rootHex };
    const kind = { name: "whatsapp", className: "WhatsAppAccount", flags: ["nodejs_compat"], texts, trusted: fake.tls.cert } as const;
    stack = await ChannelStack.start({ owners: [`+${ANN.pn}`] }, kind, {});
    await stack.call("config.set", { path: "userTimezone", value: ZONE });
    // A conversation that is reset asks the model what to remember, and would take an answer from its queue.
    await stack.call("config.set", { path: "session.defaultResetPolicy.mode", value: "manual" });
    const { login } = (await stack.call("channel.login", { channel: "whatsapp" })) as { login: { qr?: string } };
    fake.linking.scan(login.qr ?? "");
    await until("it is linked", () => fake.noted("flushed").length > 0);
  });
  after(async () => {
    await stack.end();
    await fake.close();
    clock.end();
  });

  it("[SC16] arrives once, at nine of the new local time, without a call of the model", async () => {
    const midnight = dayOfChange(Date.now());
    await asks(midnight, "the dentist", "remind");
    const asked = stack.model.requests.length;
    await isNow(nineOf(midnight) - 8_000);
    assert.equal(shown("Call the dentist now."), 0);
    await until("it arrives", () => shown("Call the dentist now.") > 0);
    const late = Date.now() - nineOf(midnight);
    assert.ok(late >= 0 && late < 15 * 60_000, `it came ${late} ms after nine`);
    await isNow(nineOf(midnight) + HOUR_MS);
    await stack.quiet();
    assert.equal(shown("Reminder: Call the dentist now."), 1);
    assert.equal(shown("Call the dentist now."), 1);
    assert.equal(stack.model.requests.length, asked);
  });

  it("arrives once, and says that it is late, when the gateway was off at nine, at the change in the other direction", async () => {
    const midnight = dayOfChange(Date.now());
    await asks(midnight, "the garage", "task");
    await isNow(nineOf(midnight) + 2.51 * HOUR_MS);
    await until("it arrives", () => shown("Call the garage now.") > 0);
    const asked = JSON.stringify(stack.model.requests.at(-1)?.body["messages"]);
    assert.match(asked, /2 h 30 min late: it was due at 2\d{3}-\d\d-\d\d 09:00/);
    await isNow(nineOf(midnight) + 4 * HOUR_MS);
    await stack.quiet();
    assert.equal(shown("Call the garage now."), 1);
    assert.equal((await runs()).filter(({ status }) => status === "ok").length, 2);
  });
});
