/** Time limits of waits. The caller supplies the timer. */

/** Calls `work` once, after `ms`. The returned function cancels it. */
export type After = (ms: number, work: () => void) => () => void;

/** The answer, or `late()` when there is none within `ms`. Rejects as the answer does. */
export async function within<T>(after: After, ms: number, answer: Promise<T>, late: () => T): Promise<T> {
  let cancel: (() => void) | undefined;
  const timeout = new Promise<T>((resolve) => {
    cancel = after(ms, () => resolve(late()));
  });
  try {
    return await Promise.race([answer, timeout]);
  } finally {
    cancel?.();
  }
}
