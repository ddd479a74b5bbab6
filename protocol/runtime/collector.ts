/**
 * Best effort, for Workers on a person's own machine. The engine does not count the memory of native streams and of callbacks, so the collection
 * of a small heap may not come while a file of 4 GiB passes, and 100 MB wait for it. A memory of WebAssembly is counted at its full size and
 * uses no pages: one that is dropped at once makes the collection come.
 */
const PAGE_BYTES = 65_536;
/** A sixteenth of what the engine lets add up. */
const COUNTED_BYTES = 4 * 1024 * 1024;
let hasFailed = false;

/** `bytes` are about to pass in a stream. */
export function countForCollection(bytes: number): void {
  try {
    void new WebAssembly.Memory({ initial: Math.ceil(Math.min(bytes, COUNTED_BYTES) / PAGE_BYTES) });
  } catch (error) {
    // It reserves addresses, of which a process may have a limited number. Files pass all the same.
    if (!hasFailed) console.warn("the memory of streams is freed late, because no addresses are left:", error);
    hasFailed = true;
  }
}
