import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { OutboundPart } from "../../kit/src/platform.ts";
import { fileNameOf, interactionOf, outcomeOf, referenceOf, tooLargeNote, toEdit, toLive, toMessage, toOutcome } from "./map-outbound.ts";

const part = (more: Partial<OutboundPart> = {}): OutboundPart => ({
  partId: "d1/0",
  nonce: "abcDEF123",
  peer: { kind: "channel", id: "300000000000000001" },
  text: "hello @everyone",
  attempt: 1,
  firstTriedAt: 0,
  ...more,
});

test("[P9] a message has a nonce and pings no one", () => {
  assert.deepEqual(toMessage(part({ replyToId: "1300000000000000000" }), undefined), {
    content: "hello @everyone",
    allowed_mentions: { parse: [], replied_user: false },
    flags: 4,
    nonce: "abcDEF123",
    enforce_nonce: true,
    message_reference: { message_id: "1300000000000000000", fail_if_not_exists: false },
  });
});
test("[P7] an edit has no nonce and no reference", () => {
  assert.deepEqual(Object.keys(toEdit(part({ replyToId: "1300000000000000000" }), undefined)), ["content", "allowed_mentions", "flags"]);
  assert.equal(toLive("x", undefined).message_reference, undefined);
});
test("[TA11] messages, edits and live texts have no previews, so that Discord fetches no address in them", () => {
  const text = "see https://example.org/?q=secret";
  for (const { flags } of [toMessage(part({ text }), undefined), toEdit({ text }, "a.txt"), toLive(text, undefined)])
    assert.equal(flags & 4, 4);
});
test("[P7] buttons carry the action's id", () => {
  const actions = Array.from({ length: 9 }, (_, index) => ({ id: `a${index}`, label: "L".repeat(200) }));
  const [row] = toEdit(part({ actions }), undefined).components ?? [];
  assert.equal(row?.components.length, 5);
  assert.deepEqual(row?.components[0], { type: 2, style: 1, label: "L".repeat(80), custom_id: "a0" });
});

test("[AP14] the outcome ends the question's text, and the buttons go; a long question keeps its beginning", () => {
  const short = toOutcome("May I?", "K7Q2A is allowed.");
  assert.deepEqual([short.content, short.components], ["May I?\n\nK7Q2A is allowed.", []]);
  const long = toOutcome("q".repeat(2_000), "K7Q2A is denied.");
  assert.equal(long.content.length, 2_000);
  assert.ok(long.content.startsWith("qqq") && long.content.endsWith("q\n\nK7Q2A is denied."));
  assert.equal(toOutcome("q", "o".repeat(5_000)).content.length, 2_000);
});

const ids: readonly (readonly [id: string | undefined, reference: string | undefined, interaction: string | undefined])[] = [
  [undefined, undefined, undefined],
  ["1300000000000000000", "1300000000000000000", undefined],
  ["1300000000000000000.e17", "1300000000000000000", undefined],
  ["1300000000000000000.r.e.7", "1300000000000000000", undefined],
  ["i:1300000000000000000", undefined, "1300000000000000000"],
  ["i:../x", undefined, undefined],
  ["abc", undefined, undefined],
  ["1300000000000000000/../x", undefined, undefined],
];
for (const [id, reference, interaction] of ids)
  test(`[P7] ${id} refers to ${reference ?? "no message"}`, () => {
    assert.deepEqual([referenceOf(id), interactionOf(id)], [reference, interaction]);
  });

const files: readonly (readonly [name: string | undefined, type: string, shown: string])[] = [
  ["a.png", "image/png", "a.png"],
  [undefined, "image/png", "file.png"],
  ["", "application/octet-stream", "file"],
  ["../../etc/passwd", "text/plain", "_.._etc_passwd"],
  ["a\u202eb\u0000.txt", "text/plain", "a_b_.txt"],
  ["...", "text/plain", "file.plain"],
];
for (const [name, type, shown] of files)
  test(`[P7] a file named ${JSON.stringify(name)}`, () => assert.equal(fileNameOf(name, type), shown));
test("[P7] a file that is too large becomes a note", () =>
  assert.equal(
    tooLargeNote("a.bin", 11.5 * 1024 * 1024),
    '[The file "a.bin" has 11.5 MB. Discord takes at most 10.0 MB here, so it was not sent.]',
  ));

describe("[P9] outcomes of Discord's answers", () => {
  const rows: readonly (readonly [what: string, failure: Parameters<typeof outcomeOf>[0], kind: string, words: RegExp])[] = [
    ["no answer", { message: "AbortError" }, "unsure", /did not answer/],
    ["500", { status: 500, message: "x" }, "unsure", /failed \(500\)/],
    ["499", { status: 499, message: "x" }, "failed", /refused the message \(499\)/],
    ["399", { status: 399, message: "x" }, "unsure", /failed \(399\)/],
    ["503", { status: 503, message: "x" }, "unsure", /failed/],
    ["a rate limit", { retryAfterMs: 12_000, message: "x" }, "retry", /rate limit/],
    ["429", { status: 429, message: "x" }, "retry", /rate limit/],
    ["401", { status: 401, message: "x" }, "retry", /token/],
    ["no access", { status: 403, code: 50001, message: "x" }, "failed", /View Channel/],
    ["no permission", { status: 403, code: 50013, message: "x" }, "failed", /Send Messages/],
    ["a deleted channel", { status: 404, code: 10003, message: "x" }, "failed", /gone/],
    ["a channel that is full for now", { status: 403, code: 20028, message: "x" }, "retry", /no more messages in this channel now/],
    ["a person who wants none", { status: 403, code: 50007, message: "x" }, "failed", /direct messages/],
    ["anything else", { status: 400, code: 50035, message: "secret" }, "failed", /^Discord refused the message \(400, 50035\)\.$/],
  ];
  for (const [what, failure, kind, words] of rows)
    test(what, () => {
      const outcome = outcomeOf(failure);
      assert.ok(outcome.kind !== "sent");
      assert.equal(outcome.kind, kind);
      assert.match(outcome.error, words);
    });
});

test("[P9] a refusal that passes is retried after half a minute, a rate limit after its own time", () => {
  assert.deepEqual(outcomeOf({ status: 403, code: 20028, message: "x" }), {
    kind: "retry",
    afterMs: 30_000,
    error: "Discord accepts no more messages in this channel now.",
  });
  const limited = (retryAfterMs: number) => outcomeOf({ status: 429, retryAfterMs, message: "x" });
  assert.deepEqual(limited(12_000), { kind: "retry", afterMs: 12_000, error: "Discord's rate limit" });
  assert.deepEqual(limited(-1), { kind: "retry", afterMs: 0, error: "Discord's rate limit" });
});

test("[P7] any part is mapped within Discord's limits", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 5_000 }), fc.string(), fc.option(fc.string(), { nil: undefined }), (text, id, filename) => {
      const body = toMessage(part({ text, replyToId: id, actions: [{ id, label: text }] }), filename);
      assert.ok(body.content.length <= 2_000);
      for (const row of body.components ?? []) for (const button of row.components) assert.ok(button.custom_id.length <= 100);
    }),
  );
});
