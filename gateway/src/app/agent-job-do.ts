/**
 * The Durable Object of one job: a shell around the driver, which is loaded with the first call. Its name is the job's id. The constructor
 * reads nothing.
 */
import { DurableObject } from "cloudflare:workers";
import type { AgentJob as ShownJob } from "../../../protocol/gen/types.ts";
import type { JobObject } from "../features/jobs/job-object.ts";
import { systemClock } from "../platform/clock.ts";
import type { Env } from "../platform/env.ts";
import { gatewayStub } from "../platform/stubs.ts";
import type { JobPort, NewJob } from "../ports/jobs.ts";
import type { MovablePort, ObjectCursor, ObjectRecord } from "../ports/moving.ts";
import { askingLog } from "./asking-log.ts";
import { Movable, ownTables } from "./movable.ts";
import { once } from "../../../protocol/runtime/once.ts";

/** After an alarm whose driver could not be loaded. */
const RETRY_MS = 5_000;

export class AgentJob extends DurableObject<Env> implements JobPort, MovablePort {
  readonly #job = once(() => import("../features/jobs/jobs.lazy.ts").then(({ JobObject }) => this.#driver(JobObject)));

  #driver(Driver: typeof JobObject): JobObject {
    const { ctx, env } = this;
    const log = askingLog("job", env, ctx);
    return new Driver({
      storage: ctx.storage.kv,
      host: gatewayStub(env),
      index: () => env.JOBS_INDEX,
      now: systemClock.now,
      setAlarm: (at) => {
        // Part of the same implicit transaction as the rows before it; a failure breaks the output gate and resets the object.
        ctx.storage.setAlarm(at).catch((error: unknown) => log.error("job_alarm_not_set", { error }));
      },
      erase: async () => {
        await ctx.storage.deleteAlarm();
        await ctx.storage.deleteAll();
      },
      log,
    });
  }

  /** Never throws: the platform stops retrying an alarm that throws. */
  override async alarm(): Promise<void> {
    try {
      await (await this.#job()).alarm();
    } catch (error) {
      askingLog("job", this.env, this.ctx).error("job_alarm_failed", { error });
      await this.ctx.storage.setAlarm(systemClock.now() + RETRY_MS);
    }
  }
  async accept(job: NewJob): Promise<void> {
    return (await this.#job()).accept(job);
  }
  async wake(): Promise<boolean> {
    return (await this.#job()).wake();
  }
  async get(): Promise<ShownJob | null> {
    return (await this.#job()).get();
  }
  async cancel(): Promise<ShownJob | null> {
    return (await this.#job()).cancel();
  }

  get #movable(): Movable {
    const { storage } = this.ctx;
    const erase = async (): Promise<void> => {
      await storage.deleteAlarm();
      await storage.deleteAll();
    };
    return new Movable({ storage, ...ownTables(storage, undefined), migrate: () => undefined, erase, restart: () => undefined });
  }
  moveOut(cursor: ObjectCursor | undefined, budget: number) {
    return this.#movable.moveOut(cursor, budget);
  }
  moveIn(records: readonly ObjectRecord[]) {
    return this.#movable.moveIn(records);
  }
  moveCounts() {
    return this.#movable.moveCounts();
  }
  moveAway() {
    return this.#movable.moveAway();
  }
}
