/**
 * Transfers of files that are too large for a text frame: text frames announce them, binary frames carry them. A transfer has an id, and each of
 * its attempts has a `transferId` on each node's connection: the number in front of its chunks. Rules: gateway/spec/transfer.md.
 */
import { enumOf, event, id, method, struct, t } from "./dsl.ts";
import { AgentId } from "./ids.ts";

const transferId = t.int(0, 4294967295);
const offset = t.int();
const sha256 = t.string(64, { pattern: "^[0-9a-f]{64}$" });
const reason = t.optional(t.string(64));
const ok = { ok: t.literal(true) };
/** Nodes, and programs that are ends of their own transfers. */
const end = { callers: ["client", "node"], scope: "operate", audit: "none", errors: ["transfer.unknown"] } as const;
const TransferKey = id("TransferKey", "The id of a transfer: 128 random bits, made by the sender of `transfer.create`.", {
  maxLength: 32,
  pattern: "^[0-9a-f]{32}$",
});

// ---------------------------------------------------------------- for clients
const endpoint = t.string(4200, { minLength: 3 });
const TransferState = enumOf(
  "TransferState",
  "How far a transfer is. `waiting`: no attempt runs, because an end is not connected or the last one has failed; another follows. `storing`: the destination checks and stores the file.",
  ["waiting", "running", "storing", "done", "failed"],
);
const Transfer = struct("Transfer", "The copy of one file between the gateway's workspace and machines.", {
  id: TransferKey,
  source: endpoint,
  destination: endpoint,
  state: TransferState,
  /** Absent until the source was opened. */
  sizeBytes: t.optional(t.int()),
  /** What the destination has stored. */
  doneBytes: t.int(),
  /** Verified at the destination. Only of a transfer that is done. */
  sha256: t.optional(sha256),
  /** Why it has failed. */
  reason,
  problem: t.optional(t.string(1000)),
  createdAt: t.time(),
  endedAt: t.optional(t.time()),
});
const client = { callers: ["client"], scope: "operate" } as const;
method("transfer.create", {
  doc: "Starts to copy a file. Endpoints are `NODE:PATH`, `gsv:PATH` (the agent's workspace) and `@:PATH`: this connection takes part as a node does. Returns at once: `transfer.get` tells how far it is. The same `id` again is the same transfer; a program that is an end sends it on each new connection.",
  params: { id: TransferKey, source: endpoint, destination: endpoint, agentId: t.optional(AgentId), force: t.optional(t.bool()) },
  result: { transfer: Transfer },
  ...client,
  audit: "own",
  errors: [
    ...["transfer.bad_endpoint", "transfer.busy", "transfer.unsupported", "file.exists", "file.too_large", "node.offline", "node.unknown"],
    ...["agent.unknown", "gateway.stopped", "path.invalid", "path.not_found", "path.not_a_file", "workspace.protected", "storage.failed"],
  ],
  idempotent: true,
});
method("transfer.get", {
  doc: "Returns how far a transfer is. Ended transfers are kept for a day.",
  params: { id: TransferKey },
  result: { transfer: Transfer },
  ...client,
  audit: "none",
  errors: ["transfer.unknown"],
  idempotent: true,
});
method("transfer.cancel", {
  doc: "Ends a transfer. What the destination has of the file is removed. One that has ended, or whose file is being stored, stays as it is.",
  params: { id: TransferKey },
  result: { transfer: Transfer },
  ...client,
  audit: { target: "id" },
  errors: ["transfer.unknown"],
  idempotent: true,
});

// ---------------------------------------------------------------- between the gateway and the ends
method("transfer.meta", {
  doc: "The source announces a file, or says why it can't be read.",
  params: {
    transferId,
    size: t.int(),
    mime: t.optional(t.string(128)),
    error: t.optional(t.text()),
    reason,
    /** Changes whenever the file changes. */
    version: t.optional(t.string(128)),
  },
  result: ok,
  ...end,
});
method("transfer.accept", {
  doc: "The destination accepts the file, or refuses it with `error`.",
  params: {
    transferId,
    error: t.optional(t.text()),
    reason,
    /** What it has of the file already, from an attempt that was interrupted. */
    offset: t.optional(offset),
  },
  result: ok,
  ...end,
});
method("transfer.ack", {
  doc: "The destination has written the file up to this offset. At most `transferWindowBytes` are on the way beyond it.",
  params: { transferId, offset },
  result: ok,
  ...end,
  idempotent: true,
});
method("transfer.complete", {
  doc: "The source has sent the whole file, or says why it can't.",
  params: { transferId, sha256: t.optional(sha256), error: t.optional(t.text()), reason },
  result: ok,
  ...end,
});
method("transfer.done", {
  doc: "The destination has stored the file and its checksum is right, or says why not.",
  params: { transferId, bytesWritten: t.int(), sha256: t.optional(sha256), error: t.optional(t.text()), reason },
  result: ok,
  ...end,
});
method("transfer.alive", {
  doc: "An end works on its disk and has nothing else to say. Sent every 5 seconds: an attempt that is silent for two minutes is given up, and the runtime may evict a gateway that hears nothing for ten seconds. It counts for `transferAliveMs` after the last byte; then the transfer ends.",
  params: { transferId },
  result: ok,
  ...end,
  idempotent: true,
});
event("transfer.send", {
  doc: "Asks a node to announce a file.",
  /** `id`: an earlier attempt of the same transfer is dropped. */
  payload: { transferId, path: t.string(4096), id: t.optional(TransferKey) },
  to: ["client", "node"],
});
event("transfer.start", {
  doc: "Asks the source to send, from an offset.",
  payload: { transferId, offset: t.optional(offset) },
  to: ["client", "node"],
});
event("transfer.ack", { doc: "The destination has the file up to this offset.", payload: { transferId, offset }, to: ["client", "node"] });
event("transfer.receive", {
  doc: "Asks a node to receive a file.",
  payload: {
    transferId,
    path: t.string(4096),
    size: t.int(),
    mime: t.optional(t.string(128)),
    /** Names the temporary file, so that another attempt finds it. */
    id: t.optional(TransferKey),
    /** When it is known already. A file of this content is not written again. */
    sha256: t.optional(sha256),
    /** Replaces a file that exists. */
    force: t.optional(t.bool()),
  },
  to: ["client", "node"],
});
event("transfer.end", {
  doc: "With `sha256` the whole file was relayed: the destination checks it. With `error` the transfer has ended: both ends drop it, and the temporary file is removed. With neither, only this attempt has ended: the end lets go of its file and keeps what it has, from which the next attempt goes on, perhaps over another connection.",
  payload: {
    transferId,
    sha256: t.optional(sha256),
    error: t.optional(t.text()),
    /** Name the temporary file for a node that was not connected when the transfer ended. */
    id: t.optional(TransferKey),
    path: t.optional(t.string(4096)),
  },
  to: ["client", "node"],
});
