/**
 * Read receipts. Each is durable from the transaction in which the gateway took its message, waits a moment for others of the same sender
 * in the same chat, and is deleted when WhatsApp has it. What a lost connection interrupts is sent by the next one.
 */
import type { PlatformHost } from "../../kit/src/platform.ts";
import type { Receipt } from "./map-inbound.ts";

/** Sends one receipt for messages of one sender. False: it is unknown whether WhatsApp has it. */
export type SendReceipt = (keys: readonly Receipt[]) => Promise<boolean>;

const PREFIX = "receipt.";
const GATHER_MS = 500;
/** Messages of one sender and chat; of more the oldest stay unread. */
export const MAX_RECEIPTS = 1_000;

export class Receipts {
  readonly #host: Pick<PlatformHost, "kv" | "after" | "log" | "transaction">;
  readonly #send: SendReceipt;
  readonly #isConnected: () => boolean;
  #timer: (() => void) | undefined;
  #sending = false;

  constructor(host: Pick<PlatformHost, "kv" | "after" | "log" | "transaction">, isConnected: () => boolean, send: SendReceipt) {
    this.#host = host;
    this.#isConnected = isConnected;
    this.#send = send;
  }

  /** Synchronous: part of the transaction that takes the message out of the inbox. */
  add(receipt: Receipt): void {
    const { kv } = this.#host;
    const name = `${PREFIX}${receipt.remoteJid}/${receipt.participant ?? ""}`;
    const before = (kv.get<Receipt[]>(name) ?? []).filter(({ id }) => id !== receipt.id);
    kv.put(name, [...before, receipt].slice(-MAX_RECEIPTS));
  }
  /** Sends what has gathered, in a moment. */
  soon(): void {
    this.#timer ??= this.#host.after(GATHER_MS, () => {
      this.#timer = undefined;
      void this.flush();
    });
  }
  /** Never throws. */
  async flush(): Promise<void> {
    if (this.#sending) return this.soon();
    this.#sending = true;
    try {
      for (const name of this.#host.kv.keys(PREFIX)) if (!this.#isConnected() || !(await this.#one(name))) return;
    } catch (error) {
      this.#host.log("receipts_failed", { kind: error instanceof Error ? error.name : typeof error });
    } finally {
      this.#sending = false;
    }
  }
  async #one(name: string): Promise<boolean> {
    const { kv, transaction } = this.#host;
    const keys = kv.get<Receipt[]>(name) ?? [];
    if (keys.length > 0 && !(await this.#send(keys))) return false;
    const sent = new Set(keys.map(({ id }) => id));
    transaction(() => {
      const rest = (kv.get<Receipt[]>(name) ?? []).filter(({ id }) => !sent.has(id));
      if (rest.length === 0) kv.delete(name);
      else {
        kv.put(name, rest);
        this.soon();
      }
    });
    return true;
  }
  waiting(): number {
    const { kv } = this.#host;
    return kv.keys(PREFIX).reduce((sum, name) => sum + (kv.get<Receipt[]>(name)?.length ?? 0), 0);
  }
  clear(): void {
    const { kv } = this.#host;
    for (const name of kv.keys(PREFIX)) kv.delete(name);
  }
}
