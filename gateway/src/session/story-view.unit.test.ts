/** [OT4] [AU7] The rows of one run: found from the end of the log, without reading all of it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { assistant, user } from "../../test/session/rows.ts";
import { asCallId } from "../../../protocol/gen/types.ts";
import type { LogRow, NoticeRow } from "./machine/log.ts";
import type { State } from "./machine/state.ts";
import { rowsOf, storyOf } from "./story-view.ts";
import type { SessionStore } from "./store/session-store.ts";

const note = (seq: number, runId: string, notice: NoticeRow["notice"] = "note"): LogRow => ({
  seq,
  at: 0,
  runId,
  kind: "notice",
  notice,
  text: "t",
});
const of = (runId: string, row: LogRow): LogRow => ({ ...row, runId });

/** A log without what is older than `oldest`, which counts the rows that are read. */
function world(given: readonly LogRow[], oldest = 1) {
  const log = given.filter(({ seq }) => seq >= oldest);
  const read = { rows: 0 };
  const store = {
    oldestSeq: (nextSeq: number) => log[0]?.seq ?? nextSeq,
    rows: (from: number, limit: number) => {
      const rows = log.filter(({ seq }) => seq >= from).slice(0, limit);
      read.rows += rows.length;
      return rows;
    },
  } as unknown as SessionStore;
  const nextSeq = (given.at(-1)?.seq ?? 0) + 1;
  const state = { nextSeq, run: { phase: "idle" }, identity: { key: "agent:main:main", agentId: "main" } } as unknown as State;
  return { read, seqsOf: (runId: string) => rowsOf(state, store, runId).map(({ seq }) => seq), state, store };
}
/** Runs r1, r2 and so on, of four rows each. */
const runs = (count: number): readonly LogRow[] =>
  Array.from({ length: count }, (_, index) => {
    const [runId, seq] = [`r${index + 1}`, index * 4 + 1];
    return [of(runId, user(seq)), of(runId, assistant(seq + 1, 1)), note(seq + 2, ""), of(runId, assistant(seq + 3))];
  }).flat();

describe("[OT4] the rows of one run", () => {
  test("of a run that has just ended are read without the log before it", () => {
    const { read, seqsOf } = world(runs(5_000));
    assert.deepEqual(seqsOf("r5000"), [19_997, 19_998, 20_000]);
    assert.ok(read.rows <= 200, `${read.rows} rows were read`);
  });
  test("are all rows of it, wherever the pages begin, and none of another run", () => {
    const log = runs(120);
    const { seqsOf } = world(log);
    for (const runId of new Set(log.map((row) => row.runId)))
      if (runId !== "")
        assert.deepEqual(
          seqsOf(runId),
          log.filter((row) => row.runId === runId).map(({ seq }) => seq),
        );
    assert.deepEqual(seqsOf("unknown"), []);
  });
  test("are found around a stopped message of another run, and with a late result behind other runs", () => {
    const log = [
      of("old", user(1)),
      of("old", assistant(2)),
      of("a", user(3)),
      of("a", assistant(4, 1)),
      note(5, "waiting", "aborted"),
      note(6, "old", "late"),
      of("a", assistant(7)),
      of("b", user(8)),
      of("b", assistant(9)),
      note(10, "a", "late"),
    ];
    const { seqsOf } = world(log);
    assert.deepEqual(seqsOf("old"), [1, 2, 6]);
    assert.deepEqual(seqsOf("a"), [3, 4, 7, 10]);
    assert.deepEqual(seqsOf("waiting"), [5]);
  });
  test("are those that the log still has", () => {
    assert.deepEqual(world(runs(60), 118).seqsOf("r30"), [118, 120]);
    assert.deepEqual(world(runs(60), 118).seqsOf("r29"), []);
  });
});

describe("[AU7] a story", () => {
  test("is of the last run, or of the run of a call", () => {
    const { state, store } = world([...runs(300), note(1_201, "")]);
    const idOf = (wanted: Parameters<typeof storyOf>[2]): string => {
      const story = storyOf(state, store, wanted);
      return story.ok ? story.value.runId : story.error.reason;
    };
    assert.equal(idOf({}), "r300");
    assert.equal(idOf({ callId: asCallId("c6/0") }), "r2");
    assert.equal(idOf({ callId: asCallId("c7/0") }), "run.not_found");
  });
  test("counts what calls without an answer and refused answers have used, as the ledger does", () => {
    const usage = (input: number) => ({ input, output: 50, total: input + 50, costUsd: 0.5 });
    const answer = assistant(2, 1);
    const failed = { at: 0, reason: "model.timeout", usage: usage(100) };
    const log: readonly LogRow[] = [
      user(1),
      { ...answer, failed: [failed], message: { ...answer.message, usage: usage(10) } },
      {
        ...note(3, "r", "error"),
        failed: [
          { at: 0, reason: "autonomy.boundary", usage: usage(1_180) },
          { at: 0, reason: "interrupted" },
        ],
      },
    ] as readonly LogRow[];
    const { state, store } = world(log);
    const story = storyOf(state, store, {});
    assert.ok(story.ok);
    assert.deepEqual(story.value.usage, { input: 1_290, output: 150, total: 1_440, costUsd: 1.5 });
    assert.deepEqual(
      story.value.failed?.map(({ reason }) => reason),
      ["autonomy.boundary", "interrupted"],
    );
  });
});
