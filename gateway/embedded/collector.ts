/**
 * Streams of the runtime hold memory of their own until the engine's next full collection, which does not count that memory: the collection
 * of a small heap may not come while a file of 4 GiB passes, and 100 MB wait for it. A memory of WebAssembly counts with its whole size and
 * takes none before it is used. So one that is dropped at once makes the collection come.
 */
const PAGE_BYTES = 65_536;

/** Lets this much count for the next collection. */
export function countForCollection(bytes: number): void {
  void new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE_BYTES) });
}
