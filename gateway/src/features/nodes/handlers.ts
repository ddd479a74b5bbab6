/** The ports inside the nodes feature, and its handlers bound to them. */
import type { MethodName, ParamsOf } from "../../../../protocol/gen/methods.ts";
import type { Caller, Handler, Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import type { NativeTools } from "../../ports/native-tools.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { ClientCalls } from "./client-calls.ts";
import type { NodeLinks } from "./links.ts";
import type { Nodes } from "./store.ts";

export interface NodeServices extends SessionsPort, Pick<KernelPorts, "config" | "connections" | "ids"> {
  readonly nodes: Nodes;
  readonly nodeLinks: NodeLinks;
  readonly calls: ClientCalls;
  readonly native: NativeTools;
  /** The gateway as native tools see it. */
  readonly port: GatewayPort;
}
export type NodeHandler<M extends MethodName> = (services: NodeServices, caller: Caller, params: ParamsOf<M>) => ReturnType<Handler<M>>;
export type NodeHandlers = { readonly [M in MethodName]?: NodeHandler<M> };

export function bindHandlers(services: NodeServices, handlers: NodeHandlers): Handlers {
  const entries = Object.entries(handlers) as [MethodName, NodeHandler<MethodName>][];
  return Object.fromEntries(entries.map(([name, handle]) => [name, (caller: Caller, params: never) => handle(services, caller, params)]));
}
