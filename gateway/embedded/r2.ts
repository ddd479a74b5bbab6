/**
 * An R2 bucket on this machine: the service behind workerd's `r2Bucket` binding. Objects are plain files, so that a person can
 * read and edit their agent's workspace; what a file can't say (etag, metadata, checksums) is in a table beside it. The machines of a
 * cluster have no folder in common, so its objects are in the bucket that it shares.
 *
 * Not here: multipart uploads, storage classes, customer keys; a key that needs a folder where a file is (`a` and `a/b`).
 * Links are never followed: they could lead out of the workspace.
 *
 * Configuration (see README.md beside this): bindings NS (this class) and FS (disk service, writable; `SHARED`: a cluster's bucket).
 */
import { DurableObject } from "cloudflare:workers";
import { addGcPressure } from "../../protocol/runtime/gc-pressure.ts";
import { NewerStateError } from "../src/ports/newer-state.ts";
import { conditionsHold, parseRangeHeader, resolveRange } from "./conditions.ts";
import { Disk } from "./disk.ts";
import { keyProblem } from "./keys.ts";
import { Objects } from "./objects.ts";
import { type Row, Rows } from "./rows.ts";
import { SharedObjects } from "./shared.ts";
import type { Store } from "./store.ts";
import {
  BUFFER_BYTES,
  CODE,
  MAX_LOOKS,
  MAX_OBJECT_BYTES,
  R2Failure,
  answer,
  encodeCursor,
  failure,
  objectJson,
  parseRead,
  parseWrite,
  readExactly,
  type ListRequest,
  type ReadRequest,
} from "./wire.ts";

interface Env {
  readonly NS: DurableObjectNamespace;
  readonly FS: Fetcher;
  /** "1": FS is a bucket of a cluster. */
  readonly SHARED?: string;
}
/** The runtime takes at most 1 MiB of metadata; a page of a list ends well before. */
const PAGE_CHARS = 256 * 1024;
const PARALLEL_STATS = 64;
/** Larger reads are streamed, so that no copies wait for the collector. */
const READ_BUFFER_BYTES = 64 * 1024;

export class R2 extends DurableObject<Env> {
  #store: Store | undefined;

  /** Opened by a request, whose answer says it when a newer version has written the table: an exception of the constructor loses its words. */
  get #objects(): Store {
    if (this.#store === undefined) {
      const rows = new Rows(this.ctx.storage);
      this.#store =
        this.env.SHARED === "1" ? new SharedObjects(rows, this.ctx.storage, this.env.FS) : new Objects(rows, new Disk(this.env.FS));
    }
    return this.#store;
  }

  override async fetch(request: Request): Promise<Response> {
    try {
      return request.method === "PUT"
        ? await this.#write(request)
        : await this.#read(parseRead(request.headers.get("cf-r2-request") ?? ""));
    } catch (error) {
      if (error instanceof R2Failure) return failure(error);
      if (error instanceof NewerStateError) return failure(new R2Failure(503, CODE.internal, error.message));
      console.error("r2:", error);
      return failure(
        new R2Failure(
          500,
          CODE.internal,
          "The agent's files could not be read or written. Is the disk full, the folder not writable, or the cluster's bucket not reachable?",
        ),
      );
    }
  }

  // ---------------------------------------------------------------- reading

  async #read(request: ReadRequest): Promise<Response> {
    if (request.method === "list") return this.#list(request);
    if (request.method === "head") return answer(objectJson(await this.#require(request.key)));

    for (let look = 1; ; look++) {
      // Opening a whole file tells what a look at it would: each look and each opening is a request to the disk service.
      const isPlain = look === 1 && request.onlyIf === undefined && request.range === undefined && request.rangeHeader === undefined;
      const row = (isPlain ? this.#objects.seen(request.key) : undefined) ?? (await this.#require(request.key));
      if (!conditionsHold(request.onlyIf, row)) {
        return failure(new R2Failure(412, CODE.preconditionFailed, "A precondition did not hold."), objectJson(row));
      }
      const asked = request.rangeHeader === undefined ? request.range : parseRangeHeader(request.rangeHeader);
      const range = asked && resolveRange(asked, row.size);
      if (range === null) throw new R2Failure(416, CODE.invalidRange, "The range is not within the object.");
      const json = { ...objectJson(row), ...(range && { range: { offset: String(range.offset), length: String(range.length) } }) };
      const bytes = range?.length ?? row.size;
      if (bytes === 0) return answer(json, new Uint8Array());

      const body = await this.#objects.open(row, range);
      if (body !== null) {
        if (bytes > READ_BUFFER_BYTES) addGcPressure(bytes);
        return answer(json, bytes <= READ_BUFFER_BYTES ? new Uint8Array(await new Response(body).arrayBuffer()) : body, bytes);
      }
      if (look === MAX_LOOKS) throw new R2Failure(503, CODE.internal, "The file keeps changing. Try again.");
    }
  }

  async #require(key: string): Promise<Row> {
    const row = keyProblem(key) === null ? await this.#objects.one(key) : undefined;
    if (row === undefined) throw new R2Failure(404, CODE.noSuchKey, "The specified key does not exist.");
    return row;
  }

  async #list(request: ListRequest): Promise<Response> {
    const objects: Record<string, unknown>[] = [];
    const prefixes: string[] = [];
    const walk = this.#objects.keys(request.prefix, request.after);
    let chars = 0;
    let last = request.after;
    let truncated = false;
    let batch: string[] = [];
    const settleBatch = async (): Promise<void> => {
      for (const row of await this.#objects.many(batch)) {
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
      for (const key of request.keys) if (keyProblem(key) === null) await this.#objects.delete(key);
      return new Response(null);
    }
    const total = Number(http.headers.get("content-length") ?? Number.NaN);
    if (!(total >= size)) throw new R2Failure(411, CODE.invalidArgument, "The object's length is not known.");
    const bytes = total - size;
    if (bytes > MAX_OBJECT_BYTES) throw new R2Failure(400, CODE.tooLarge, "The object is too large.");
    const problem = keyProblem(request.key);
    if (problem !== null) throw new R2Failure(400, CODE.invalidKey, problem);
    return answer(objectJson(await this.#objects.put(request, body, bytes)));
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const bucket = (): Promise<Response> => env.NS.getByName("gsv-storage").fetch(request);
    // In a cluster, a request to a machine that is lost fails when the machine's lease has ended. A read finds the object elsewhere then.
    return env.SHARED === "1" && request.method === "GET" ? bucket().catch(bucket) : bucket();
  },
};
