/** Export of traces, as the Gateway object calls it. */
import type { SessionNews } from "./gateway.ts";

export interface TelemetryPort {
  /** News of a session. A run that has ended waits for its export; everything else is ignored. */
  published(sessionKey: string, news: readonly SessionNews[]): void;
}
