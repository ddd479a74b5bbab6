/** The contract of every session store, as cases: run on the simulator's store in memory (Node) and on SQLite (workerd). */
import assert from "node:assert/strict";
import type { Step } from "../../src/session/machine/draft.ts";
import type { LogRow } from "../../src/session/machine/log.ts";
import { newborn, type IncomingMessage, type State } from "../../src/session/machine/state.ts";
import type { QueueFront, SessionStore } from "../../src/session/store/session-store.ts";

export interface StoreCase {
  readonly name: string;
  readonly run: (store: SessionStore) => void;
}
export const storeCases: StoreCase[] = [];
const storeCase = (name: string, run: StoreCase["run"]): void => {
  storeCases.push({ name, run });
};
const state: State = newborn({
  identity: { key: "agent:main:main", ref: "r", agentId: "main", isOwnersSession: true },
  sessionId: "s1",
  wall: 5,
});
const nothing: Omit<Step, "state"> = {
  cause: "Tick",
  transitions: [],
  append: [],
  amend: [],
  queue: [],
  results: [],
  effects: [],
  settled: [],
  status: [],
  ended: [],
  answer: undefined,
};
const step = (more: Partial<Step> = {}): Step => ({ ...nothing, state, ...more });
const incoming = (id: string): IncomingMessage => ({
  messageId: id,
  runId: `run-${id}`,
  origin: { kind: "client", clientId: "o" },
  message: { role: "user", content: `say ${id} – zwölf 🌍`, timestamp: 0 },
  directives: { thinkLevel: "low" },
});
const row = (seq: number, at = 0): LogRow => ({
  seq,
  at,
  runId: "r",
  kind: "user",
  messageId: `m${seq}`,
  origin: { kind: "client", clientId: "o" },
  message: { role: "user", content: "x", timestamp: 0 },
});
const write = (store: SessionStore, before: State | undefined, what: Step): void =>
  store.transaction(() => store.write(before, what, undefined));

storeCase("[W20] reading what was never written gives nothing and makes nothing", (store) => {
  assert.equal(store.load(), undefined);
  assert.equal(store.seen("k"), undefined);
  assert.deepEqual(store.queueFront(), { quiet: [], head: undefined });
  assert.deepEqual(store.rows(0, 10), []);
  assert.equal(store.resultText("c"), undefined);
  assert.equal(store.load(), undefined);
});
storeCase("the state comes back as it was, with what is kept apart", (store) => {
  write(store, undefined, step());
  assert.deepEqual(store.load(), state);
  const changed: State = { ...state, settings: { thinkingLevel: "high", systemPrompt: "p" }, previousSessionIds: ["a", "b"], label: "ü" };
  write(store, state, step({ state: changed }));
  assert.deepEqual(store.load(), changed);
  const again: State = { ...changed, runCount: 7 };
  write(store, changed, step({ state: again }));
  assert.deepEqual(store.load(), again);
});
storeCase("a transaction that throws did not happen", (store) => {
  write(store, undefined, step({ append: [row(1)] }));
  assert.throws(
    () =>
      store.transaction(() => {
        store.write(
          state,
          step({
            append: [row(2)],
            state: { ...state, runCount: 9 },
            queue: [{ op: "add", incoming: incoming("a"), bytes: 1 }],
            results: [{ op: "keep", callId: "c", text: "t" }],
          }),
          { key: "k", answer: { type: "taken" }, at: 0 },
        );
        throw new Error("no");
      }),
    /no/,
  );
  assert.deepEqual(store.load(), state);
  assert.deepEqual(store.rows(0, 10), [row(1)]);
  assert.deepEqual(store.queueFront(), { quiet: [], head: undefined });
  assert.equal(store.seen("k"), undefined);
  assert.equal(store.resultText("c"), undefined);
});
storeCase("[P1] a key is remembered with its answer, and only once", (store) => {
  const answer = { type: "accepted", runId: "r", queued: false, seq: 3 } as const;
  store.transaction(() => store.write(undefined, step(), { key: "m:a", answer, at: 10 }));
  assert.deepEqual(store.seen("m:a"), answer);
  assert.equal(store.seen("m:A"), undefined);
  assert.equal(store.seen("constructor"), undefined);
  assert.throws(() => store.transaction(() => store.write(state, step(), { key: "m:a", answer, at: 11 })));
});
storeCase("[P3] the queue is first in, first out, and a message in it can be found by its run", (store) => {
  write(store, undefined, step({ queue: ["a", "b", "c"].map((id) => ({ op: "add", incoming: incoming(id), bytes: 10 })) }));
  const { head } = store.queueFront();
  assert.deepEqual(head?.incoming, incoming("a"));
  const middle = store.queuedRun("run-b");
  assert.deepEqual(middle?.incoming, incoming("b"));
  assert.equal(store.queuedRun("run-z"), undefined);
  write(store, state, step({ state: { ...state }, queue: [{ op: "remove", id: middle?.id ?? 0 }] }));
  write(store, state, step({ state: { ...state }, queue: [{ op: "remove", id: head?.id ?? 0 }] }));
  assert.deepEqual(store.queueFront().head?.incoming, incoming("c"));
  write(store, state, step({ state: { ...state }, queue: [{ op: "add", incoming: incoming("d"), bytes: 10 }] }));
  assert.deepEqual(store.queueFront().head?.incoming, incoming("c"));
});
storeCase("[WB2] [WB3] messages for a run are given apart, when they are asked for", (store) => {
  const steers = (id: string): IncomingMessage => ({ ...incoming(id), steers: 3 });
  const quiet = { ...incoming("quiet"), quiet: true } as const;
  const messages = [steers("s"), quiet, steers("t"), incoming("a"), incoming("b")];
  const ids = (front: QueueFront): unknown => [
    front.quiet.map(({ incoming: { messageId } }) => messageId),
    front.head?.incoming.messageId,
    front.steered?.map(({ incoming: { messageId } }) => messageId),
  ];
  write(store, undefined, step({ queue: [{ op: "add", incoming: incoming("z"), bytes: 1 }] }));
  // What is asked for first is remembered: later messages must still be found.
  const first = store.queueFront(false).head;
  write(store, state, step({ state: { ...state }, queue: messages.map((message) => ({ op: "add", incoming: message, bytes: 1 })) }));
  assert.deepEqual(ids(store.queueFront(true)), [[], "z", ["s", "t"]]);
  write(store, state, step({ state: { ...state }, queue: [{ op: "remove", id: first?.id ?? 0 }] }));
  const front = store.queueFront(true);
  assert.deepEqual(ids(front), [["quiet"], "a", ["s", "t"]]);
  assert.deepEqual(front.steered?.[0]?.incoming, steers("s"));
  write(store, state, step({ state: { ...state }, queue: (front.steered ?? []).map(({ id }) => ({ op: "remove", id })) }));
  // A program of before knows no such messages: they are like the others.
  assert.deepEqual(ids(store.queueFront(false)), [["quiet"], "a", undefined]);
});
storeCase("[P2] what is only to be known is given with the first message behind it that a run answers", (store) => {
  const quiet = (id: string): IncomingMessage => ({ ...incoming(id), quiet: true });
  const add = (message: IncomingMessage): void =>
    write(store, state, step({ state: { ...state }, queue: [{ op: "add", incoming: message, bytes: 10 }] }));
  write(store, undefined, step());
  add(quiet("a"));
  const ids = (): unknown[] => {
    const { quiet: before, head } = store.queueFront();
    return [before.map(({ incoming: { messageId } }) => messageId), head?.incoming.messageId];
  };
  const before = ids();
  add(quiet("b"));
  const more = ids();
  add(incoming("c"));
  add(quiet("d"));
  assert.deepEqual(
    [before, more, ids()],
    [
      [[incoming("a").messageId], undefined],
      [[incoming("a").messageId, incoming("b").messageId], undefined],
      [[incoming("a").messageId, incoming("b").messageId], incoming("c").messageId],
    ],
  );
  const { quiet: front, head } = store.queueFront();
  for (const { id } of [...front, ...(head ? [head] : [])])
    write(store, state, step({ state: { ...state }, queue: [{ op: "remove", id }] }));
  assert.deepEqual(ids(), [[incoming("d").messageId], undefined]);
});
storeCase("rows come in order and in pages", (store) => {
  const rows = Array.from({ length: 25 }, (_, n) => row(n + 1));
  write(store, undefined, step({ append: rows }));
  assert.deepEqual(store.rows(1, 10), rows.slice(0, 10));
  assert.deepEqual(store.rows(20, 100), rows.slice(19));
  assert.deepEqual(store.rowAt(7), rows[6]);
  assert.equal(store.rowAt(26), undefined);
  assert.equal(store.oldestSeq(26), 1);
});
storeCase("[P5.6] a user's row can be amended, any other row can't, and its place stays", (store) => {
  const notice: LogRow = { seq: 2, at: 1, runId: "", kind: "notice", notice: "note", text: "n" };
  const first = row(1);
  assert.ok(first.kind === "user");
  write(store, undefined, step({ append: [first, notice, row(3)] }));
  const amended = { ...first, message: { ...first.message, content: "with a transcript – zwölf 🌍" } };
  write(store, state, step({ amend: [amended], state: { ...state, runCount: 2 } }));
  assert.deepEqual(store.rows(0, 10), [amended, notice, row(3)]);
  assert.throws(() =>
    store.transaction(() => {
      store.write(state, step({ amend: [{ ...amended, message: { ...amended.message, content: "other" } }] }), undefined);
      throw new Error("no");
    }),
  );
  assert.deepEqual(store.rowAt(1), amended);
});
storeCase("[G4] [W19] a long result comes back whole, and goes when it is told to", (store) => {
  const text = "zwölf 🌍 ".repeat(150_000);
  write(store, undefined, step({ results: [{ op: "keep", callId: "r/r1/1/0", text }] }));
  assert.equal(store.resultText("r/r1/1/0"), text);
  write(store, state, step({ state: { ...state }, results: [{ op: "drop", callId: "r/r1/1/0" }] }));
  assert.equal(store.resultText("r/r1/1/0"), undefined);
});
storeCase("[M5] a file keeps its number until it is deleted, and a number names one file", (store) => {
  assert.equal(store.mediaKey(1), undefined);
  write(store, undefined, step());
  assert.deepEqual(
    [...store.mediaNumbers(["a", "b"])],
    [
      ["a", 1],
      ["b", 2],
    ],
  );
  assert.deepEqual([...store.mediaNumbers(["c", "a", "c"])].sort(), [
    ["a", 1],
    ["c", 3],
  ]);
  assert.deepEqual(
    [1, 2, 3, 4].map((number) => store.mediaKey(number)),
    ["a", "b", "c", undefined],
  );
  store.dropMediaNumbers(new Set(["b"]));
  assert.deepEqual(
    [1, 2, 3].map((number) => store.mediaKey(number)),
    [undefined, "b", undefined],
  );
  assert.deepEqual(
    [...store.mediaNumbers(["b", "d"])],
    [
      ["b", 2],
      ["d", 3],
    ],
  );
});
storeCase("[P19] a row that is too large is refused, and nothing of its transaction stays", (store) => {
  write(store, undefined, step());
  const large: LogRow = {
    ...row(1),
    kind: "user",
    messageId: "m",
    origin: { kind: "client", clientId: "o" },
    message: { role: "user", content: "x".repeat(1_100_000), timestamp: 0 },
  };
  assert.throws(() => write(store, state, step({ append: [row(2), large] })), /bytes/);
  assert.deepEqual(store.rows(0, 10), []);
});
storeCase("[P1] [P11] forgetting goes in bounded steps and takes only what is old", (store) => {
  write(store, undefined, step({ append: Array.from({ length: 30 }, (_, n) => row(n + 1, n * 10)) }));
  for (let n = 0; n < 30; n++)
    store.transaction(() => store.write(state, step(), { key: `m:${String(n).padStart(2, "0")}`, answer: { type: "taken" }, at: n * 10 }));
  const bounds = { seenBefore: 150, contextFrom: 21, rowsBefore: 100, rowsBelow: 6, step: 8 };
  const taken: number[] = [];
  for (let n = 0; n < 12; n++) taken.push(store.prune(bounds));
  assert.ok(
    taken.every((count) => count <= 16),
    taken.join(),
  );
  // Keys 0..14 are old; rows 1..10 are older than that or beyond the ring, and 21.. are the conversation.
  assert.equal(
    taken.reduce((sum, count) => sum + count, 0),
    25,
  );
  assert.equal(store.seen("m:14"), undefined);
  assert.ok(store.seen("m:15"));
  assert.equal(store.oldestSeq(99), 11);
  assert.equal(store.rows(0, 100).length, 20);
});
