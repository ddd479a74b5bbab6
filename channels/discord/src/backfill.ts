/**
 * After a lost session: reads messages of the meantime from the history of known channels (promises P2). They go through the inbox as
 * backlog, oldest first, so that duplicates are dropped. Bounded; a possible remaining gap is reported. The plan is durable, so that a
 * restart continues it.
 */
import type { PlatformHost } from "../../kit/src/platform.ts";
import type { Directory } from "./directory.ts";
import { asArray, asId, asObject, type Fields, idAtTime, isNewerId, timeOfId } from "./map-reading.ts";
import { failureOf } from "./rest-client.ts";

export const BACKFILL = {
  channels: 50,
  perChannel: 100,
  maxAgeMs: 86_400_000,
  /** New messages wait at most this long for older ones. */
  holdMs: 10_000,
  /** Servers list their channels right after a session starts. */
  serversMs: 1_500,
  tries: 3,
  /** The stored time of the last connection may be one alarm interval old. */
  marginMs: 60_000,
} as const;

interface Gap {
  readonly from: number;
  readonly until: number;
}
/** Shown in the status for a day. */
export interface Missed extends Gap {
  readonly channels: number;
}
export interface BackfillPorts {
  readonly host: PlatformHost;
  readonly directory: Directory;
  /** Messages after this one, in any order. */
  readonly history: (channelId: string, query: { readonly after: string; readonly limit: number }) => Promise<unknown>;
  /** Takes a message of the history. `late`: it was written while the bot was offline. */
  readonly take: (message: Fields, guildId: string | undefined, late: boolean) => boolean;
  readonly serversToCome: () => number;
  /** New messages may be handed over now. */
  readonly release: () => void;
}

export class Backfill {
  readonly #ports: BackfillPorts;
  #running = false;
  #holding = false;

  constructor(ports: BackfillPorts) {
    this.#ports = ports;
  }

  get holds(): boolean {
    return this.#holding;
  }
  get missed(): Missed | undefined {
    const { host } = this.#ports;
    const missed = host.kv.get<Missed>("missed");
    return missed && host.now() - missed.until < BACKFILL.maxAgeMs ? missed : undefined;
  }
  /** Call in the transaction that starts a new session. */
  plan(): void {
    const { host } = this.#ports;
    const alive = host.kv.get<number>("alive");
    const before = host.kv.get<Gap>("gap");
    if (alive === undefined) return;
    host.kv.put("gap", { from: before?.from ?? alive, until: host.now() } satisfies Gap);
    this.#holding = true;
  }
  /** Executes the plan. Never throws; does nothing while it already runs. */
  async work(): Promise<void> {
    const { host, release } = this.#ports;
    if (this.#running) return;
    const letGo = (): void => {
      this.#holding = false;
      release();
    };
    if (!this.#gap()) return letGo();
    this.#running = true;
    this.#holding = true;
    const cancel = host.after(BACKFILL.holdMs, letGo);
    try {
      // Another session, with another gap, may start meanwhile.
      for (let gap = this.#gap(); gap; gap = this.#gap()) await this.#fill(gap);
    } catch (error) {
      host.log("backfill_failed", { error: error instanceof Error ? error.name : "unknown" });
    } finally {
      cancel();
      this.#running = false;
      letGo();
      host.changed();
    }
  }

  #gap(): Gap | undefined {
    return this.#ports.host.kv.get<Gap>("gap");
  }
  async #fill(gap: Gap): Promise<void> {
    const { host } = this.#ports;
    const began = host.now();
    while (this.#ports.serversToCome() > 0 && host.now() - began < BACKFILL.serversMs) await this.#pause(50);
    const all = this.#targets(gap);
    let incomplete = Math.max(0, all.length - BACKFILL.channels);
    let taken = 0;
    for (const target of all.slice(0, BACKFILL.channels)) {
      const result = await this.#channel(target, gap.until);
      taken += result.taken;
      if (!result.whole) incomplete++;
    }
    host.transaction(() => {
      if (this.#gap()?.until === gap.until) host.kv.delete("gap");
      // Messages older than a day are not read.
      const tooLong = gap.until - gap.from > BACKFILL.maxAgeMs;
      if (incomplete === 0 && !tooLong) return;
      host.changed();
      host.kv.put("missed", { ...gap, channels: tooLong ? all.length : incomplete } satisfies Missed);
    });
    host.log("backfilled", { channels: all.length, taken, incomplete });
  }
  #targets(gap: Gap): readonly { readonly channelId: string; readonly after: string; readonly guildId?: string }[] {
    const { directory, host } = this.#ports;
    const oldest = idAtTime(host.now() - BACKFILL.maxAgeMs);
    const since = idAtTime(gap.from - BACKFILL.marginMs);
    const later = (left: string, right: string): string => (isNewerId(left, right) ? left : right);
    const known = directory.conversations().flatMap(({ channelId, last, guildId }) => {
      const newest = directory.newest.get(channelId);
      // The server reported nothing new.
      if (newest !== undefined && !isNewerId(newest, last)) return [];
      return [{ channelId, after: later(last, oldest), ...(guildId === undefined ? {} : { guildId }) }];
    });
    const unread = directory.unread().flatMap(({ channelId, newest }) => {
      const guildId = directory.channel(channelId)?.guildId;
      return isNewerId(newest, since) ? [{ channelId, after: later(since, oldest), ...(guildId === undefined ? {} : { guildId }) }] : [];
    });
    return [...known, ...unread];
  }
  async #channel(
    target: { readonly channelId: string; readonly after: string; readonly guildId?: string },
    until: number,
  ): Promise<{ readonly whole: boolean; readonly taken: number }> {
    const { host, history, take } = this.#ports;
    for (let attempt = 1; attempt <= BACKFILL.tries; attempt++) {
      try {
        const page: unknown = await history(target.channelId, { after: target.after, limit: BACKFILL.perChannel });
        const messages = asArray(page, BACKFILL.perChannel)
          .flatMap((entry) => {
            const message = asObject(entry);
            const id = asId(message?.["id"]);
            return message && id !== undefined && host.now() - timeOfId(id) < BACKFILL.maxAgeMs ? [{ id, message }] : [];
          })
          .toSorted((left, right) => (isNewerId(left.id, right.id) ? 1 : -1));
        let taken = 0;
        for (const { id, message } of messages) if (take(message, target.guildId, timeOfId(id) < until)) taken++;
        return { whole: messages.length < BACKFILL.perChannel, taken };
      } catch (error) {
        const { status } = failureOf(error);
        // A channel that the bot may no longer read has no gap.
        if (status === 403 || status === 404) return { whole: true, taken: 0 };
        if (status !== undefined && status >= 400 && status < 500 && status !== 429) break;
        await this.#pause(500 * attempt);
      }
    }
    return { whole: false, taken: 0 };
  }
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#ports.host.after(ms, resolve));
  }
}
