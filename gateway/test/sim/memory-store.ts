/**
 * The session's store in memory, for the simulation: transactions commit or do not, and values are kept as the text of a real table.
 * It also keeps every row that was ever written, for the oracle.
 */
import type { Step } from "../../src/session/machine/draft.ts";
import type { Answer } from "../../src/session/machine/event.ts";
import type { LogRow } from "../../src/session/machine/log.ts";
import type { IncomingMessage, QueuedMessage, State } from "../../src/session/machine/state.ts";
import { type TransitionName, transitionProblem } from "../../src/session/machine/transitions.ts";
import {
  decodeMessage,
  decodeRow,
  decodeState,
  encodeMessage,
  encodeRow,
  encodeState,
  type StoredRow,
} from "../../src/session/store/rows.ts";
import { frontOf, type PruneBounds, type QueueFront, type SeenEntry, type SessionStore } from "../../src/session/store/session-store.ts";
import { type Acceptance, acceptanceOf } from "./acceptance.ts";

interface StoredMessage {
  readonly id: number;
  readonly run: string;
  readonly bytes: number;
  readonly body: string;
}
interface Tables {
  readonly state: Map<string, string>;
  readonly log: Map<number, StoredRow>;
  readonly seen: Map<string, { readonly answer: string; readonly at: number }>;
  readonly queue: Map<number, StoredMessage>;
  readonly results: Map<string, string>;
}
const copy = ({ state, log, seen, queue, results }: Tables): Tables => ({
  state: new Map(state),
  log: new Map(log),
  seen: new Map(seen),
  queue: new Map(queue),
  results: new Map(results),
});

export class MemoryStore implements SessionStore {
  #tables: Tables = { state: new Map(), log: new Map(), seen: new Map(), queue: new Map(), results: new Map() };
  #inside = false;
  readonly #media = new Map<string, number>();
  /** Every row ever written, in order; what was pruned or archived too. */
  readonly everything: LogRow[] = [];
  /** Texts for daily files, as they were decided on. */
  readonly memories: string[] = [];
  /** Keys of messages in the order in which they were accepted. */
  readonly accepted: string[] = [];
  /** What the session was doing when it accepted each of them. */
  readonly acceptances = new Map<string, Acceptance>();
  writes = 0;
  /** Transitions that committed steps took, and what was wrong with them. */
  readonly taken = new Map<TransitionName, number>();
  readonly wrongSteps: string[] = [];
  /** What the transaction at work would add to the above. */
  #steps: TransitionName[] = [];
  #added: LogRow[] = [];
  #amended: LogRow[] = [];
  #takenIn: string[] = [];
  #accepting: readonly { readonly key: string; readonly acceptance: Acceptance }[] = [];
  #learnt: string[] = [];

  transaction<T>(work: () => T): T {
    if (this.#inside) throw new Error("a transaction inside a transaction");
    const before = copy(this.#tables);
    this.#inside = true;
    this.#added = [];
    this.#amended = [];
    this.#takenIn = [];
    this.#accepting = [];
    this.#learnt = [];
    this.#steps = [];
    try {
      const result = work();
      this.everything.push(...this.#added);
      for (const row of this.#amended) this.everything[this.everything.findIndex(({ seq }) => seq === row.seq)] = row;
      this.accepted.push(...this.#takenIn);
      for (const { key, acceptance } of this.#accepting) this.acceptances.set(key, acceptance);
      this.memories.push(...this.#learnt);
      for (const name of this.#steps) this.taken.set(name, (this.taken.get(name) ?? 0) + 1);
      return result;
    } catch (error) {
      this.#tables = before;
      throw error;
    } finally {
      this.#inside = false;
    }
  }
  load(): State | undefined {
    return decodeState(this.#tables.state, (runId) => {
      const row = this.everything.findLast((candidate) => candidate.kind === "user" && candidate.runId === runId);
      return row?.kind === "user" ? row.origin : undefined;
    });
  }
  seen(key: string): Answer | undefined {
    const entry = this.#tables.seen.get(key);
    if (!entry) return undefined;
    const answer: Answer = JSON.parse(entry.answer);
    return answer;
  }
  #message(stored: StoredMessage | undefined): QueuedMessage | undefined {
    if (!stored) return undefined;
    return { id: stored.id, bytes: stored.bytes, incoming: decodeMessage(stored.body) };
  }
  #queued(): StoredMessage[] {
    return [...this.#tables.queue.values()].sort((left, right) => left.id - right.id);
  }
  queueFront(withSteered = false): QueueFront {
    if (withSteered) return frontOf(this.#queued().flatMap((stored) => this.#message(stored) ?? []));
    const quiet: QueuedMessage[] = [];
    for (const stored of this.#queued()) {
      const message = this.#message(stored);
      if (!message?.incoming.quiet) return { quiet, head: message };
      quiet.push(message);
    }
    return { quiet, head: undefined };
  }
  queued(): readonly IncomingMessage[] {
    return this.#queued().map(({ body }) => decodeMessage(body));
  }
  queuedRun(runId: string): QueuedMessage | undefined {
    return this.#message(this.#queued().find((message) => message.run === runId));
  }
  write(before: State | undefined, step: Step, seen: SeenEntry | undefined): void {
    if (!this.#inside) throw new Error("a write outside of a transaction");
    this.writes += 1;
    this.#steps.push(...step.transitions);
    if (step.state !== before) {
      const problem = transitionProblem(before?.run.phase ?? "idle", step.cause, step.transitions, step.state.run.phase);
      if (problem !== undefined) this.wrongSteps.push(problem);
    }
    const { state, log, queue, results } = this.#tables;
    for (const row of step.append) {
      const stored = encodeRow(row);
      if (log.has(stored.seq)) throw new Error(`the row ${stored.seq} is there already`);
      log.set(stored.seq, stored);
      this.#added.push(decodeRow(stored));
    }
    for (const row of step.amend) {
      const stored = encodeRow(row);
      if (log.get(stored.seq)?.kind !== "user") throw new Error(`the row ${stored.seq} is no message of a user`);
      log.set(stored.seq, stored);
      this.#amended.push(decodeRow(stored));
    }
    for (const op of step.queue) {
      if (op.op === "remove") {
        if (!queue.delete(op.id)) throw new Error(`no message ${op.id} waits`);
        continue;
      }
      const id = Math.max(0, ...queue.keys()) + 1;
      queue.set(id, { id, run: op.incoming.runId, bytes: op.bytes, body: encodeMessage(op.incoming) });
    }
    for (const op of step.results) {
      if (op.op === "keep" && op.callId.startsWith("memory/")) this.#learnt.push(op.text);
      if (op.op === "keep") results.set(op.callId, op.text);
      else results.delete(op.callId);
    }
    if (seen) {
      if (this.#tables.seen.has(seen.key)) throw new Error(`the key ${seen.key} is there already`);
      this.#tables.seen.set(seen.key, { answer: JSON.stringify(seen.answer), at: seen.at });
      if (seen.answer.type === "accepted") {
        this.#takenIn.push(seen.key);
        this.#accepting = [{ key: seen.key, acceptance: acceptanceOf(before, step, seen.key.slice(2)) }];
      }
    }
    if (step.state !== before) for (const [name, body] of encodeState(before, step.state)) state.set(name, body);
  }
  rows(from: number, limit: number): readonly LogRow[] {
    return [...this.#tables.log.values()]
      .filter((row) => row.seq >= from)
      .sort((left, right) => left.seq - right.seq)
      .slice(0, limit)
      .map(decodeRow);
  }
  rowAt(seq: number): LogRow | undefined {
    const stored = this.#tables.log.get(seq);
    return stored && decodeRow(stored);
  }
  oldestSeq(nextSeq: number): number {
    return Math.min(nextSeq, ...this.#tables.log.keys());
  }
  resultText(callId: string): string | undefined {
    return this.#tables.results.get(callId);
  }
  mediaNumbers(keys: readonly string[]): ReadonlyMap<string, number> {
    for (const key of keys) if (!this.#media.has(key)) this.#media.set(key, Math.max(0, ...this.#media.values()) + 1);
    return new Map(keys.map((key) => [key, this.#media.get(key) ?? 0]));
  }
  mediaKey(number: number): string | undefined {
    return [...this.#media].find(([, known]) => known === number)?.[0];
  }
  dropMediaNumbers(keep: ReadonlySet<string>): void {
    for (const key of this.#media.keys()) if (!keep.has(key)) this.#media.delete(key);
  }
  prune({ seenBefore, contextFrom, rowsBefore, rowsBelow, step }: PruneBounds): number {
    return this.transaction(() => {
      const { seen, log } = this.#tables;
      const keys = [...seen].filter(([, { at }]) => at < seenBefore).slice(0, step);
      for (const [key] of keys) seen.delete(key);
      const rows = [...log.values()]
        .filter((row) => row.seq < contextFrom)
        .sort((left, right) => left.seq - right.seq)
        .slice(0, step);
      const stays = rows.findIndex(({ seq, at }) => at >= rowsBefore && seq >= rowsBelow);
      const gone = stays === -1 ? rows : rows.slice(0, stays);
      for (const { seq } of gone) log.delete(seq);
      return keys.length + gone.length;
    });
  }
  get waiting(): number {
    return this.#tables.queue.size;
  }
  get keptResults(): number {
    return this.#tables.results.size;
  }
}
