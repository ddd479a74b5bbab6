/** What runs in the object of a session: the store, the driver and the service around them, composed for one object. Decides nothing. */
import { afterTimeout } from "../../../protocol/runtime/within.ts";
import { type Env, isEmbedded } from "../platform/env.ts";
import { systemClock } from "../platform/clock.ts";
import { sha256Hex } from "../platform/ids.ts";
import type { Migration } from "../platform/sql.ts";
import { gatewayPort } from "../platform/stubs.ts";
import { type DriverHost, SessionDriver } from "../session/driver.ts";
import { SessionService } from "../session/session-service.ts";
import { SESSION_MIGRATIONS, SESSION_TABLES } from "../session/store/schema.ts";
import { SqlStore } from "../session/store/sql-store.ts";
import { askingLog } from "./asking-log.ts";
import { wiring } from "./session-wiring.ts";

/** The parts that an object has until its session is deleted. */
export interface LivingSession {
  readonly store: SqlStore;
  readonly driver: SessionDriver;
  readonly service: SessionService;
  readonly tables: { readonly owner: string; readonly migrations: readonly Migration[] };
}

/** Reads nothing; the first use does. */
export function livingSession(ctx: DurableObjectState, env: Env): LivingSession {
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
  return {
    store,
    driver,
    service: new SessionService(driver, { after: afterTimeout, freshId, sha256: sha256Hex }),
    tables: { owner: SESSION_TABLES, migrations: SESSION_MIGRATIONS },
  };
}
