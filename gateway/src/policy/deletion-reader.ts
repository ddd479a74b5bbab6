/** Reads what commands delete (rule PO13), with a part that is loaded when the first call is decided: a start without a tool needs none of it. */
import type { DeletionReader } from "./deletion/reading.ts";

/** Fails closed: before it is loaded, and when it can't be, each command may delete many files. */
const NOT_LOADED: DeletionReader = { deletionOf: () => "many", deletesMany: () => true, deleterIn: () => undefined };
let reader = NOT_LOADED;

export const isReaderLoaded = (): boolean => reader !== NOT_LOADED;
/** Never rejects; the next call tries it again. */
export async function loadDeletionReader(): Promise<void> {
  if (isReaderLoaded()) return;
  try {
    reader = (await import("./deletion/reader.lazy.ts")).reader;
  } catch {
    // Until then each command is asked about.
  }
}
export const deletionOf: DeletionReader["deletionOf"] = (text) => reader.deletionOf(text);
export const deletesMany: DeletionReader["deletesMany"] = (words) => reader.deletesMany(words);
export const deleterIn: DeletionReader["deleterIn"] = (text) => reader.deleterIn(text);
