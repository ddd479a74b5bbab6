/** What handlers are given: ports and registries, never the Durable Object. Types only. */
import type { MethodName, ParamsOf, ResultOf } from "../../../protocol/gen/methods.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { Result } from "../ports/result.ts";
import type { SearchPort } from "../ports/search.ts";
import type { AgentFilesStore } from "../features/agents/files.ts";
import type { ArchiveReader } from "../storage/archive-reader.ts";
import type { WorkspaceStore } from "../features/workspace/store.ts";
import type { Alarms } from "../kernel/alarms.ts";
import type { Audit } from "../kernel/audit.ts";
import type { ChannelHub } from "../features/channels/hub.ts";
import type { ClientCalls } from "../features/nodes/client-calls.ts";
import type { NodeLinks } from "../features/nodes/links.ts";
import type { Config } from "../kernel/config/store.ts";
import type { Connection, Connections } from "../kernel/connections.ts";
import type { Nodes } from "../features/nodes/registry.ts";
import type { Sessions } from "../features/sessions/registry.ts";
import type { Tokens } from "../kernel/tokens.ts";
import type { RunWaits } from "../features/sessions/run-waits.ts";
import type { GatewaySkills } from "../features/skills/skills.ts";
import type { AskSession } from "../features/sessions/ask.ts";

/** Chance and digests. */
export interface Ids {
  /** `length` characters of `[a-z2-7]`, five random bits each. */
  name(length: number): string;
  sha256(text: string): Promise<string>;
}

export interface Services {
  readonly version: string;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Logger;
  readonly connections: Connections;
  readonly config: Config;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly nodes: Nodes;
  readonly nodeLinks: NodeLinks;
  readonly calls: ClientCalls;
  readonly audit: Audit;
  readonly channels: ChannelHub;
  readonly alarms: Alarms;
  /** Changes when anything does that a run gets from the gateway (RunContext). */
  readonly contextVersion: () => string;
  readonly ask: AskSession;
  readonly workspace: WorkspaceStore;
  readonly archives: ArchiveReader;
  readonly agentFiles: AgentFilesStore;
  /** An agent's search index. */
  readonly searchIndex: (agentId: string) => SearchPort;
  /** Masks every stored secret in a text that comes from elsewhere. */
  readonly scrub: (text: string) => string;
  /** Who waits for the end of a run. */
  readonly runWaits: RunWaits;
  readonly native: NativeTools;
  readonly skills: GatewaySkills;
  /** The gateway as sessions and native tools see it. */
  readonly port: GatewayPort;
  /** Closes every connection that uses a token; says how many. */
  readonly closeToken: (tokenId: string, reason: string) => number;
  /** Goes on after the answer; a failure is logged, not lost. */
  readonly background: (what: string, work: Promise<unknown>) => void;
}

/** Who asks, and under which id the answer goes back. */
export interface Caller {
  readonly connection: Connection;
  readonly requestId: string;
  readonly now: number;
}
/** The answer comes later, by `connections.answer`. */
export const LATER = Symbol("later");
export type Outcome<T> = Result<T> | typeof LATER;
export type Handler<M extends MethodName> = (
  services: Services,
  caller: Caller,
  params: ParamsOf<M>,
) => Outcome<ResultOf<M>> | Promise<Outcome<ResultOf<M>>>;
export type Handlers = { readonly [M in MethodName]?: Handler<M> };
