/** Transfers: copies of files between machines and the agent's workspace (gateway/spec/transfer.md). */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { transferMethods } from "./methods.ts";
import { TRANSFER_MIGRATIONS } from "./migrations.ts";
import { TransferRunner } from "./runner.ts";
import { TransferStore } from "./store.ts";

export interface TransferPorts
  extends NodesPort,
    Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "connections" | "database" | "ids" | "log" | "now"> {
  readonly bucket: Bucket;
  readonly after: (ms: number, work: () => void) => void;
}

/** Attempts do not survive in memory. The machines may still be connected after the object slept: their transfers begin again then. */
const RESUME_MS = 100;

export const transfersFeature: FeatureDefinition<TransferPorts, object> = {
  name: "transfers",
  migrations: TRANSFER_MIGRATIONS,
  create(ports) {
    const store = new TransferStore(ports.database);
    const runner = new TransferRunner({ ...ports, store });
    if (store.open().length > 0) ports.after(RESUME_MS, () => runner.beginAll());
    return {
      offers: {},
      methods: transferMethods({ ...ports, store, runner }),
      alarms: [{ name: "transfers", next: () => store.nextDue(), run: (at) => runner.expire(at) }],
      chunk: (connection, message) => runner.chunk(connection, message),
      connected(connection, _params, replaced) {
        if (replaced !== undefined) runner.gone(replaced.conn);
        if (connection.principal.mode === "node") runner.connected(connection);
      },
      gone: (connection) => runner.gone(connection.conn),
    };
  },
};
