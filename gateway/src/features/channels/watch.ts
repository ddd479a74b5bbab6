/**
 * Whether channels that say "connected" are (rule NT11): asks each for its state from time to time, and tells the owner of one that has
 * been down for a while. Connecting again is the work of the channel.
 */
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { ChannelAccount } from "../../../../protocol/gen/types.ts";
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import type { Logger } from "../../platform/log.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { AccountRecord } from "./account-store.ts";
import type { DownAccounts } from "./down-store.ts";
import { downText } from "./undelivered.ts";

export interface WatchPorts {
  readonly down: DownAccounts;
  readonly accounts: () => readonly AccountRecord[];
  readonly stateOf: (ref: ChannelRef) => ChannelAccount | undefined;
  readonly service: (channel: string) => ChannelService | undefined;
  readonly notify: NotifyPort["notify"];
  readonly timeZone: () => string;
  readonly now: () => number;
  readonly log: Logger;
  /** Stores a state, as if the channel had reported it. */
  readonly status: (ref: ChannelRef, state: ChannelAccount) => void;
}
/** So long an account may be silent or down, and so often it is asked. */
const WATCH_MS = 120_000;
const ANSWER_MS = 20_000;
const MAX_ASKED = 64;
const NO_ANSWER = "The channel does not answer.";

const isStarted = ({ extra }: ChannelAccount): boolean => extra?.["started"] === true;

export class ChannelWatch {
  readonly #ports: WatchPorts;
  #askedAt: number;
  /** Accounts that were started and say that they are connected. Read again after each report. */
  #said: readonly AccountRecord[] | undefined;

  constructor(ports: WatchPorts) {
    this.#ports = ports;
    this.#askedAt = ports.now();
  }

  /** An account's state changed. */
  reported(ref: ChannelRef, before: ChannelAccount | undefined, state: ChannelAccount): void {
    this.#said = undefined;
    const { down, now } = this.#ports;
    // No alarm for an account that was stopped or was never connected.
    if (state.connected || !isStarted(state)) down.clear(ref);
    else if (before?.connected === true) down.begin(ref, now());
  }
  #watched(): readonly AccountRecord[] {
    this.#said ??= this.#ports.accounts().filter(({ state }) => state?.connected === true && isStarted(state));
    return this.#said;
  }

  nextTelling(): number | undefined {
    const first = this.#ports.down.first();
    return first === undefined ? undefined : first + WATCH_MS;
  }
  tell(at: number): void {
    const { stateOf, down, notify, timeZone } = this.#ports;
    for (const { channel, accountId, since } of down.since(at - WATCH_MS)) {
      const error = stateOf({ channel, accountId })?.error;
      notify.tell({
        kind: "channel",
        key: `down:${channel}/${accountId}:${since}`,
        cause: `down:${channel}/${accountId}`,
        about: { channel, accountId },
        text: downText({ channel, accountId, since, error, timeZone: timeZone() }),
      });
      down.told({ channel, accountId });
    }
  }

  nextAsking(): number | undefined {
    return this.#watched().length === 0 ? undefined : this.#askedAt + WATCH_MS;
  }
  /** Never fails for one channel's sake. */
  async ask(at: number): Promise<void> {
    this.#askedAt = at;
    const { service, status, log } = this.#ports;
    const asking = this.#watched()
      .slice(0, MAX_ASKED)
      .map(async ({ channel, accountId, state: known }) => {
        const worker = service(channel);
        if (worker === undefined || known === undefined) return;
        const asked = worker.status({ accountId }).catch((error: unknown) => {
          log.warn("channel_silent", { channel, account: accountId, error });
          return undefined;
        });
        const states = await within(afterTimeout, ANSWER_MS, asked, () => undefined);
        const state = states?.find((each) => each.accountId === accountId) ?? { ...known, connected: false, error: NO_ANSWER };
        status({ channel, accountId }, state);
        if (!state.connected || (state.silentMs ?? 0) < WATCH_MS) return;
        log.warn("channel_not_heard", { channel, account: accountId, silentMs: state.silentMs });
        const again = worker.start({ accountId, config: {} }).catch(() => undefined);
        const after = await within(afterTimeout, ANSWER_MS, again, () => undefined);
        if (after !== undefined) status({ channel, accountId }, after);
      });
    await Promise.all(asking);
  }
}
