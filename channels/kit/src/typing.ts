/**
 * Typing indicators of an account: repeated until they are ended, at most `KIT.typingMaxMs`. In memory only and best effort; a
 * restart ends them.
 */
import type { Peer } from "../../../protocol/gen/types.ts";
import type { After } from "../../../protocol/runtime/within.ts";
import { KIT } from "./limits.ts";
import { peerName } from "./peer-name.ts";

export interface TypingPorts {
  readonly now: () => number;
  readonly after: After;
  /** Shows or hides the indicator on the platform. Must not throw. */
  readonly show: (peer: Peer, active: boolean) => void;
}

export class Typing {
  readonly #ports: TypingPorts;
  readonly #active = new Map<string, { readonly until: number; readonly cancel: () => void }>();

  constructor(ports: TypingPorts) {
    this.#ports = ports;
  }

  begin(peer: Peer): void {
    const name = peerName(peer);
    const until = this.#ports.now() + KIT.typingMaxMs;
    const running = this.#active.get(name);
    if (running) return void this.#active.set(name, { ...running, until });
    this.#active.set(name, { until, cancel: () => {} });
    this.#repeat(peer, name);
  }
  end(peer: Peer): void {
    const name = peerName(peer);
    const entry = this.#active.get(name);
    if (!entry) return;
    entry.cancel();
    this.#active.delete(name);
    this.#ports.show(peer, false);
  }
  /** Without a word to the platform: it is about to be disconnected. */
  endAll(): void {
    for (const { cancel } of this.#active.values()) cancel();
    this.#active.clear();
  }
  #repeat(peer: Peer, name: string): void {
    const until = this.#active.get(name)?.until ?? 0;
    if (this.#ports.now() >= until) return this.end(peer);
    this.#ports.show(peer, true);
    const cancel = this.#ports.after(KIT.typingEveryMs, () => this.#repeat(peer, name));
    this.#active.set(name, { until, cancel });
  }
}
