/** Removes what a transfer that has ended left: its parts in the bucket, and the unfinished file on the machine where it went. */
import type { Connection } from "../../kernel/connections.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { removeParts } from "../../storage/workspace/received.ts";
import { isInWorkspace, parseEndpoint } from "./endpoint.ts";
import type { DestinationEnd } from "./ends.ts";
import { type NodeEndPorts, nodeDestination } from "./node-ends.ts";
import type { TransferRow, TransferStore } from "./store.ts";

export interface LeftoverPorts extends Pick<KernelPorts, "arm" | "background">, Pick<NodeEndPorts, "connections"> {
  readonly bucket: Bucket;
  readonly store: Pick<TransferStore, "hasNoParts" | "leftovers" | "partsDue" | "removed">;
}

export class Leftovers {
  readonly #ports: LeftoverPorts;

  constructor(ports: LeftoverPorts) {
    this.#ports = ports;
  }

  /** The parts in the bucket, when `destination` writes no more of them. */
  removeParts(row: TransferRow, destination: DestinationEnd | undefined): void {
    if (!isInWorkspace(row.destination)) return;
    const idle = destination?.idle?.() ?? Promise.resolve();
    this.#ports.background(
      "transfer_parts",
      idle.then(() => removeParts(this.#ports.bucket, row.id)),
    );
  }
  /** The parts that are still there: a removal was interrupted, or a write of an earlier attempt ended after it. */
  sweep(at: number): void {
    for (const id of this.#ports.store.partsDue(at)) this.#ports.background("transfer_parts", this.#sweep(id));
  }
  async #sweep(id: string): Promise<void> {
    if (await removeParts(this.#ports.bucket, id)) this.#ports.store.hasNoParts(id);
    this.#ports.arm();
  }
  /** The unfinished files on a machine that has just connected. */
  removeOn(connection: Connection, nodeId: string): void {
    for (const row of this.#ports.store.leftovers(nodeId)) this.removeFile(connection, row);
  }
  /** The unfinished file of one transfer. */
  removeFile(connection: Connection, row: TransferRow): void {
    const endpoint = parseEndpoint(row.destination);
    if (!endpoint.ok || endpoint.value.kind !== "node") return;
    const end = nodeDestination({ ...this.#ports, connection, attemptId: 0, id: row.id, path: endpoint.value.path, isForced: false });
    if (end.close(row.problem ?? "The transfer has ended.")) this.#ports.store.removed(row.id);
  }
}
