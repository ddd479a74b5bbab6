/** The ends of an attempt on machines: events to the node. What the node answers comes through the methods (methods.ts). */
import { asTransferKey } from "../../../../protocol/gen/types.ts";
import { writeChunkId } from "../../../../protocol/runtime/chunk.ts";
import type { Connection, Connections } from "../../kernel/connections.ts";
import type { DestinationEnd, SourceEnd } from "./ends.ts";
import { release } from "./release.ts";

export interface NodeEndPorts {
  readonly connections: Pick<Connections, "event" | "sendChunk">;
  readonly connection: Connection;
  /** Of the attempt on this connection; `transferId` on the wire. */
  readonly attemptId: number;
  readonly id: string;
  readonly path: string;
}

export function nodeSource({ connections, connection, attemptId, id, path }: NodeEndPorts): SourceEnd {
  return {
    ask: () => void connections.event(connection, "transfer.send", { transferId: attemptId, path, id: asTransferKey(id) }),
    start: (offset) => void connections.event(connection, "transfer.start", { transferId: attemptId, offset }),
    ack: (offset) => void connections.event(connection, "transfer.ack", { transferId: attemptId, offset }),
    giveUp: () => giveUp(connections, connection, attemptId),
    close(problem) {
      if (problem !== undefined) connections.event(connection, "transfer.end", { transferId: attemptId, error: problem });
    },
  };
}

export function nodeDestination(ports: NodeEndPorts & { readonly isForced: boolean }): DestinationEnd {
  const { connections, connection, attemptId, id, path, isForced } = ports;
  return {
    offer(size, sha256) {
      const known = sha256 === undefined ? {} : { sha256 };
      const force = isForced ? { force: true } : {};
      connections.event(connection, "transfer.receive", { transferId: attemptId, path, size, id: asTransferKey(id), ...known, ...force });
    },
    chunk(frame) {
      writeChunkId(frame, attemptId);
      connections.sendChunk(connection, frame);
      // The socket has its own reference to the bytes.
      release(frame);
    },
    finish: (sha256) => void connections.event(connection, "transfer.end", { transferId: attemptId, sha256 }),
    giveUp: () => giveUp(connections, connection, attemptId),
    close: (problem) =>
      problem === undefined ||
      connections.event(connection, "transfer.end", { transferId: attemptId, error: problem, id: asTransferKey(id), path }),
  };
}

/** A connection that is gone gets nothing. */
const giveUp = (connections: NodeEndPorts["connections"], connection: Connection, attemptId: number): void =>
  void connections.event(connection, "transfer.end", { transferId: attemptId });
