import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asRunId, asSessionKey } from "../../../protocol/gen/types.ts";
import type { SessionNews } from "../ports/gateway.ts";
import { DELTA_BACKLOG_CHARS, DELTA_CHARS, DELTA_MS, Publisher } from "./publisher.ts";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** Publishes are held until they are let go. */
function bench(): {
  publisher: Publisher;
  sent: SessionNews[][];
  open: ((ok: boolean) => void)[];
  tick: (ms: number) => Promise<void>;
  finish: (ok?: boolean) => Promise<void>;
} {
  let now = 0;
  const timers = new Set<{ at: number; work: () => void }>();
  const sent: SessionNews[][] = [];
  const open: ((ok: boolean) => void)[] = [];
  const publisher = new Publisher({
    sessionKey: "agent:main:main",
    publish: (news) => {
      sent.push([...news]);
      return new Promise((resolve, reject) => open.push((ok) => (ok ? resolve() : reject(new Error("gone")))));
    },
    now: () => now,
    after: (ms, work) => {
      const timer = { at: now + ms, work };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  });
  const tick = async (ms: number): Promise<void> => {
    now += ms;
    for (const timer of [...timers]) {
      if (timer.at > now) continue;
      timers.delete(timer);
      timer.work();
    }
    await settle();
  };
  const finish = async (ok = true): Promise<void> => {
    open.shift()?.(ok);
    await settle();
  };
  return { publisher, sent, open, tick, finish };
}
/** A real run id is a UUID; the tests' is one letter. */
const RUN_ID_CHARS = 35;
const delta = (offset: number, text: string, attempt = 0) => ({ runId: "r", step: 1, attempt, offset, text });
const texts = (news: readonly SessionNews[]): unknown[] =>
  news.map(({ payload }) =>
    "kind" in payload
      ? payload.kind
      : payload.state === "delta"
        ? ["delta", payload.text, payload.offset]
        : [payload.state, undefined, undefined],
  );
const note = (sessionSeq: number, text?: string): SessionNews => ({
  event: "chat",
  payload: {
    sessionKey: asSessionKey("agent:main:main"),
    runId: asRunId("r"),
    state: "final",
    message: { role: "assistant", content: text === undefined ? [] : [{ type: "text", text }] },
    sessionSeq,
  },
});

describe("publishing events to clients", () => {
  test("the first delta of an attempt goes at once", async () => {
    const b = bench();
    b.publisher.delta(delta(0, "H"));
    assert.deepEqual(texts(b.sent[0] ?? []), [["delta", "H", 0]]);
    await b.finish();
    b.publisher.delta(delta(0, "again", 1));
    assert.equal(b.sent.length, 2);
  });
  test("later deltas are joined until they are long enough or 40 ms have passed", async () => {
    const b = bench();
    b.publisher.delta(delta(0, "H"));
    await b.finish();
    b.publisher.delta(delta(1, "e"));
    b.publisher.delta(delta(2, "llo"));
    assert.equal(b.sent.length, 1);
    await b.tick(DELTA_MS - 1);
    assert.equal(b.sent.length, 1);
    await b.tick(1);
    assert.deepEqual(texts(b.sent[1] ?? []), [["delta", "ello", 1]]);
    await b.finish();
    b.publisher.delta(delta(5, "x".repeat(DELTA_CHARS)));
    assert.equal(b.sent.length, 3);
  });
  test("[F63] an answer of 1,000 characters costs a client at most 5,250 bytes, its end included", async () => {
    const b = bench();
    const piece = "stories ";
    const times: number[] = [];
    for (let offset = 0; offset < 1_000; offset += piece.length) {
      b.publisher.delta(delta(offset, piece));
      await b.finish();
      await b.tick(10);
      times.push(b.sent.length);
    }
    void b.publisher.news([note(9, piece.repeat(125))]);
    const frames = b.sent.flat().map((news, seq) => JSON.stringify({ type: "evt", ...news, seq }).length + RUN_ID_CHARS);
    assert.ok(
      frames.reduce((sum, size) => sum + size) <= 5_250,
      `${frames.length} frames: ${frames.reduce((sum, size) => sum + size)} bytes`,
    );
    assert.ok((times[20] ?? 0) >= 5, "the beginning comes in small steps");
  });
  test("[C4] a slow publish delays no one, keeps the order and loses no text", async () => {
    const b = bench();
    let whole = "";
    for (let n = 0; n < 500; n++) {
      b.publisher.delta(delta(whole.length, `w${n} `));
      whole += `w${n} `;
    }
    const log = b.publisher.news([note(7)]);
    assert.equal(b.sent.length, 1);
    await b.finish();
    assert.equal(b.sent.length, 2);
    assert.equal(texts(b.sent[1] ?? []).length, 2);
    const shown = b.sent.flat().map(({ payload }) => ("state" in payload && payload.state === "delta" ? payload.text : ""));
    assert.equal(shown.join(""), whole);
    await b.finish();
    assert.equal(await log, true);
  });
  test("the rest of the text is published before the event that ends it, in one publish", async () => {
    const b = bench();
    b.publisher.delta(delta(0, "H"));
    await b.finish();
    b.publisher.delta(delta(1, "i"));
    void b.publisher.news([note(3)]);
    assert.deepEqual(texts(b.sent[1] ?? []), [
      ["delta", "i", 1],
      ["final", undefined, undefined],
    ]);
  });
  test("[C8] [CT13] thoughts are events of their own, in order with the text, and do not move its place", async () => {
    const b = bench();
    b.publisher.delta({ ...delta(0, "Hm"), isThought: true });
    assert.equal(b.sent.length, 1, "the first one goes at once");
    await b.finish();
    b.publisher.delta({ ...delta(2, ", so"), isThought: true });
    assert.equal(b.publisher.sentChars({ runId: "r", step: 1, attempt: 0 }), 0);
    b.publisher.delta(delta(0, "It is "));
    b.publisher.delta(delta(6, "two."));
    void b.publisher.news([note(3)]);
    assert.deepEqual(
      b.sent
        .flat()
        .map(({ payload }) => ("state" in payload ? [payload.state, "offset" in payload ? [payload.text, payload.offset] : []] : [])),
      [
        ["thinking", ["Hm", 0]],
        ["thinking", [", so", 2]],
        ["delta", ["It is two.", 0]],
        ["final", []],
      ],
    );
    assert.equal(b.publisher.sentChars({ runId: "r", step: 1, attempt: 0 }), "It is two.".length);
  });
  test("a failed publish is reported, and the next one follows", async () => {
    const b = bench();
    const first = b.publisher.news([note(1)]);
    await b.finish(false);
    assert.equal(await first, false);
    const second = b.publisher.news([note(1)]);
    await b.finish();
    assert.equal(await second, true);
  });
  test("[P19] deltas that wait too long are dropped, events are not", async () => {
    const b = bench();
    void b.publisher.news([note(1)]);
    for (let n = 0; n < 3; n++) b.publisher.delta(delta(n * DELTA_BACKLOG_CHARS, "x".repeat(DELTA_BACKLOG_CHARS)));
    void b.publisher.news([note(2)]);
    await b.finish();
    assert.deepEqual(texts(b.sent[1] ?? []).at(-1), ["final", undefined, undefined]);
    assert.ok(JSON.stringify(b.sent[1]).length < 2 * DELTA_BACKLOG_CHARS);
  });
  test("[C5] the sent text ends where the next delta begins", async () => {
    const b = bench();
    const of = { runId: "r", step: 1, attempt: 0 };
    assert.equal(b.publisher.sentChars(of), 0);
    b.publisher.delta(delta(0, "Hel"));
    b.publisher.delta(delta(3, "lo"));
    assert.equal(b.publisher.sentChars(of), 3);
    await b.finish();
    await b.tick(DELTA_MS);
    assert.equal(b.publisher.sentChars(of), 5);
    assert.equal(b.publisher.sentChars({ ...of, attempt: 1 }), 0);
  });
  test("an empty publish makes no call", async () => {
    const b = bench();
    assert.equal(await b.publisher.news([]), true);
    assert.equal(b.sent.length, 0);
  });
});
