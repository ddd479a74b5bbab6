/** `transfer.*`: what clients ask for, and what machines say about their ends. */
import { asTransferKey, type Transfer } from "../../../../protocol/gen/types.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { Connections } from "../../kernel/connections.ts";
import type { Caller, Handler } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { type CreatePorts, createTransfer } from "./create.ts";
import type { AttemptEvent } from "./attempt.ts";
import { reasonOfEnd } from "./end-reason.ts";
import type { TransferRow } from "./store.ts";

export interface MethodPorts extends CreatePorts, Pick<KernelPorts, "log"> {
  readonly connections: Pick<Connections, "isOnline" | "strayed">;
}

type Name =
  | "transfer.create"
  | "transfer.get"
  | "transfer.cancel"
  | "transfer.meta"
  | "transfer.accept"
  | "transfer.ack"
  | "transfer.alive"
  | "transfer.complete"
  | "transfer.done";
export type TransferMethods = { readonly [M in Name]: Handler<M> };

export function transferMethods(ports: MethodPorts): TransferMethods {
  const { store, runner, requests } = ports;
  const shown = (id: string): Result<{ transfer: Transfer }> => {
    const row = store.get(id);
    return row === undefined
      ? fail("transfer.unknown", "There is no such transfer. Ended ones are listed for a day.")
      : succeed({ transfer: show(row, runner.doneBytes(row)) });
  };
  /** A message about an attempt. One that is not bound to this connection changes nothing, and is counted. */
  const about = (caller: Caller, side: "source" | "destination", attemptId: number, event: Exclude<AttemptEvent, { kind: "chunk" }>) =>
    answered(caller, runner.said(caller.connection, attemptId, side, event));
  const answered = ({ connection }: Caller, isBound: boolean) => {
    if (isBound) return succeed({ ok: true } as const);
    ports.connections.strayed(connection, ports.log);
    return fail("transfer.unknown", "This connection has no such transfer.");
  };

  return {
    "transfer.create": async ({ connection }, { id, source, destination, agentId, force }) => {
      const { principal } = connection;
      const created = await createTransfer(
        ports,
        {
          id,
          agentId: agentId ?? ports.config.defaultAgentId(),
          source,
          destination,
          isForced: force === true,
          by: actorOf(principal),
          tokenId: principal.tokenId,
        },
        { actor: actorOf(principal), origin: principal.mode },
        connection,
      );
      return created.ok ? shown(id) : created;
    },
    "transfer.get": (_caller, { id }) => shown(id),
    "transfer.cancel": (_caller, { id }) => {
      const row = store.get(id);
      if (row !== undefined) runner.cancel(row);
      else requests.cancel(id);
      return shown(id);
    },

    "transfer.meta": (caller, { transferId, size, version, error, reason }) =>
      about(
        caller,
        "source",
        transferId,
        error === undefined && version !== undefined ? { kind: "found", sizeBytes: size, version } : failed(error, reason),
      ),
    "transfer.accept": (caller, { transferId, offset, error, reason }) =>
      about(caller, "destination", transferId, error === undefined ? { kind: "accepted", offset: offset ?? 0 } : failed(error, reason)),
    "transfer.ack": (caller, { transferId, offset }) => about(caller, "destination", transferId, { kind: "acked", offset }),
    "transfer.alive": (caller, { transferId }) => answered(caller, runner.alive(caller.connection, transferId)),
    "transfer.complete": (caller, { transferId, sha256, error, reason }) =>
      about(
        caller,
        "source",
        transferId,
        error === undefined && sha256 !== undefined ? { kind: "completed", sha256 } : failed(error, reason),
      ),
    "transfer.done": (caller, { transferId, sha256, error, reason }) =>
      about(
        caller,
        "destination",
        transferId,
        error === undefined && sha256 !== undefined ? { kind: "stored", sha256 } : failed(error, reason),
      ),
  };
}

const failed = (error = "The machine gave no reason.", reason = ""): AttemptEvent & { kind: "failed" } => ({
  kind: "failed",
  reason: reasonOfEnd(reason),
  message: error,
});

function show({ id, source, destination, state, facts, reason, problem, createdAt, endedAt }: TransferRow, doneBytes: number): Transfer {
  return {
    id: asTransferKey(id),
    source,
    destination,
    state,
    doneBytes,
    createdAt,
    ...(facts.sizeBytes === undefined ? {} : { sizeBytes: facts.sizeBytes }),
    ...(state === "done" && facts.sha256 !== undefined ? { sha256: facts.sha256 } : {}),
    ...(reason === undefined ? {} : { reason }),
    ...(problem === undefined ? {} : { problem }),
    ...(endedAt === undefined ? {} : { endedAt }),
  };
}
