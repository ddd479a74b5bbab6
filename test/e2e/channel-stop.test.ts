/** A stop while an answer of the agent waits in the channel for its platform (gateway rule ST9): the built Workers, killed in between. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ChannelStack } from "./channel-stack.ts";
import { until } from "./support.ts";

describe("a stop holds what agents wrote and what waits in a channel", () => {
  let stack: ChannelStack;
  before(async () => {
    stack = await ChannelStack.start({ dmPolicy: "open", owners: ["owner"] });
  });
  after(() => stack.end());
  const waiting = async (count: number): Promise<void> => {
    await until(`${count} messages wait in the channel`, async () => {
      const { accounts } = await stack.call("channel.status", { channel: "example" });
      return (accounts as Record<string, unknown>[])[0]?.["outboxWaiting"] === count;
    });
  };

  it("[ST9] [P14] an answer that waits for its platform leaves after the resume only, once and in order; the system's answers leave at once", async () => {
    const { program } = stack;
    // The platform is away when the agent answers.
    program.onCallback = () => "refuse";
    await stack.say("owner", "m1", "say the first answer");
    await waiting(1);
    await stack.say("owner", "m2", "say the second answer");
    await waiting(2);
    await stack.call("gateway.stop");
    program.onCallback = () => "take";
    const attempts = program.callbacks;
    await stack.killChannel();
    await stack.bootChannel();
    await stack.killGateway();
    await stack.bootGateway();
    // The owner asks, and gets an answer: the channel can send.
    await stack.say("owner", "m3", "/status");
    const [status] = await stack.told("owner", 1);
    assert.match(String(status), /^Session: agent:main:main/);
    assert.equal(program.callbacks, attempts + 1, "nothing else was tried");
    await waiting(2);
    await stack.say("owner", "m4", "/resume");
    const texts = await stack.told("owner", 4);
    await stack.quiet();
    assert.match(String(texts[1]), /GSV goes on/);
    assert.deepEqual([texts[2]?.includes("first"), texts[3]?.includes("second")], [true, true]);
    assert.equal(program.to("owner").length, 4);
  });
});
