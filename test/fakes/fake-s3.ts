/**
 * A fake of S3's HTTP interface for tests: buckets in memory, with conditional writes, ranges, lists, and uploads in parts. It checks that
 * requests are signed by its key, not how, and records what was sent. Never waits.
 */
import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

interface Stored {
  readonly body: Buffer;
  readonly etag: string;
  readonly at: Date;
}
const MAX_LIST = 1000;
const xml = (text: string): string => text.replace(/[&<>"]/g, (char) => `&#${char.codePointAt(0)};`);
const etagOf = (body: Buffer): string => `"${createHash("md5").update(body).digest("hex")}"`;

export class FakeS3 {
  readonly accessKeyId = "key-id-of-a-test";
  readonly secretAccessKey = "canary-of-the-secret-key-of-a-bucket-91c2";
  /** `BUCKET/KEY` */
  readonly objects = new Map<string, Stored>();
  /** Lines of requests with their headers, as they came. */
  readonly seen: string[] = [];
  /** Buckets that do not exist; each other one does. */
  readonly missing = new Set<string>();
  /** Requests are answered 503 while this is set. */
  down = false;
  readonly #uploads = new Map<string, Map<number, Buffer>>();
  readonly #server: Server = createServer((request, response) => {
    this.#serve(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });

  static async start(): Promise<FakeS3> {
    const fake = new FakeS3();
    fake.#server.listen(0, "127.0.0.1");
    await once(fake.#server, "listening");
    return fake;
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  async end(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
  /** Keys with this start, in order. */
  keys(start = ""): readonly string[] {
    return [...this.objects.keys()].filter((key) => key.startsWith(start)).sort();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const method = request.method ?? "GET";
    const url = new URL(request.url ?? "/", "http://s3");
    const header = (name: string): string | undefined => request.headers[name]?.toString();
    this.seen.push(`${method} ${request.url ?? ""} ${JSON.stringify(request.headers)}`);
    const fails = (status: number, code: string): void =>
      void response
        .writeHead(status, { "content-type": "application/xml" })
        .end(`<Error><Code>${code}</Code><Message>${code}</Message></Error>`);
    if (this.down) return fails(503, "SlowDown");
    if (!(header("authorization") ?? "").includes(`Credential=${this.accessKeyId}/`)) return fails(403, "AccessDenied");
    const path = decodeURIComponent(url.pathname).slice(1);
    const [bucket = "", ...rest] = path.split("/");
    if (this.missing.has(bucket)) return fails(404, "NoSuchBucket");
    const query = url.searchParams;
    if (rest.join("/") === "") {
      if (method === "POST" && query.has("delete")) {
        for (const [, key = ""] of body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)) this.objects.delete(`${bucket}/${key}`);
        return void response.writeHead(200).end("<DeleteResult/>");
      }
      return method === "GET" ? this.#list(bucket, query, response) : void response.writeHead(200).end();
    }
    const stored = this.objects.get(path);
    const uploadId = query.get("uploadId") ?? "";
    if (method === "POST" && query.has("uploads")) {
      const id = randomUUID();
      this.#uploads.set(id, new Map());
      return void response.writeHead(200).end(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
    }
    if (method === "PUT" && uploadId !== "") {
      this.#uploads.get(uploadId)?.set(Number(query.get("partNumber")), body);
      return void response.writeHead(200, { etag: etagOf(body) }).end();
    }
    if ((method === "PUT" || (method === "POST" && uploadId !== "")) && !isMet(header, stored)) return fails(412, "PreconditionFailed");
    if (method === "POST" && uploadId !== "") {
      const parts = [...(this.#uploads.get(uploadId) ?? [])].sort(([one], [other]) => one - other).map(([, part]) => part);
      const { etag } = this.#put(path, Buffer.concat(parts));
      return void response.writeHead(200).end(`<CompleteMultipartUploadResult><ETag>${xml(etag)}</ETag></CompleteMultipartUploadResult>`);
    }
    if (method === "PUT") return void response.writeHead(200, { etag: this.#put(path, body).etag }).end();
    if (method === "DELETE") {
      if (uploadId !== "") this.#uploads.delete(uploadId);
      else if (!isMet(header, stored)) return fails(412, "PreconditionFailed");
      else this.objects.delete(path);
      return void response.writeHead(204).end();
    }
    if (stored === undefined) return fails(404, "NoSuchKey");
    if (header("if-none-match") === stored.etag) return void response.writeHead(304, { etag: stored.etag }).end();
    const range = /^bytes=(\d+)-(\d*)$/.exec(header("range") ?? "");
    const [from, to] =
      range === null ? [0, stored.body.length] : [Number(range[1]), range[2] === "" ? stored.body.length : Number(range[2]) + 1];
    const part = stored.body.subarray(from, to);
    response.writeHead(range === null ? 200 : 206, {
      etag: stored.etag,
      "last-modified": stored.at.toUTCString(),
      "content-length": part.length,
      ...(range === null ? {} : { "content-range": `bytes ${from}-${from + part.length - 1}/${stored.body.length}` }),
    });
    response.end(method === "HEAD" ? undefined : part);
  }

  #put(path: string, body: Buffer): Stored {
    const stored = { body, etag: etagOf(body), at: new Date() };
    this.objects.set(path, stored);
    return stored;
  }

  #list(bucket: string, query: URLSearchParams, response: ServerResponse): void {
    const prefix = query.get("prefix") ?? "";
    const delimiter = query.get("delimiter") ?? "";
    const after = query.get("continuation-token") ?? query.get("start-after") ?? "";
    const most = Math.min(Number(query.get("max-keys") ?? MAX_LIST), MAX_LIST);
    const groups = new Set<string>();
    const found: string[] = [];
    let last = "";
    let isCut = false;
    for (const path of this.keys(`${bucket}/${prefix}`)) {
      const key = path.slice(bucket.length + 1);
      if (key <= after) continue;
      if (found.length + groups.size >= most) {
        isCut = true;
        break;
      }
      last = key;
      const cut = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
      if (cut >= 0) groups.add(key.slice(0, cut + delimiter.length));
      else found.push(key);
    }
    const contents = found.map((key) => {
      const { etag, body, at } = this.objects.get(`${bucket}/${key}`) as Stored;
      return `<Contents><Key>${xml(key)}</Key><LastModified>${at.toISOString()}</LastModified><ETag>${xml(etag)}</ETag><Size>${body.length}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
    });
    const prefixes = [...groups].map((group) => `<CommonPrefixes><Prefix>${xml(group)}</Prefix></CommonPrefixes>`);
    response
      .writeHead(200, { "content-type": "application/xml" })
      .end(
        `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>${bucket}</Name><Prefix>${xml(prefix)}</Prefix><KeyCount>${found.length + groups.size}</KeyCount><MaxKeys>${most}</MaxKeys><IsTruncated>${isCut}</IsTruncated>${isCut ? `<NextContinuationToken>${xml(last)}</NextContinuationToken>` : ""}${contents.join("")}${prefixes.join("")}</ListBucketResult>`,
      );
  }
}

function isMet(header: (name: string) => string | undefined, stored: Stored | undefined): boolean {
  if (header("if-none-match") === "*" && stored !== undefined) return false;
  const wanted = header("if-match");
  return wanted === undefined || (stored !== undefined && (wanted === "*" || wanted === stored.etag));
}
