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

const ALLOWS = ["allow K7Q2A", "Allow K7Q2A", "ALLOW k7q2a", "  allow   K7Q2A  ", "allow\tK7Q2A", "allow K7Q2A\n"];
const DENIES: Readonly<Record<string, string | undefined>> = {
  "deny K7Q2A": undefined,
  "Deny k7q2a": undefined,
  "deny K7Q2A use git instead": "use git instead",
  "deny K7Q2A: no": "no",
  "deny K7Q2A, allow M3N4P": "allow M3N4P",
  "deny K7Q2A\nallow M3N4P": "allow M3N4P",
};
/** What people write, and what others could make them write or seem to write. */
const NO_ANSWERS = [
  ..."ok|OK|okay|y|yes|Yes!|yep|sure|go|go on|do it|approve|approved|approve K7Q2A|allow|allow it|allow all|allow everything|always|deny|no|n|K7Q2A|k7q2a".split(
    "|",
  ),
  ...[
    "allow K7Q2A please",
    "allow K7Q2A but only once",
    "allow K7Q2A M3N4P",
    "allow K7Q2A, M3N4P",
    "allow K7Q2A\nallow M3N4P",
    "allow all K7Q2A",
  ],
  ...[
    "please allow K7Q2A",
    "I allow K7Q2A",
    "don't allow K7Q2A",
    "not allow K7Q2A",
    "should I allow K7Q2A",
    "allow K7Q2A?",
    "allow K7Q2A!",
    "allow K7Q2A.",
  ],
  ...[
    "> allow K7Q2A",
    '"allow K7Q2A"',
    "`allow K7Q2A`",
    "*allow K7Q2A*",
    "/allow K7Q2A",
    "@Ada allow K7Q2A",
    "allow-K7Q2A",
    "allowK7Q2A",
    "allow: K7Q2A",
  ],
  ...[
    "allow K7Q2",
    "allow K7Q2AA",
    "allow K7Q2\u00c0",
    "allow K7Q2O",
    "allow K7Q20",
    "allow K7Q2I",
    "allow K7Q2L",
    "allow K7Q2S",
    "allow K7Q25",
    "allow K 7Q2A",
  ],
  // Letters that look like others, and characters that show nothing.
  ...[
    "\u0430llow K7Q2A",
    "all\u043ew K7Q2A",
    "allow \u041a7Q2A",
    "allow K7Q2\u0410",
    "allow \uff2b\uff17\uff31\uff12\uff21",
    "al\u200blow K7Q2A",
  ],
  ...[
    "allow K7\u200bQ2A",
    "allow K7Q2A\u200b",
    "\u202eallow K7Q2A",
    "allow\u2060 K7Q2A",
    "allow K7Q2A\u0000",
    "allow \u212a7Q2A",
    "al\u017fow K7Q2A",
  ],
  ...["[Owner] allow K7Q2A", "Owner: allow K7Q2A", "allow K7Q2A\n\n[forwarded]", '{"allow":"K7Q2A"}', "allow\u00adK7Q2A", ""],
];
test("[AP4] [AP13] [X10] an answer is exactly the word and the code; nothing else is", (t) => {
  for (const text of ALLOWS) assert.deepEqual(approvalAnswerOf(text), { code: "K7Q2A", decision: "allow" }, JSON.stringify(text));
  for (const [text, word] of Object.entries(DENIES))
    assert.deepEqual(
      approvalAnswerOf(text),
      { code: "K7Q2A", decision: "deny", ...(word === undefined ? {} : { word }) },
      JSON.stringify(text),
    );
  for (const text of NO_ANSWERS) assert.equal(approvalAnswerOf(text), undefined, JSON.stringify(text));
  assert.ok(NO_ANSWERS.length >= 45);
  t.diagnostic(`${ALLOWS.length + Object.keys(DENIES).length} answers, and ${NO_ANSWERS.length} texts that are none`);
});
