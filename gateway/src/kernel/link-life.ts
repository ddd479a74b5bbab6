/** How long a link that answers pings may be silent. PURE. */
import { LIMITS } from "../../../protocol/gen/limits.ts";

/** A link that has been silent for this long is dead (FR6: two missed pings and the round trip). */
export const SILENT_MS = LIMITS.pingIntervalMs * 3;
/** The same for one that has no calls out. */
export const IDLE_SILENT_MS = 120_000;

/** When it must have shown life again. Undefined: the peer never pings, so its silence says nothing. */
export const lifeUntil = (heardAt: number | undefined, silentMs: number): number | undefined =>
  heardAt === undefined ? undefined : heardAt + silentMs;
