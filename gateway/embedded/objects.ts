/**
 * Objects as files with rows beside them. The files are the source of truth. A file that a person added is an object; one that they edited has a
 * new etag; one that they deleted is gone. A row is believed only while size and time of the file are what they were when its content
 * was last read, and that reading was late enough to tell a later change (`settled`).
 *
 * A put writes an intent, then the file, then row and intent in one transaction. After a crash in between, the content says
 * which of both happened. So an etag never stands for other bytes than its own, with the exceptions of `isTrusted`.
 */
import { pieces } from "../../protocol/runtime/pieces.ts";
import { conditionsHold } from "./conditions.ts";
import { sameFile, type Disk, type FileStat } from "./disk.ts";
import { Hashes, hashBytes, streamVerified, verified, wantedOf } from "./hashes.ts";
import { isPart, keyToNames, TRANSFERS } from "./keys.ts";
import { Queues } from "./queues.ts";
import type { Intent, Row, Rows } from "./rows.ts";
import type { Store } from "./store.ts";
import { type Found, keysIn } from "./walk.ts";
import { BUFFER_BYTES, CODE, HASHES, MAX_LOOKS, R2Failure, readExactly, type Checksums, type HashName, type PutRequest } from "./wire.ts";

/** Pairs of buffers that are kept: one for a part that is stored, and one for a file that is joined. */
const MAX_BUFFERS = 2;

/**
 * Rows of large files are trusted without a second read, because it takes long: a change within the second of the write that keeps the size
 * is not seen. Rows of parts are trusted, because a part is read right after it was stored and no person edits it.
 */
const LARGE_BYTES = 64 * 1024 * 1024;
const isTrusted = (key: string, bytes: number): boolean => bytes >= LARGE_BYTES || isPart(key);

export class Objects implements Store {
  readonly #rows: Rows;
  readonly #disk: Disk;
  readonly #queues = new Queues();
  /** Keys of the puts that are under way. */
  readonly #writing = new Set<string>();
  /** Empty folders that are being removed, as the beginning of the keys in them. */
  readonly #clearing = new Map<string, Promise<unknown>>();
  /** Buffers for reuse: unreferenced ones would stay until a collection. */
  readonly #buffers: ArrayBuffer[][] = [];

  constructor(rows: Rows, disk: Disk) {
    this.#rows = rows;
    this.#disk = disk;
  }

  /** The object as its file now is; undefined when there is none. */
  one(key: string): Promise<Row | undefined> {
    return this.#alone(key, () => this.#observe(key));
  }
  /** A row that is believed while its file has the same size and time, which `open` compares. An empty object is not opened. */
  seen(key: string): Row | undefined {
    const row = this.#settledRows([key]).get(key);
    return row?.size === 0 ? undefined : row;
  }
  /** The same as `one` for many keys. */
  many(keys: readonly string[]): Promise<(Row | undefined)[]> {
    const rows = this.#settledRows(keys);
    return Promise.all(keys.map((key) => this.#listed(key, rows.get(key))));
  }
  async open(row: Row, range?: { offset: number; length: number }): Promise<ReadableStream<Uint8Array> | null> {
    const file = await this.#disk.open(keyToNames(row.key), range);
    if (file !== null && sameFile(file, row)) return file.body;
    await file?.body.cancel();
    return null;
  }
  keys(prefix: string, after: string): AsyncGenerator<Found, void, string | undefined> {
    return keysIn(this.#disk, prefix, after);
  }
  put(request: PutRequest, body: ReadableStream<Uint8Array>, bytes: number): Promise<Row> {
    const { key } = request;
    return this.#alone(key, async () => {
      // The removal of an empty folder removes what is put there meanwhile.
      for (let busy = this.#clearingAbove(key); busy !== undefined; busy = this.#clearingAbove(key)) await busy;
      this.#writing.add(key);
      try {
        return await this.#put(request, body, bytes);
      } finally {
        this.#writing.delete(key);
      }
    });
  }
  delete(key: string): Promise<void> {
    return this.#alone(key, async () => {
      // The content does not matter: it is removed in any case.
      const names = keyToNames(key);
      const stat = await this.#disk.stat(names);
      const row = this.#rows.one(key);
      const isKnown = stat !== null && row !== undefined && sameFile(stat, row);
      if (stat !== null && (isKnown || (await this.#disk.look(names)) === "file")) await this.#disk.remove(names);
      this.#rows.forget(key);
      if (isPart(key)) await this.#disk.removeEmpty(names.slice(0, -1), TRANSFERS.length);
    });
  }

  #clearingAbove(key: string): Promise<unknown> | undefined {
    for (const [folder, work] of this.#clearing) if (folded(key).startsWith(folder)) return work;
    return undefined;
  }
  /** Removes the empty folder that has the name of a key: its last file was deleted. False: it is in use. */
  async #clear(key: string): Promise<boolean> {
    const folder = folded(`${key}/`);
    for (const other of this.#writing) if (folded(other).startsWith(folder)) return false;
    const work = this.#disk.removeEmptyTree(keyToNames(key));
    this.#clearing.set(
      folder,
      work.catch(() => undefined),
    );
    try {
      return await work;
    } finally {
      this.#clearing.delete(folder);
    }
  }

  /** Rows that are believed while their files have the same size and time. */
  #settledRows(keys: readonly string[]): ReadonlyMap<string, Row> {
    if (this.#rows.hasIntents()) return new Map();
    const rows = this.#rows.many(keys).filter((row) => settled(row) && !this.#queues.has(row.key));
    return new Map(rows.map((row) => [row.key, row]));
  }
  /** A write that begins meanwhile gives the file another time, because the time of a settled row is over. */
  async #listed(key: string, row: Row | undefined): Promise<Row | undefined> {
    if (row !== undefined) {
      const stat = await this.#disk.stat(keyToNames(key));
      if (stat !== null && sameFile(stat, row)) return row;
    }
    return this.#alone(key, () => this.#observe(key));
  }

  // ---------------------------------------------------------------- writing

  async #put(request: PutRequest, body: ReadableStream<Uint8Array>, bytes: number): Promise<Row> {
    const { key } = request;
    const names = keyToNames(key);
    const before = await this.#observe(key);
    if (!conditionsHold(request.onlyIf, before)) throw new R2Failure(412, CODE.preconditionFailed, "A precondition did not hold.");
    if (before === undefined) {
      const look = await this.#disk.look(names);
      if (look === "folder" && !(await this.#clear(key))) throw new R2Failure(400, CODE.invalidKey, "There is a folder of this name.");
      if (look === "blocked") throw new R2Failure(400, CODE.invalidKey, "A file or link is where this key needs a folder.");
    }
    // Small objects are checked before anything is touched; large ones while they stream, before the file takes their place.
    const wanted = wantedOf(key, request.expected);
    const small = bytes <= BUFFER_BYTES ? await readExactly(body, bytes) : null;
    let checksums: Checksums = small === null ? {} : verified(await hashBytes(small, wanted), request.expected);

    const checkedAt = Date.now();
    const intent: Intent = {
      key,
      version: crypto.randomUUID(),
      uploaded: checkedAt,
      http: request.http,
      custom: request.custom,
      checksums: small === null ? request.expected : checksums,
    };
    this.#rows.intend(intent);
    try {
      if (small !== null) await this.#disk.write(names, small);
      else {
        const buffers = this.#buffers.pop() ?? [];
        const write = (whole: ReadableStream<Uint8Array>): Promise<void> => this.#disk.write(names, whole);
        checksums = await streamVerified(write, body, bytes, wanted, request.expected, buffers);
        this.#keepBuffers(buffers);
      }
    } catch (error) {
      await this.#resolveIntent(key);
      throw error;
    }
    const stat = await this.#disk.stat(names);
    // The file was deleted or changed in the meantime; the other change stays.
    if (stat === null || stat.size !== bytes) {
      this.#rows.forgetIntent(key);
      throw new R2Failure(503, CODE.internal, "The file was changed while it was being written. Try again.");
    }
    const known = isTrusted(key, bytes) ? settledFrom(stat) : checkedAt;
    const row: Row = { ...intent, size: bytes, etag: checksums.md5 ?? intent.version, checksums, mtime: stat.mtime, checkedAt: known };
    this.#rows.save(row);
    return row;
  }

  // ---------------------------------------------------------------- files and rows

  /** The object as the file now is; undefined when there is none. Only inside `#alone(key)`. */
  async #observe(key: string): Promise<Row | undefined> {
    await this.#resolveIntent(key);
    const names = keyToNames(key);
    for (let look = 1; look <= MAX_LOOKS; look++) {
      const stat = await this.#disk.stat(names);
      const row = this.#rows.one(key);
      if (stat === null) {
        if (row !== undefined) this.#rows.forget(key);
        return undefined;
      }
      if (row !== undefined && sameFile(stat, row) && settled(row)) return row;
      if ((row === undefined || !sameFile(stat, row)) && (await this.#disk.look(names)) !== "file") {
        if (row !== undefined) this.#rows.forget(key);
        return undefined;
      }
      const content = await this.#hashFile(names, ["md5"]);
      if (content === null || !sameFile(content, stat)) continue;
      const { checkedAt } = content;
      const md5 = content.checksums.md5 ?? "";
      if (row !== undefined && row.size === stat.size && (row.checksums.md5 ?? row.etag) === md5) {
        const seen: Row = { ...row, mtime: stat.mtime, checkedAt };
        if (row.mtime !== stat.mtime || settled(seen)) this.#rows.save(seen);
        return seen;
      }
      // Edited outside: what was said about the old bytes (custom metadata, other checksums) no longer holds.
      const edited: Row = {
        key,
        version: crypto.randomUUID(),
        size: stat.size,
        etag: md5,
        uploaded: stat.mtime * 1000,
        http: row?.http ?? {},
        custom: [],
        checksums: { md5 },
        mtime: stat.mtime,
        checkedAt,
      };
      this.#rows.save(edited);
      return edited;
    }
    throw new R2Failure(503, CODE.internal, "The file keeps changing. Try again.");
  }

  /** After a crash between intent and row: did the file get its new content? */
  async #resolveIntent(key: string): Promise<void> {
    const intent = this.#rows.intent(key);
    if (intent === undefined) return;
    const names = keyToNames(key);
    const intended = intent.checksums;
    const content =
      (await this.#disk.look(names)) === "file"
        ? await this.#hashFile(names, ["md5", ...HASHES.map(({ name }) => name).filter((name) => intended[name] !== undefined)])
        : null;
    const before = this.#rows.one(key);
    const asBefore =
      before !== undefined && content !== null && before.size === content.size && before.checksums.md5 === content.checksums.md5;
    if (
      content === null ||
      asBefore ||
      HASHES.some(({ name }) => intended[name] !== undefined && intended[name] !== content.checksums[name])
    ) {
      this.#rows.forgetIntent(key);
      return;
    }
    const { size, mtime, checkedAt, checksums } = content;
    this.#rows.save({ ...intent, size, etag: checksums.md5 ?? "", checksums, mtime, checkedAt });
  }

  async #hashFile(
    names: readonly string[],
    wanted: readonly HashName[],
  ): Promise<(FileStat & { checksums: Checksums; checkedAt: number }) | null> {
    const checkedAt = Date.now();
    const file = await this.#disk.open(names);
    if (file === null) return null;
    const hashes = new Hashes(wanted);
    const buffers = this.#buffers.pop() ?? [];
    for await (const piece of pieces(file.body, buffers)) await hashes.write(piece);
    this.#keepBuffers(buffers);
    return { size: file.size, mtime: file.mtime, checksums: await hashes.end(), checkedAt };
  }

  #keepBuffers(buffers: ArrayBuffer[]): void {
    if (this.#buffers.length < MAX_BUFFERS) this.#buffers.push(buffers);
  }

  /** One at a time for each key, in order. */
  #alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#queues.alone(key, work);
  }
}

/** Some disks ignore case. */
const folded = (key: string): string => key.normalize("NFC").toLowerCase();

/**
 * Times of files have whole seconds. Content that was read in the second of the file's own time (or before its end, with a
 * tenth for slow clocks) may have been changed once more in that second; content read later can't have been unnoticed.
 */
const settled = (row: Row): boolean => row.checkedAt >= settledFrom(row);
const settledFrom = ({ mtime }: FileStat): number => (mtime + 1) * 1000 + 100;
