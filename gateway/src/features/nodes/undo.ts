/** Asks a node to undo calls of its file tools (rule UN6). A request is a call of its own kind (client-calls.ts), made for code of this object. */
import { asCallId } from "../../../../protocol/gen/types.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { NodeUndoReport, NodeUndoRequest } from "../../ports/nodes.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { ClientCalls } from "./client-calls.ts";

/** Copies of large files may take a while. */
const TIMEOUT_MS = 120_000;
const ROUND_TRIP_MS = 5_000;

export interface NodeUndoPorts {
  readonly calls: ClientCalls;
  /** Resolves when the machine can take calls. */
  readonly arrival: (nodeId: string) => Promise<void>;
}

export class NodeUndos {
  readonly #ports: NodeUndoPorts;

  constructor(ports: NodeUndoPorts) {
    this.#ports = ports;
  }

  async ask(nodeId: string, request: NodeUndoRequest): Promise<Result<NodeUndoReport>> {
    await this.#ports.arrival(nodeId);
    const answer = await this.#ports.calls.ask(
      {
        kind: "undo",
        origin: { kind: "gateway" },
        waiter: { kind: "inside" },
        ownName: undefined,
        name: "undo.request",
        target: { kind: "node", nodeId },
        ledger: false,
        idempotent: true,
        timeoutMs: TIMEOUT_MS,
        deadlineMs: TIMEOUT_MS + ROUND_TRIP_MS,
      },
      (callId) => ({ event: "undo.request", payload: { callId: asCallId(callId), ...request } }),
    );
    // Only `undo.report` below answers such a call with a value.
    return answer as Result<NodeUndoReport>;
  }
}

export const undoMethods = (calls: ClientCalls): Handlers => ({
  "undo.report": ({ connection: { principal } }, { callId, files = [], next, error }) => {
    const known = calls.report(principal.id, callId, "undo", () =>
      error === undefined
        ? succeed({ files, ...(next === undefined ? {} : { next }) } satisfies NodeUndoReport)
        : fail("tool.failed", error),
    );
    return succeed(known ? { ok: true } : { ok: true, dropped: true });
  },
});
