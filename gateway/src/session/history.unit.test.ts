import { assistant, user } from "../../test/session/rows.ts";
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { History } from "./history.ts";
import type { LogRow, NoticeRow } from "./machine/log.ts";
import { counted, cutMiddle, fitImages, head, jsonBytes, tail } from "./machine/text.ts";
import { advance, CLOCK_SLACK_MS } from "./clock.ts";

const notice = (seq: number, forModel?: string): NoticeRow => ({
  seq,
  at: 0,
  runId: "",
  kind: "notice",
  notice: "late",
  text: "t",
  ...(forModel === undefined ? {} : { forModel }),
});

describe("the conversation in memory", () => {
  test("[D3] notices are not messages; their text for the model comes once, with the next user message", () => {
    const history = new History([user(1), assistant(2), notice(3), notice(4, "it ended after all"), user(5), assistant(6), user(7)]);
    const said = history.messages.map((message) => (message.role === "user" ? message.content : message.role));
    assert.deepEqual(said, ["u1", "assistant", "[Note from the system, not from the user: it ended after all]\n\nu5", "assistant", "u7"]);
    assert.deepEqual(
      [...history.messageRows()].map((row) => row.message.role === "user" && row.message.content),
      ["u1", false, "u5", false, "u7"],
    );
  });
  test("appending does not change earlier messages, so that providers' caches stay valid", () => {
    const rows = [user(1), assistant(2), notice(3, "n"), user(4), assistant(5)];
    const history = new History(rows.slice(0, 2));
    const before = JSON.stringify(history.messages);
    for (const row of rows.slice(2)) history.append(row);
    assert.equal(JSON.stringify(history.messages.slice(0, 2)), before);
    assert.deepEqual(history.messages, new History(rows).messages);
  });
  test("[HB5] a heartbeat that says nothing is left out of what the model reads; its rows stay for archives, and notes come again", () => {
    const ofRun = <R extends LogRow>(row: R, more: object = {}): LogRow => ({ ...row, runId: "beat", ...more });
    const rows: LogRow[] = [
      user(1),
      assistant(2),
      notice(3, "it ended after all"),
      ofRun(user(4)),
      ofRun(assistant(5), { swallowed: true }),
      user(6),
      assistant(7),
    ];
    const history = new History(rows);
    const said = history.messages.map((message) => (message.role === "user" ? message.content : message.role));
    assert.deepEqual(said, ["u1", "assistant", "[Note from the system, not from the user: it ended after all]\n\nu6", "assistant"]);
    assert.equal([...history.messageRows()].length, 6);
    assert.equal(history.items.length, 6);
    const plain = new History(rows.filter(({ runId }) => runId !== "beat"));
    assert.equal(history.tokens, plain.tokens);
    const live = new History();
    for (const row of rows) live.append(row);
    assert.deepEqual(live.messages, history.messages);
  });
  test("after a cut it equals a history that was read from the store", () => {
    const rows: LogRow[] = [user(1), assistant(2), notice(3, "n"), user(4), assistant(5)];
    const history = new History(rows);
    history.trimTo(3);
    assert.deepEqual(history.messages, new History(rows.slice(2)).messages);
  });
});

describe("text that fits", () => {
  test("one thing is counted in the singular", () => {
    assert.deepEqual(
      [0, 1, 2].map((count) => counted(count, "message")),
      ["0 messages", "1 message", "2 messages"],
    );
  });
  test("surrogate pairs are never split", () => {
    // U+10000 and U+10FFFF have the first and the last unit of each half.
    for (const whole of ["a😀b😀c", "a\u{10000}b\u{10ffff}c"])
      for (let n = 0; n < 8; n++)
        for (const text of [head(whole, n), tail(whole, n), cutMiddle(whole, n, () => "")]) assert.ok(text.isWellFormed(), `${n} ${text}`);
  });
  test("images that are too large become a note", () => {
    const image = { type: "image" as const, data: "x".repeat(100), mimeType: "image/png" };
    assert.deepEqual(
      fitImages([image, image], 150).map((block) => block.type),
      ["image", "text"],
    );
    assert.ok(jsonBytes(fitImages([image], 10)) < 200);
  });
});

describe("[P20] the session's clock", () => {
  const last = { wall: 1_000_000, now: 500 };
  test("passing time counts", () => assert.deepEqual(advance(last, 1_000_700, 1_000_000), { wall: 1_000_700, now: 1_200 }));
  test("time counts up to the expected wake and a little more", () =>
    assert.equal(advance(last, 1_030_000 + CLOCK_SLACK_MS, 1_030_000).now, 500 + 30_000 + CLOCK_SLACK_MS));
  test("a jump of a day in either direction does not count", () => {
    assert.deepEqual(advance(last, 1_000_000 + 86_400_000, 1_030_000), { wall: 1_000_000 + 86_400_000, now: 500 });
    assert.deepEqual(advance(last, 1_000_000 - 86_400_000, 1_030_000), { wall: 1_000_000 - 86_400_000, now: 500 });
  });
  test("an expected wake in the past subtracts nothing", () => assert.equal(advance(last, 1_010_000, 0).now, 10_500));
});
