/**
 * Calls to machines that a client asks for itself: `tool.invoke`, `tool.request`, `logs.get`. Each is a row with a deadline before
 * anything is sent, is answered exactly once, and ends visibly if its machine goes away (promises P6). A session's calls never come here.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asCallId, asNodeId, type LedgerCall, type LogsResultParams, type ToolResultParams } from "../../../../protocol/gen/types.ts";
import type { ErrorReason } from "../../../../protocol/gen/errors.ts";
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import type { Result } from "../../ports/result.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import type { Connections } from "../../kernel/connections.ts";
import type { PendingCall, PendingCalls } from "./pending-call-store.ts";
import { clientCallId } from "../../kernel/routing/call-ids.ts";

export interface ClientCallPorts {
  readonly pending: PendingCalls;
  readonly connections: Connections;
  readonly now: () => number;
  readonly freshName: (length: number) => string;
  readonly arm: () => void;
}
export interface CallRequest {
  readonly kind: PendingCall["kind"];
  readonly conn: string;
  readonly request: string;
  readonly token: string;
  readonly node: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly name: string | undefined;
  readonly repeatable: boolean;
  readonly timeoutMs: number;
  readonly sessionKey?: string;
}

/** A node has this much longer than a call's own time to say how it ended. */
const MARGIN_MS = 5000;
export const LOGS_TIMEOUT_MS = 15_000;
/** Answers that are waited for in memory (native tools): as connection, because no socket has such a name. */
const INSIDE = "inside";

export class ClientCalls {
  readonly #ports: ClientCallPorts;
  readonly #inside = new Map<string, (answer: Result<unknown>) => void>();

  constructor(ports: ClientCallPorts) {
    this.#ports = ports;
  }

  /** Sends a call to its node. A failure is the answer; otherwise the answer comes later. */
  start(request: CallRequest): Result<{ readonly callId: string }> {
    const { pending, connections, now } = this.#ports;
    const callId = clientCallId(request.token, request.name, this.#ports.freshName(16));
    const node = connections.node(request.node);
    if (node === undefined) return fail("node.offline", `The machine ${request.node} is not connected.`);
    const asked = pending.get(callId);
    if (asked !== undefined) {
      // The same call again, most likely after a lost link: whoever asked last gets the answer.
      this.#answer(asked, fail("tool.cancelled", "The same call was requested again; the newer request gets the answer."));
      pending.redirect(callId, request.conn, request.request);
      return succeed({ callId });
    }
    const at = now();
    const { kind, conn, token, tool, name, repeatable } = request;
    const row: PendingCall = {
      call: callId,
      kind,
      conn,
      request: request.request,
      token,
      node: request.node,
      tool,
      name,
      repeatable,
      state: "sent",
      createdAt: at,
      deadline: at + request.timeoutMs + MARGIN_MS,
      graceUntil: undefined,
    };
    if (!pending.add(row)) return fail("limit.rate", "Too many tool calls are running.", "Wait for some calls to end, then try again.");
    const sent =
      kind === "logs"
        ? connections.event(node, "logs.get", {
            callId: asCallId(callId),
            ...(typeof request.args["lines"] === "number" ? { lines: request.args["lines"] } : {}),
          })
        : connections.event(node, "tool.invoke", {
            callId: asCallId(callId),
            tool,
            args: { ...request.args },
            timeoutMs: request.timeoutMs,
            ...(request.sessionKey === undefined ? {} : { sessionKey: request.sessionKey }),
          });
    if (!sent) {
      pending.take(callId);
      return fail("node.offline", `The machine ${request.node} is not connected.`);
    }
    this.#ports.arm();
    return succeed({ callId });
  }

  /** A node's log, for something inside the gateway that waits for it. */
  logs(node: string, lines: number | undefined, token: string): Promise<Result<unknown>> {
    return new Promise((resolve) => {
      const request = this.#ports.freshName(16);
      this.#inside.set(request, resolve);
      const started = this.start({
        kind: "logs",
        conn: INSIDE,
        request,
        token,
        node,
        tool: "logs",
        args: lines === undefined ? {} : { lines },
        name: undefined,
        repeatable: true,
        timeoutMs: LOGS_TIMEOUT_MS,
      });
      if (started.ok) return;
      this.#inside.delete(request);
      resolve(started);
    });
  }

  /** True: the call was known and its answer has gone out, or there is nobody left who wants it. */
  result(nodeId: string, result: ToolResultParams): boolean {
    const call = this.#take(nodeId, result.callId);
    if (call === undefined) return false;
    this.#answer(call, toolAnswer(call, result));
    return true;
  }

  logsResult(nodeId: string, result: LogsResultParams): boolean {
    const call = this.#take(nodeId, result.callId);
    if (call === undefined) return false;
    const lines = result.lines ?? [];
    this.#answer(
      call,
      result.error === undefined
        ? succeed({ nodeId: asNodeId(nodeId), lines, count: lines.length, truncated: result.truncated === true })
        : fail("tool.failed", result.error),
    );
    return true;
  }

  /** The connection that waits for this call, if the node is the one that was asked. */
  waiter(nodeId: string, callId: string): string | undefined {
    const call = this.#ports.pending.get(callId);
    return call?.node === nodeId ? call.conn : undefined;
  }

  /** The node's link broke: what can't have done harm fails now, the rest waits a moment for the node to come back. */
  nodeWent(nodeId: string): void {
    const until = this.#ports.now() + LIMITS.nodeGraceMs;
    for (const call of this.#ports.pending.ofNode(nodeId)) {
      if (call.repeatable)
        this.#end(
          call,
          fail(
            "node.offline",
            `The machine ${nodeId} disconnected during the call, which changes nothing.`,
            "Repeat the call when the machine is connected again.",
          ),
        );
      else this.#ports.pending.wait(call.call, until);
    }
    this.#ports.arm();
  }

  /** The node is back. What its ledger lists goes on; what it has never seen was never started. */
  nodeCame(nodeId: string, ledger: readonly LedgerCall[] | undefined): void {
    const states = new Map((ledger ?? []).map(({ callId, state }) => [String(callId), state]));
    for (const call of this.#ports.pending.ofNode(nodeId)) {
      if (ledger === undefined)
        this.#end(call, unknownOutcome(call, "The link to the machine broke during the call, and this machine keeps no record of calls."));
      else if (!states.has(call.call))
        this.#end(call, fail("node.offline", `The call did not reach the machine ${nodeId}.`, "Repeat the call."));
      else this.#ports.pending.goOn(call.call, this.#ports.now() + LIMITS.nodeGraceMs);
    }
    this.#ports.arm();
  }

  nextDeadline(): number | undefined {
    return this.#ports.pending.nextDeadline();
  }

  /** Ends what is over its time. */
  expire(now: number): void {
    for (const call of this.#ports.pending.due(now)) {
      const node = this.#ports.connections.node(call.node);
      if (node !== undefined && call.kind !== "logs")
        this.#ports.connections.event(node, "tool.cancel", { callId: asCallId(call.call), reason: "the time is over" });
      if (call.kind === "logs") this.#end(call, fail("tool.timeout", `The machine ${call.node} did not send its log in time.`));
      else if (call.state === "waiting")
        this.#end(call, unknownOutcome(call, `The machine ${call.node} dropped off during the call and has not come back.`));
      else
        this.#end(
          call,
          call.repeatable
            ? fail("tool.timeout")
            : unknownOutcome(call, `The machine ${call.node} did not say in time how the call ended; it was told to stop it.`),
        );
    }
  }

  #take(nodeId: string, callId: string): PendingCall | undefined {
    // A result from another machine than the one that was asked is nobody's.
    return this.#ports.pending.get(callId)?.node === nodeId ? this.#ports.pending.take(callId) : undefined;
  }
  #end(call: PendingCall, answer: Result<unknown>): void {
    if (this.#ports.pending.take(call.call) !== undefined) this.#answer(call, answer);
  }
  #answer(call: PendingCall, answer: Result<unknown>): void {
    if (call.kind === "request") return;
    if (call.conn === INSIDE) {
      this.#inside.get(call.request)?.(answer);
      this.#inside.delete(call.request);
      return;
    }
    const connection = this.#ports.connections.byConn(call.conn);
    if (connection !== undefined) this.#ports.connections.answer(connection.socket, call.request, answer);
  }
}

const unknownOutcome = (call: PendingCall, what: string): Result<never> =>
  call.repeatable
    ? fail("node.offline", `${what} The call changes nothing.`, "Repeat the call.")
    : fail("tool.outcome_unknown", `${what} The call may have taken effect.`);

function toolAnswer(call: PendingCall, { result, error, outcome, reason }: ToolResultParams): Result<unknown> {
  if (error === undefined && (outcome === undefined || outcome === "ok"))
    return succeed({ ...(result === undefined ? {} : { result }), callId: asCallId(call.name ?? call.call) });
  const said = error ?? "The machine gave no reason.";
  return fail(reasonOf(outcome, reason), said);
}

const OUTCOME_REASONS = {
  ok: "tool.failed",
  error: "tool.failed",
  cancelled: "tool.cancelled",
  timeout: "tool.timeout",
  unknown: "tool.outcome_unknown",
} as const satisfies Record<string, ErrorReason>;
/** A node's own reason holds when the contract has it. */
const isReason = (reason: string): reason is ErrorReason => Object.hasOwn(ERRORS, reason);
const reasonOf = (outcome: ToolResultParams["outcome"], reason: string | undefined): ErrorReason =>
  reason !== undefined && isReason(reason) ? reason : OUTCOME_REASONS[outcome ?? "error"];
