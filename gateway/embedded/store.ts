/** Where the objects of the embedded bucket are: files of a folder (`objects.ts`), or a bucket that a cluster shares (`shared.ts`). */
import type { Row } from "./rows.ts";
import type { PutRequest } from "./wire.ts";

export interface Store {
  /** Undefined when there is no such object. */
  one(key: string): Promise<Row | undefined>;
  /** The object as it was seen last, where `open` tells whether it still is the same; undefined when only `one` does. */
  seen(key: string): Row | undefined;
  many(keys: readonly string[]): Promise<(Row | undefined)[]>;
  put(request: PutRequest, body: ReadableStream<Uint8Array>, bytes: number): Promise<Row>;
  delete(key: string): Promise<void>;
  /** The content of the object as `row` says; null when it is another one by now. `range` must lie inside it. */
  open(row: Row, range?: { offset: number; length: number }): Promise<ReadableStream<Uint8Array> | null>;
  /** As `keysIn` of `walk.ts`. */
  keys(prefix: string, after: string): AsyncGenerator<{ readonly key: string }, void, string | undefined>;
}
