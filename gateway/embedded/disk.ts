/**
 * A folder behind workerd's disk service, as files by name list. What the service does is known from trying it:
 * PUT is atomic (temporary file, rename) and makes parents; DELETE of a folder removes all of it; links are followed;
 * `Last-Modified` has whole seconds; an end of a range beyond the file gives the whole file.
 * So this module never deletes or opens what is not a plain file or an empty folder. It knows nothing of objects. Dotfiles are listed
 * (`allowDotfiles`), so that a folder which has some is not taken for an empty one; they are used for nothing else, because no key has their names.
 */

export interface FileStat {
  readonly size: number;
  /** Whole seconds since the epoch. */
  readonly mtime: number;
}
export interface Entry {
  readonly name: string;
  readonly kind: "file" | "folder";
}
export interface OpenFile extends FileStat {
  /** Bytes of the part that was asked for. */
  readonly body: ReadableStream<Uint8Array>;
}

export const sameFile = (a: FileStat, b: FileStat): boolean => a.size === b.size && a.mtime === b.mtime;

const urlOf = (names: readonly string[]): string => `http://disk/${names.map(encodeURIComponent).join("/")}`;

export class Disk {
  readonly #service: Fetcher;
  constructor(service: Fetcher) {
    this.#service = service;
  }

  /** Null when there is no such file: nothing, or a folder. */
  async stat(names: readonly string[]): Promise<FileStat | null> {
    return statOf(await this.#service.fetch(urlOf(names), { method: "HEAD" }));
  }

  /** The open file stays what it was when it is replaced meanwhile. `range` must lie inside the file. */
  async open(names: readonly string[], range?: { offset: number; length: number }): Promise<OpenFile | null> {
    const headers = range === undefined ? {} : { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` };
    const response = await this.#service.fetch(urlOf(names), { headers });
    const stat = statOf(response);
    if (stat === null || response.body === null) {
      await response.body?.cancel();
      return null;
    }
    return { ...stat, body: response.body };
  }

  /** Whole or not at all. The stream must have a known length. */
  async write(names: readonly string[], body: ReadableStream<Uint8Array> | Uint8Array): Promise<void> {
    const response = await this.#service.fetch(urlOf(names), { method: "PUT", body });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the disk service answered ${response.status} to a write`);
  }

  /** Only for names that `stat` says are a file, and for an empty folder: of a folder all that is in it goes. */
  async remove(names: readonly string[]): Promise<void> {
    const response = await this.#service.fetch(urlOf(names), { method: "DELETE" });
    await response.body?.cancel();
    if (!response.ok && response.status !== 404) throw new Error(`the disk service answered ${response.status} to a delete`);
  }

  /** Removes a folder without entries, and the folders above it that are empty then, but for the first `kept`. */
  async removeEmpty(names: readonly string[], kept: number): Promise<void> {
    for (let depth = names.length; depth > kept; depth--) {
      const folder = names.slice(0, depth);
      if (await this.#hasEntries(folder)) return;
      await this.remove(folder);
    }
  }
  /** Removes a folder in which nothing is left but empty folders. False: something else is in it, so all of it stays. */
  async removeEmptyTree(names: readonly string[]): Promise<boolean> {
    const tree = await this.#emptyTree(names);
    if (tree === undefined) return false;
    for (const folder of tree) {
      // Something may have been written into it meanwhile.
      if (await this.#hasEntries(folder)) return false;
      await this.remove(folder);
    }
    return true;
  }
  /** The folder and those in it, each after what is in it. Undefined: something else is in one of them. */
  async #emptyTree(names: readonly string[]): Promise<readonly (readonly string[])[] | undefined> {
    const tree: (readonly string[])[] = [];
    for (const { name, type } of await this.#listing(names)) {
      const below = type === "directory" && !isDotfile(name) ? await this.#emptyTree([...names, name]) : undefined;
      if (below === undefined) return undefined;
      tree.push(...below);
    }
    return [...tree, names];
  }
  /** Of any kind. */
  async #hasEntries(names: readonly string[]): Promise<boolean> {
    const response = await this.#service.fetch(urlOf(names));
    if (!response.ok || !isFolder(response)) {
      await response.body?.cancel();
      return true;
    }
    return (await response.json<readonly unknown[]>()).length > 0;
  }

  /** Everything in a folder; no folder, nothing. */
  async #listing(names: readonly string[]): Promise<readonly { name: string; type: string }[]> {
    const response = await this.#service.fetch(urlOf(names));
    if (!response.ok || !isFolder(response)) {
      await response.body?.cancel();
      return [];
    }
    return response.json<readonly { name: string; type: string }[]>();
  }

  /** Plain files and folders in a folder, in no order. Links, dotfiles and everything else are left out; no folder, no entries. */
  async entries(names: readonly string[]): Promise<Entry[]> {
    return (await this.#listing(names)).flatMap(({ name, type }): Entry[] => {
      if (isDotfile(name)) return [];
      if (type === "file") return [{ name, kind: "file" }];
      return type === "directory" ? [{ name, kind: "folder" }] : [];
    });
  }

  /** What is in the way of `names`, looking at each step from the top, so that a link is seen as one. */
  async look(names: readonly string[]): Promise<"file" | "free" | "folder" | "blocked"> {
    for (let depth = 0; depth < names.length; depth++) {
      const response = await this.#service.fetch(urlOf(names.slice(0, depth)));
      if (!response.ok || !isFolder(response)) {
        await response.body?.cancel();
        return depth === 0 ? "free" : "blocked";
      }
      const listing = await response.json<readonly { name: string; type: string }[]>();
      const type = listing.find(({ name }) => name === names[depth])?.type;
      const last = depth === names.length - 1;
      if (type === undefined) return "free";
      if (type === "directory") {
        if (last) return "folder";
      } else if (type === "file") return last ? "file" : "blocked";
      else return "blocked";
    }
    return "folder";
  }
}

const isDotfile = (name: string): boolean => name.startsWith(".");

/** Files have a length; a folder's listing is streamed without one. */
const isFolder = (response: Response): boolean =>
  !response.headers.has("content-length") && response.headers.get("content-type") === "application/json";

function statOf(response: Response): FileStat | null {
  const length = response.headers.get("content-length");
  const modified = Date.parse(response.headers.get("last-modified") ?? "");
  if (!response.ok || length === null || Number.isNaN(modified)) return null;
  const total = /\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1] ?? length;
  return { size: Number(total), mtime: Math.floor(modified / 1000) };
}
