/** Moves: a home is exported from one gateway and imported into another (gateway/spec/move.md). While it is being imported nothing else works. */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import type { MethodName } from "../../../../protocol/gen/methods.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { Caller, FeatureDefinition } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import type { EventsAgainPort } from "../../ports/events.ts";
import type { IndexSpace, JobPort } from "../../ports/jobs.ts";
import type { MovablePort, MovedState, ObjectKind } from "../../ports/moving.ts";
import type { Failure, Result } from "../../ports/result.ts";
import type { ExportedPort, SessionsPort, SettledPort, StopPort } from "../../ports/sessions.ts";
import type { Bucket } from "../../storage/bucket.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import { MOVE_MIGRATIONS, MoveStore } from "./move-store.ts";
import type { TargetPorts } from "./target.ts";

export interface MovesPorts
  extends EventsAgainPort,
    ExportedPort,
    SessionsPort,
    SettledPort,
    StopPort,
    Pick<TargetPorts, "stopRpc">,
    Pick<KernelPorts, "arm" | "audit" | "config" | "database" | "ids" | "log" | "now"> {
  readonly bucket: Bucket;
  readonly rowDatabase: RowDatabase | undefined;
  readonly jobsIndex: () => IndexSpace;
  readonly job: (id: string) => JobPort;
  readonly movable: (kind: ObjectKind, key: string) => MovablePort;
  readonly movedState: () => Promise<MovedState>;
  readonly after: (ms: number, work: () => void) => void;
  readonly restart: () => void;
  readonly version: string;
}
export interface MovesOffer {
  /** Why nothing but the import works now; undefined: everything does. */
  readonly importing: () => Failure | undefined;
}

/** For the answer, which comes before the connection is cut. */
const RESTART_MS = 200;
const ID_BYTES = 16;
const WORKS: ReadonlySet<MethodName> = new Set<MethodName>(["gateway.status"]);

export const movesFeature: FeatureDefinition<MovesPorts, MovesOffer> = {
  name: "moves",
  migrations: MOVE_MIGRATIONS,
  create(ports) {
    const store = new MoveStore(ports.database);
    const { ids, audit, after } = ports;
    const load = once(() =>
      Promise.all([ports.movedState(), import("./moves.lazy.ts")]).then(([state, { MoveSource, MoveTarget }]) => {
        const randomId = (): string => toHex(ids.bytes(ID_BYTES));
        const shared = { ...ports, store, state };
        const target = new MoveTarget({ ...shared, restart: () => after(RESTART_MS, ports.restart) });
        wakesAt = () => target.wakesAt();
        isEnding = () => target.isEnding;
        return { source: new MoveSource({ ...shared, importing, randomId }), target };
      }),
    );
    // Until the part is loaded, this incarnation has not imported anything.
    let wakesAt = (): number | undefined => 1;
    let isEnding = (): boolean => false;
    const importing = (): Failure | undefined => (store.isWriting() || isEnding() ? fail("move.in_progress") : undefined);
    const recorded = async <T>({ connection }: Caller, action: string, target: string, work: Promise<Result<T>>): Promise<Result<T>> => {
      const done = await work;
      const entry = { actor: actorOf(connection.principal), origin: connection.principal.mode, action, target } as const;
      audit.append(done.ok ? { ...entry, decision: "allowed" } : { ...entry, decision: "failed", detail: done.error.reason });
      return done;
    };
    return {
      offers: { importing },
      alarms: [
        {
          name: "moves",
          next: () => (store.state()?.phase === "live" ? wakesAt() : undefined),
          run: async () => (await load()).target.wake(),
        },
      ],
      closed: (method) => (method.startsWith("move.") || WORKS.has(method) ? undefined : importing()),
      methods: {
        "move.describe": async () => {
          const home = await (await load()).source.describe();
          return home.ok ? { ok: true, value: { home: home.value } } : home;
        },
        "move.read": async ({ now }, { cursor, part = 0 }) => {
          const read = await (await load()).source.read(cursor, part);
          if (read.ok && read.value.next === undefined && part === read.value.parts - 1) ports.noteExported(now);
          return read;
        },
        "move.begin": async (caller, { home }) => {
          const { target } = await load();
          return recorded(caller, "move.begin", home.moveId, target.begin(home, actorOf(caller.connection.principal)));
        },
        "move.write": async (_caller, { moveId, page, part, parts, text }) => (await load()).target.write(moveId, page, part, parts, text),
        "move.finish": async (caller, { moveId, pages, sha256 }) => {
          const { target } = await load();
          return recorded(caller, "move.finish", moveId, target.finish(moveId, pages, sha256));
        },
        "move.cancel": async ({ connection }) => (await load()).target.cancel(actorOf(connection.principal)),
      },
    };
  },
};
