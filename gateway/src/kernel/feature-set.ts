/** All features of a running gateway as one: each member of `Feature`, combined. Decides nothing; two features never share a method or an alarm. */
import { isMethodName, type MethodName } from "../../../protocol/gen/methods.ts";
import type { ConnectParams } from "../../../protocol/gen/types.ts";
import type { RunContext } from "../ports/run-context.ts";
import type { DeletedSession } from "../ports/sessions.ts";
import type { Failure, Problem } from "../ports/result.ts";
import type { SpendState } from "../ports/spend.ts";
import type { Participant } from "./alarms.ts";
import type { Principal } from "./authorise.ts";
import type { Connection } from "./connections.ts";
import type { LinkEnd } from "./link-end.ts";
import type { Feature, Handlers, FrameRules, RunContextSession } from "./feature.ts";

export interface FeatureSet {
  readonly methods: Handlers;
  readonly frameRules: FrameRules;
  /** What hello-ok may list. */
  readonly listed: readonly MethodName[];
  readonly alarms: readonly Participant[];
  runContext(session: RunContextSession): Partial<RunContext>;
  contextVersion(): string;
  closed(method: MethodName): Failure | undefined;
  connectProblem(principal: Principal, params: ConnectParams): Problem | undefined;
  /** False: no feature takes this binary frame. */
  chunk(connection: Connection, message: ArrayBuffer): boolean;
  connected(connection: Connection, params: ConnectParams, replaced: Connection | undefined): void;
  gone(connection: Connection, end: LinkEnd): void;
  sessionSpent(session: DeletedSession, spent: SpendState): void;
  sessionGone(session: DeletedSession): void;
  restarted(): Promise<void>;
}

export function featureSet(features: readonly Feature[]): FeatureSet {
  const unlisted = new Set(features.flatMap((feature) => feature.unlisted ?? []));
  const methods: Handlers = Object.assign({}, ...features.map((feature) => feature.methods ?? {}));
  const names = features.flatMap((feature) => Object.keys(feature.methods ?? {}));
  const twice = twin(names) ?? twin(features.flatMap((feature) => (feature.alarms ?? []).map(({ name }) => name)));
  if (twice !== undefined) throw new Error(`two features have ${twice}`);
  return {
    methods,
    frameRules: Object.assign({}, ...features.map((feature) => feature.frameRules ?? {})),
    listed: names.filter(isMethodName).filter((name) => !unlisted.has(name)),
    alarms: features.flatMap((feature) => feature.alarms ?? []),
    runContext: (session) => Object.assign({}, ...features.map((feature) => feature.runContext?.(session) ?? {})) as Partial<RunContext>,
    contextVersion: () => features.flatMap((feature) => feature.contextVersion?.() ?? []).join("/"),
    closed(method) {
      for (const feature of features) {
        const refused = feature.closed?.(method);
        if (refused !== undefined) return refused;
      }
      return undefined;
    },
    connectProblem(principal, params) {
      for (const feature of features) {
        const problem = feature.connectProblem?.(principal, params);
        if (problem !== undefined) return problem;
      }
      return undefined;
    },
    chunk: (connection, message) => features.some((feature) => feature.chunk?.(connection, message) === true),
    connected(connection, params, replaced) {
      for (const feature of features) feature.connected?.(connection, params, replaced);
    },
    gone(connection, end) {
      for (const feature of features) feature.gone?.(connection, end);
    },
    sessionSpent(session, spent) {
      for (const feature of features) feature.sessionSpent?.(session, spent);
    },
    sessionGone(session) {
      for (const feature of features) feature.sessionGone?.(session);
    },
    async restarted() {
      await Promise.all(features.map((feature) => feature.restarted?.()));
    },
  };
}

const twin = (names: readonly string[]): string | undefined => names.find((name, index) => names.indexOf(name) !== index);
