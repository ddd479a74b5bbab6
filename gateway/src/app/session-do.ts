/**
 * The Durable Object of one session: a shell around the driver. Its methods are SessionPort; the platform holds each answer back until
 * the writes before it are on disk. The constructor reads nothing; the first use does.
 */
import { DurableObject } from "cloudflare:workers";
import type { NodeExecEventParams, SessionPatchParams, ToolResultParams } from "../../../protocol/gen/types.ts";
import { afterTimeout } from "../../../protocol/runtime/within.ts";
import { type Env, isEmbedded } from "../platform/env.ts";
import { systemClock } from "../platform/clock.ts";
import { sha256Hex } from "../platform/ids.ts";
import { gatewayPort } from "../platform/stubs.ts";
import type { ApprovalAnswer } from "../ports/approvals.ts";
import type {
  NodeChange,
  SessionIdentity,
  SessionLook,
  SessionNote,
  SessionPort,
  SessionSend,
  StoryWanted,
  RecordWanted,
} from "../ports/session.ts";
import { type DriverHost, SessionDriver } from "../session/driver.ts";
import { SessionService } from "../session/session-service.ts";
import { SESSION_MIGRATIONS, SESSION_TABLES } from "../session/store/schema.ts";
import { SqlStore } from "../session/store/sql-store.ts";
import { CONVERTER, type MovablePort, type ObjectCursor, type ObjectRecord } from "../ports/moving.ts";
import { askingLog } from "./asking-log.ts";
import { Movable, ownTables } from "./movable.ts";
import { wiring } from "./session-wiring.ts";

/** The parts that an object has until its session is deleted. */
interface Living {
  readonly store: SqlStore;
  readonly driver: SessionDriver;
  readonly service: SessionService;
}

export class Session extends DurableObject<Env> implements SessionPort, MovablePort {
  #living: Living;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#living = this.#live();
  }
  get #driver(): SessionDriver {
    return this.#living.driver;
  }
  get #service(): SessionService {
    return this.#living.service;
  }

  #live(): Living {
    const { ctx, env } = this;
    const log = askingLog("session", env, ctx);
    const freshId = (): string => crypto.randomUUID();
    const store = new SqlStore(ctx.storage);
    const host: DriverHost = {
      store,
      wall: systemClock.now,
      random: Math.random,
      freshId,
      sha256: sha256Hex,
      setAlarm: (wall) => {
        if (store.isClosed) return;
        // Part of the same implicit transaction as the rows before it; a failure breaks the output gate and resets the object.
        ctx.storage.setAlarm(wall).catch((error: unknown) => log.error("session_alarm_not_set", { error }));
      },
      keep: (work) => ctx.waitUntil(work),
      after: afterTimeout,
      log: (event, fields) => log.error(event, fields),
    };
    const driver = new SessionDriver(
      host,
      wiring.createSessionParts(env.STORAGE, gatewayPort(env), { ai: env.AI, readers: env.READERS, isEmbedded: isEmbedded(env), log }),
    );
    return { store, driver, service: new SessionService(driver, { after: afterTimeout, freshId, sha256: sha256Hex }) };
  }

  /** Work that is under way keeps the closed store, so that it can't write into the next session of this name. */
  async erase(): Promise<void> {
    this.#living.store.close();
    try {
      await this.ctx.storage.deleteAlarm();
      await this.ctx.storage.deleteAll();
    } finally {
      this.#living = this.#live();
    }
  }

  override async alarm(): Promise<void> {
    await this.#driver.alarm();
  }

  async #movable(): Promise<Movable> {
    const { storage } = this.ctx;
    const shared = {
      storage,
      erase: () => this.erase(),
      restart: () => {
        this.#living.store.close();
        this.#living = this.#live();
      },
    };
    if (this.ctx.id.name?.startsWith(CONVERTER) !== true)
      return new Movable({
        ...shared,
        ...ownTables(storage, { owner: SESSION_TABLES, migrations: SESSION_MIGRATIONS }),
        migrate: () => void this.#living.store.load(),
      });
    const { convertTables, makeTables } = await import("./feature-tables.lazy.ts");
    return new Movable({
      ...shared,
      // The import has compared the versions.
      check: () => undefined,
      make: (levels) => makeTables(storage, levels),
      migrate: () => convertTables(storage),
    });
  }
  async moveOut(cursor: ObjectCursor | undefined, budget: number) {
    return (await this.#movable()).moveOut(cursor, budget);
  }
  async moveIn(records: readonly ObjectRecord[]) {
    return (await this.#movable()).moveIn(records);
  }
  async moveCounts() {
    return (await this.#movable()).moveCounts();
  }
  async moveAway() {
    return (await this.#movable()).moveAway();
  }

  send(input: SessionSend) {
    return this.#service.send(input);
  }
  abort(runId: string | undefined) {
    return this.#service.abort(runId);
  }
  answerApproval(answer: ApprovalAnswer) {
    return this.#service.answerApproval(answer);
  }
  recheckLimit() {
    return this.#service.recheckLimit();
  }
  hold(held: boolean) {
    return this.#service.hold(held);
  }
  toolResult(nodeId: string, result: ToolResultParams, contextVersion?: string) {
    return this.#service.toolResult(nodeId, result, contextVersion);
  }
  nodeChanged(change: NodeChange) {
    return this.#service.nodeChanged(change);
  }
  execEvent(nodeId: string, event: NodeExecEventParams) {
    return this.#service.execEvent(nodeId, event);
  }
  get() {
    return this.#service.get();
  }
  story(wanted: StoryWanted) {
    return this.#service.story(wanted);
  }
  record(wanted: RecordWanted) {
    return this.#service.record(wanted);
  }
  stats() {
    return this.#service.stats();
  }
  patch(patch: Omit<SessionPatchParams, "sessionKey">) {
    return this.#service.patch(patch);
  }
  reset() {
    return this.#service.reset();
  }
  compact(keepMessages: number | undefined) {
    return this.#service.compact(keepMessages);
  }
  history() {
    return this.#service.history();
  }
  preview(look: SessionLook) {
    return this.#service.preview(look);
  }
  result(callId: string) {
    return this.#service.result(callId);
  }
  messages(look: SessionLook & { readonly offset?: number }) {
    return this.#service.messages(look);
  }
  prompt(identity: SessionIdentity) {
    return this.#service.prompt(identity);
  }
  events(afterSeq: number | undefined, thinking?: boolean) {
    return this.#service.events(afterSeq, thinking);
  }
  searchRows(afterSeq: number, limit: number) {
    return this.#service.searchRows(afterSeq, limit);
  }
  runEnd(runId: string) {
    return this.#service.runEnd(runId);
  }
  runReport(runId: string) {
    return this.#service.runReport(runId);
  }
  note(input: SessionNote) {
    return this.#service.note(input);
  }
  spent() {
    return this.#service.spent();
  }
  end() {
    return this.#service.end();
  }
  resume() {
    return this.#service.resume();
  }
}
