/**
 * Tells the gateway how each delivery ended (promises P9, P10). A report is a column of the delivery's row until the gateway has
 * taken it; failed reports are retried with backoff. Sends nothing to the platform.
 */
import type { DeliveryReport, DeliveryState } from "../../../protocol/gen/types.ts";
import type { After } from "../../../protocol/runtime/within.ts";
import type { Database } from "./database.ts";
import { KIT } from "./limits.ts";
import { dueAt, retryWait, withinOrThrow } from "./waits.ts";

export interface ReportPorts {
  readonly db: Database;
  readonly now: () => number;
  readonly random: () => number;
  readonly after: After;
  /** Throws when the report must be retried. */
  readonly report: (report: DeliveryReport) => Promise<void>;
}
interface ReportRow {
  readonly id: string;
  readonly state: "queued" | DeliveryState;
  readonly messages: string;
  readonly error: string | null;
  readonly report_attempts: number;
}

export class DeliveryReports {
  readonly #ports: ReportPorts;
  #sending = false;

  constructor(ports: ReportPorts) {
    this.#ports = ports;
  }

  /** Epoch ms of the next attempt; undefined when every report is taken. */
  nextAt(): number | undefined {
    const { db, now } = this.#ports;
    const row = db.query<{ at: number }>("SELECT report_at AS at FROM deliveries WHERE reported = 0 ORDER BY report_at LIMIT 1")[0];
    if (!row) return undefined;
    return this.#sending ? Math.max(row.at, now() + KIT.leaseMs) : dueAt(row.at, now());
  }

  /** Sends all reports that are due, one after the other. Never throws; does nothing while an earlier call still runs. */
  async send(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    try {
      for (let row = this.#due(); row && row.state !== "queued"; row = this.#due()) await this.#one(row, row.state);
    } finally {
      this.#sending = false;
    }
  }
  #due(): ReportRow | undefined {
    const { db, now } = this.#ports;
    return db.query<ReportRow>(
      "SELECT id, state, messages, error, report_attempts FROM deliveries WHERE reported = 0 AND (report_at <= ? OR report_at > ?) ORDER BY report_at LIMIT 1",
      now(),
      now() + 2 * KIT.retryMaxMs,
    )[0];
  }
  async #one({ id: deliveryId, messages, error, report_attempts }: ReportRow, state: DeliveryState): Promise<void> {
    const { db, now, random, after, report } = this.#ports;
    try {
      const messageIds: string[] = JSON.parse(messages);
      await withinOrThrow(
        KIT.handOverMs,
        "reporting",
        after,
        report({ deliveryId, state, messageIds, ...(error === null ? {} : { error }) }),
      );
      db.query("UPDATE deliveries SET reported = 1 WHERE id = ?", deliveryId);
    } catch {
      const attempts = report_attempts + 1;
      db.query(
        "UPDATE deliveries SET report_attempts = ?, report_at = ? WHERE id = ?",
        attempts,
        now() + retryWait(attempts, random()),
        deliveryId,
      );
    }
  }
}
