/**
 * The interface of a feature, and the list type that composes features in order. Knows no feature: `app/features.ts` has the list.
 */
import type { MethodName, ParamsOf, ResultOf } from "../../../protocol/gen/methods.ts";
import type { ConnectParams } from "../../../protocol/gen/types.ts";
import type { Topic } from "../events/topics.ts";
import type { Migration } from "../platform/sql.ts";
import type { Failure, Problem, Result } from "../ports/result.ts";
import type { RunContext } from "../ports/run-context.ts";
import type { DeletedSession, NamedSession } from "../ports/sessions.ts";
import type { SpendState } from "../ports/spend.ts";
import type { Tool } from "../tools/tool.ts";
import type { Participant } from "./alarms.ts";
import type { Principal } from "./authorise.ts";
import type { Connection } from "./connections.ts";
import type { LinkEnd } from "./link-end.ts";

/** Who sent a request, and the id that its answer carries. */
export interface Caller {
  readonly connection: Connection;
  readonly requestId: string;
  /** Epoch ms. */
  readonly now: number;
}
/** The handler answers later, by `connections.answer`. */
export const LATER = Symbol("later");
export type Outcome<T> = Result<T> | typeof LATER;
/** A handler is a closure over the ports that its feature declares; it gets nothing else. */
export type Handler<M extends MethodName> = (caller: Caller, params: ParamsOf<M>) => Outcome<ResultOf<M>> | Promise<Outcome<ResultOf<M>>>;
export type Handlers = { readonly [M in MethodName]?: Handler<M> };

/** How a method treats a request whose frame is larger than `LIMITS.frameBytes`, or whose params are not valid. Others refuse it. */
export interface FrameRule<M extends MethodName> {
  /** Largest frame that is read whole. */
  readonly maxBytes: number;
  /** Params that stand for those of a larger frame, or of one that is nested too deeply, made of the texts in it; undefined: the frame is refused. */
  readonly instead: (peek: (path: readonly string[]) => string | undefined) => ParamsOf<M> | undefined;
  /** Params that stand for some that are not valid; undefined: the request is refused. `problem` is a sentence. */
  readonly insteadOfInvalid: (params: unknown, problem: string) => ParamsOf<M> | undefined;
}
export type FrameRules = { readonly [M in MethodName]?: FrameRule<M> };

/** The session whose run asks what it may use. */
export interface RunContextSession {
  /** As the session wrote it. */
  readonly sessionKey: string;
  /** Undefined: the key is invalid, and such a session gets nothing. */
  readonly named: NamedSession | undefined;
  readonly agentId: string;
}

/** One capability of a running gateway. All members except `offers` are optional. */
export interface Feature<Offer extends object = object> {
  /** Ports for the features that follow and for the RPC surface of the object. */
  readonly offers: Offer;
  readonly methods?: Handlers;
  /** Methods with larger frames than others, and with an answer to params that are not valid. */
  readonly frameRules?: FrameRules;
  /** Methods that are answered, but not listed in hello-ok. */
  readonly unlisted?: readonly MethodName[];
  /** Named deadlines over the one alarm. */
  readonly alarms?: readonly Participant[];
  /** Its part of what a run gets. */
  readonly runContext?: (session: RunContextSession) => Partial<RunContext>;
  /** Changes when its part of any run's context changes. */
  readonly contextVersion?: () => string;
  /** Why a method is refused now, for every caller. */
  readonly closed?: (method: MethodName) => Failure | undefined;
  /** The problem of a connect request; undefined when there is none. */
  readonly connectProblem?: (principal: Principal, params: ConnectParams) => Problem | undefined;
  /** A binary frame of a connection, with the number of its transfer in front. False: it belongs to no transfer of this feature. */
  readonly chunk?: (connection: Connection, message: ArrayBuffer) => boolean;
  /** After hello-ok was sent. `replaced` is the older connection of the same identity, which is closed already. */
  readonly connected?: (connection: Connection, params: ConnectParams, replaced: Connection | undefined) => void;
  /** A connection was lost or closed. */
  readonly gone?: (connection: Connection, end: LinkEnd) => void;
  /** A session is being deleted, and its object is not empty yet: takes what it used. May be called again after a crash. */
  readonly sessionSpent?: (session: DeletedSession, spent: SpendState) => void;
  /** In the transaction that frees the name of a deleted session: removes the feature's rows about it. */
  readonly sessionGone?: (session: DeletedSession) => void;
  /** After a restart of the runtime. */
  readonly restarted?: () => void | Promise<void>;
}

/**
 * A migration of the list that the whole gateway shared until features had tables of their own, or one feature's part of it. Parts of
 * one position carry the same name and run in the order of features.
 */
export interface HistoricalMigration extends Migration {
  /** From 1. Never changes. */
  readonly position: number;
}

/** A feature before it runs: its static parts, and the function that creates an instance. */
export interface FeatureDefinition<in Needs, out Offer extends object> {
  /** Also the owner of its own migrations. */
  readonly name: string;
  /** Its parts of the list of migrations that the whole gateway shared. Closed: new tables belong to `migrations`. */
  readonly history?: readonly HistoricalMigration[];
  /** Its own tables. Append only. */
  readonly migrations?: readonly Migration[];
  /** Native tools. They run in the session that calls them. */
  readonly tools?: readonly Tool[];
  /** Topics of domain events. */
  readonly topics?: readonly Topic[];
  readonly create: (ports: Needs) => Feature<Offer>;
}
/** The parts of a definition that do not depend on its ports. */
export type FeatureTables = Pick<FeatureDefinition<never, object>, "name" | "history" | "migrations" | "tools" | "topics">;

/**
 * Features in order. `Base` are the ports that exist before any feature; a feature may need those, and what earlier ones offer: the
 * compiler refuses a list in which something is missing.
 */
export class FeatureList<Base, Ports> {
  readonly definitions: readonly FeatureTables[];
  readonly #create: readonly ((ports: never) => Feature)[];

  private constructor(definitions: readonly FeatureTables[], create: readonly ((ports: never) => Feature)[]) {
    this.definitions = definitions;
    this.#create = create;
  }

  static over<Base extends object>(): FeatureList<Base, Base> {
    return new FeatureList<Base, Base>([], []);
  }

  add<Offer extends object>(definition: FeatureDefinition<Ports, Offer>): FeatureList<Base, Ports & Offer> {
    return new FeatureList<Base, Ports & Offer>(
      [...this.definitions, definition],
      [...this.#create, (ports: never) => definition.create(ports)],
    );
  }

  create(base: Base): { readonly features: readonly Feature[]; readonly ports: Ports } {
    // One object that grows: a copy for each feature would be a third of the gateway's start.
    const ports = { ...base } as Ports & object;
    const features = this.#create.map((create) => {
      const feature = create(ports as never);
      for (const [name, port] of Object.entries(feature.offers)) {
        // An earlier feature keeps the port that it was created with.
        if (Object.hasOwn(ports, name)) throw new Error(`two features offer the port ${name}`);
        Reflect.set(ports, name, port);
      }
      return feature;
    });
    return { features, ports };
  }
}
