/** The two ends of an attempt: files of the workspace, and those of machines and programs on their connections. */
import type { Connection, Connections } from "../../kernel/connections.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { bucketDestination } from "./bucket-destination.ts";
import { bucketSource } from "./bucket-source.ts";
import type { AttemptEvent } from "./attempt.ts";
import type { Endpoint } from "./endpoint.ts";
import type { DestinationEnd, Frame, SourceEnd } from "./ends.ts";
import { nodeDestination, nodeSource } from "./node-ends.ts";
import type { TransferRow } from "./store.ts";
import { taintFrom, taintOf } from "./taint.ts";

export interface EndPorts extends Pick<KernelPorts, "background">, NodesPort {
  readonly bucket: Bucket;
  readonly addGcPressure: (bytes: number) => void;
  readonly connections: Pick<Connections, "event" | "sendChunk">;
}
/** Where an end is connected, and the id of the attempt there. */
export interface Connected {
  readonly connection: Connection;
  readonly attemptId: number;
}
/** What the ends say to their attempt. */
export interface AttemptReports {
  readonly tell: (event: AttemptEvent) => void;
  readonly alive: () => void;
  readonly chunk: (frame: Frame) => void;
}

/** `from`, `to`: undefined for an end in the workspace, and for no other. */
export function makeEnds(
  { bucket, background, connections, nodes, addGcPressure }: EndPorts,
  { id, agentId, facts, isForced, by, doneBytes, taint: rowTaint }: TransferRow,
  { source, destination }: Record<"source" | "destination", Endpoint>,
  { from, to }: Record<"from" | "to", Connected | undefined>,
  { tell, alive, chunk }: AttemptReports,
): { readonly source: SourceEnd; readonly destination: DestinationEnd } {
  const shared = { bucket, background, tell, alive };
  const onNode = (endpoint: Endpoint, at: Connected | undefined) =>
    endpoint.kind !== "workspace" && at !== undefined ? { connections, ...at, id, path: endpoint.path } : undefined;
  const [nodeFrom, nodeTo] = [onNode(source, from), onNode(destination, to)];
  const taint = taintOf(rowTaint, taintFrom(source, nodes.list()));
  return {
    source:
      source.kind === "workspace" ? bucketSource({ ...shared, agentId, path: source.path, facts, chunk }) : nodeSource(nodeFrom ?? never()),
    destination:
      destination.kind === "workspace"
        ? bucketDestination({
            ...shared,
            file: { id, agentId, path: destination.path, replaces: isForced, by, ...(taint === undefined ? {} : { taint }) },
            storedBytes: doneBytes,
            addGcPressure,
          })
        : nodeDestination({ ...(nodeTo ?? never()), isForced }),
  };
}

function never(): never {
  throw new Error("an end of a transfer has no connection");
}
