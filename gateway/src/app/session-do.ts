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
import { askingLog } from "./asking-log.ts";
import { Movable, ownTables } from "./movable.ts";
import type { LivingSession } from "./session.lazy.ts";

/** After an alarm whose code could not be loaded. */
const RETRY_MS = 5_000;

export class Session extends DurableObject<Env> implements SessionPort, MovablePort {
  readonly #code = once(() => import("./session.lazy.ts"));
  /** Undefined before the first use and after the session was deleted. */
  #living: LivingSession | undefined;

  /** The one way of all calls: they begin in their order, also those that came while the code was loaded. */
  #with<T>(work: (living: LivingSession) => T | Promise<T>): Promise<T> {
    return this.#code().then(({ livingSession }) => {
      this.#living ??= livingSession(this.ctx, this.env);
      return work(this.#living);
    });
  }

  /** Work that is under way keeps the closed store, so that it can't write into the next session of this name. */
  erase(): Promise<void> {
    return this.#with(async ({ store }) => {
      store.close();
      try {
        await this.ctx.storage.deleteAlarm();
        await this.ctx.storage.deleteAll();
      } finally {
        this.#living = undefined;
      }
    });
  }

  override async alarm(): Promise<void> {
    try {
      await this.#code();
    } catch (error) {
      // The platform stops retrying an alarm that throws.
      askingLog("session", this.env, this.ctx).error("session_not_loaded", { error });
      await this.ctx.storage.setAlarm(systemClock.now() + RETRY_MS);
      return;
    }
    await this.#with(({ driver }) => driver.alarm());
  }

  async #movable<T>(work: (movable: Movable) => Promise<T>): Promise<T> {
    const { storage } = this.ctx;
    const shared = {
      storage,
      erase: () => this.erase(),
      restart: () => {
        this.#living?.store.close();
        this.#living = undefined;
      },
    };
    if (this.ctx.id.name?.startsWith(CONVERTER) !== true)
      return this.#with(({ store, tables }) =>
        work(new Movable({ ...shared, ...ownTables(storage, tables), migrate: () => void store.load() })),
      );
    const { convertTables, makeTables } = await import("./feature-tables.lazy.ts");
    return work(
      new Movable({
        ...shared,
        // The import has compared the versions.
        check: () => undefined,
        make: (levels) => makeTables(storage, levels),
        migrate: () => convertTables(storage),
      }),
    );
  }
  moveOut(cursor: ObjectCursor | undefined, budget: number) {
    return this.#movable((movable) => movable.moveOut(cursor, budget));
  }
  moveIn(records: readonly ObjectRecord[]) {
    return this.#movable((movable) => movable.moveIn(records));
  }
  moveCounts() {
    return this.#movable((movable) => movable.moveCounts());
  }
  moveAway() {
    return this.#movable((movable) => movable.moveAway());
  }

  send(input: SessionSend) {
    return this.#with(({ service }) => service.send(input));
  }
  abort(runId: string | undefined) {
    return this.#with(({ service }) => service.abort(runId));
  }
  answerApproval(answer: ApprovalAnswer) {
    return this.#with(({ service }) => service.answerApproval(answer));
  }
  recheckLimit() {
    return this.#with(({ service }) => service.recheckLimit());
  }
  hold(held: boolean) {
    return this.#with(({ service }) => service.hold(held));
  }
  toolResult(nodeId: string, result: ToolResultParams, contextVersion?: string) {
    return this.#with(({ service }) => service.toolResult(nodeId, result, contextVersion));
  }
  nodeChanged(change: NodeChange) {
    return this.#with(({ service }) => service.nodeChanged(change));
  }
  execEvent(nodeId: string, event: NodeExecEventParams) {
    return this.#with(({ service }) => service.execEvent(nodeId, event));
  }
  get() {
    return this.#with(({ service }) => service.get());
  }
  story(wanted: StoryWanted) {
    return this.#with(({ service }) => service.story(wanted));
  }
  record(wanted: RecordWanted) {
    return this.#with(({ service }) => service.record(wanted));
  }
  stats() {
    return this.#with(({ service }) => service.stats());
  }
  patch(patch: Omit<SessionPatchParams, "sessionKey">) {
    return this.#with(({ service }) => service.patch(patch));
  }
  reset() {
    return this.#with(({ service }) => service.reset());
  }
  compact(keepMessages: number | undefined) {
    return this.#with(({ service }) => service.compact(keepMessages));
  }
  history() {
    return this.#with(({ service }) => service.history());
  }
  preview(look: SessionLook) {
    return this.#with(({ service }) => service.preview(look));
  }
  result(callId: string) {
    return this.#with(({ service }) => service.result(callId));
  }
  messages(look: SessionLook & { readonly offset?: number }) {
    return this.#with(({ service }) => service.messages(look));
  }
  prompt(identity: SessionIdentity) {
    return this.#with(({ service }) => service.prompt(identity));
  }
  events(afterSeq: number | undefined, thinking?: boolean) {
    return this.#with(({ service }) => service.events(afterSeq, thinking));
  }
  searchRows(afterSeq: number, limit: number) {
    return this.#with(({ service }) => service.searchRows(afterSeq, limit));
  }
  runEnd(runId: string) {
    return this.#with(({ service }) => service.runEnd(runId));
  }
  runReport(runId: string) {
    return this.#with(({ service }) => service.runReport(runId));
  }
  note(input: SessionNote) {
    return this.#with(({ service }) => service.note(input));
  }
  spent() {
    return this.#with(({ service }) => service.spent());
  }
  end() {
    return this.#with(({ service }) => service.end());
  }
  resume() {
    return this.#with(({ service }) => service.resume());
  }
}
