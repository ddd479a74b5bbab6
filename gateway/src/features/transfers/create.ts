/** Begins a transfer that a client or an agent asks for, when it may begin (rules TF7, TF10). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { Connection, Connections } from "../../kernel/connections.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import { type Failure, type Result, succeed } from "../../ports/result.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { builtinPaths } from "../../storage/skills/builtin/index.ts";
import { readableFile } from "../../storage/workspace/readable.ts";
import { receiveProblem } from "../../storage/workspace/protection.ts";
import { currentFile, isFolder, replaceProblem, treeProblem } from "../../storage/workspace/received.ts";
import { clientProblem, type Endpoint, isOfClient, parseEnds } from "./endpoint.ts";
import type { NewRequests } from "./new-requests.ts";
import type { TransferRunner } from "./runner.ts";
import type { NewTransfer, TransferRow, TransferStore } from "./store.ts";

export interface CreatePorts extends Pick<KernelPorts, "arm" | "audit" | "config" | "now">, NodesPort, Pick<StopPort, "stopped"> {
  readonly store: TransferStore;
  readonly runner: TransferRunner;
  readonly requests: NewRequests;
  readonly bucket: Bucket;
  readonly connections: Pick<Connections, "isOnline">;
}
/** For the audit. */
export interface Asker {
  readonly actor: string;
  readonly origin: string;
}

const NOT_YOURS = fail(
  "auth.forbidden",
  "Another program has begun this transfer, with another token.",
  "Use the token that began it, or wait for its end: without progress it ends after five minutes.",
);

/** Includes transfers whose program is gone; they end after five minutes. */
const MOST_OPEN = 4 * LIMITS.transfers;

/** A node that can copy files names it. */
const CAPABILITY = "filesystem.transfer";

/** The same request again is the same transfer. `client`: the program that asks, which may be one of the ends. */
export async function createTransfer(
  ports: CreatePorts,
  asked: NewTransfer,
  asker: Asker,
  client?: Connection,
): Promise<Result<TransferRow>> {
  const { store, runner, requests, audit } = ports;
  const record = (refused: string | undefined): void =>
    audit.append({
      ...asker,
      action: "transfer.create",
      decision: refused === undefined ? "allowed" : "failed",
      target: asked.destination,
      detail: `from ${asked.source}${refused === undefined ? "" : `: ${refused}`}`,
    });
  const mismatch = (row: TransferRow): Failure | undefined => {
    const refused = problemOf(row, asked, client);
    if (refused !== undefined) record(refused.error.reason);
    return refused;
  };
  const known = store.get(asked.id);
  if (known !== undefined) {
    const refused = mismatch(known);
    if (refused !== undefined) return refused;
    if (client !== undefined) runner.attach(known, client);
    return succeed(store.get(asked.id) ?? known);
  }
  const { checked: admitted, isCancelled } = await requests.check(asked.id, () => admit(ports, asked));
  // A program asks again until there is a slot: that is no event.
  if (admitted.ok) record(undefined);
  else if (admitted.error.reason !== "transfer.busy") record(admitted.error.reason);
  if (!admitted.ok) return admitted;
  // Between the check and here another request with this id may have been stored.
  if (store.get(asked.id) === undefined) store.add(asked, ports.now());
  ports.arm();
  const row = store.get(asked.id);
  if (row === undefined) return fail("transfer.unknown");
  const refused = mismatch(row);
  if (refused !== undefined) return refused;
  if (isCancelled) runner.cancel(row);
  // Another request with this id may have begun it, and it may have ended since.
  else if (row.endedAt === undefined) {
    if (client !== undefined) runner.attach(row, client);
    runner.begin(row);
  }
  return succeed(store.get(asked.id) ?? row);
}

const STOPPED = fail("gateway.stopped", "GSV is stopped, so nothing was copied.");

/** Whether the transfer may begin. */
async function admit(ports: CreatePorts, asked: NewTransfer): Promise<Result<void>> {
  const { config, store, runner, stopped } = ports;
  if (stopped() !== undefined) return STOPPED;
  if (!config.hasAgent(asked.agentId)) return unknownAgent(config, asked.agentId);
  const ends = parseEnds(asked.source, asked.destination);
  if (!ends.ok) return ends;
  const { from, to } = ends.value;
  const problem =
    (asked.sessionKey === undefined ? undefined : clientProblem(ends.value)) ??
    machineProblem(ports, from) ??
    machineProblem(ports, to) ??
    (await destinationProblem(ports, asked, to)) ??
    (await sourceProblem(ports, asked, from));
  if (problem !== undefined) return problem;
  const open = store.open();
  const running = open.filter((row) => !runner.isLeft(row));
  if (running.length >= LIMITS.transfers)
    return fail("transfer.busy", `${LIMITS.transfers} transfers are running already.`, "Wait until one has ended, then try again.");
  if (open.length >= MOST_OPEN)
    return fail(
      "transfer.busy",
      `${MOST_OPEN} transfers are open already; some wait for their programs.`,
      "Run their commands again, or wait: without progress they end after five minutes.",
    );
  // The bucket was asked in between.
  return stopped() === undefined ? succeed(undefined) : STOPPED;
}

/** Why the machine of an end can't take part. */
function machineProblem(ports: CreatePorts, endpoint: Endpoint): Failure | undefined {
  return endpoint.kind === "node" ? nodeProblem(ports, endpoint.nodeId) : undefined;
}
function nodeProblem({ nodes, connections }: CreatePorts, nodeId: string): Failure | undefined {
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

/** Why the workspace can't take the file. */
async function destinationProblem({ bucket }: CreatePorts, { agentId, isForced }: NewTransfer, to: Endpoint): Promise<Failure | undefined> {
  if (to.kind !== "workspace") return undefined;
  const refused = receiveProblem(agentId, to.path);
  if (refused !== undefined) return refused;
  const current = await currentFile(bucket, agentId, to.path);
  if (!current.ok) return current;
  return replaceProblem(to.path, current.value, isForced) ?? (await treeProblem(bucket, agentId, to.path));
}

/** Why the workspace can't give the file. */
async function sourceProblem({ bucket }: CreatePorts, { agentId }: NewTransfer, from: Endpoint): Promise<Failure | undefined> {
  if (from.kind !== "workspace") return undefined;
  const { path } = from;
  const current = await readableFile(bucket, agentId, path);
  if (!current.ok) return current;
  if (current.value !== undefined) return undefined;
  const folder = await isFolder(bucket, agentId, path);
  if (!folder.ok) return folder;
  if (folder.value || builtinPaths(path).length > 0)
    return fail("transfer.bad_endpoint", `\`${path}\` is a folder of the workspace.`, "Add `-r` to copy it with everything in it.");
  return fail("path.not_found", `There is no file \`${path}\` in the workspace.`, "List its files: `gsv workspace ls`.");
}

/**
 * A program goes on with its own transfer over each of its connections; another one, which knows the id, would get the file or write it in its
 * endpoint (rule TF13). Transfers without such an end have nothing to take over.
 */
const mayJoin = (row: TransferRow, { principal }: Connection): boolean =>
  row.endedAt !== undefined || row.tokenId === principal.tokenId || ![row.source, row.destination].some(isOfClient);

/** Why a request gets no part in the transfer that has its id. */
function problemOf(row: TransferRow, asked: NewTransfer, client: Connection | undefined): Failure | undefined {
  if (!isSame(row, asked))
    return fail("protocol.invalid_params", "Another transfer has this id already.", "Send the request with a new id.");
  return client === undefined || mayJoin(row, client) ? undefined : NOT_YOURS;
}
const isSame = (row: TransferRow, asked: NewTransfer): boolean =>
  row.agentId === asked.agentId && row.source === asked.source && row.destination === asked.destination && row.isForced === asked.isForced;
