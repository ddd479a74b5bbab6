/** Time limits of waits, for the gateway and its channels. The caller supplies the timer. */

/** Calls `work` once, after `ms`. The returned function cancels it. */
export type After = (ms: number, work: () => void) => () => void;

/** The runtime's own timer. */
export const afterTimeout: After = (ms, work) => {
  const timer = setTimeout(work, ms);
  return () => clearTimeout(timer);
};

/** The answer, or `late()` when there is none within `ms`; the work goes on and its result is dropped. Rejects as the answer or `late` does. */
export async function within<T, L = T>(after: After, ms: number, answer: Promise<T>, late: () => L): Promise<T | L> {
  let cancel: (() => void) | undefined;
  const timeout = new Promise<void>((resolve) => {
    cancel = after(ms, resolve);
  });
  try {
    return await Promise.race([answer, timeout.then(late)]);
  } finally {
    cancel?.();
  }
}
