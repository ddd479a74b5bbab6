import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type Attempt, type Facts, FIRST, type AttemptEvent, step } from "./attempt.ts";

const SUM = "a".repeat(64);
const OTHER = "b".repeat(64);
const run = (events: readonly AttemptEvent[], facts: Facts = {}, maxBytes: number = LIMITS.transferBytes) => {
  let attempt: Attempt = FIRST;
  const effects: string[] = [];
  for (const event of events) {
    const next = step(attempt, facts, event, maxBytes);
    ({ attempt, facts } = next);
    effects.push(...next.effects.map((effect) => (effect.kind === "fail" ? `fail ${effect.reason}` : effect.kind)));
  }
  return { attempt, facts, effects };
};
const found = (sizeBytes: number, version = "v1"): AttemptEvent => ({ kind: "found", sizeBytes, version });
/** A chunk of a usual size: only the last one may be smaller. */
const K = LIMITS.transferChunkLeastBytes;
const chunk = (bytes: number): AttemptEvent => ({ kind: "chunk", bytes });
const accepted = (offset: number): AttemptEvent => ({ kind: "accepted", offset });
const acked = (offset: number): AttemptEvent => ({ kind: "acked", offset });
const completed: AttemptEvent = { kind: "completed", sha256: SUM };
const stored = (sha256 = SUM): AttemptEvent => ({ kind: "stored", sha256 });

test("[TF3] [P18] a transfer succeeds only after its destination has stored the content that the source sent", () => {
  const all = [found(3), accepted(0), chunk(3), acked(3), completed, stored()];
  const { effects, facts } = run(all);
  assert.deepEqual(effects, ["offer", "progress", "start", "forward", "progress", "acknowledge", "finish", "succeed"]);
  assert.deepEqual(facts, { sizeBytes: 3, version: "v1", sha256: SUM });
  assert.equal(run([...all.slice(0, -1), stored(OTHER)]).effects.at(-1), "fail transfer.checksum");
  for (let cut = 0; cut < all.length - 1; cut++) assert.ok(!run(all.slice(0, cut)).effects.includes("succeed"));
});

test("[TF4] [K29] another attempt goes on where the destination is, and only with the same file", () => {
  const first = run([found(10), accepted(0), chunk(6)]).facts;
  assert.deepEqual(run([found(10), accepted(6), chunk(4), completed, stored()], first).effects.at(-1), "succeed");
  assert.equal(run([found(10, "v2")], first).effects[0], "fail transfer.source_changed");
  assert.equal(run([found(11)], first).effects[0], "fail transfer.source_changed");
});

test("[TF6] a source whose content differs from that of an earlier attempt fails with its own code", () => {
  const after = run([found(1), accepted(0), chunk(1), completed]).facts;
  const again = run([found(1), accepted(1), { kind: "completed", sha256: OTHER }], after);
  assert.equal(again.effects.at(-1), "fail transfer.source_changed");
});

test("[TF3] [TF4] [P18] a wrong checksum of a copy that was continued begins it again, once; of one that was not, it ends it", () => {
  const differs: readonly AttemptEvent[] = [stored(OTHER), { kind: "failed", reason: "transfer.checksum", message: "no" }];
  for (const end of differs) {
    const continued = run([found(3), accepted(2), chunk(1), completed, end]);
    assert.deepEqual([continued.effects.at(-1), continued.attempt.status], ["again", "ended"]);
    // The facts are those of the next attempt, and the destination of it may still say that it has something.
    assert.equal(run([found(3), accepted(2), chunk(1), completed, end], continued.facts).effects.at(-1), "fail transfer.checksum");
    assert.equal(run([found(3), accepted(0), chunk(3), completed, stored()], continued.facts).effects.at(-1), "succeed");
    assert.equal(run([found(3), accepted(0), chunk(3), completed, end]).effects.at(-1), "fail transfer.checksum");
  }
  // Nothing was compared yet.
  assert.equal(run([found(3), accepted(2), ...differs.slice(1)]).effects.at(-1), "fail transfer.checksum");
});

test("[TF2] [TF4] what was taken is acknowledged, and what is kept is where another attempt goes on", () => {
  const after = (event: AttemptEvent) => {
    const { attempt, facts } = run([found(10 * K), accepted(0), chunk(6 * K)]);
    return step(attempt, facts, event, LIMITS.transferBytes);
  };
  const taken = after({ kind: "acked", offset: 6 * K, kept: 4 * K });
  assert.deepEqual(taken.effects, [
    { kind: "progress", offset: 4 * K },
    { kind: "acknowledge", offset: 6 * K },
  ]);
  const kept = step(taken.attempt, taken.facts, { kind: "acked", offset: 6 * K, kept: 6 * K }, LIMITS.transferBytes);
  assert.deepEqual(kept.effects, [{ kind: "progress", offset: 6 * K }]);
});

test("[TF2] only the last chunk may be a small one", () => {
  const least = LIMITS.transferChunkLeastBytes;
  const begun = [found(2 * least + 1), accepted(0)];
  assert.deepEqual(run([...begun, chunk(least), chunk(least), chunk(1)]).effects.slice(-3), ["forward", "forward", "forward"]);
  assert.equal(run([...begun, chunk(least - 1)]).effects.at(-1), "fail transfer.failed");
});

test("[TF2] what breaks the rules ends the transfer", () => {
  const begun = [found(10), accepted(0)];
  const big = found(LIMITS.transferWindowBytes * 2);
  const window = Array.from({ length: LIMITS.transferWindowBytes / LIMITS.transferChunkBytes }, () => chunk(LIMITS.transferChunkBytes));
  const wrong: readonly (readonly AttemptEvent[])[] = [
    [chunk(1)],
    [accepted(0)],
    [found(1), found(1)],
    [found(1), accepted(2)],
    [...begun, accepted(0)],
    [...begun, chunk(0)],
    [...begun, chunk(11)],
    [...begun, acked(1)],
    [...begun, completed],
    [...begun, stored()],
    [...begun, chunk(10), completed, chunk(1)],
    [big, accepted(0), chunk(LIMITS.transferChunkBytes + 1)],
    [big, accepted(0), ...window, chunk(K)],
  ];
  for (const events of wrong) assert.equal(run(events).effects.at(-1), "fail transfer.failed");
  assert.equal(run([big, accepted(0), ...window, acked(K), chunk(K)]).effects.at(-1), "forward");
  assert.equal(run([found(11)], {}, 10).effects[0], "fail file.too_large");
  assert.deepEqual(run([{ kind: "failed", reason: "tool.io", message: "no" }, stored(), chunk(1)]).effects, ["fail tool.io"]);
});

test("[TF1] [TF3] whatever happens in whatever order, an attempt ends once, and succeeds only with all bytes", () => {
  const any: fc.Arbitrary<AttemptEvent> = fc.oneof(
    fc.constant(found(4 * K)),
    fc.integer({ min: 0, max: 4 }).map((n) => accepted(n * K)),
    fc.integer({ min: 0, max: 4 }).map((n) => chunk(n * K)),
    fc.integer({ min: 0, max: 4 }).map((n) => acked(n * K)),
    fc.constant(completed),
    fc.constantFrom(stored(), stored(OTHER)),
  );
  fc.assert(
    fc.property(fc.array(any, { maxLength: 12 }), (events) => {
      const { effects } = run(events);
      const ends = effects.filter((effect) => effect === "succeed" || effect === "again" || effect.startsWith("fail"));
      assert.ok(ends.length <= 1);
      if (ends.length === 1) assert.equal(effects.at(-1), ends[0]);
      if (!ends.includes("succeed")) return;
      const from = events.find((event) => event.kind === "accepted");
      const bytes = events.reduce((sum, event) => sum + (event.kind === "chunk" ? event.bytes : 0), 0);
      assert.ok(from?.kind === "accepted" && from.offset + bytes >= 4 * K);
    }),
    { numRuns: 20_000 },
  );
});
