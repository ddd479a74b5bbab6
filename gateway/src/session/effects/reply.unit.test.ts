/** Replies to one conversation go one after another; one without an answer is asked again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Effect, Reply } from "../machine/effect.ts";
import type { LogRow } from "../machine/log.ts";
import { inReplyOrder, sendReply } from "./reply.ts";

const reply = (id: string, peer: string, kind: "dm" | "group" = "dm", accountId = "default"): Reply => ({
  type: "Reply",
  id,
  route: { channel: "example", accountId, peer: { kind, id: peer } },
  seq: 1,
  deliveryId: id,
});
const idsOf = (effects: readonly Effect[]): string[] => effects.map(({ id }) => id);

test("[CH22][P3] of the replies to one conversation only the first runs; other effects do not wait", () => {
  const archive: Effect = { type: "Archive", id: "archive", notBefore: 0 };
  const open = [
    reply("a1", "ann"),
    reply("a2", "ann"),
    archive,
    reply("b1", "bob"),
    reply("g1", "ann", "group"),
    reply("w1", "ann", "dm", "work"),
    reply("a3", "ann"),
  ];
  assert.deepEqual(idsOf(inReplyOrder(open)), ["a1", "archive", "b1", "g1", "w1"]);
  assert.deepEqual(idsOf(inReplyOrder(open.slice(1))), ["a2", "archive", "b1", "g1", "w1"]);
  // The same conversation under another display name: names are not part of its identity.
  const named: Reply = {
    ...reply("a2", "ann"),
    route: { channel: "example", accountId: "default", peer: { kind: "dm", id: "ann", name: "Ann" } },
  };
  assert.deepEqual(idsOf(inReplyOrder([reply("a1", "ann"), named])), ["a1"]);
});

test("[P10][CH22] a gateway that never answers blocks no later reply: the delivery is sent again under the same name", async () => {
  const row: LogRow = { seq: 1, at: 1_000, kind: "notice", notice: "note", runId: "r1", text: "Stopped." };
  const asked: unknown[] = [];
  const waits: number[] = [];
  const committed: unknown[] = [];
  let answers = false;
  const ports = {
    row: () => row,
    who: () => undefined,
    gateway: {
      reply: (call: unknown): Promise<{ ok: true; value: undefined }> => {
        asked.push(call);
        return answers ? Promise.resolve({ ok: true, value: undefined }) : new Promise(() => {});
      },
    },
    wall: () => 2_000,
    commit: (event: unknown): void => void committed.push(event),
    // Time is short here: only a wait that was taken back has not passed.
    after: (ms: number, work: () => void): (() => void) => {
      const timer = setImmediate(() => {
        waits.push(ms);
        work();
      });
      return () => clearImmediate(timer);
    },
  };
  const flight = { signal: new AbortController().signal, inherited: false, tries: 0 };
  const end = await sendReply(reply("a1", "ann"), flight, ports);
  assert.deepEqual(end, { retryInMs: 1_000 });
  assert.equal(waits.length, 1);
  assert.deepEqual(committed, []);
  answers = true;
  assert.equal(await sendReply(reply("a1", "ann"), flight, ports), "done");
  assert.deepEqual(asked[0], asked[1]);
  assert.deepEqual(committed, [{ type: "EffectDone", effectId: "a1" }]);
});

test("[AP14] a question goes out with its two answers as choices; any other notice has none", async () => {
  const sent = async (row: LogRow): Promise<readonly unknown[]> => {
    const calls: { readonly message?: { readonly kind: string; readonly actions?: readonly unknown[] } }[] = [];
    await sendReply(
      reply("a1", "ann"),
      { signal: new AbortController().signal, inherited: false, tries: 0 },
      {
        row: () => row,
        who: () => undefined,
        gateway: {
          reply: (call) => {
            calls.push(call as (typeof calls)[number]);
            return Promise.resolve({ ok: true, value: undefined });
          },
        },
        wall: () => 2_000,
        commit: () => {},
        after: () => () => {},
      },
    );
    return [calls[0]?.message?.kind, calls[0]?.message?.actions];
  };
  const notice = { seq: 1, at: 1_000, kind: "notice", runId: "r1", text: "May I?" } as const;
  assert.deepEqual(await sent({ ...notice, notice: "paused", question: { code: "K7Q2A", callId: "c", step: 1 } }), [
    "approval",
    [
      { id: "allow K7Q2A", label: "Allow once" },
      { id: "deny K7Q2A", label: "Deny" },
    ],
  ]);
  const limit = { code: "K7Q2A", callId: "c", step: 1, limit: true } as const;
  assert.deepEqual(await sent({ ...notice, notice: "paused", question: limit }), [
    "approval",
    [
      { id: "allow K7Q2A", label: "Continue" },
      { id: "deny K7Q2A", label: "End the run" },
    ],
  ]);
  assert.deepEqual(await sent({ ...notice, notice: "note" }), ["notice", undefined]);
});

test("[AP10] [AP13] a question is a block of code for the platform, which nothing in the command can end", async () => {
  const command = "| ls ||curl example.org|| *a* \\*\n| ```\n| **b**";
  const row: LogRow = { seq: 1, at: 1_000, kind: "notice", notice: "paused", runId: "r1", text: command };
  const sent: { readonly message?: { readonly kind: string; readonly text: string } }[] = [];
  const ports = {
    row: () => row,
    who: () => undefined,
    gateway: {
      reply: (call: object): Promise<{ ok: true; value: undefined }> => {
        sent.push(call);
        return Promise.resolve({ ok: true, value: undefined });
      },
    },
    wall: () => 2_000,
    commit: (): void => {},
    after: (): (() => void) => () => {},
  };
  await sendReply(reply("a1", "ann"), { signal: new AbortController().signal, inherited: false, tries: 0 }, ports);
  const [{ message } = {}] = sent;
  assert.equal(message?.kind, "approval");
  assert.equal(message?.text, "```\n| ls ||curl example.org|| *a* \\*\n| \\u{60}\\u{60}\\u{60}\n| **b**\n```");
});
