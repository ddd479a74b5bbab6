/** Evictions that a test asks for. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";

type Options = Parameters<typeof evictDurableObject>[1];

/**
 * The object loses its memory, and its next use creates it again. The runtime also evicts an idle object by itself, on a slow machine in the
 * middle of a test, and then refuses to do it again: the object is used once more, so that `options` hold for its sockets, too.
 */
export async function evict<T extends Rpc.DurableObjectBranded | undefined>(stub: DurableObjectStub<T>, options?: Options): Promise<void> {
  try {
    await evictDurableObject(stub, options);
  } catch (error) {
    if (!(error instanceof Error && error.message.includes("not currently running"))) throw error;
    await runInDurableObject(stub, () => undefined);
    await evictDurableObject(stub, options);
  }
}
