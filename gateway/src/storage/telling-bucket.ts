/** A bucket that tells of its writes of what an agent remembers, so that a recall need not list files that have not changed (gateway rule SE8). */
import type { Bucket } from "./bucket.ts";

const REMEMBERED = /^agents\/[^/]+\/(?:MEMORY\.md$|memory\/|sessions\/)/;

const origins = new WeakMap<Bucket, Bucket>();
/** The bucket below one that tells: what is known of its content is the same for all who use it. */
export const originOf = (bucket: Bucket): Bucket => origins.get(bucket) ?? bucket;

/** `written` is called after each write of a memory file or a transcript, also after one whose answer was lost. Its failure is not one of the write. */
export function tellingBucket(bucket: Bucket, written: () => Promise<void> | void): Bucket {
  const told = async <T>(keys: readonly string[], write: () => Promise<T>): Promise<T> => {
    try {
      return await write();
    } finally {
      if (keys.some((key) => REMEMBERED.test(key)))
        try {
          await written();
        } catch {
          // Without the word the write is noticed a little later.
        }
    }
  };
  const telling: Bucket = {
    get: (key, options) => bucket.get(key, options),
    head: (key) => bucket.head(key),
    list: (options) => bucket.list(options),
    put: (key: string, value: Parameters<Bucket["put"]>[1], options?: R2PutOptions) => told([key], () => bucket.put(key, value, options)),
    delete: (keys) => told(typeof keys === "string" ? [keys] : keys, () => bucket.delete(keys)),
  };
  origins.set(telling, originOf(bucket));
  return telling;
}

/** What the gateway's program has written so far, as a text that changes with each write. After a restart it is another one. */
export class WrittenFiles {
  readonly #instance: string;
  #writes = 0;

  constructor(instance: string) {
    this.#instance = instance;
  }
  written(): void {
    this.#writes++;
  }
  state(): string {
    return `${this.#instance} ${this.#writes}`;
  }
}
