/**
 * Tool calls that clients make: `tool.invoke`, `tool.request`, `logs.get`. Keeps the record of each call (call-store.ts), applies the
 * rulings of calls/rules.ts, and answers the waiter exactly once. Has no rule of its own about links, grace or deadlines.
 */
import type { LedgerCall } from "../../../../protocol/gen/types.ts";
import { interrupted, neverStarted, notConnected } from "../../calls/closings.ts";
import { type CallPlan, dueAt, nodeOf, planCall } from "../../calls/open-call.ts";
import { expired, handingOver, mayReport, nodeConnected, nodeDisconnected, type Ruling } from "../../calls/rules.ts";
import type { Connections } from "../../kernel/connections.ts";
import { fail } from "../../kernel/outcome.ts";
import { clientCallId } from "../../kernel/routing/call-ids.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { closingAnswer } from "./call-answers.ts";
import { type CallStore, type ClientCall, tokenOf } from "./call-store.ts";
import type { ClientCommands } from "./client-command-store.ts";
import type { CallEvent, NodeDispatch } from "./dispatch.ts";

export interface ClientCallPorts {
  readonly store: CallStore;
  readonly dispatch: NodeDispatch;
  readonly connections: Connections;
  readonly now: () => number;
  readonly freshName: (length: number) => string;
  readonly arm: () => void;
  readonly armFor: (deadline: number) => void;
  readonly commands: Pick<ClientCommands, "stoppedCall" | "stopAll">;
  readonly isStopped: () => boolean;
}
export const STOPPED = fail("gateway.stopped", "GSV is stopped, so the tool was not called.");
export const STOP_REASON = "Everything is stopped.";
/** A call as a client asks for it. */
export interface AskedCall extends Omit<ClientCall, "call" | "ownName">, Omit<CallPlan, "callId" | "index"> {
  readonly ownName: string | undefined;
  /** The time limit that the target is told. */
  readonly timeoutMs: number;
}

interface OpenedCall {
  readonly record: ClientCall;
  /** False: the same call is open already. */
  readonly isNew: boolean;
}

export class ClientCalls {
  readonly #ports: ClientCallPorts;
  /** Waiters inside this object, by call id. */
  readonly #inside = new Map<string, (answer: Result<unknown>) => void>();

  constructor(ports: ClientCallPorts) {
    this.#ports = ports;
    // Native calls ran in the instance that is gone. A client's call is not run again: only the client can tell whether it is still wanted.
    for (const record of ports.store.native()) this.#end(record, closingAnswer(interrupted(record.call)));
  }

  /** Hands a call to its machine. A failure is the answer; otherwise the answer goes to the waiter later. */
  start(asked: AskedCall, eventOf: (callId: string) => CallEvent): Result<{ readonly callId: string }> {
    const opened = this.#open(asked);
    return opened.ok ? this.#handOver(opened.value, asked, eventOf) : opened;
  }

  /** As `start`, and waits for the answer in memory. */
  async ask(asked: AskedCall, eventOf: (callId: string) => CallEvent): Promise<Result<unknown>> {
    const opened = this.#open(asked);
    if (!opened.ok) return opened;
    const answer = this.#answerOf(opened.value.record);
    const started = this.#handOver(opened.value, asked, eventOf);
    return started.ok ? answer : started;
  }

  /** Runs a native call. When the same call is running already, `work` is not started: this waits for the answer of that call. */
  async run(asked: AskedCall, work: (record: ClientCall) => Promise<Result<unknown>>): Promise<Result<unknown>> {
    const opened = this.#open(asked);
    if (!opened.ok) return opened;
    const { record, isNew } = opened.value;
    const answer = this.#answerOf(record);
    if (isNew) {
      const end = (result: Result<unknown>): void => this.#end(record, result);
      void work(record).then(end, () => end(fail("internal")));
    }
    return answer;
  }

  #open({ kind, origin, ownName, waiter, readsOnly, timeoutMs: _timeoutMs, ...plan }: AskedCall): Result<OpenedCall> {
    const { store, now, freshName, armFor, isStopped } = this.#ports;
    if (kind === "tool" && !readsOnly && isStopped()) return STOPPED;
    const callId = clientCallId(tokenOf(origin), ownName, freshName(16));
    const open = store.get(callId);
    if (open !== undefined) {
      // The same call again, most likely after a lost link: the newest request gets the answer.
      this.#answer(open, fail("tool.cancelled", "The same call was asked for again. The answer goes to the newer request."));
      const record = { ...open, waiter };
      store.put(record);
      return succeed({ record, isNew: false });
    }
    const call = planCall({ ...plan, callId, index: 0 }, now());
    const more = { ...(ownName === undefined ? {} : { ownName }), ...(readsOnly ? { readsOnly } : {}) };
    const record: ClientCall = { call, kind, origin, waiter, ...more };
    if (!store.add(record)) return fail("limit.rate", "Too many tool calls are open.", "Wait until some have ended.");
    armFor(dueAt(call));
    return succeed({ record, isNew: true });
  }
  #handOver(
    { record, isNew }: OpenedCall,
    { timeoutMs }: AskedCall,
    eventOf: (callId: string) => CallEvent,
  ): Result<{ readonly callId: string }> {
    const { call } = record;
    const { callId } = call;
    const nodeId = nodeOf(call);
    if (!isNew || nodeId === undefined) return succeed({ callId });
    // Committed before the frame leaves (G2): the runtime holds frames back until the rows are on disk.
    this.#follow(record, handingOver(call));
    if (this.#ports.dispatch.handOver(nodeId, callId, timeoutMs, eventOf(callId))) return succeed({ callId });
    // The hand-over found a dead link, and the loss of the link has answered the call.
    if (this.#ports.store.take(callId) === undefined) return succeed({ callId });
    this.#inside.delete(callId);
    return closingAnswer(notConnected(call));
  }
  /** The answer of a call that has just been opened. */
  #answerOf({ call }: ClientCall): Promise<Result<unknown>> {
    const { promise, resolve } = Promise.withResolvers<Result<unknown>>();
    this.#inside.set(call.callId, resolve);
    return promise;
  }

  /** A machine reports the end of a call. False: it has no such call of a client. */
  report(nodeId: string, callId: string, kind: ClientCall["kind"], answer: (record: ClientCall) => Result<unknown>): boolean {
    const record = this.#ports.store.get(callId);
    if (record === undefined || record.kind !== kind || !mayReport(record.call, { kind: "node", nodeId })) return false;
    this.#end(record, answer(record));
    return true;
  }

  /** Everything is stopped: the calls of clients on machines end, and so do their commands in the background. Answers how many. */
  stopAll(): number {
    const { store, dispatch, commands, now } = this.#ports;
    const ended = store.onNodes().filter(({ kind }) => kind === "tool");
    const open = ended.flatMap(({ call }) => {
      const nodeId = nodeOf(call);
      return nodeId === undefined ? [] : [{ nodeId, callId: call.callId }];
    });
    const all = [...open, ...commands.stopAll()];
    for (const { nodeId, callId } of open) commands.stoppedCall(nodeId, callId, now());
    for (const { nodeId, callId } of all) dispatch.cancel(nodeId, [callId], STOP_REASON);
    for (const record of ended) this.#end(record, fail("tool.cancelled", "Everything was stopped while the call ran."));
    return all.length;
  }

  /** The connection that waits for a call of this machine. */
  waitingConnection(nodeId: string, callId: string): string | undefined {
    const record = this.#ports.store.get(callId);
    return record !== undefined && nodeOf(record.call) === nodeId && record.waiter.kind === "client" ? record.waiter.conn : undefined;
  }

  /** The link to a machine broke. */
  nodeDisconnected(nodeId: string): void {
    const now = this.#ports.now();
    for (const record of this.#ports.store.ofNode(nodeId)) this.#follow(record, nodeDisconnected(record.call, now));
    this.#ports.arm();
  }
  /** The machine has a newer link: calls that its ledger does not hold are as on a link that broke. */
  linkReplaced(nodeId: string): void {
    const now = this.#ports.now();
    for (const record of this.#ports.store.ofNode(nodeId))
      if (!record.call.ledger) this.#follow(record, nodeDisconnected(record.call, now));
  }
  /** The machine is connected again. `ledger`: the calls that it still answers for; undefined when it keeps none. */
  nodeConnected(nodeId: string, ledger: readonly LedgerCall[] | undefined): void {
    const now = this.#ports.now();
    for (const record of this.#ports.store.ofNode(nodeId)) {
      const ruling = nodeConnected(record.call, ledger, now);
      // A client's call is handed over once: its arguments are not kept, and the client can ask again.
      if (ruling.type === "hand_over" && !ledger?.some(({ callId }) => callId === record.call.callId))
        this.#end(record, closingAnswer(neverStarted(record.call)));
      else {
        this.#follow(record, ruling);
        this.#ports.dispatch.remember(nodeId, record.call.callId);
      }
    }
    this.#ports.arm();
  }

  nextDeadline(): number | undefined {
    return this.#ports.store.nextDeadline();
  }
  /** Ends the calls whose deadline or grace is over, and cancels them on their machines. */
  expire(now: number): void {
    for (const record of this.#ports.store.due(now)) {
      const closing = expired(record.call, now);
      if (closing === undefined) continue;
      const nodeId = nodeOf(record.call);
      if (nodeId !== undefined && record.kind === "tool") this.#ports.dispatch.cancel(nodeId, [record.call.callId], "the time is over");
      this.#end(record, closingAnswer(closing));
    }
  }

  #follow(record: ClientCall, ruling: Ruling): void {
    if (ruling.type === "close") this.#end(record, closingAnswer(ruling.closing));
    else if (ruling.type === "continue" || ruling.type === "hand_over") this.#ports.store.put({ ...record, call: ruling.call });
  }
  /** Answers the current waiter, once: the row is the right to answer. */
  #end({ call }: ClientCall, answer: Result<unknown>): void {
    const record = this.#ports.store.take(call.callId);
    if (record === undefined) return;
    const nodeId = nodeOf(record.call);
    if (nodeId !== undefined) this.#ports.dispatch.ended(nodeId, call.callId);
    this.#answer(record, answer);
  }
  #answer({ call, waiter }: ClientCall, answer: Result<unknown>): void {
    const inside = this.#inside.get(call.callId);
    this.#inside.delete(call.callId);
    if (inside !== undefined) inside(answer);
    else if (waiter.kind === "client") {
      const connection = this.#ports.connections.byConn(waiter.conn);
      if (connection !== undefined) this.#ports.connections.answer(connection.socket, waiter.request, answer);
    }
  }
}
