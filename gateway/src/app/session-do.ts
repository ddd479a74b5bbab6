/**
 * The Durable Object of one session: a shell around what runs in it (session.lazy.ts), which is loaded with the first call. Its methods
 * are SessionPort; the platform holds each answer back until the writes before it are on disk. The constructor reads nothing.
 */
import { DurableObject } from "cloudflare:workers";
import type { NodeExecEventParams, SessionPatchParams, ToolResultParams } from "../../../protocol/gen/types.ts";
import { once } from "../../../protocol/runtime/once.ts";
import { systemClock } from "../platform/clock.ts";
import type { Env } from "../platform/env.ts";
import type { ApprovalAnswer } from "../ports/approvals.ts";
import { CONVERTER, type MovablePort, type ObjectCursor, type ObjectRecord } from "../ports/moving.ts";
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
import type { SessionService } from "../session/session-service.ts";
import { askingLog } from "./asking-log.ts";
import { Movable, ownTables } from "./movable.ts";
import type { LivingSession } from "./session.lazy.ts";

/** After an alarm whose code could not be loaded. */
const RETRY_MS = 5_000;

export class Session extends DurableObject<Env> implements SessionPort, MovablePort {
  readonly #code = once(() => import("./session.lazy.ts"));
  /** Undefined before the first use and after the session was deleted. */
  #living: LivingSession | undefined;

  /** Waits for no event once the code is loaded, so calls keep their order. */
  async #live(): Promise<LivingSession> {
    const { livingSession } = await this.#code();
    this.#living ??= livingSession(this.ctx, this.env);
    return this.#living;
  }
  async #service(): Promise<SessionService> {
    return (await this.#live()).service;
  }

  /** Work that is under way keeps the closed store, so that it can't write into the next session of this name. */
  async erase(): Promise<void> {
    (await this.#live()).store.close();
    try {
      await this.ctx.storage.deleteAlarm();
      await this.ctx.storage.deleteAll();
    } finally {
      this.#living = undefined;
    }
  }

  override async alarm(): Promise<void> {
    let living: LivingSession;
    try {
      living = await this.#live();
    } catch (error) {
      // The platform stops retrying an alarm that throws.
      askingLog("session", this.env, this.ctx).error("session_not_loaded", { error });
      await this.ctx.storage.setAlarm(systemClock.now() + RETRY_MS);
      return;
    }
    await living.driver.alarm();
  }

  async #movable(): Promise<Movable> {
    const { storage } = this.ctx;
    const shared = {
      storage,
      erase: () => this.erase(),
      restart: () => {
        this.#living?.store.close();
        this.#living = undefined;
      },
    };
    if (this.ctx.id.name?.startsWith(CONVERTER) !== true) {
      const { SESSION_MIGRATIONS, SESSION_TABLES } = await this.#code();
      const { store } = await this.#live();
      return new Movable({
        ...shared,
        ...ownTables(storage, { owner: SESSION_TABLES, migrations: SESSION_MIGRATIONS }),
        migrate: () => void store.load(),
      });
    }
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

  async send(input: SessionSend) {
    return (await this.#service()).send(input);
  }
  async abort(runId: string | undefined) {
    return (await this.#service()).abort(runId);
  }
  async answerApproval(answer: ApprovalAnswer) {
    return (await this.#service()).answerApproval(answer);
  }
  async recheckLimit() {
    return (await this.#service()).recheckLimit();
  }
  async hold(held: boolean) {
    return (await this.#service()).hold(held);
  }
  async toolResult(nodeId: string, result: ToolResultParams, contextVersion?: string) {
    return (await this.#service()).toolResult(nodeId, result, contextVersion);
  }
  async nodeChanged(change: NodeChange) {
    return (await this.#service()).nodeChanged(change);
  }
  async execEvent(nodeId: string, event: NodeExecEventParams) {
    return (await this.#service()).execEvent(nodeId, event);
  }
  async get() {
    return (await this.#service()).get();
  }
  async story(wanted: StoryWanted) {
    return (await this.#service()).story(wanted);
  }
  async record(wanted: RecordWanted) {
    return (await this.#service()).record(wanted);
  }
  async stats() {
    return (await this.#service()).stats();
  }
  async patch(patch: Omit<SessionPatchParams, "sessionKey">) {
    return (await this.#service()).patch(patch);
  }
  async reset() {
    return (await this.#service()).reset();
  }
  async compact(keepMessages: number | undefined) {
    return (await this.#service()).compact(keepMessages);
  }
  async history() {
    return (await this.#service()).history();
  }
  async preview(look: SessionLook) {
    return (await this.#service()).preview(look);
  }
  async result(callId: string) {
    return (await this.#service()).result(callId);
  }
  async messages(look: SessionLook & { readonly offset?: number }) {
    return (await this.#service()).messages(look);
  }
  async prompt(identity: SessionIdentity) {
    return (await this.#service()).prompt(identity);
  }
  async events(afterSeq: number | undefined, thinking?: boolean) {
    return (await this.#service()).events(afterSeq, thinking);
  }
  async searchRows(afterSeq: number, limit: number) {
    return (await this.#service()).searchRows(afterSeq, limit);
  }
  async runEnd(runId: string) {
    return (await this.#service()).runEnd(runId);
  }
  async runReport(runId: string) {
    return (await this.#service()).runReport(runId);
  }
  async note(input: SessionNote) {
    return (await this.#service()).note(input);
  }
  async spent() {
    return (await this.#service()).spent();
  }
  async end() {
    return (await this.#service()).end();
  }
  async resume() {
    return (await this.#service()).resume();
  }
}
