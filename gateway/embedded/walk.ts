/** Keys in a folder tree, in key order, skipping what a list request can't contain. Never reads a file. */
import { compareKeys, decodeSegment } from "./keys.ts";
import type { Entry } from "./disk.ts";

export interface Folder {
  entries(names: readonly string[]): Promise<Entry[]>;
}
export interface Found {
  readonly key: string;
  readonly names: readonly string[];
}

/**
 * Keys that start with `prefix` and are greater than `after`, ascending. Give `next(bound)` a bound to leave out everything
 * that starts with it: a whole folder is then skipped without being opened.
 */
export async function* keysIn(disk: Folder, prefix: string, after: string): AsyncGenerator<Found, void, string | undefined> {
  yield* folder([], "");

  /** Resolves to the bound that was given last, so that the folders above can skip by it too. */
  async function* folder(names: readonly string[], path: string): AsyncGenerator<Found, string | undefined, string | undefined> {
    const children = (await disk.entries(names)).flatMap(({ name, kind }) => {
      const segment = decodeSegment(name);
      if (segment === null) return [];
      // With its slash, a folder sorts exactly where its keys do.
      const key = path + segment + (kind === "folder" ? "/" : "");
      return wanted(key, kind) ? [{ key, names: [...names, name], kind }] : [];
    });
    children.sort((a, b) => compareKeys(a.key, b.key));
    let skip: string | undefined;
    for (const child of children) {
      if (skip !== undefined && child.key.startsWith(skip)) continue;
      const bound: string | undefined =
        child.kind === "folder" ? yield* folder(child.names, child.key) : yield { key: child.key, names: child.names };
      skip = bound ?? skip;
    }
    return skip;
  }

  function wanted(key: string, kind: Entry["kind"]): boolean {
    if (kind === "file") return key.startsWith(prefix) && compareKeys(key, after) > 0;
    const onTheWay = key.startsWith(prefix) || prefix.startsWith(key);
    return onTheWay && (after.startsWith(key) || compareKeys(key, after) > 0);
  }
}
