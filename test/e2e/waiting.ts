/** Waits of the end-to-end tests: for conditions, never for time. */

/** Longer than any step takes on a slow machine with a cold disk; a test that reaches it has failed. */
export const DEADLINE_MS = 120_000;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Looks every `everyMs`: short for files and processes, longer for requests to the gateway, which limits their rate. A look that takes
 * long, such as the start of a program, is followed by twice that time, so that waiting leaves the processors to what is waited for.
 */
export async function until<T>(what: string, look: () => T | Promise<T>, deadlineMs = DEADLINE_MS, everyMs = 10): Promise<NonNullable<T>> {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const began = performance.now();
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`${what}: not true within ${deadlineMs} ms`);
    const took = performance.now() - began;
    await new Promise((wake) => setTimeout(wake, Math.max(everyMs, Math.min(2 * took, LONGEST_PAUSE_MS))));
  }
}
/** The same for a promise; `what` describes what was waited for. */
export function within<T>(what: () => string, promise: Promise<T>, deadlineMs = DEADLINE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what()} (waited ${deadlineMs} ms)`)), deadlineMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
