/**
 * One step of the machine in the making. Phase functions write into a draft, and `finishDraft` turns it into the step, so that `reduce`
 * is a pure function from outside. Decides nothing about runs.
 */
import type { Usage } from "../../../../protocol/gen/types.ts";
import { addSum, NO_REPORT, type SpendSum } from "../../ports/spend.ts";
import type { Answer, ArchiveEnd, Event, EventBody, Stamp } from "./event.ts";
import type { Effect } from "./effect.ts";
import { hasEvent, isMessageRow, type LogRow, type MessageRow, type NoticeRow, seqSpan, type UserRow } from "./log.ts";
import { deliverEffectId } from "./ids.ts";
import type { QueuedMessage, State } from "./state.ts";
import { type TransitionName, transitionOf } from "./transitions.ts";

export type QueueOp =
  | { readonly op: "add"; readonly incoming: QueuedMessage["incoming"]; readonly bytes: number }
  | { readonly op: "remove"; readonly id: number };
/** Full text of a long result, kept in rows until the bucket has it. */
export type ResultOp =
  | { readonly op: "keep"; readonly callId: string; readonly text: string }
  | { readonly op: "drop"; readonly callId: string };
/** Only for clients that follow live: not in the log. */
export interface StatusNews {
  readonly runId: string;
  readonly text: string;
  readonly step: number;
}
export interface Step {
  readonly cause: EventBody["type"];
  /** In the order in which they were taken. For the simulator and tests; never stored. */
  readonly transitions: readonly TransitionName[];
  /** The same object when nothing has changed; then the step has an answer at most. */
  readonly state: State;
  readonly append: readonly LogRow[];
  /** Existing rows with a new body, which has transcripts. */
  readonly amend: readonly UserRow[];
  readonly queue: readonly QueueOp[];
  readonly results: readonly ResultOp[];
  /** New in the outbox. */
  readonly effects: readonly Effect[];
  /** No longer in the outbox. */
  readonly settled: readonly string[];
  readonly status: readonly StatusNews[];
  readonly ended: readonly ArchiveEnd[];
  readonly answer: Answer | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };
export interface Draft {
  readonly before: State;
  readonly state: Writable<State>;
  readonly at: Stamp;
  readonly append: LogRow[];
  readonly amend: UserRow[];
  readonly queue: QueueOp[];
  readonly results: ResultOp[];
  readonly status: StatusNews[];
  readonly ended: ArchiveEnd[];
  answer: Answer | undefined;
  readonly cause: EventBody["type"];
  readonly transitions: TransitionName[];
  /** A run or an archive has ended in this step, and the waiting work has not been started yet. */
  atNext: boolean;
}

export const startDraft = (state: State, event: Event): Draft => ({
  before: state,
  state: { ...state },
  at: event,
  cause: event.type,
  transitions: [],
  atNext: false,
  append: [],
  amend: [],
  queue: [],
  results: [],
  status: [],
  ended: [],
  answer: undefined,
});

/** Records a transition. The caller sets the phase. */
export function take(d: Draft, name: TransitionName): void {
  d.transitions.push(name);
  const { to } = transitionOf(name);
  if (to !== undefined) d.atNext = to === "next";
}

/** A row without its number and time. */
export type RowBody<R extends LogRow = LogRow> = R extends LogRow ? Omit<R, "seq" | "at"> : never;
export function append(d: Draft, body: RowBody): LogRow {
  const row: LogRow = { ...body, seq: d.state.nextSeq, at: d.at.wall };
  d.append.push(row);
  d.state.nextSeq += seqSpan(row);
  if (isMessageRow(row)) d.state.messageCount += 1;
  return row;
}
export const appendMessage = (d: Draft, body: RowBody<MessageRow>): LogRow => append(d, body);
export const appendNotice = (d: Draft, body: Omit<RowBody<NoticeRow>, "kind">): LogRow => append(d, { kind: "notice", ...body });

export function open(d: Draft, effect: Effect): void {
  d.state.outbox = [...d.state.outbox, effect];
}
export function settle(d: Draft, effectId: string): void {
  if (d.state.outbox.some((effect) => effect.id === effectId)) d.state.outbox = d.state.outbox.filter((effect) => effect.id !== effectId);
}
function settleType(d: Draft, type: Effect["type"]): void {
  if (d.state.outbox.some((effect) => effect.type === type)) d.state.outbox = d.state.outbox.filter((effect) => effect.type !== type);
}
export const status = (d: Draft, runId: string, step: number, text: string): void => {
  d.status.push({ runId, step, text });
};

export function addUsage(total: Usage, more: Usage): Usage {
  return {
    input: total.input + more.input,
    output: total.output + more.output,
    cacheRead: (total.cacheRead ?? 0) + (more.cacheRead ?? 0),
    cacheWrite: (total.cacheWrite ?? 0) + (more.cacheWrite ?? 0),
    total: total.total + more.total,
    costUsd: (total.costUsd ?? 0) + (more.costUsd ?? 0),
  };
}
/** Counts what a model call used, in the session's totals. */
export function countUsage(d: Draft, usage: Usage): void {
  const { input, output, total, costUsd } = d.state.usage;
  d.state.usage = {
    input: input + usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0),
    output: output + usage.output,
    total: total + usage.total,
    costUsd: (costUsd ?? 0) + (usage.costUsd ?? 0),
  };
}

/** Counts a model call for the spend ledger: once, because only the commit that ends its effect counts it (rule SP2). */
export function countSpent(d: Draft, spent: SpendSum | undefined): void {
  if (!spent) return;
  const known = d.state.spend ?? NO_REPORT;
  // The ledger has confirmed all calls so far: the sums begin again.
  const report = d.at.settled === known.count ? { base: known.count, count: known.count, sums: [] } : known;
  d.state.spend = { ...report, count: report.count + 1, sums: addSum(report.sums, spent) };
}

function isSame(before: State, after: State): boolean {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const name of names) if (Reflect.get(before, name) !== Reflect.get(after, name)) return false;
  return true;
}

export function finishDraft(d: Draft): Step {
  const { before, at } = d;
  const lastEvent = d.append.findLast(hasEvent);
  if (lastEvent) {
    settleType(d, "Deliver");
    const upto = d.state.nextSeq - 1;
    open(d, { type: "Deliver", id: deliverEffectId(upto), upto });
  }
  const silent = isSame(before, d.state) && d.append.length === 0 && d.amend.length === 0 && d.queue.length === 0 && d.results.length === 0;
  if (silent)
    return {
      cause: d.cause,
      transitions: d.transitions,
      state: before,
      append: [],
      amend: [],
      queue: [],
      results: [],
      effects: [],
      settled: [],
      status: d.status,
      ended: d.ended,
      answer: d.answer,
    };
  // Every commit includes the events that clients have received meanwhile, which saves a commit of their own.
  d.state.deliveredSeq = Math.max(d.state.deliveredSeq, Math.min(at.published, d.state.nextSeq - 1));
  const delivered = d.state.deliveredSeq;
  const deliver = d.state.outbox.find((effect) => effect.type === "Deliver");
  if (deliver && deliver.upto <= delivered) settle(d, deliver.id);
  d.state.clock = { wall: at.wall, now: at.now };
  const had = new Set(before.outbox.map((effect) => effect.id));
  const has = new Set(d.state.outbox.map((effect) => effect.id));
  return {
    cause: d.cause,
    transitions: d.transitions,
    state: d.state,
    append: d.append,
    amend: d.amend,
    queue: d.queue,
    results: d.results,
    effects: d.state.outbox.filter((effect) => !had.has(effect.id)),
    settled: before.outbox.filter((effect) => !has.has(effect.id)).map((effect) => effect.id),
    status: d.status,
    ended: d.ended,
    answer: d.answer,
  };
}
