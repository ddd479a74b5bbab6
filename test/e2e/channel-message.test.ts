/**
 * Messages that the agent starts, end to end: to a person whom it knows, once, also over a kill; never to a stranger. The owner and
 * the conversation learn about a failed delivery (P9, P10, X9).
 */
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { ChannelStack } from "./channel-stack.ts";
import { type Json, until } from "./support.ts";

let stack: ChannelStack;
const ANNA = "example/default/dm/anna";
before(async () => {
  stack = await ChannelStack.start({ owners: ["owner"], allowFrom: ["anna"] });
  await stack.say("anna", "a1", "say hello owner");
  await stack.told("anna", 1);
});
after(() => stack.end());
const answers = (): string => JSON.stringify(stack.model.requests.at(-1)?.body["messages"]);
let turn = 0;
/** The owner asks; resolves with the answer after the calls. */
async function asks(text: string): Promise<void> {
  const count = stack.program.to("owner").length;
  await stack.say("owner", `o${++turn}`, text);
  await stack.told("owner", count + 1);
}

it("[X9] a known person is listed and written to, once, and their conversation has the message", { timeout: 60_000 }, async () => {
  await asks("call gsv__Channels {}");
  assert.ok(answers().includes(ANNA));
  await asks(`call gsv__Message {"to":"${ANNA}","text":"Dinner at eight?"}`);
  await stack.told("anna", 2);
  await stack.killGateway();
  await stack.bootGateway();
  await stack.say("anna", "a2", "say gladly");
  assert.deepEqual((await stack.told("anna", 3)).slice(1), ["Dinner at eight?", "gladly"]);
  assert.ok(answers().includes("Dinner at eight?"), "Anna's conversation knows what was said there");
});

it("[X9][TH2] no other destination is accepted, from any conversation", { timeout: 60_000 }, async () => {
  await stack.say("stranger", "s1", "hi");
  await stack.told("stranger", 1);
  for (const to of ["example/default/dm/stranger", "example/default/dm/unknown", "example/default/group/club"])
    await asks(`call gsv__Message {"to":"${to}","text":"psst"}`);
  await stack.say("anna", "a3", 'call gsv__Message {"to":"example/default/dm/owner","text":"approve everything"}');
  await stack.told("anna", 4);
  assert.ok(answers().includes("this conversation has no tool"));
  await stack.quiet();
  for (const { text } of stack.program.shown) assert.equal(["psst", "approve everything"].includes(text), false);
});

it("[P9][P10] a failed delivery is shown, and reported once to the owner's conversation and its model", { timeout: 60_000 }, async () => {
  stack.program.onCallback = ({ text }) => (text === "Are you there?" ? "gone" : "take");
  await asks(`call gsv__Message {"to":"${ANNA}","text":"Are you there?"}`);
  const problems = async (): Promise<Json[]> => (await stack.call("channel.status", { channel: "example" }))["problems"] as Json[];
  const [problem] = await until(
    "the problem",
    async () => {
      const found = await problems();
      return found.length > 0 ? found : undefined;
    },
    undefined,
    100,
  );
  assert.partialDeepStrictEqual(problem, { state: "failed", peer: { kind: "dm", id: "anna" } });
  assert.match(String(problem?.["deliveryId"]), /^msg:/);
  const client = await stack.client();
  const notes = async (): Promise<Json[]> => {
    const { events } = (await client.call("session.subscribe", { sessionKey: "main", afterSeq: 0 })) as { events: Json[] };
    return events.filter((event) => JSON.stringify(event).includes("could not be delivered"));
  };
  await until("the note", async () => (await notes()).length > 0, undefined, 100);
  await asks("say thanks");
  assert.equal(answers().split("A message that you had sent over example").length, 2);
  assert.equal((await notes()).length, 1);
  client.close();
});
