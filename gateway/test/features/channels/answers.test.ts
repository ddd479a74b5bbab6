/** Who answers a question about a call in a chat, and in which words: the cases of test/tables/approval-cases.txt that a channel can bring. */
import { reset } from "cloudflare:test";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ChannelInbound, ChannelInboundOutcome } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { channelEntrypoint, client, fakeSessions, gateway, type Peer, seed } from "../../support/gateway.ts";

let sessions: ReturnType<typeof fakeSessions>;
let owner: Peer;
let serial = 0;
const CODE = "K7Q2A";
beforeAll(async () => {
  await reset();
  vi.spyOn(parts, "channel").mockImplementation(() => undefined);
  vi.spyOn(parts, "channelNames").mockImplementation(() => ["test", "other"]);
  sessions = fakeSessions();
  await seed();
  owner = await client();
  for (const [path, value] of [
    ["channels.test.owners", ["anna"]],
    ["channels.test.allowFrom", ["guest"]],
    ["channels.test.groups", "all"],
    ["channels.other.allowFrom", ["anna"]],
  ] as const)
    await owner.ok("config.set", { path, value });
  await gateway().approvals({
    sessionKey: "agent:main:main",
    agentId: "main",
    revision: 1,
    ended: [],
    waiting: [
      {
        code: CODE,
        callId: "ref/r1/1/0",
        runId: "run-1",
        name: "lap__Bash",
        target: { kind: "node", nodeId: "lap" },
        hash: "a".repeat(64),
        rule: "r",
        why: "w",
        text: "rm -rf build",
        bytes: 12,
        createdAt: 1,
        expiresAt: 2,
      },
    ],
  });
});
afterAll(() => {
  vi.restoreAllMocks();
});

const message = (text: string): ChannelInbound["message"] => ({ id: `m${++serial}`, text, timestamp: Date.now() });
const dm = (sender: string, text = `allow ${CODE}`, more: Partial<ChannelInbound> = {}): ChannelInbound => ({
  peer: { kind: "dm", id: sender },
  sender: { id: sender },
  message: message(text),
  receivedAt: Date.now(),
  ...more,
});
const group = (sender: string): ChannelInbound => ({
  ...dm(sender),
  peer: { kind: "group", id: "g1", name: "Friends" },
  wasMentioned: true,
});
const take = (inbound: ChannelInbound, channel = "test"): Promise<ChannelInboundOutcome> =>
  channelEntrypoint(channel).inbound({ account: { channel, accountId: "default" }, inbound });
const answers = () =>
  sessions.of("answerApproval").map(({ args }) => args[0] as { code: string; answer: string; word?: string; by: string });

describe("[AP13] [S14] [X10] in a chat", () => {
  test.each<readonly [string, () => Promise<readonly ChannelInboundOutcome[]>]>([
    ["[P-01] a guest answers nothing", () => all(dm("guest"))],
    ["[P-02] a stranger answers nothing", () => all(dm("stranger"))],
    ["[P-03] the owner and others in a group answer nothing", () => all(group("anna"), group("guest"), group("stranger"))],
    [
      "[P-04] a sender whose id looks like the owner's answers nothing",
      () => all(...["Anna", "ann\u0430", "anna\u200b", "anna@x", "anna\n"].map((id) => dm(id)), dm("eve", undefined, named("eve"))),
    ],
    ["[P-05] the owner's id on another channel answers nothing", async () => [await take(dm("anna"), "other")]],
    [
      "[P-22] words such as ok answer nothing",
      () => all(...["ok", "OK!", "yes", "y", "allow", "approve", "do it", "\u{1f44d}", "/approve", "1"].map((text) => dm("anna", text))),
    ],
    [
      "[P-24] the code with other words answers nothing",
      () => all(...[`allow ${CODE} please`, `please allow ${CODE}`, CODE, `allow  ${CODE} ${CODE}`].map((text) => dm("anna", text))),
    ],
    ["[P-25] a quote of the answer answers nothing", () => all(dm("anna", `> allow ${CODE}`), dm("anna", "yes", quoting()))],
    ["[P-26] a forwarded answer answers nothing", () => all(changed({ forwarded: true }))],
    ["[P-27] a correction answers nothing", () => all(changed({ editOf: "m0" }))],
    ["[P-28] an old message answers nothing", () => all(dm("anna", undefined, { backlog: true }))],
    [
      "[P-29] hidden characters and look-alikes answer nothing",
      () =>
        all(
          ...[`\u200ballow ${CODE}`, `\u202eallow ${CODE}`, "allow K7\u200bQ2A", "al\u017fow K7Q2A", "allow \u212a7Q2A"].map((text) =>
            dm("anna", text),
          ),
        ),
    ],
  ])("%s", async (_name, say) => {
    // Each was taken as a message: none was left out for its rate or its form.
    for (const { outcome } of await say()) expect(["accepted", "ignored", "held"]).toContain(outcome);
    expect(answers()).toEqual([]);
  });
  test("[AP15] a press by another person, or in a group, is refused and recorded, and is no message", async () => {
    const sent = sessions.of("send").length;
    const presses = await all(pressed(dm("guest")), pressed(dm("stranger")), pressed(group("anna")), pressed(group("guest")));
    expect(presses.map(({ outcome }) => outcome)).toEqual(["refused", "ignored", "refused", "refused"]);
    expect(presses[0]?.replies?.[0]?.text).toContain("Only the owner can answer");
    expect(answers()).toEqual([]);
    expect(sessions.of("send")).toHaveLength(sent);
    const { entries } = await owner.ok<{ entries: { actor: string; decision: string; detail?: string }[] }>("audit.list", {
      action: "approval.resolve",
    });
    const denied = entries.filter(({ decision, detail }) => decision === "denied" && detail === "pressed").map(({ actor }) => actor);
    for (const who of ["guest", "stranger", "anna"]) expect(denied).toContain(`channel:test/default sender:${who}`);
  });
  test("[AP15] a press on a question that is over is answered, and never goes to the agent", async () => {
    const sent = sessions.of("send").length;
    const outcome = await take(pressed(dm("anna", "allow ZZZZ9")));
    expect(outcome).toMatchObject({ outcome: "answered", replies: [{ text: "ZZZZ9: this question is over." }] });
    expect(sessions.of("send")).toHaveLength(sent);
  });
  // Last: the question itself does not end, because its session is a fake.
  test("the owner answers in their direct chat by the code, once for each message", async () => {
    const allow = dm("anna", " Allow k7q2a ");
    const outcome = await take(allow);
    expect(outcome).toMatchObject({ outcome: "answered", replies: [{ text: "K7Q2A is allowed, and its call goes on." }] });
    expect(await take(allow)).toEqual(outcome);
    await take(dm("anna", "deny K7Q2A use git instead"));
    // [AP14] A press is the same answer.
    expect(await take(pressed(dm("anna", "deny K7Q2A")))).toMatchObject({ outcome: "answered" });
    expect(answers()).toMatchObject([
      { code: "K7Q2A", answer: "allow", by: "channel:test/default owner:anna" },
      { code: "K7Q2A", answer: "deny", word: "use git instead" },
      { code: "K7Q2A", answer: "deny", by: "channel:test/default owner:anna" },
    ]);
  });
});
async function all(...messages: readonly ChannelInbound[]): Promise<readonly ChannelInboundOutcome[]> {
  const outcomes: ChannelInboundOutcome[] = [];
  for (const one of messages) outcomes.push(await take(one));
  return outcomes;
}
const named = (id: string): Partial<ChannelInbound> => ({ sender: { id, name: "anna" } });
const quoting = (): Partial<ChannelInbound> => ({
  message: { ...message("yes"), replyToId: "m9", replyToText: `allow ${CODE}`, replyToSenderId: "anna" },
});
function changed(more: Partial<ChannelInbound["message"]>): ChannelInbound {
  const inbound = dm("anna");
  return { ...inbound, message: { ...inbound.message, ...more } };
}
const pressed = (inbound: ChannelInbound): ChannelInbound => ({
  ...inbound,
  repliedToAgent: true,
  message: { ...inbound.message, pressed: true, replyToId: "q1" },
});
