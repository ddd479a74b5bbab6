/** Sockets without a hello: which one makes way for one more, and how many of those that were closed still hold memory. */
import { LIMITS } from "../../../protocol/gen/limits.ts";

/** The platform ends a socket whose peer does not answer the close within this time. */
const LINGER_MS = 30_000;

interface Opening {
  readonly address: string;
  readonly openedAt: number;
  /** A valid token came with the upgrade. */
  readonly vouched: boolean;
}

const oldest = <O extends Opening>(sockets: readonly O[]): O | undefined =>
  sockets.toSorted((left, right) => left.openedAt - right.openedAt)[0];

/**
 * The socket that must make way for one more from this address: the oldest of the address that has the most, so that a flood from some
 * addresses never closes the only socket of another one. A token vouches for the others.
 */
export function surplusOf<O extends Opening>(sockets: Iterable<O>, address: string): O | undefined {
  const waiting = [...sockets].filter(({ vouched }) => !vouched);
  const same = address === "" ? [] : waiting.filter((socket) => socket.address === address);
  if (same.length >= LIMITS.unauthSocketsPerAddress) return oldest(same);
  if (waiting.length < LIMITS.unauthSockets) return undefined;
  const groups = [...Map.groupBy(waiting, (socket) => socket.address).values()];
  return oldest(groups.toSorted((left, right) => right.length - left.length)[0] ?? []);
}

/** Sockets that the gateway closed and whose end the platform has not reported. */
export class ClosingSockets {
  readonly #sockets = new Map<WebSocket, { readonly address: string; readonly closedAt: number }>();

  /** `closedAt`: epoch ms. */
  add(socket: WebSocket, address: string, closedAt: number): void {
    this.#sockets.set(socket, { address, closedAt });
  }
  ended(socket: WebSocket): void {
    this.#sockets.delete(socket);
  }
  count(address: string, now: number): { readonly total: number; readonly sameAddress: number } {
    for (const [socket, { closedAt }] of this.#sockets) if (now - closedAt >= LINGER_MS) this.#sockets.delete(socket);
    const addresses = [...this.#sockets.values()].map((closing) => closing.address);
    return { total: addresses.length, sameAddress: address === "" ? 0 : addresses.filter((other) => other === address).length };
  }
}
