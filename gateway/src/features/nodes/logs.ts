/** The log of a node: `logs.get` by clients, `gsv__LogsGet` by sessions. A read is a tool call of its own kind (client-calls.ts). */
import { asCallId } from "../../../../protocol/gen/types.ts";
import type { Connections } from "../../kernel/connections.ts";
import { type Handlers, LATER } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { Origin } from "../../ports/origin.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { logsAnswer } from "./call-answers.ts";
import type { Waiter } from "./call-store.ts";
import type { AskedCall, ClientCalls } from "./client-calls.ts";
import type { CallEvent } from "./dispatch.ts";
import type { Nodes } from "./store.ts";

const TIMEOUT_MS = 15_000;
/** Added for the round trip to the machine. */
const ROUND_TRIP_MS = 5_000;

export interface LogPorts {
  readonly calls: ClientCalls;
  readonly connections: Connections;
  readonly nodes: Nodes;
  /** Resolves when the machine can take calls. */
  readonly arrival: (nodeId: string) => Promise<void>;
}

export class NodeLogs {
  readonly calls: ClientCalls;
  readonly arrival: LogPorts["arrival"];
  readonly #connections: Connections;
  readonly #nodes: Nodes;

  constructor({ calls, connections, nodes, arrival }: LogPorts) {
    this.calls = calls;
    this.arrival = arrival;
    this.#connections = connections;
    this.#nodes = nodes;
  }

  /** The machine whose log is asked for: the named one, else the only one that is connected. */
  node(nodeId: string | undefined): Result<string> {
    if (nodeId !== undefined) {
      if (this.#connections.isOnline(nodeId)) return succeed(nodeId);
      return this.#nodes.exists(nodeId) ? fail("node.offline", `The machine ${nodeId} is not connected.`) : fail("node.unknown");
    }
    const [only, ...others] = this.#connections.nodes();
    if (only === undefined) return fail("node.offline", "No machine is connected.", "Start a node: `gsv node`.");
    return others.length === 0
      ? succeed(only.principal.id)
      : fail("node.unknown", "Several machines are connected.", "Name one of them with `nodeId`.");
  }

  /** For a session's native tool. */
  async read(nodeId: string | undefined, lines: number | undefined): Promise<Result<unknown>> {
    const node = this.node(nodeId);
    if (!node.ok) return node;
    await this.arrival(node.value);
    return this.calls.ask(askedLog(node.value, { kind: "gateway" }, { kind: "inside" }), logEvent(lines));
  }
}
const askedLog = (nodeId: string, origin: Origin, waiter: Waiter): AskedCall => ({
  kind: "logs",
  origin,
  waiter,
  ownName: undefined,
  name: "logs.get",
  target: { kind: "node", nodeId },
  ledger: false,
  idempotent: true,
  timeoutMs: TIMEOUT_MS,
  deadlineMs: TIMEOUT_MS + ROUND_TRIP_MS,
});
const logEvent =
  (lines: number | undefined) =>
  (callId: string): CallEvent => ({
    event: "logs.get",
    payload: { callId: asCallId(callId), ...(lines === undefined ? {} : { lines }) },
  });

export const logMethods = (logs: NodeLogs, hide: (text: string) => string): Handlers => ({
  "logs.get": async ({ connection: { conn, principal }, requestId }, { nodeId, lines }) => {
    const node = logs.node(nodeId);
    if (!node.ok) return node;
    await logs.arrival(node.value);
    const origin: Origin = { kind: "client", clientId: principal.id, tokenId: principal.tokenId };
    const started = logs.calls.start(askedLog(node.value, origin, { kind: "client", conn, request: requestId }), logEvent(lines));
    return started.ok ? LATER : started;
  },
  "logs.result": ({ connection: { principal } }, params) => {
    const known = logs.calls.report(principal.id, params.callId, "logs", () => {
      const { lines = [], error, ...rest } = params;
      return logsAnswer(principal.id, { ...rest, lines: lines.map(hide), ...(error === undefined ? {} : { error: hide(error) }) });
    });
    return succeed(known ? { ok: true } : { ok: true, dropped: true });
  },
});
