import assert from "node:assert/strict";
import { test } from "node:test";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ChannelInbound } from "../../../../protocol/gen/types.ts";
import { MessageRate } from "./message-rate.ts";

const CHANNEL = { channel: "test", accountId: "default" };
const MINUTE = 60_000;
class Rig {
  now = 1_800_000_000_000;
  readonly rate = new MessageRate(() => this.now);
  say(id = "anna", { bot = false, role = "guest" as "guest" | "owner" } = {}) {
    const inbound: ChannelInbound = {
      peer: { kind: "group", id: "g" },
      sender: { id, ...(bot ? { bot } : {}) },
      message: { id: "1", text: "x" },
      receivedAt: this.now,
    };
    return this.rate.hold(CHANNEL, inbound, role);
  }
  fill(most: number, ...as: Parameters<Rig["say"]>): void {
    for (let n = 0; n < most; n++) assert.equal(this.say(...as), undefined, `message ${n + 1}`);
  }
}
test("[CH6] a sender's messages of a minute are taken up to the limit; the next waits until the first is a minute old", () => {
  const rig = new Rig();
  rig.fill(1);
  rig.now += 10_000;
  rig.fill(LIMITS.senderPerMinute - 1);
  rig.now += 20_000;
  assert.equal(rig.say()?.retryAfterMs, MINUTE - 30_000);
  assert.equal(rig.say("bert"), undefined, "another sender");
  rig.now += MINUTE - 30_000 - 1;
  assert.equal(rig.say()?.retryAfterMs, 1);
  rig.now += 1;
  assert.equal(rig.say(), undefined);
});
test("[CH6] the owner has a limit of its own", () => {
  const rig = new Rig();
  rig.fill(LIMITS.ownerPerMinute, "anna", { role: "owner" });
  assert.match(rig.say("anna", { role: "owner" })?.text ?? "", new RegExp(`more than ${LIMITS.ownerPerMinute} messages`));
});
test("[CH6] a sender is told once in a while, and a program never", () => {
  const rig = new Rig();
  const told = (bot: boolean): boolean => rig.say(bot ? "robot" : "anna", { bot })?.text !== undefined;
  rig.fill(LIMITS.senderPerMinute);
  rig.fill(LIMITS.senderPerMinute, "robot", { bot: true });
  assert.deepEqual([told(false), told(false), told(true)], [true, false, false]);
  rig.now += LIMITS.heldNoticeMs - 1;
  rig.fill(LIMITS.senderPerMinute);
  assert.equal(told(false), false);
  rig.now += 1;
  assert.equal(told(false), true);
});
test("[CH6][P20] a clock that is set back delays no sender", () => {
  const rig = new Rig();
  rig.fill(LIMITS.senderPerMinute);
  rig.now -= 1;
  assert.equal(rig.say(), undefined);
});
test("[P19] senders beyond the thousandth start again at zero; a known one does not make the others start again", () => {
  const rig = new Rig();
  rig.fill(LIMITS.senderPerMinute);
  for (let n = 1; n < 1_000; n++) rig.say(`p${n}`);
  assert.notEqual(rig.say(), undefined, "a thousand are remembered");
  assert.equal(rig.say("p1"), undefined);
  assert.notEqual(rig.say(), undefined, "a known sender");
  rig.say("p1000");
  assert.equal(rig.say(), undefined);
});
