/**
 * Tells the gateway the account's state after each change, until the gateway has taken it (promises P12). What is due is a durable
 * row; a change during a report is reported again.
 */
import type { ChannelAccount } from "../../../protocol/gen/types.ts";
import type { After } from "../../../protocol/runtime/within.ts";
import type { KeyValues } from "./kv.ts";
import { KIT } from "./limits.ts";
import { dueAt, retryWait, withinOrThrow } from "./waits.ts";

/** `change` counts the changes so far. */
interface Due {
  readonly attempts: number;
  readonly at: number;
  readonly change: number;
}
const NAME = "account.status";

export interface StatusReportPorts {
  readonly kv: KeyValues;
  readonly now: () => number;
  readonly random: () => number;
  readonly after: After;
  readonly status: () => ChannelAccount;
  /** Throws when the report must be retried. */
  readonly send: (state: ChannelAccount) => Promise<void>;
}

export class StatusReport {
  readonly #ports: StatusReportPorts;
  #sending = false;

  constructor(ports: StatusReportPorts) {
    this.#ports = ports;
  }

  /** The state changed: a report is due now. */
  changed(): void {
    const { kv, now } = this.#ports;
    kv.put(NAME, { attempts: 0, at: now(), change: (kv.get<Due>(NAME)?.change ?? 0) + 1 } satisfies Due);
  }
  /** Epoch ms of the next attempt; undefined when nothing is due. */
  nextAt(): number | undefined {
    const due = this.#ports.kv.get<Due>(NAME);
    const now = this.#ports.now();
    return due && (this.#sending ? Math.max(due.at, now + KIT.leaseMs) : dueAt(due.at, now));
  }
  /** Reports what is due. Never throws. */
  async send(): Promise<void> {
    const { kv, now, random, after, status, send } = this.#ports;
    const due = kv.get<Due>(NAME);
    if (!due || this.#sending || dueAt(due.at, now()) > now()) return;
    this.#sending = true;
    try {
      await withinOrThrow(KIT.handOverMs, "reporting the state", after, send(status()));
      if (kv.get<Due>(NAME)?.change === due.change) kv.delete(NAME);
    } catch {
      const attempts = due.attempts + 1;
      kv.put(NAME, { attempts, at: now() + retryWait(attempts, random()), change: due.change } satisfies Due);
    } finally {
      this.#sending = false;
    }
  }
}
