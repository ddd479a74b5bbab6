import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asSessionKey, type ChannelInbound } from "../../../../protocol/gen/types.ts";
import { mediaPrefix } from "../../storage/keys.ts";
import { approvalAnswerOf, attachmentsOf, originOf, runIdOf, withoutMention } from "./inbound-message.ts";

test("a message that is repeated after an update has the same run id; other messages have another", () => {
  assert.equal(runIdOf("whatsapp:default:dm:491701234567:3EB0A9"), "1ynjf84x6x1qq");
  assert.equal(runIdOf("discord:default:channel:1:2"), "lc11fom6u17u");
  const ids = new Set(Array.from({ length: 10_000 }, (_, n) => runIdOf(`discord:default:channel:1:${n}`)));
  assert.equal(ids.size, 10_000);
});

const SESSION = asSessionKey("agent:main:main");
const inbound = (more: Partial<ChannelInbound>, message: Partial<ChannelInbound["message"]> = {}): ChannelInbound => ({
  peer: { kind: "dm", id: "anna" },
  message: { id: "1", text: "@Ada /stop", ...message },
  receivedAt: 0,
  ...more,
});
test("the agent's name before a command is left out only where the agent was mentioned", () => {
  assert.equal(withoutMention(inbound({ wasMentioned: true })), "/stop");
  assert.equal(withoutMention(inbound({ wasMentioned: false })), "@Ada /stop");
  assert.equal(withoutMention(inbound({})), "@Ada /stop");
  assert.equal(withoutMention(inbound({ wasMentioned: true }, { text: "@Ada stop" })), "@Ada stop");
});
describe("[AP4] a person's answer to a question", () => {
  for (const [text, answer] of [
    ["allow K7Q2A", { code: "K7Q2A", decision: "allow" }],
    ["  ALLOW k7q2a \n", { code: "K7Q2A", decision: "allow" }],
    ["deny K7Q2A", { code: "K7Q2A", decision: "deny" }],
    ["deny K7Q2A: use git instead ", { code: "K7Q2A", decision: "deny", word: "use git instead" }],
    ["Deny K7Q2A, ", { code: "K7Q2A", decision: "deny" }],
    ["allow K7Q2A but only once", undefined],
    ["allow K7Q2A:", undefined],
    ["allow 00000", undefined],
    ["deny 00000", undefined],
    ["allow", undefined],
    ["permit K7Q2A", undefined],
    ["please allow K7Q2A", undefined],
    ["K7Q2A", undefined],
    ["", undefined],
    [`deny K7Q2A ${"x".repeat(500)}`, { code: "K7Q2A", decision: "deny", word: "x".repeat(500) }],
    [`deny K7Q2A ${"x".repeat(501)}`, undefined],
  ] as const)
    test(JSON.stringify(text.slice(0, 40)), () => assert.deepEqual(approvalAnswerOf(text), answer));
});
test("[S8] a message has the keys of its own conversation's files only", () => {
  const own = `${mediaPrefix(SESSION)}abc.png`;
  const media = [
    { type: "image" as const, mimeType: "image/png", filename: "a.png", r2Key: own },
    { type: "image" as const, mimeType: "image/png", r2Key: "media/another/abc.png" },
    { type: "image" as const, mimeType: "image/png" },
  ];
  assert.deepEqual(attachmentsOf(inbound({}, { media }), SESSION), {
    attachments: [{ mimeType: "image/png", filename: "a.png", r2Key: own }, { mimeType: "image/png" }, { mimeType: "image/png" }],
  });
  assert.deepEqual(attachmentsOf(inbound({}), SESSION), {});
});
test("a message's origin names its sender, if the platform does", () => {
  const channel = { channel: "test", accountId: "default" };
  assert.equal(originOf(channel, inbound({ sender: { id: "bert" }, peer: { kind: "group", id: "g" } }), "guest").senderId, "bert");
  assert.equal("senderId" in originOf(channel, inbound({ peer: { kind: "group", id: "g" } }), "guest"), false);
});
