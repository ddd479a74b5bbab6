/** `transfer.*`: what clients ask for, and what machines say about their ends. */
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asTransferKey, type Transfer } from "../../../../protocol/gen/types.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { Connections } from "../../kernel/connections.ts";
import type { Caller, Handlers } from "../../kernel/feature.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import { type Failure, type Result, succeed } from "../../ports/result.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { presentFile, receiveProblem, replaceProblem } from "../../storage/workspace/received.ts";
import type { Happening } from "./machine.ts";
import { pairProblem, parsePlace, type Place } from "./place.ts";
import type { TransferRunner } from "./runner.ts";
import type { TransferRow, TransferStore } from "./store.ts";

export interface MethodPorts extends Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "log" | "now">, NodesPort {
  readonly store: TransferStore;
  readonly runner: TransferRunner;
  readonly bucket: Bucket;
  readonly connections: Pick<Connections, "isOnline" | "strayed">;
}

/** What a node must say that it can do. */
const CAPABILITY = "filesystem.transfer";

export function transferMethods(ports: MethodPorts): Handlers {
  const { store, runner } = ports;
  const shown = (id: string): Result<{ transfer: Transfer }> => {
    const row = store.get(id);
    return row === undefined
      ? fail("transfer.unknown", "There is no such transfer. Ended ones are listed for a day.")
      : succeed({ transfer: show(row) });
  };
  /** A message about an attempt. One that is not bound to this connection changes nothing, and is counted. */
  const about = (caller: Caller, side: "source" | "destination", lane: number, happening: Exclude<Happening, { kind: "chunk" }>) => {
    if (runner.said(caller.connection, lane, side, happening)) return succeed({ ok: true } as const);
    ports.connections.strayed(caller.connection, ports.log);
    return fail("transfer.unknown", "This connection has no such transfer.");
  };

  return {
    "transfer.create": async (caller, { id, source, destination, agentId, force }) => {
      const asked = {
        id,
        agentId: agentId ?? ports.config.defaultAgentId(),
        source,
        destination,
        isForced: force === true,
        by: `client:${caller.connection.principal.id}`,
      };
      const known = store.get(id);
      if (known !== undefined)
        return isSame(known, asked) ? shown(id) : fail("protocol.invalid_params", "Another transfer has this id already.");
      const admitted = await admit(ports, asked);
      ports.background(
        "audit",
        ports.audit.append({
          actor: actorOf(caller.connection.principal),
          origin: caller.connection.principal.mode,
          action: "transfer.create",
          decision: admitted.ok ? "allowed" : "failed",
          target: destination,
          detail: admitted.ok ? `from ${source}` : `from ${source}: ${admitted.error.reason}`,
        }),
      );
      if (!admitted.ok) return admitted;
      // The same request may have come twice, and a bucket was asked in between.
      if (store.get(id) === undefined) store.add(asked, ports.now());
      ports.arm();
      const row = store.get(id);
      if (row !== undefined) runner.begin(row);
      return shown(id);
    },
    "transfer.get": (_caller, { id }) => shown(id),
    "transfer.cancel": (_caller, { id }) => {
      const row = store.get(id);
      if (row !== undefined) runner.cancel(row);
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

/** Whether the transfer may begin. */
async function admit(
  { config, nodes, connections, bucket, store }: MethodPorts,
  { agentId, source, destination, isForced }: { agentId: string; source: string; destination: string; isForced: boolean },
): Promise<Result<void>> {
  if (!config.hasAgent(agentId)) return unknownAgent(config, agentId);
  const [from, to] = [parsePlace(source), parsePlace(destination)];
  if (!from.ok) return from;
  if (!to.ok) return to;
  const pair = pairProblem(from.value, to.value);
  if (pair !== undefined) return fail("transfer.bad_endpoint", pair, "`gsv cp --help` shows what can be copied.");
  for (const place of [from.value, to.value]) {
    const problem = place.kind === "node" ? nodeProblem(place) : undefined;
    if (problem !== undefined) return problem;
  }
  if (to.value.kind === "workspace") {
    const { path } = to.value;
    const refused = receiveProblem(agentId, path);
    if (refused !== undefined) return refused;
    const present = await presentFile(bucket, agentId, path);
    if (!present.ok) return present;
    const problem = replaceProblem(path, present.value, isForced);
    if (problem !== undefined) return problem;
  }
  if (from.value.kind === "workspace") {
    const present = await presentFile(bucket, agentId, from.value.path);
    if (!present.ok) return present;
    if (present.value === undefined)
      return fail("path.not_found", `There is no file \`${from.value.path}\` in the workspace.`, "List its files: `gsv workspace ls`.");
  }
  if (store.open().length >= LIMITS.transfers)
    return fail("transfer.busy", `${LIMITS.transfers} transfers are running already.`, "Wait until one has ended, then try again.");
  return succeed(undefined);

  function nodeProblem({ nodeId }: Extract<Place, { kind: "node" }>): Failure | undefined {
    const node = nodes.list().find((entry) => entry.nodeId === nodeId);
    if (node === undefined) return fail("node.unknown", `There is no machine \`${nodeId}\`.`, "List the machines: `gsv nodes list`.");
    if (!connections.isOnline(nodeId)) return fail("node.offline", `\`${nodeId}\` is not connected.`, "Start its node there: `gsv node`.");
    if (node.hostCapabilities.some((name) => name === CAPABILITY)) return undefined;
    return fail(
      "transfer.unsupported",
      `The node on \`${nodeId}\` is too old for transfers.`,
      "Update GSV there, then start the node again.",
    );
  }
}

/** A reason that the contract does not have is none. */
const failed = (error = "The machine gave no reason.", reason = ""): Happening & { kind: "failed" } => ({
  kind: "failed",
  reason: Object.hasOwn(ERRORS, reason) && reason !== "storage.failed" ? reason : "transfer.failed",
  message: error,
});

const isSame = (row: TransferRow, asked: Pick<TransferRow, "agentId" | "source" | "destination" | "isForced">): boolean =>
  row.agentId === asked.agentId && row.source === asked.source && row.destination === asked.destination && row.isForced === asked.isForced;

function show({ id, source, destination, state, facts, doneBytes, reason, problem, createdAt, endedAt }: TransferRow): Transfer {
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
