/**
 * Makes the garbage collection of the engine run while a large file passes, in the Workers on a person's own machine. The engine does not count
 * the memory of native streams and of callbacks, so for a small heap no collection may come while 4 GiB pass, and 100 MB wait for it. A memory
 * of WebAssembly is counted at its full size and uses no pages: one that is dropped at once makes the collection come. Best effort.
 */
const PAGE_BYTES = 65_536;
/** The engine collects after sixteen of them. */
const COUNTED_BYTES = 4 * 1024 * 1024;

/** `bytes` are about to pass in a stream. False: the process has no addresses left for such a memory, so the collection comes late. */
export function addGcPressure(bytes: number): boolean {
  try {
    void new WebAssembly.Memory({ initial: Math.ceil(Math.min(bytes, COUNTED_BYTES) / PAGE_BYTES) });
    return true;
  } catch {
    return false;
  }
}
