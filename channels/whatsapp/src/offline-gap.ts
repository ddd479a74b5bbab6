/** When the account was last connected, and the last period in which messages may have been lost (promise P10). Durable, bounded. */
import type { PlatformHost } from "../../kit/src/platform.ts";

const GAP_SHOWN_MS = 7 * 86_400_000;

/** Epoch ms. */
export interface Gap {
  readonly from: number;
  readonly until: number;
  readonly why: string;
}

export class OfflineGap {
  readonly #host: Pick<PlatformHost, "kv" | "now">;

  constructor(host: Pick<PlatformHost, "kv" | "now">) {
    this.#host = host;
  }

  /** The account is connected now. */
  alive(): void {
    this.#host.kv.put("aliveAt", this.#host.now());
  }
  /** Ms since the account was last connected; 0 for one that never was. */
  awayMs(): number {
    const at = this.#host.kv.get<number>("aliveAt");
    return at === undefined ? 0 : Math.max(0, this.#host.now() - at);
  }
  /** Messages since the last connection may be missing. */
  mark(why: string): void {
    const until = this.#host.now();
    this.#host.kv.put("gap", { from: until - this.awayMs(), until, why } satisfies Gap);
  }
  /** The last gap, for seven days. */
  shown(): Gap | undefined {
    const { kv, now } = this.#host;
    const gap = kv.get<Gap>("gap");
    return gap && now() - gap.until < GAP_SHOWN_MS ? gap : undefined;
  }
  clear(): void {
    for (const name of ["aliveAt", "gap"]) this.#host.kv.delete(name);
  }
}
