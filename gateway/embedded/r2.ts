/**
 * An R2 bucket on this machine: the service behind workerd's `r2Bucket` binding. Objects are plain files, so that a person can
 * read and edit their agent's workspace; what a file can't say (etag, metadata, checksums) is in a table beside it.
 *
 * The files are the truth. A file that a person added is an object; one that they edited has a new etag; one that they deleted
 * is gone. A row is believed only while size and time of the file are what they were when its content was last read, and that
 * reading was late enough to tell a later change (`settled`).
 *
 * A put writes an intent, then the file, then row and intent in one transaction. After a crash in between, the content says
 * which of both happened. So an etag never stands for other bytes than its own.
 *
 * Not here: multipart uploads, storage classes, customer keys; a key that needs a folder where a file is (`a` and `a/b`).
 * Links are never followed: they could lead out of the workspace.
 *
 * Configuration (see README.md beside this): bindings NS (this class) and FS (disk service, writable).
 */
import { DurableObject } from "cloudflare:workers";
import { conditionsHold, parseRangeHeader, resolveRange } from "./conditions.ts";
import { Disk, type FileStat } from "./disk.ts";
import { keyProblem, keyToNames } from "./keys.ts";
import { keysIn } from "./walk.ts";
import {
  CODE,
  HASHES,
  MAX_OBJECT_BYTES,
  R2Failure,
  answer,
  encodeCursor,
  failure,
  objectJson,
  parseRead,
  parseWrite,
  toHex,
  type Checksums,
  type HashName,
  type ListRequest,
  type ObjectInfo,
  type PutRequest,
  type ReadRequest,
} from "./wire.ts";

interface Env {
  readonly NS: DurableObjectNamespace;
  readonly FS: Fetcher;
}
interface Row extends ObjectInfo {
  readonly mtime: number;
  /** When the content was known to be this etag's, epoch ms. */
  readonly checkedAt: number;
}

type StoredRow = {
  key: string;
  version: string;
  size: number;
  etag: string;
  uploaded: number;
  http: string;
  custom: string;
  checksums: string;
  mtime: number;
  checkedAt: number;
};
const rowOf = (row: StoredRow): Row => ({
  ...row,
  http: JSON.parse(row.http),
  custom: JSON.parse(row.custom),
  checksums: JSON.parse(row.checksums),
});

const FORMAT = 1;
const SCHEMA = `
CREATE TABLE IF NOT EXISTS format (version INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS objects (
  key TEXT PRIMARY KEY, version TEXT NOT NULL, size INTEGER NOT NULL, etag TEXT NOT NULL, uploaded INTEGER NOT NULL,
  http TEXT NOT NULL, custom TEXT NOT NULL, checksums TEXT NOT NULL, mtime INTEGER NOT NULL, checkedAt INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS intents (
  key TEXT PRIMARY KEY, version TEXT NOT NULL, uploaded INTEGER NOT NULL, http TEXT NOT NULL, custom TEXT NOT NULL, checksums TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`;
/** Up to here an object is handled in memory, above it is streamed. */
const BUFFER_BYTES = 1 << 20;
/** The runtime takes at most 1 MiB of metadata; a page of a list ends well before. */
const PAGE_CHARS = 256 * 1024;
const PARALLEL_STATS = 64;
/** A reader that meets a file in the middle of being replaced looks again this often. */
const MAX_LOOKS = 5;

export class R2 extends DurableObject<Env> {
  readonly #sql: SqlStorage;
  readonly #disk: Disk;
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#disk = new Disk(env.FS);
    ctx.storage.transactionSync(() => {
      this.#sql.exec(SCHEMA);
      const format = this.#sql.exec<{ version: number }>("SELECT version FROM format").toArray()[0]?.version;
      if (format === undefined) this.#sql.exec("INSERT INTO format VALUES (?)", FORMAT);
      else if (format > FORMAT) throw new Error("This workspace was written by a newer GSV. Update GSV.");
    });
  }

  override async fetch(request: Request): Promise<Response> {
    try {
      return request.method === "PUT"
        ? await this.#write(request)
        : await this.#read(parseRead(request.headers.get("cf-r2-request") ?? ""));
    } catch (error) {
      if (error instanceof R2Failure) return failure(error);
      console.error("r2:", error);
      return failure(
        new R2Failure(
          500,
          CODE.internal,
          "The workspace folder could not be read or written. Is the disk full, or the folder not writable?",
        ),
      );
    }
  }

  // ---------------------------------------------------------------- reading

  async #read(request: ReadRequest): Promise<Response> {
    if (request.method === "list") return this.#list(request);
    if (request.method === "head") return answer(objectJson(await this.#require(request.key)));

    for (let look = 1; ; look++) {
      const row = await this.#require(request.key);
      if (!conditionsHold(request.onlyIf, row)) {
        return failure(new R2Failure(412, CODE.preconditionFailed, "A precondition did not hold."), objectJson(row));
      }
      const asked = request.rangeHeader === undefined ? request.range : parseRangeHeader(request.rangeHeader);
      const range = asked && resolveRange(asked, row.size);
      if (range === null) throw new R2Failure(416, CODE.invalidRange, "The range is not within the object.");
      const json = { ...objectJson(row), ...(range && { range: { offset: String(range.offset), length: String(range.length) } }) };
      const bytes = range?.length ?? row.size;
      if (bytes === 0) return answer(json, new Uint8Array());

      const file = await this.#disk.open(keyToNames(request.key), range);
      if (file !== null && sameFile(file, row)) {
        return answer(json, bytes <= BUFFER_BYTES ? new Uint8Array(await new Response(file.body).arrayBuffer()) : file.body, bytes);
      }
      await file?.body.cancel();
      if (look === MAX_LOOKS) throw new R2Failure(503, CODE.internal, "The file keeps changing. Try again.");
    }
  }

  async #require(key: string): Promise<Row> {
    const row = keyProblem(key) === null ? await this.#alone(key, () => this.#observe(key)) : undefined;
    if (row === undefined) throw new R2Failure(404, CODE.noSuchKey, "The specified key does not exist.");
    return row;
  }

  async #list(request: ListRequest): Promise<Response> {
    const objects: Record<string, unknown>[] = [];
    const prefixes: string[] = [];
    const walk = keysIn(this.#disk, request.prefix, request.after);
    let chars = 0;
    let last = request.after;
    let truncated = false;
    let batch: string[] = [];
    const settleBatch = async (): Promise<void> => {
      const rows = this.#settledRows(batch);
      for (const row of await Promise.all(batch.map((key) => this.#listed(key, rows.get(key))))) {
        if (row === undefined) continue;
        const json = objectJson(row, request.include);
        chars += JSON.stringify(json).length;
        objects.push(json);
      }
      batch = [];
    };

    let skip: string | undefined;
    for (;;) {
      const { value: found, done } = await walk.next(skip);
      if (done === true) break;
      skip = undefined;
      const { key } = found;
      if (objects.length + batch.length + prefixes.length >= request.limit || chars > PAGE_CHARS) {
        truncated = true;
        break;
      }
      const cut = request.delimiter === "" ? -1 : key.indexOf(request.delimiter, request.prefix.length);
      if (cut >= 0) {
        const group = key.slice(0, cut + request.delimiter.length);
        skip = group;
        prefixes.push(group);
        chars += group.length + 8;
        // The next page starts after everything in the group.
        last = `${group}\u{10FFFF}`;
        continue;
      }
      last = key;
      batch.push(key);
      if (batch.length >= PARALLEL_STATS) await settleBatch();
    }
    await settleBatch();
    return answer({ objects, truncated, delimitedPrefixes: prefixes, ...(truncated ? { cursor: encodeCursor(last) } : {}) });
  }

  /** Rows that are believed while their files have the same size and time, read at once: a list looks at many. */
  #settledRows(keys: readonly string[]): ReadonlyMap<string, Row> {
    const isWriting = this.#sql.exec("SELECT 1 FROM intents LIMIT 1").toArray().length > 0;
    if (isWriting) return new Map();
    const rows = this.#sql
      .exec<StoredRow>("SELECT o.* FROM json_each(?) k CROSS JOIN objects o ON o.key = k.value", JSON.stringify(keys))
      .toArray()
      .map(rowOf)
      .filter((row) => settled(row) && !this.#queues.has(row.key));
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

  async #write(http: Request): Promise<Response> {
    const { body } = http;
    if (body === null) throw new R2Failure(400, CODE.invalidArgument, "The request has no metadata.");
    try {
      return await this.#writeFrom(http, body);
    } catch (error) {
      // An answer before the body's end would break the sender's pipe, and the sender would not see the answer.
      if (!body.locked) await body.pipeTo(new WritableStream()).catch(() => undefined);
      throw error;
    }
  }

  async #writeFrom(http: Request, body: ReadableStream<Uint8Array>): Promise<Response> {
    const size = Number(http.headers.get("cf-r2-metadata-size"));
    if (!Number.isInteger(size) || size <= 0 || size > BUFFER_BYTES)
      throw new R2Failure(400, CODE.invalidArgument, "The request has no metadata.");
    const request = parseWrite(new TextDecoder().decode(await readExactly(body, size)));
    if (request.method === "delete") {
      await this.#delete(request.keys);
      return new Response(null);
    }
    const total = Number(http.headers.get("content-length") ?? Number.NaN);
    if (!(total >= size)) throw new R2Failure(411, CODE.invalidArgument, "The object's length is not known.");
    const bytes = total - size;
    if (bytes > MAX_OBJECT_BYTES) throw new R2Failure(400, CODE.tooLarge, "The object is too large.");
    const problem = keyProblem(request.key);
    if (problem !== null) throw new R2Failure(400, CODE.invalidKey, problem);
    return answer(objectJson(await this.#alone(request.key, () => this.#put(request, body, bytes))));
  }

  async #put(request: PutRequest, body: ReadableStream<Uint8Array>, bytes: number): Promise<Row> {
    const { key } = request;
    const names = keyToNames(key);
    const before = await this.#observe(key);
    if (!conditionsHold(request.onlyIf, before)) throw new R2Failure(412, CODE.preconditionFailed, "A precondition did not hold.");
    if (before === undefined) {
      const look = await this.#disk.look(names);
      if (look === "folder") throw new R2Failure(400, CODE.invalidKey, "There is a folder of this name.");
      if (look === "blocked") throw new R2Failure(400, CODE.invalidKey, "A file or link is where this key needs a folder.");
    }
    // Small objects are checked before anything is touched; large ones while they stream, before the file takes their place.
    const wanted: readonly HashName[] = [
      "md5",
      ...HASHES.map(({ name }) => name).filter((name) => name !== "md5" && request.expected[name] !== undefined),
    ];
    const small = bytes <= BUFFER_BYTES ? await readExactly(body, bytes) : null;
    let checksums: Checksums = small === null ? {} : verified(await hashBytes(small, wanted), request.expected);

    const checkedAt = Date.now();
    const expected = small === null ? request.expected : checksums;
    const intent = {
      key,
      version: crypto.randomUUID(),
      uploaded: checkedAt,
      http: request.http,
      custom: request.custom,
      checksums: expected,
    };
    this.#sql.exec(
      "INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?, ?)",
      key,
      intent.version,
      intent.uploaded,
      JSON.stringify(intent.http),
      JSON.stringify(intent.custom),
      JSON.stringify(intent.checksums),
    );
    try {
      if (small !== null) await this.#disk.write(names, small);
      else checksums = await this.#stream(names, body, bytes, wanted, request.expected);
    } catch (error) {
      await this.#resolveIntent(key);
      throw error;
    }
    const stat = await this.#disk.stat(names);
    // The file was deleted or changed in the meantime; the other change stays.
    if (stat === null || stat.size !== bytes) {
      this.#forgetIntent(key);
      throw new R2Failure(503, CODE.internal, "The file was changed while it was being written. Try again.");
    }
    const md5 = checksums.md5 ?? "";
    const row: Row = { ...intent, size: bytes, etag: md5, checksums, mtime: stat.mtime, checkedAt };
    this.#save(row);
    return row;
  }

  async #stream(
    names: readonly string[],
    body: ReadableStream<Uint8Array>,
    bytes: number,
    wanted: readonly HashName[],
    expected: Checksums,
  ): Promise<Checksums> {
    const hashes = new Hashes(wanted);
    let checksums: Checksums = {};
    let failed: unknown;
    // The last chunk waits until the whole is verified: the disk service has then never seen the end of a wrong body.
    let last: Uint8Array | undefined;
    const checking = new TransformStream<Uint8Array, Uint8Array>({
      async transform(chunk, controller) {
        await hashes.write(chunk);
        if (last !== undefined) controller.enqueue(last);
        last = chunk;
      },
      async flush(controller) {
        checksums = verified(await hashes.end(), expected);
        if (last !== undefined) controller.enqueue(last);
      },
    });
    const fixed = new FixedLengthStream(bytes);
    const copying = body
      .pipeThrough(checking)
      .pipeTo(fixed.writable)
      .catch((error: unknown) => {
        failed = error;
      });
    try {
      await this.#disk.write(names, fixed.readable);
      await copying;
    } catch (error) {
      await copying;
      throw failed instanceof R2Failure ? failed : error;
    }
    return checksums;
  }

  async #delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      if (keyProblem(key) !== null) continue;
      await this.#alone(key, async () => {
        if ((await this.#observe(key)) !== undefined) await this.#disk.remove(keyToNames(key));
        this.#forget(key);
      });
    }
  }

  // ---------------------------------------------------------------- files and rows

  /** The object as the file now is; undefined when there is none. Only inside `#alone(key)`. */
  async #observe(key: string): Promise<Row | undefined> {
    await this.#resolveIntent(key);
    const names = keyToNames(key);
    for (let look = 1; look <= MAX_LOOKS; look++) {
      const stat = await this.#disk.stat(names);
      const row = this.#row(key);
      if (stat === null) {
        if (row !== undefined) this.#forget(key);
        return undefined;
      }
      if (row !== undefined && sameFile(stat, row) && settled(row)) return row;
      if ((row === undefined || !sameFile(stat, row)) && (await this.#disk.look(names)) !== "file") {
        if (row !== undefined) this.#forget(key);
        return undefined;
      }
      const content = await this.#hashFile(names, ["md5"]);
      if (content === null || !sameFile(content, stat)) continue;
      const { checkedAt } = content;
      const md5 = content.checksums.md5 ?? "";
      if (row !== undefined && row.size === stat.size && (row.checksums.md5 ?? row.etag) === md5) {
        const seen: Row = { ...row, mtime: stat.mtime, checkedAt };
        if (row.mtime !== stat.mtime || settled(seen)) this.#save(seen);
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
      this.#save(edited);
      return edited;
    }
    throw new R2Failure(503, CODE.internal, "The file keeps changing. Try again.");
  }

  /** After a crash between intent and row: did the file get its new content? */
  async #resolveIntent(key: string): Promise<void> {
    const intent = this.#sql
      .exec<{ version: string; uploaded: number; http: string; custom: string; checksums: string }>(
        "SELECT * FROM intents WHERE key = ?",
        key,
      )
      .toArray()[0];
    if (intent === undefined) return;
    const names = keyToNames(key);
    const intended: Checksums = JSON.parse(intent.checksums);
    const content =
      (await this.#disk.look(names)) === "file"
        ? await this.#hashFile(names, ["md5", ...HASHES.map(({ name }) => name).filter((name) => intended[name] !== undefined)])
        : null;
    const before = this.#row(key);
    const asBefore =
      before !== undefined && content !== null && before.size === content.size && before.checksums.md5 === content.checksums.md5;
    if (
      content === null ||
      asBefore ||
      HASHES.some(({ name }) => intended[name] !== undefined && intended[name] !== content.checksums[name])
    ) {
      this.#forgetIntent(key);
      return;
    }
    const { size, mtime, checkedAt, checksums } = content;
    this.#save({
      key,
      version: intent.version,
      size,
      etag: checksums.md5 ?? "",
      uploaded: intent.uploaded,
      http: JSON.parse(intent.http),
      custom: JSON.parse(intent.custom),
      checksums,
      mtime,
      checkedAt,
    });
  }

  async #hashFile(
    names: readonly string[],
    wanted: readonly HashName[],
  ): Promise<(FileStat & { checksums: Checksums; checkedAt: number }) | null> {
    const checkedAt = Date.now();
    const file = await this.#disk.open(names);
    if (file === null) return null;
    const hashes = new Hashes(wanted);
    for await (const chunk of file.body) await hashes.write(chunk);
    return { size: file.size, mtime: file.mtime, checksums: await hashes.end(), checkedAt };
  }

  #row(key: string): Row | undefined {
    const row = this.#sql.exec<StoredRow>("SELECT * FROM objects WHERE key = ?", key).toArray()[0];
    return row && rowOf(row);
  }

  #save(row: Row): void {
    this.ctx.storage.transactionSync(() => {
      this.#forgetIntent(row.key);
      this.#sql.exec(
        "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row.key,
        row.version,
        row.size,
        row.etag,
        row.uploaded,
        JSON.stringify(row.http),
        JSON.stringify(row.custom),
        JSON.stringify(row.checksums),
        row.mtime,
        row.checkedAt,
      );
    });
  }
  #forgetIntent(key: string): void {
    this.#sql.exec("DELETE FROM intents WHERE key = ?", key);
  }
  #forget(key: string): void {
    this.ctx.storage.transactionSync(() => {
      this.#forgetIntent(key);
      this.#sql.exec("DELETE FROM objects WHERE key = ?", key);
    });
  }

  /** One at a time for each key, in order. */
  async #alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#queues.get(key) ?? Promise.resolve()).then(work, work);
    this.#queues.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#queues.get(key) === turn) this.#queues.delete(key);
    }
  }
}

/** The next `size` bytes; the rest stays in the stream. */
async function readExactly(stream: ReadableStream<Uint8Array>, size: number): Promise<Uint8Array> {
  if (size === 0) return new Uint8Array();
  const reader = stream.getReader({ mode: "byob" });
  const { value } = await reader.readAtLeast(size, new Uint8Array(size));
  reader.releaseLock();
  if (value === undefined || value.length !== size) throw new R2Failure(400, CODE.invalidArgument, "The request ended too early.");
  return value;
}

const sameFile = (a: FileStat, b: FileStat): boolean => a.size === b.size && a.mtime === b.mtime;

/**
 * Times of files have whole seconds. Content that was read in the second of the file's own time (or before its end, with a
 * tenth for slow clocks) may have been changed once more in that second; content read later can't have been unnoticed.
 */
const settled = (row: Row): boolean => row.checkedAt >= (row.mtime + 1) * 1000 + 100;

class Hashes {
  readonly #streams: readonly { name: HashName; writer: WritableStreamDefaultWriter<Uint8Array>; digest: Promise<ArrayBuffer> }[];
  constructor(names: readonly HashName[]) {
    this.#streams = HASHES.filter(({ name }) => names.includes(name)).map(({ name, algorithm }) => {
      const stream = new crypto.DigestStream(algorithm);
      return { name, writer: stream.getWriter(), digest: stream.digest };
    });
  }
  async write(chunk: Uint8Array): Promise<void> {
    for (const { writer } of this.#streams) await writer.write(chunk);
  }
  async end(): Promise<Checksums> {
    const sums: { [name in HashName]?: string } = {};
    for (const { name, writer, digest } of this.#streams) {
      await writer.close();
      sums[name] = toHex(new Uint8Array(await digest));
    }
    return sums;
  }
}
async function hashBytes(bytes: Uint8Array, names: readonly HashName[]): Promise<Checksums> {
  const hashes = new Hashes(names);
  await hashes.write(bytes);
  return hashes.end();
}
/** `actual`, when it is what the sender expected. */
function verified(actual: Checksums, expected: Checksums): Checksums {
  for (const { name } of HASHES) {
    if (expected[name] !== undefined && expected[name] !== actual[name]) {
      throw new R2Failure(400, CODE.badDigest, `The ${name} checksum does not fit the content.`);
    }
  }
  return actual;
}

export default {
  fetch: (request: Request, env: Env): Promise<Response> => env.NS.getByName("gsv-storage").fetch(request),
};
