/**
 * The objects of a cluster (rule CL5): rows in the Durable Object, which moves between machines, and their content in the bucket that the
 * cluster shares, one file for each version of an object. A row names a file only when all of it is there; files that no row names are
 * listed until they are removed, so that a crash at any point leaves neither a row without content nor a file for good.
 *
 * The service gives, stores and removes files by name, and can't list. Nothing else changes these files.
 */
import { conditionsHold } from "./conditions.ts";
import { hashBytes, streamVerified, verified, wantedOf } from "./hashes.ts";
import { Queues } from "./queues.ts";
import { RangeReader } from "./range-reader.ts";
import type { Row, Rows } from "./rows.ts";
import type { Store } from "./store.ts";
import { BUFFER_BYTES, CODE, R2Failure, readExactly, type Checksums, type PutRequest } from "./wire.ts";

const PAGE_KEYS = 500;
/** Files that are removed after one change. */
const MOST_REMOVED = 20;

export class SharedObjects implements Store {
  readonly #rows: Rows;
  readonly #unused: Unused;
  readonly #service: Fetcher;
  readonly #queues = new Queues();
  readonly #ranges = new RangeReader((version) => this.#file(version));
  readonly #storage: DurableObjectStorage;

  constructor(rows: Rows, storage: DurableObjectStorage, service: Fetcher) {
    this.#rows = rows;
    this.#unused = new Unused(storage.sql);
    this.#storage = storage;
    this.#service = service;
  }

  one(key: string): Promise<Row | undefined> {
    return Promise.resolve(this.#rows.one(key));
  }
  seen(): undefined {
    return undefined;
  }
  many(keys: readonly string[]): Promise<(Row | undefined)[]> {
    const found = new Map(this.#rows.many(keys).map((row) => [row.key, row]));
    return Promise.resolve(keys.map((key) => found.get(key)));
  }
  put(request: PutRequest, body: ReadableStream<Uint8Array>, bytes: number): Promise<Row> {
    return this.#queues.alone(request.key, () => this.#put(request, body, bytes));
  }
  delete(key: string): Promise<void> {
    return this.#queues.alone(key, async () => {
      const row = this.#rows.one(key);
      if (row === undefined) return;
      this.#storage.transactionSync(() => {
        this.#rows.forget(key);
        this.#unused.add(row.version);
      });
      await this.#clean();
    });
  }
  open(row: Row, range?: { offset: number; length: number }): Promise<ReadableStream<Uint8Array> | null> {
    return range === undefined ? this.#file(row.version) : this.#ranges.read(row.version, range);
  }
  async #file(version: string): Promise<ReadableStream<Uint8Array> | null> {
    const response = await this.#service.fetch(urlOf(version));
    if (response.ok && response.body !== null) return response.body;
    await response.body?.cancel();
    if (response.status === 404) return null;
    throw new Error(`the bucket answered ${response.status} to a read`);
  }
  async *keys(prefix: string, after: string): AsyncGenerator<{ readonly key: string }, void, string | undefined> {
    let from = after;
    let skip: string | undefined;
    for (;;) {
      const page = this.#rows.keys(prefix, from, PAGE_KEYS);
      for (const key of page) {
        if (!key.startsWith(prefix)) return;
        if (skip === undefined || !key.startsWith(skip)) skip = (yield { key }) ?? skip;
      }
      const last = page.at(-1);
      if (last === undefined) return;
      from = skip !== undefined && last.startsWith(skip) ? `${skip}\u{10FFFF}` : last;
    }
  }

  async #put(request: PutRequest, body: ReadableStream<Uint8Array>, bytes: number): Promise<Row> {
    const { key, expected, http, custom } = request;
    const before = this.#rows.one(key);
    if (!conditionsHold(request.onlyIf, before)) throw new R2Failure(412, CODE.preconditionFailed, "A precondition did not hold.");
    const version = crypto.randomUUID();
    const uploaded = Date.now();
    const wanted = wantedOf(key, expected);
    const small = bytes <= BUFFER_BYTES ? await readExactly(body, bytes) : null;
    const known = small === null ? undefined : verified(await hashBytes(small, wanted), expected);
    let checksums: Checksums;
    const release = this.#unused.hold(version);
    try {
      if (small !== null && known !== undefined) {
        await this.#write(version, small);
        checksums = known;
      } else checksums = await streamVerified((whole) => this.#write(version, whole), body, bytes, wanted, expected);
      const row: Row = {
        key,
        version,
        size: bytes,
        etag: checksums.md5 ?? version,
        uploaded,
        http,
        custom,
        checksums,
        mtime: 0,
        checkedAt: 0,
      };
      this.#storage.transactionSync(() => {
        this.#rows.save(row);
        this.#unused.forget(version);
        if (before !== undefined) this.#unused.add(before.version);
      });
      return row;
    } finally {
      release();
      await this.#clean();
    }
  }

  async #write(version: string, body: ReadableStream<Uint8Array> | Uint8Array): Promise<void> {
    const response = await this.#service.fetch(urlOf(version), { method: "PUT", body });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the bucket answered ${response.status} to a write`);
  }

  /** Best effort: what is left is removed after a later change. */
  async #clean(): Promise<void> {
    for (const version of this.#unused.some(MOST_REMOVED)) {
      const response = await this.#service.fetch(urlOf(version), { method: "DELETE" }).catch(() => undefined);
      await response?.body?.cancel();
      if (response === undefined || !(response.ok || response.status === 404)) return;
      this.#unused.forget(version);
    }
  }
}

/** A write that failed here arrives in the bucket within this time, or never. */
const LATE_MS = 600_000;
/** Files that no row names: of writes under way or interrupted, and of objects that were replaced or deleted. */
class Unused {
  readonly #sql: SqlStorage;
  /** Those that are being written. */
  readonly #held = new Set<string>();
  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec("CREATE TABLE IF NOT EXISTS unused (version TEXT PRIMARY KEY, not_before INTEGER NOT NULL) STRICT, WITHOUT ROWID");
    // Writes of an earlier program ended with it.
    sql.exec("UPDATE unused SET not_before = 0");
  }
  /** `notBefore`: a removal before it may be too early. */
  add(version: string, notBefore = 0): void {
    this.#sql.exec("INSERT OR REPLACE INTO unused VALUES (?, ?)", version, notBefore);
  }
  /** While it is written. A write that failed may still arrive. */
  hold(version: string): () => void {
    this.add(version, Date.now() + LATE_MS);
    this.#held.add(version);
    return () => void this.#held.delete(version);
  }
  forget(version: string): void {
    this.#sql.exec("DELETE FROM unused WHERE version = ?", version);
  }
  some(most: number): readonly string[] {
    const due = "SELECT version FROM unused WHERE not_before <= ? LIMIT ?";
    const found = this.#sql.exec<{ version: string }>(due, Date.now(), most + this.#held.size).toArray();
    return found
      .map(({ version }) => version)
      .filter((version) => !this.#held.has(version))
      .slice(0, most);
  }
}

const urlOf = (version: string): string => `http://bucket/${version}`;
