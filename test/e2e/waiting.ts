/** Waits of the end-to-end tests: for conditions, never for time. */

/** Longer than any step takes on a slow machine with a cold disk; a test that reaches it has failed. */
export const DEADLINE_MS = 120_000;

/** Looks every `everyMs`: short for files and processes, longer for requests to the gateway, which limits their rate. */
export async function until<T>(what: string, look: () => T | Promise<T>, deadlineMs = DEADLINE_MS, everyMs = 10): Promise<NonNullable<T>> {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`${what}: not true within ${deadlineMs} ms`);
    await new Promise((wake) => setTimeout(wake, everyMs));
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
