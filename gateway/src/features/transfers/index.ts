/**
 * Transfers: copies of files between machines and the agent's workspace (gateway/spec/transfer.md). What runs them is a part of its own,
 * which is loaded with the first one: before that no attempt is in memory, so a chunk belongs to none.
 */
import type { Connections } from "../../kernel/connections.ts";
import type { FeatureDefinition, Handler } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { SessionsPort, StopListenerPort, StopPort } from "../../ports/sessions.ts";
import type { TransferPort } from "../../ports/transfers.ts";
import type { Bucket } from "../../storage/bucket.ts";
import type { AgentTransfers } from "./agent-transfers.ts";
import type { TransferMethods } from "./methods.ts";
import { TRANSFER_MIGRATIONS } from "./migrations.ts";
import { OpenTransfers } from "./open-store.ts";
import type { TransferRunner } from "./runner.ts";
import { TRANSFER_TOOLS } from "./tools.ts";

export interface TransferPorts
  extends NodesPort,
    SessionsPort,
    StopPort,
    StopListenerPort,
    Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "contextVersion" | "database" | "ids" | "log" | "now"> {
  readonly connections: Connections;
  readonly bucket: Bucket;
  readonly after: (ms: number, work: () => void) => void;
  readonly addGcPressure: (bytes: number) => void;
}
interface Part {
  readonly runner: TransferRunner;
  readonly methods: TransferMethods;
  readonly agents: AgentTransfers;
}

/** Attempts do not survive in memory. The machines may still be connected after the object slept: their transfers begin again then. */
const RESUME_MS = 100;

export const transfersFeature: FeatureDefinition<TransferPorts, { readonly transfersRpc: TransferPort }> = {
  name: "transfers",
  migrations: TRANSFER_MIGRATIONS,
  tools: TRANSFER_TOOLS,
  create(ports) {
    const open = new OpenTransfers(ports.database);
    let part: Part | undefined;
    const load = once(() =>
      import("./transfers.lazy.ts").then(({ AgentTransfers, NewRequests, TransferRunner, TransferStore, transferMethods }) => {
        const store = new TransferStore(ports.database);
        const runner = new TransferRunner({ ...ports, store });
        const all = { ...ports, store, runner, requests: new NewRequests() };
        part = { runner, methods: transferMethods(all), agents: new AgentTransfers(all) };
        return part;
      }),
    );
    /** Without a wait when the part is there, so that messages keep their order with the chunks between them. */
    const use = <T>(work: (part: Part) => T): T | Promise<T> => (part === undefined ? load().then(work) : work(part));
    const later = (what: string, work: (part: Part) => void): void => ports.background(what, Promise.resolve(use(work)));
    const lazy =
      <M extends keyof TransferMethods>(name: M): Handler<M> =>
      (caller, params) =>
        use(({ methods }) => methods[name](caller, params)) as ReturnType<Handler<M>>;
    const expire = async (at: number): Promise<void> => {
      const { runner, agents } = await load();
      runner.expire(at);
      await agents.tellEnds(at);
    };
    ports.onStop(() => {
      const ofClients = open.ofClients();
      if (open.isAny()) later("transfers_stop", ({ runner }) => runner.stopAll());
      return ofClients;
    });
    if (open.isAny()) ports.after(RESUME_MS, () => later("transfers", ({ runner }) => runner.beginAll()));
    return {
      offers: { transfersRpc: { transfer: (ask) => Promise.resolve(use(({ agents }) => agents.transfer(ask))) } },
      methods: {
        "transfer.create": lazy("transfer.create"),
        "transfer.get": lazy("transfer.get"),
        "transfer.cancel": lazy("transfer.cancel"),
        "transfer.meta": lazy("transfer.meta"),
        "transfer.accept": lazy("transfer.accept"),
        "transfer.ack": lazy("transfer.ack"),
        "transfer.alive": lazy("transfer.alive"),
        "transfer.complete": lazy("transfer.complete"),
        "transfer.done": lazy("transfer.done"),
      },
      alarms: [{ name: "transfers", next: () => open.nextDue(), run: (at) => expire(at) }],
      chunk: (connection, message) => part?.runner.chunk(connection, message) ?? false,
      connected(connection, _params, replaced) {
        if (replaced !== undefined) part?.runner.gone(replaced.conn);
        const { mode, id } = connection.principal;
        if (mode === "node" && open.concerns(id)) later("transfers", ({ runner }) => runner.connected(connection));
      },
      sessionGone: ({ key }) => open.forgetSession(key),
      gone: (connection) => part?.runner.gone(connection.conn),
    };
  },
};
