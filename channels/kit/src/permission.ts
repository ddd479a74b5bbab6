/**
 * Whether what agents wrote may leave now (gateway rule ST9): for a short time on the send permit that came with a message, later only when
 * the gateway permits it. Without an answer it stays. That everything is stopped is stored, because the time of a stop counts for no
 * deadline. Sends nothing.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { After } from "../../../protocol/runtime/within.ts";
import { errorText } from "./error-text.ts";
import type { KeyValues } from "./kv.ts";
import { KIT } from "./limits.ts";
import { retryWait, withinOrThrow } from "./waits.ts";

export interface PermissionPorts {
  readonly kv: Pick<KeyValues, "get" | "put" | "delete">;
  readonly now: () => number;
  readonly random: () => number;
  readonly after: After;
  readonly transaction: <T>(work: () => T) => T;
  /** Asks the gateway. Throws when it does not answer. */
  readonly mayDeliver: () => Promise<boolean>;
  /** The stop is over; in the transaction that notes it. */
  readonly released: () => void;
  readonly log: (event: string, fields?: Readonly<Record<string, string | number | boolean | undefined>>) => void;
}
const HELD = "outbox.held";

export class Permission {
  readonly #ports: PermissionPorts;
  #isHeld: boolean;
  /** The gateway's last answer counts until then. */
  #mayUntil = 0;
  /** A permit that comes with a message is valid from then on: one of before the stop may arrive after it. */
  #trustFrom = 0;
  /** Nothing leaves before the gateway was asked again, at this time. */
  #askAt: number | undefined;
  #failures = 0;
  #rechecks = 0;
  #asking: Promise<boolean> | undefined;

  constructor(ports: PermissionPorts) {
    this.#ports = ports;
    this.#isHeld = ports.kv.get<boolean>(HELD) === true;
    // A new instance asks soon: the stop may be over.
    if (this.#isHeld) this.#askAt = 0;
  }

  /** Everything was stopped, as far as is known. */
  get isHeld(): boolean {
    return this.#isHeld;
  }
  /** No message of an agent is tried: the gateway has refused, or did not answer. */
  get isBlocked(): boolean {
    return this.#askAt !== undefined;
  }
  /** When the gateway must be asked again while something waits for that; undefined: it need not be. */
  nextAt(): number | undefined {
    return this.#asking === undefined ? this.#askAt : this.#ports.now() + KIT.leaseMs;
  }

  /** `askFrom`: the end of the message's permit; 0: no agent wrote it. True: it may leave at this moment. */
  covers(askFrom: number): boolean {
    if (askFrom === 0) return true;
    const now = this.#ports.now();
    if (this.isBlocked) return false;
    // A permit that ends further in the future is of another clock.
    return now < this.#mayUntil || (now >= this.#trustFrom && now < askFrom && askFrom - now <= 2 * LIMITS.sendPermitMs);
  }
  /** Earlier permits are no longer valid. */
  recheck(): void {
    const now = this.#ports.now();
    this.#rechecks += 1;
    this.#mayUntil = 0;
    this.#trustFrom = now + 2 * LIMITS.sendPermitMs;
    this.#askAt = now;
    this.#failures = 0;
  }
  /** Asks the gateway, once for all who wait. True: what agents wrote may leave at this moment. Never throws. */
  ask(): Promise<boolean> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }
  async #ask(): Promise<boolean> {
    const { now, random, after, mayDeliver, log } = this.#ports;
    for (let tries = 0; tries < KIT.askTries; tries++) {
      const rechecks = this.#rechecks;
      const at = now();
      const may = await withinOrThrow(KIT.askMs, "asking whether a message may leave", after, mayDeliver()).catch(() => undefined);
      // The answer may be of before the stop.
      if (rechecks !== this.#rechecks) continue;
      if (may === undefined) break;
      try {
        this.#answered(may, at);
      } catch (error) {
        // Not written, so it is asked again.
        log("permission_failed", { error: errorText(error) });
        break;
      }
      this.#failures = 0;
      return may;
    }
    this.#failures += 1;
    this.#askAt = now() + retryWait(this.#failures, random());
    return false;
  }
  #answered(may: boolean, at: number): void {
    const { kv, now, transaction, released } = this.#ports;
    if (may) {
      if (this.#isHeld)
        transaction(() => {
          kv.delete(HELD);
          released();
        });
      this.#isHeld = false;
      this.#askAt = undefined;
      this.#mayUntil = at + LIMITS.sendPermitMs;
      return;
    }
    if (!this.#isHeld) kv.put(HELD, true);
    this.#isHeld = true;
    this.#askAt = now() + KIT.retryMaxMs;
  }
}
