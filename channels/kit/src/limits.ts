/** Times and sizes of the kit. Those of the wire are in the contract. */

export const KIT = {
  /** First and longest wait between two tries, with 25 % jitter. */
  retryMinMs: 1_000,
  retryMaxMs: 300_000,
  /** How long what is shown while an answer is made is known. */
  liveMaxMs: 86_400_000,
  /** A delivery fails visibly after this many tries, or this long (promises P9). */
  sendTries: 10,
  sendMaxMs: 86_400_000,
  /** How long a message's or delivery's name is remembered. */
  rememberMs: 2_592_000_000,
  /** Messages that wait; more are refused, which the sender of a delivery is told and a platform sees as not acknowledged. */
  inboxRows: 10_000,
  outboxRows: 10_000,
  /** Of one conversation; what comes beyond is counted, and not taken. */
  peerRows: 2_500,
  /** Conversations that are served at once. */
  peersAtOnce: 8,
  handOverMs: 30_000,
  sendMs: 60_000,
  fileMs: 60_000,
  fileTries: 4,
  liveEveryMs: 1_500,
  typingEveryMs: 8_000,
  typingMaxMs: 120_000,
  /** The account's Durable Object lives only as long as something happens; an outgoing socket does not count. */
  residentMs: 30_000,
  /** What is under way is looked at again after so long, also in another life (promises P12). */
  leaseMs: 30_000,
  /** Rows that one step of forgetting removes. */
  forgetStep: 500,
} as const;

/** 1, 2, 4 ... s, at most five minutes, 25 % up or down. `random` in [0, 1). */
export function retryWait(attempt: number, random: number): number {
  const wait = Math.min(KIT.retryMaxMs, KIT.retryMinMs * 2 ** Math.min(20, Math.max(0, attempt - 1)));
  return Math.round(wait * (0.75 + random / 2));
}

/** When a row is due that was to wait until `at`. No wait is this long: a clock that was set back stops nobody for the difference. */
export const dueAt = (at: number, now: number): number => (at > now + 2 * KIT.retryMaxMs ? now : at);

/** Rejects after `ms`; the work itself goes on, and what it gives then is dropped. */
export async function within<T>(
  ms: number,
  what: string,
  after: (ms: number, work: () => void) => () => void,
  work: Promise<T>,
): Promise<T> {
  let cancel: () => void = () => {};
  const late = new Promise<never>((_, reject) => {
    cancel = after(ms, () => reject(new Error(`${what} took longer than ${Math.round(ms / 1000)} s`)));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

/** What may be told of an error: never a value. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 300);
/** Names a conversation inside an account. */
export const peerName = (peer: { readonly kind: string; readonly id: string }): string => `${peer.kind}:${peer.id}`;
