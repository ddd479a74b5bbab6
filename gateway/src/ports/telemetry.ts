/** Port through which the Gateway object hands news of sessions to the export of traces. */
import type { SessionNews } from "./gateway.ts";

export interface TelemetryPort {
  /** News of a session. A run that has ended waits for its export; everything else is ignored. */
  published(sessionKey: string, news: readonly SessionNews[]): void;
}
