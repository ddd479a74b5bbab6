/** The ends of an attempt on machines: events to the node. What the node answers comes through the methods (methods.ts). */
import { asTransferKey } from "../../../../protocol/gen/types.ts";
import type { Connection, Connections } from "../../kernel/connections.ts";
import type { DestinationEnd, SourceEnd } from "./ends.ts";
import { release } from "./release.ts";

export interface NodeEndPorts {
  readonly connections: Pick<Connections, "event" | "sendChunk">;
  readonly connection: Connection;
  /** The number of the attempt on this connection. */
  readonly lane: number;
  readonly id: string;
  readonly path: string;
}

export function nodeSource({ connections, connection, lane, id, path }: NodeEndPorts): SourceEnd {
  return {
    ask: () => void connections.event(connection, "transfer.send", { transferId: lane, path, id: asTransferKey(id) }),
    start: (offset) => void connections.event(connection, "transfer.start", { transferId: lane, offset }),
    ack: (offset) => void connections.event(connection, "transfer.ack", { transferId: lane, offset }),
    close(problem) {
      if (problem !== undefined) connections.event(connection, "transfer.end", { transferId: lane, error: problem });
    },
  };
}

export function nodeDestination(ports: NodeEndPorts & { readonly isForced: boolean }): DestinationEnd {
  const { connections, connection, lane, id, path, isForced } = ports;
  return {
    offer(size, sha256) {
      const known = sha256 === undefined ? {} : { sha256 };
      const force = isForced ? { force: true } : {};
      connections.event(connection, "transfer.receive", { transferId: lane, path, size, id: asTransferKey(id), ...known, ...force });
    },
    chunk(frame) {
      new DataView(frame.buffer, frame.byteOffset).setUint32(0, lane, true);
      connections.sendChunk(connection, frame);
      // The socket has its own reference to the bytes.
      release(frame);
    },
    finish: (sha256) => void connections.event(connection, "transfer.end", { transferId: lane, sha256 }),
    close: (problem) =>
      problem === undefined ||
      connections.event(connection, "transfer.end", { transferId: lane, error: problem, id: asTransferKey(id), path }),
  };
}
